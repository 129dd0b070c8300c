"""How far a computed point of a fiber is from it: what was asked for against what came out."""

from dataclasses import dataclass

import numpy as np

from neuromanifold.fibers.agreement import LARGEST_TOLERANCE, UNDECIDED_FACTOR
from neuromanifold.fibers.evidence import gather
from neuromanifold.fibers.outputs import common_units, output_difference, outputs, random_inputs
from neuromanifold.networks.weights import Weights

_INPUTS = 4


@dataclass(frozen=True, slots=True)
class Deviation:
    """The distance of two functions that should be equal.

    Attributes:
        compared: the invariant, or the outputs, that it was measured in.
        distance: relative to the size of what was compared.
        tolerance: the distance that rounding explains.
    """

    compared: str
    distance: float
    tolerance: float

    @property
    def explained(self) -> bool:
        """Whether rounding explains the distance, and could not explain just any distance."""
        near = self.distance <= UNDECIDED_FACTOR * self.tolerance
        return bool(near and self.tolerance <= LARGEST_TOLERANCE)

    def __str__(self) -> str:
        return f"distance {self.distance:.1e} in {self.compared}, tolerance {self.tolerance:.1e}"


def deviation(first: Weights, second: Weights, *, seed: int = 0) -> Deviation:
    """The distance of two functions in what distinguishes them best (eq-6).

    In the invariants, where a network has them: they show what outputs may hide. Else at random
    inputs, at the one where the distance is largest compared with what rounding does there.
    """
    units = common_units(first, second)
    evidence = gather(first, second, units)
    if evidence.compared:
        found = [Deviation(one.name, one.distance, one.tolerance) for one in evidence.compared]
        return max(found, key=lambda one: (not one.explained, one.distance))
    if evidence.equal is not None:
        return Deviation("the zero function", 0.0, 0.0)
    X = random_inputs((first.architecture, second.architecture), 2 * _INPUTS, seed)
    apart = output_difference(*(outputs(scaled, X, seed) for scaled in units))
    at = apart.telling
    size = apart.sizes[at] or 1.0
    tolerance = apart.bounds[at] / size / UNDECIDED_FACTOR
    return Deviation("the outputs", float(apart.differences[at] / size), float(tolerance))


def function_deviation(first: Weights, second: Weights, *, seed: int) -> float:
    """The largest ‖φ − φ'‖ / ‖φ‖ at a few random inputs, 0 where both are 0 (eq-6).

    For a residual skip both are less the input, which they add unchanged.
    """
    X = random_inputs((first.architecture, second.architecture), _INPUTS, seed)
    units = common_units(first, second)
    found = output_difference(*(outputs(scaled, X, seed) for scaled in units))
    return float((found.differences / np.where(found.sizes > 0, found.sizes, 1.0)).max())
