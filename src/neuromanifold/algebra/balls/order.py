"""Balls in order: comparisons, which have to be decided, and extremes, which do not.

What the balls do not decide, a comparison of two that overlap, is None, and what follows from it
encloses what follows from either side. A number compared with itself is decided: the maximum of
several balls is one of them where that is decided, and that one is known to be equal to it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from neuromanifold.algebra.balls.arrays import entrywise
from neuromanifold.algebra.balls.lifting import BallRule, cumulative, of_several, over_axes
from neuromanifold.errors import NotCoveredError


class UndecidedError(NotCoveredError):
    """Two balls overlap, so what a comparison between them decides is not known."""


UNDECIDED = (
    "two balls overlap, so which number is the larger one is not decided; take more bits, or "
    "other weights if the two are equal"
)


def less(x: Any, y: Any) -> bool | None:
    """Whether x < y; None where both are met."""
    if x < y:
        return True
    return False if x >= y or _is_same(x, y) else None


def _is_same(x: Any, y: Any) -> bool:
    """Whether two balls are one and hold a number, which NaN is not known to be."""
    return x is y and not x.is_nan()


def larger(x: Any, y: Any) -> Any:
    """The maximum: that very ball where it is decided which, else what encloses it."""
    if x < y:
        return y
    return x if x is y or x >= y else x.max(y)


def smaller(x: Any, y: Any) -> Any:
    """The minimum: that very ball where it is decided which, else what encloses it."""
    if x < y:
        return x
    return y if x is y or x >= y else x.min(y)


def _clamped(low: Any, x: Any, high: Any) -> Any:
    return smaller(larger(x, low), high)


def _truth(function: Callable[..., bool | None]) -> BallRule:
    """Truth values, None among them where both are met."""

    def rule(_: Any, operands: Sequence[np.ndarray]) -> list[Any]:
        found = entrywise(function, *operands)
        return [found if (found == None).any() else found.astype(bool)]  # noqa: E711

    return rule


def _all(*values: bool | None) -> bool | None:
    return False if False in values else None if None in values else True


def _any(*values: bool | None) -> bool | None:
    return True if True in values else None if None in values else False


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _is_finite(x: Any) -> bool | None:
    """Whether a number is finite, which balls without bounds do not tell."""
    return x.is_finite() or (None if x.is_nan() or not x.is_exact() else False)


def _greater(x: Any, y: Any) -> bool | None:
    return less(y, x)


def _at_least(x: Any, y: Any) -> bool | None:
    return _not(less(x, y))


def _at_most(x: Any, y: Any) -> bool | None:
    return _not(less(y, x))


def _differ(x: Any, y: Any) -> bool | None:
    return _any(less(x, y), less(y, x))


def _equal(x: Any, y: Any) -> bool | None:
    return _not(_differ(x, y))


ORDER: dict[str, BallRule] = {
    "and": _truth(_all),
    "clamp": of_several(_clamped),
    "cummax": cumulative(larger),
    "cummin": cumulative(smaller),
    "eq": _truth(_equal),
    "ge": _truth(_at_least),
    "gt": _truth(_greater),
    "is_finite": _truth(_is_finite),
    "le": _truth(_at_most),
    "le_to": _truth(_at_most),
    "lt": _truth(less),
    "lt_to": _truth(less),
    "max": of_several(larger),
    "min": of_several(smaller),
    "ne": _truth(_differ),
    "not": _truth(_not),
    "or": _truth(_any),
    "reduce_max": over_axes(larger, -np.inf),
    "reduce_min": over_axes(smaller, np.inf),
}
