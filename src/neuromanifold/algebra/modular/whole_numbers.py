"""Whole numbers that JAX makes of 64 bits where functions are read, and of 32 by default.

A function is read in double precision, where whole numbers have 64 bits. In single precision, the
default of JAX, a number beyond 32 bits is another one, so the function is not the one that is read.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

_RANGES: dict[Any, np.iinfo] = {
    np.dtype(np.int64): np.iinfo(np.int32),
    np.dtype(np.uint64): np.iinfo(np.uint32),
}
BEYOND_32_BITS = (
    "makes whole numbers beyond 32 bits, which are others in double precision than in single: "
    "compute with smaller ones, or with real numbers"
)


_OF_BITS = frozenset({"bitcast_convert_type", "clz", "population_count", "shift_right_logical"})


def sees_bits(equation: Any) -> bool:
    """Whether a primitive looks at all bits of a number, of which there are twice as many."""
    types = {variable.aval.dtype for variable in equation.invars}
    wide = {*_RANGES, np.dtype(np.float64)}
    return equation.primitive.name in _OF_BITS and bool(types & wide)


def are_beyond(arrays: Sequence[Any]) -> bool:
    """Whether a constant does not fit into 32 bits."""
    return bool(_beyond(arrays))


def is_wrapped(operands: Sequence[Any], results: Sequence[Any]) -> Any:
    """Whether a result is beyond 32 bits, and no operand is."""
    return _beyond(results) & ~_beyond(operands)


def _beyond(arrays: Sequence[Any]) -> Any:
    found: Any = np.bool_(False)
    for x in arrays:
        limits = _RANGES.get(getattr(x, "dtype", None))
        if limits is not None and x.size:
            found = found | ((x > limits.max) | (x < limits.min)).any()
    return found
