"""Random points of a fiber (eq-6)."""

from dataclasses import dataclass

import numpy as np

from neuromanifold.display import Displayed, Recorded
from neuromanifold.errors import ArgumentError
from neuromanifold.fibers.outputs import function_deviation
from neuromanifold.fibers.units import in_float64
from neuromanifold.networks.weights import Weights
from neuromanifold.symmetry.attention import attention_network, named
from neuromanifold.symmetry.families import families_of
from neuromanifold.symmetry.group_element import GroupElement


@dataclass(frozen=True, slots=True)
class FiberSample(Displayed, Recorded):
    """Random weights with the function of given weights.

    Attributes:
        points: the weights, float64.
        families: which symmetries moved them.
        condition: the bound on the condition numbers of the group elements.
        seed: the seed of the group elements.
        deviation: the largest relative difference of outputs that was measured at random inputs.
    """

    points: tuple[Weights, ...]
    families: tuple[str, ...]
    condition: float
    seed: int
    deviation: float
    _json = "count families condition seed deviation"

    @property
    def count(self) -> int:
        """How many points; the weights go to files of their own."""
        return len(self.points)

    def __str__(self) -> str:
        return (
            f"{len(self.points)} points of the fiber, moved by {', '.join(self.families)} with "
            f"condition numbers up to {self.condition:g} (seed {self.seed}); their outputs differ "
            f"by at most {self.deviation:.2g}."
        )


def sample_fiber(
    weights: Weights, count: int, *, seed: int = 0, condition: float = 10.0
) -> FiberSample:
    """Random points of the fiber of `weights` (eq-6).

    Every point is moved by a random element of all families that hold, and by head mixing where
    that acts as a group (head-mixing).

    Args:
        weights: a point of the fiber.
        count: how many points to draw.
        seed: where the group elements come from.
        condition: a bound on the condition number of every matrix in a group element, at least 1.
    """
    if count < 1:
        raise ArgumentError(f"count must be at least 1; got {count}")
    if not 1 <= condition < np.inf:
        raise ArgumentError(f"condition must be at least 1 and finite; got {condition}")
    W, architecture = in_float64(weights), weights.architecture
    generator = np.random.default_rng(seed)
    others = [
        family
        for family in families_of(attention_network(architecture))
        if family.name not in GroupElement.identity(architecture).families and family.is_group
    ]
    points = []
    for _ in range(count):
        element = GroupElement.random(architecture, generator, condition, mixed=True)
        point = named(element.act(W))
        for family in others:
            point = family.act(family.random(generator, condition), point)
        points.append(Weights.from_named(architecture, point))
    families = GroupElement.identity(architecture).families
    families = (*families, *(family.name for family in others))
    deviation = max(function_deviation(W, point, seed=seed) for point in points)
    return FiberSample(tuple(points), families, condition, seed, deviation)
