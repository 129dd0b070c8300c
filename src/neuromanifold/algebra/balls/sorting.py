"""Balls sorted: decided where they do not overlap.

Between balls that overlap nothing is decided; a number beside itself is in any order.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from neuromanifold.algebra.balls.lifting import BallRule
from neuromanifold.algebra.balls.order import UNDECIDED, UndecidedError, less

_Extreme = Callable[..., int]


def _compared(x: Any, y: Any) -> int:
    """The sign of x − y, of balls or whole numbers."""
    is_more, is_less = less(y, x), less(x, y)
    if is_more is None or is_less is None:
        raise UndecidedError(UNDECIDED)
    return int(is_more) - int(is_less)


def _place(entries: Sequence[Any], extreme: _Extreme) -> int:
    """Where the extreme ball is: that of the extreme midpoint, if it compares with all others."""
    best = extreme(range(len(entries)), key=lambda i: entries[i].mid())
    for entry in entries:
        _compared(entry, entries[best])
    return best


def _place_of(extreme: _Extreme) -> BallRule:
    def rule(equation: Any, operands: Sequence[np.ndarray]) -> list[Any]:
        (axis,) = equation.params["axes"]
        lines = np.moveaxis(operands[0], axis, -1)
        places = np.empty(lines.shape[:-1], equation.params["index_dtype"])
        for index in np.ndindex(places.shape):
            places[index] = _place(lines[index].tolist(), extreme)
        return [places]

    return rule


def _top_k(equation: Any, operands: Sequence[np.ndarray]) -> list[Any]:
    """The largest, then the largest of the rest: those left at last need no order."""
    axis, count = equation.params["axis"], equation.params["k"]
    lines = np.moveaxis(operands[0], axis, -1)
    places = np.empty((*lines.shape[:-1], count), equation.outvars[1].aval.dtype)
    for index in np.ndindex(lines.shape[:-1]):
        rest = list(range(lines.shape[-1]))
        for k in range(count):
            places[index][k] = rest.pop(_place(lines[index][rest].tolist(), max))
    values = np.take_along_axis(lines, places, axis=-1)
    return [np.moveaxis(x, -1, axis) for x in (values, places)]


def _sort(equation: Any, operands: Sequence[np.ndarray]) -> list[Any]:
    """All operands in the order of the first ones; what is equal stays in the order it is in."""
    axis, count = equation.params["dimension"], equation.params["num_keys"]
    lines = [np.moveaxis(x, axis, -1) for x in operands]
    order = np.empty(lines[0].shape, int)
    for index in np.ndindex(order.shape[:-1]):
        keys = [x[index] for x in lines[:count]]

        def compared(i: int, j: int, keys: list[np.ndarray] = keys) -> int:
            return next((c for c in (_compared(x[i], x[j]) for x in keys) if c), 0)

        order[index] = sorted(range(order.shape[-1]), key=functools.cmp_to_key(compared))
    return [np.moveaxis(np.take_along_axis(x, order, axis=-1), -1, axis) for x in lines]


SORTING: dict[str, BallRule] = {
    "argmax": _place_of(max),
    "argmin": _place_of(min),
    "sort": _sort,
    "top_k": _top_k,
}
