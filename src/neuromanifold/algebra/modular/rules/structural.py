"""Primitives that only move entries: the same NumPy function serves values, residues and masks.

`ARRANGEMENTS[name](equation)` lists one function for each output of the equation; each takes all
the operands as arrays and returns that output. No arithmetic happens, so there is nothing to bound.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from neuromanifold.algebra.modular.recorder import Arrangement


def _unary(*functions: Callable[[np.ndarray], np.ndarray]) -> list[Arrangement]:
    return list(functions)


def _shapes(equation: Any) -> tuple[list[tuple[int, ...]], tuple[int, ...]]:
    return [v.aval.shape for v in equation.invars], equation.outvars[0].aval.shape


def _broadcast_in_dim(equation: Any) -> list[Arrangement]:
    (source, *_), target = _shapes(equation)
    expanded = [1] * len(target)
    for size, axis in zip(source, equation.params["broadcast_dimensions"], strict=True):
        expanded[axis] = size
    return _unary(lambda x: np.broadcast_to(x.reshape(expanded), target))


def _concatenate(equation: Any) -> list[Arrangement]:
    axis = equation.params["dimension"]

    def concatenate(*parts: np.ndarray) -> np.ndarray:
        return np.concatenate(parts, axis)

    return [concatenate]


def _stack(equation: Any) -> list[Arrangement]:
    axis = equation.params["axis"]

    def stack(*parts: np.ndarray) -> np.ndarray:
        return np.stack(parts, axis)

    return [stack]


def _unstack(equation: Any) -> list[Arrangement]:
    before = (slice(None),) * equation.params["axis"]
    return [_window((*before, i, ...)) for i in range(len(equation.outvars))]


def _pad(equation: Any) -> list[Arrangement]:
    """Low, high and interior padding; negative low or high padding cuts entries off."""
    (source, _), target = _shapes(equation)
    into: list[slice] = []
    out_of: list[slice] = []
    for size, length, (low, _, interior) in zip(
        source, target, equation.params["padding_config"], strict=True
    ):
        # Entry i lands at low + i (interior + 1); the first and last that land inside are kept.
        step = interior + 1
        first = max(0, -(low // step))
        last = min(size, -((low - length) // step))
        into.append(slice(low + first * step, max(0, low + (last - 1) * step + 1), step))
        out_of.append(slice(first, max(first, last)))

    def pad(x: np.ndarray, filling: np.ndarray) -> np.ndarray:
        result = np.full(target, filling, dtype=np.result_type(x, filling))
        result[tuple(into)] = x[tuple(out_of)]
        return result

    return [pad]


def _reshape(equation: Any) -> list[Arrangement]:
    """Entries in a new shape; `dimensions`, when given, says in which order the axes are read."""
    _, target = _shapes(equation)
    order = equation.params.get("dimensions")
    if order is None or equation.primitive.name == "squeeze":
        return _unary(lambda x: x.reshape(target))
    return _unary(lambda x: x.transpose(order).reshape(target))


def _rev(equation: Any) -> list[Arrangement]:
    axes = tuple(equation.params["dimensions"])
    return _unary(lambda x: np.flip(x, axes))


def _slice(equation: Any) -> list[Arrangement]:
    starts, limits = equation.params["start_indices"], equation.params["limit_indices"]
    strides = equation.params["strides"] or (1,) * len(starts)
    window = tuple(map(slice, starts, limits, strides))
    return [_window((*window, ...))]


def _split(equation: Any) -> list[Arrangement]:
    axis, stops = equation.params["axis"], np.cumsum(equation.params["sizes"]).tolist()
    before = (slice(None),) * axis
    return [_window((*before, slice(a, b))) for a, b in zip([0, *stops], stops, strict=False)]


def _tile(equation: Any) -> list[Arrangement]:
    times = equation.params["reps"]
    return _unary(lambda x: np.tile(x, times))


def _transpose(equation: Any) -> list[Arrangement]:
    axes = equation.params["permutation"]
    return _unary(lambda x: x.transpose(axes))


def _window(index: tuple[Any, ...]) -> Arrangement:
    def window(x: np.ndarray) -> np.ndarray:
        return x[index]

    return window


UNTOUCHED = frozenset({"copy", "name", "optimization_barrier", "reduce_precision", "stop_gradient"})
"""Primitives whose outputs are their operands: in exact numbers no conversion changes a value."""

ARRANGEMENTS: dict[str, Callable[[Any], list[Arrangement]]] = {
    "broadcast_in_dim": _broadcast_in_dim,
    "concatenate": _concatenate,
    "pad": _pad,
    "reshape": _reshape,
    "rev": _rev,
    "slice": _slice,
    "split": _split,
    "squeeze": _reshape,
    "stack": _stack,
    "tile": _tile,
    "transpose": _transpose,
    "unstack": _unstack,
}
