"""What depends on no argument is computed in float64, before it is read as rational numbers."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from neuromanifold.algebra.modular.literals import widen
from neuromanifold.algebra.modular.rules.structural import ARRANGEMENTS

# NumPy's own functions, for speed: JAX compiles each primitive for each shape before running it.
_ENTRYWISE: dict[str, Callable[..., np.ndarray]] = {
    "abs": np.abs,
    "add": np.add,
    "add_any": np.add,
    "and": np.bitwise_and,
    "eq": np.equal,
    "exp": np.exp,
    "ge": np.greater_equal,
    "gt": np.greater,
    "is_finite": np.isfinite,
    "le": np.less_equal,
    "log": np.log,
    "lt": np.less,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
    "ne": np.not_equal,
    "neg": np.negative,
    "not": np.bitwise_not,
    "or": np.bitwise_or,
    "sqrt": np.sqrt,
    "square": np.square,
    "sub": np.subtract,
}


def _sum(x: np.ndarray, axis: tuple[int, ...]) -> np.ndarray:
    """The sum in the type of its terms, which NumPy by itself widens if they have few bits."""
    return np.asarray(np.sum(x, axis, dtype=x.dtype))


# Of whole numbers these are of all bits.
_ALONG_AXES: dict[str, Callable[..., np.ndarray]] = {
    "reduce_and": np.bitwise_and.reduce,
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_or": np.bitwise_or.reduce,
    "reduce_sum": _sum,
}


def folded(equation: Any, arrays: Sequence[Any]) -> list[Any]:
    """The outputs of an equation whose operands are all known."""
    results = None
    if all(isinstance(array, np.ndarray) for array in arrays):
        with np.errstate(all="ignore"):
            results = _by_numpy(equation, arrays)
    if results is None:
        return _by_jax(equation, arrays)
    return [np.asarray(result) for result in results]


def plain(array: Any) -> Any:
    """The NumPy array; a random key, which NumPy cannot hold, stays a JAX array."""
    is_key = jax.dtypes.issubdtype(getattr(array, "dtype", None), jax.dtypes.prng_key)
    return array if is_key else np.asarray(array)


def _by_numpy(equation: Any, arrays: Sequence[np.ndarray]) -> Sequence[Any] | None:
    name, params = equation.primitive.name, equation.params
    if name in ARRANGEMENTS:
        return [arrange(*arrays) for arrange in ARRANGEMENTS[name](equation)]
    if name in _ENTRYWISE:
        return [_ENTRYWISE[name](*arrays)]
    if name == "div" and arrays[0].dtype.kind == "f":
        return [np.divide(*arrays)]
    if name in _ALONG_AXES:
        return [_ALONG_AXES[name](arrays[0], axis=tuple(map(int, params["axes"])))]
    if name == "convert_element_type":
        return [converted(arrays[0], params["new_dtype"])]
    if name == "iota":
        return [_iota(params)]
    return None


def converted(array: np.ndarray, dtype: Any) -> np.ndarray:
    """The array in another type; every float becomes a float64."""
    if array.dtype.kind == "f" and jax.dtypes.issubdtype(dtype, np.integer):
        return _whole(array, np.dtype(dtype))
    if not jax.dtypes.issubdtype(dtype, np.floating):
        return array.astype(dtype)
    return widen(array) if array.dtype == np.float32 else array.astype(np.float64)


def _whole(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Floats as whole numbers: the nearest end for what lies outside, 0 for NaN, as in JAX.

    The ends for an infinity are those of 32 bits, JAX's default, so that a program may make and
    leave out the whole part of log 0, as tables of relative positions do.
    """
    ends = jax.numpy.iinfo(dtype)  # NumPy's knows no types of 4 bits
    narrow = ends if ends.bits <= 32 else np.iinfo(f"{dtype.kind}4")
    array = np.nan_to_num(array.astype(np.float64), posinf=narrow.max, neginf=narrow.min)
    inside = np.trunc(array)
    found = np.where((inside > ends.min) & (inside < ends.max), inside, 0).astype(dtype)
    found[inside >= ends.max], found[inside <= ends.min] = ends.max, ends.min
    return found


def _iota(params: dict[str, Any]) -> np.ndarray:
    shape, axis = params["shape"], params["dimension"]
    line = np.arange(shape[axis], dtype=params["dtype"])
    return np.broadcast_to(line.reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape)


def _by_jax(equation: Any, arrays: Sequence[Any]) -> list[Any]:
    if equation.primitive.name == "bitcast_convert_type":  # the bits of the type it asks for
        arrays = [np.asarray(arrays[0]).astype(equation.invars[0].aval.dtype)]
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        result = equation.primitive.bind(*map(jax.numpy.asarray, arrays), **equation.params)
        return [plain(r) for r in (result if equation.primitive.multiple_results else [result])]
