"""Scores behind a layer that makes all tokens equal: what no function sees at these weights.

One softmax head without skip and mask. If M_i = 0, or if there are two tokens and M_i is
skew-symmetric, layer i makes all tokens equal, and every later layer leaves them so, whatever its
scores are: its queries and keys are free (softmax-fibers). Generic forms do not collapse. Whether
given ones do is decided for the floats as they are, in rational arithmetic.
"""

from collections.abc import Sequence

from neuromanifold.algebra.dyadic import Dyadic
from neuromanifold.architecture import Architecture
from neuromanifold.networks.family import Family
from neuromanifold.symmetry.translations import Translations


class BehindCollapse(Translations):
    """Translations of all queries and keys behind a layer that makes all tokens equal."""

    name = "scores behind a collapse"
    statement = "softmax-fibers"


def behind_collapse(architecture: Architecture, forms: Sequence[Dyadic]) -> tuple[Family, ...]:
    """What is free at weights with these forms: nothing unless a layer but the last collapses."""
    first = first_collapsing(architecture, forms) + 1
    free = {
        f"layers.{i}.{name}": architecture.shapes[i][name]
        for i in range(first, len(forms))
        for name in ("query", "key")
    }
    shifts = tuple((name, shape, shape) for name, shape in free.items())
    return (BehindCollapse(shifts),) if shifts else ()


def first_collapsing(architecture: Architecture, forms: Sequence[Dyadic]) -> int:
    """The first layer, counted from 0, that makes all tokens equal; their number without one."""
    if architecture.averages_tokens and architecture.has_one_head and architecture.is_plain:
        for i, M in enumerate(forms):
            if M.is_zero or (architecture.tokens == 2 and M.is_skew):
                return i
    return len(forms)
