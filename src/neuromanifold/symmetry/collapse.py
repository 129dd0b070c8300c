"""Scores behind a layer that makes all tokens equal: what no function sees at these weights.

One softmax head without skip and mask. If M_i = 0, or if there are two tokens and M_i is
skew-symmetric, layer i makes all tokens equal, and every later layer leaves them so, whatever its
scores are: its queries and keys are free (softmax-fibers). Generic forms do not collapse. Whether
given ones do is decided for the floats as they are, in rational arithmetic.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from neuromanifold.algebra.dyadic import Dyadic
from neuromanifold.architecture import Architecture
from neuromanifold.networks.family import Family
from neuromanifold.symmetry.translations import Shape, Translations


@dataclass(frozen=True)
class BehindCollapse(Translations):
    """Translations of all queries and keys from layer `first` on, counted from 0."""

    architecture: Architecture
    first: int
    name = "scores behind a collapse"
    statement = "softmax-fibers"

    @property
    def shifts(self) -> tuple[tuple[str, Shape, Shape], ...]:
        """All their entries."""
        return tuple(
            (f"layers.{i}.{name}", shapes[name], shapes[name])
            for i, shapes in enumerate(self.architecture.shapes)
            for name in ("query", "key")
            if i >= self.first
        )


def behind_collapse(architecture: Architecture, forms: Sequence[Dyadic]) -> tuple[Family, ...]:
    """What is free at weights with these forms: nothing unless a layer but the last collapses."""
    first = first_collapsing(architecture, forms) + 1
    return () if first >= len(forms) else (BehindCollapse(architecture, first),)


def first_collapsing(architecture: Architecture, forms: Sequence[Dyadic]) -> int:
    """The first layer, counted from 0, that makes all tokens equal; their number without one."""
    if architecture.averages_tokens and architecture.has_one_head and architecture.is_plain:
        for i, M in enumerate(forms):
            if M.is_zero or (architecture.tokens == 2 and M.is_skew):
                return i
    return len(forms)
