"""Functions of one ball or two as rules of arrays: entry by entry, over axes and along one."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from neuromanifold.algebra.balls.arrays import balls, entrywise

BallRule = Callable[[Any, Sequence[np.ndarray]], list[Any]]
"""From an equation and its operands to its outputs."""
OfTwo = Callable[[Any, Any], Any]


def unary(function: Callable[[Any], Any]) -> BallRule:
    """A function of one ball."""

    def rule(_: Any, operands: Sequence[np.ndarray]) -> list[Any]:
        return [entrywise(function, operands[0])]

    return rule


def of_several(function: Callable[..., Any]) -> BallRule:
    """A function of as many balls as there are operands."""

    def rule(_: Any, operands: Sequence[np.ndarray]) -> list[Any]:
        return [entrywise(function, *operands)]

    return rule


def reduced(function: OfTwo, start: float, x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """All balls along axes by an operation of two; `start` if there are none."""
    kept = [i for i in range(x.ndim) if i not in axes]
    shape = tuple(x.shape[i] for i in kept)
    if not x.size:
        return np.broadcast_to(balls(start), shape)
    result, *lines = x.transpose([*axes, *kept]).reshape(-1, *shape)
    for line in lines:
        result = entrywise(function, result, line)
    return np.asarray(result, dtype=object)


def over_axes(function: OfTwo, start: float) -> BallRule:
    """A reduction by an operation of two balls."""

    def rule(equation: Any, operands: Sequence[np.ndarray]) -> list[Any]:
        axes = [int(axis) for axis in equation.params["axes"]]
        return [reduced(function, start, operands[0], axes)]

    return rule


def cumulated(function: OfTwo, equation: Any, x: np.ndarray) -> np.ndarray:
    """The partial results of an operation of two balls along the axis of an equation."""
    axis, step = equation.params["axis"], -1 if equation.params["reverse"] else 1
    if not x.size:
        return x
    lines = list(np.moveaxis(x, axis, 0)[::step])
    for i in range(1, len(lines)):
        lines[i] = entrywise(function, lines[i - 1], lines[i])
    return np.moveaxis(np.stack(lines[::step]), 0, axis)


def cumulative(function: OfTwo) -> BallRule:
    """A cumulative operation."""

    def rule(equation: Any, operands: Sequence[np.ndarray]) -> list[Any]:
        return [cumulated(function, equation, operands[0])]

    return rule
