"""Balls rounded: where a step is not decided, what encloses both of its sides."""

from typing import Any

from flint import arb

from neuromanifold.algebra.balls.lifting import BallRule, of_several, unary
from neuromanifold.algebra.balls.order import UndecidedError

_HALF = arb(0.5)


def _nearest(x: Any) -> Any:
    """The nearest whole number; halfway, where the ways of rounding differ, both."""
    return (x + _HALF).floor().union((x - _HALF).ceil())


def _remainder(x: Any, y: Any) -> Any:
    """What is left of x with its sign, x − y q for the whole part q of x/y.

    Of a quotient around zero, what encloses it rounded down holds zero and all parts below as well.
    """
    quotient = x / y
    if abs(quotient) < 1:
        return x
    return x - y * (quotient.ceil() if quotient < 0 else quotient.floor())


def whole(x: Any) -> int:
    """The whole number next to x towards zero, decided."""
    ends = [
        (end.floor() if end >= 0 else end.ceil()).unique_fmpz() for end in (x.lower(), x.upper())
    ]
    if None in ends or ends[0] != ends[1]:
        raise UndecidedError("a ball contains a whole number, so rounding it is not decided")
    return int(ends[0])


ROUNDING: dict[str, BallRule] = {
    "ceil": unary(arb.ceil),
    "floor": unary(arb.floor),
    "rem": of_several(_remainder),
    "round": unary(_nearest),
}
