"""Random points of a fiber (eq-6)."""

from dataclasses import dataclass

import numpy as np

from neuromanifold.display import Displayed, Recorded
from neuromanifold.errors import ArgumentError
from neuromanifold.fibers.normal_form.factors import numeric_rank
from neuromanifold.fibers.outputs import function_deviation
from neuromanifold.fibers.units import in_float64
from neuromanifold.networks.weights import Weights, generator_of
from neuromanifold.symmetry.attention import attention_network, named
from neuromanifold.symmetry.families import families_of
from neuromanifold.symmetry.group_element import GroupElement
from neuromanifold.symmetry.heads import HeadMixing

_LARGEST_CONDITION = 1e12
"""Beyond it a matrix and its inverse have hardly a digit in common, in float64."""
_LARGEST_DEVIATION = 1e-3
"""Relative difference of outputs beyond which rounded points are not called points of the fiber."""


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
        noun = "point" if self.count == 1 else "points"
        return (
            f"{self.count} {noun} of the fiber, moved by {', '.join(self.families)} with "
            f"condition numbers up to {self.condition:g} (seed {self.seed}); their outputs differ "
            f"by at most {self.deviation:.2g}."
        )


def sample_fiber(
    weights: Weights, count: int, *, seed: int = 0, condition: float = 10.0
) -> FiberSample:
    """Random points of the fiber of `weights` (eq-6).

    Every point is moved by a random element of all families that hold, and by head mixing where
    that acts as a group and keys and outer factors of values have full rank (head-mixing).

    Args:
        weights: a point of the fiber.
        count: how many points to draw.
        seed: where the group elements come from.
        condition: a bound on the condition number of every matrix in a group element, at least 1.
    """
    if count < 1:
        raise ArgumentError(f"count must be at least 1; got {count}")
    if not 1 <= condition <= _LARGEST_CONDITION:
        raise ArgumentError(
            f"condition must be from 1 to {_LARGEST_CONDITION:.0e}, since the points are rounded "
            f"to float64; got {condition}"
        )
    W, architecture = in_float64(weights), weights.architecture
    generator, mixed = generator_of(seed), _lets_heads_mix(W)
    parts = GroupElement.identity(architecture).families
    others = [
        family
        for family in families_of(attention_network(architecture))
        if family.is_group and family.name not in (*parts, *([] if mixed else [HeadMixing.name]))
    ]
    points = []
    for _ in range(count):
        element = GroupElement.random(architecture, generator, condition, mixed=mixed)
        point = named(element.act(W))
        for family in others:
            point = family.act(family.random(generator, condition), point)
        points.append(Weights.from_named(architecture, point))
    names = (*parts, *(family.name for family in others))
    families = tuple(name for name in names if mixed or name != HeadMixing.name)
    deviation = max(function_deviation(W, point, seed=seed) for point in points)
    if not deviation <= _LARGEST_DEVIATION and _is_lost_by_moving(weights, seed, condition):
        raise ArgumentError(
            f"rounded to float64, points moved with condition {condition:.3g} differ from the "
            f"function by {deviation:.2g}: take a smaller condition"
        )
    return FiberSample(tuple(points), families, condition, seed, deviation)


def _is_lost_by_moving(weights: Weights, seed: int, condition: float) -> bool:
    """Whether rotated points are close; outputs that cancel differ by their rounding anyway."""
    if condition == 1:
        return False
    return sample_fiber(weights, 1, seed=seed, condition=1.0).deviation <= _LARGEST_DEVIATION


def _lets_heads_mix(weights: Weights) -> bool:
    """Whether every K_h is injective and every O_h onto: queries and values can take up a change.

    Singular values count as zero as they do when factors are matched.
    """
    stacks = [layer.arrays() for layer in weights.layers]
    return all(
        numeric_rank(np.linalg.svd(T, compute_uv=False)) == T.shape[axis]
        for layer in stacks
        for name, axis in (("key", 1), ("output", 0))
        for T in layer.get(name, ())
    )
