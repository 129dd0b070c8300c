"""Arrays of balls: NumPy arrays of objects, with matrix products by python-flint."""

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx

PRECISION = 256
"""Bits of a ball's midpoint: a network of a few layers loses a few dozen."""


@contextmanager
def precision(bits: int) -> Any:
    """Balls of so many bits while this lasts."""
    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def balls(values: Any) -> np.ndarray:
    """Exact balls of numbers that floats or integers hold."""
    array = np.asarray(values)
    result = np.empty(array.shape, dtype=object)
    result.reshape(-1)[:] = [arb(x) for x in array.reshape(-1).tolist()]
    return result


def is_balls(array: Any) -> bool:
    """Whether an array holds balls, and not whole numbers or truth values."""
    return isinstance(array, np.ndarray) and array.dtype == object


def entrywise(function: Callable[..., Any], *arrays: Any, dtype: Any = object) -> np.ndarray:
    """A function of balls, entry by entry of arrays or of single ones."""
    shaped = np.broadcast_arrays(*arrays)
    result = np.empty(shaped[0].shape, dtype=dtype)
    flat: Iterable[Any] = zip(*(a.reshape(-1).tolist() for a in shaped), strict=True)
    result.reshape(-1)[:] = [function(*entries) for entries in flat]
    return result


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of matrices, or of stacks of them."""
    if a.ndim == 2:
        rows, columns = a.shape[0], b.shape[1]
        if 0 in (*a.shape, *b.shape):
            return balls(np.zeros((rows, columns)))
        result = np.empty(rows * columns, dtype=object)
        result[:] = (arb_mat(a.tolist()) * arb_mat(b.tolist())).entries()
        return result.reshape(rows, columns)
    stack = [product(x, y) for x, y in zip(a, b, strict=True)]
    return np.stack(stack) if stack else balls(np.zeros((0, a.shape[1], b.shape[2])))


def midpoints(array: np.ndarray) -> np.ndarray:
    """The nearest floats to the midpoints."""
    return entrywise(_middle, array, dtype=np.float64)


def _middle(x: Any) -> float:
    return float(x.mid())
