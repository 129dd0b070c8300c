"""Balls rounded: where a step is not decided, what encloses both of its sides."""

import operator
from collections.abc import Callable
from typing import Any

from flint import arb

from neuromanifold.algebra.balls.lifting import BallRule, of_several, unary
from neuromanifold.algebra.balls.order import UndecidedError

_HALF = arb(0.5)


def _step(name: str) -> Callable[[Any], Any]:
    """Rounding down or up; at a whole number what it is on both sides."""
    rounded = operator.methodcaller(name)

    def step(x: Any) -> Any:
        is_edge = x.is_exact() and x.is_integer()
        return rounded(x - _HALF).union(rounded(x + _HALF)) if is_edge else rounded(x)

    return step


_down, _up = _step("floor"), _step("ceil")


def _nearest(x: Any) -> Any:
    """The nearest whole number; halfway, where the ways of rounding differ, both."""
    return _down(x + _HALF)


def _remainder(x: Any, y: Any) -> Any:
    """What is left of x with its sign, x − y q for the whole part q of x/y.

    Of a quotient around zero, what encloses it rounded down holds zero and all parts below as well.
    """
    quotient = x / y
    if abs(quotient) < 1:
        return x
    return x - y * (_up(quotient) if quotient < 0 else _down(quotient))


def whole(x: Any) -> int:
    """The whole number next to x towards zero, decided."""
    ends = [
        (end.floor() if end >= 0 else end.ceil()).unique_fmpz() for end in (x.lower(), x.upper())
    ]
    if None in ends or ends[0] != ends[1]:
        raise UndecidedError("a ball contains a whole number, so rounding it is not decided")
    return int(ends[0])


ROUNDING: dict[str, BallRule] = {
    "ceil": unary(_up),
    "floor": unary(_down),
    "rem": of_several(_remainder),
    "round": unary(_nearest),
}
