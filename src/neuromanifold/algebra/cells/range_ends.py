"""Where floats end: results that are zero, or infinite, though the number that is meant is neither.

A number below 2^-1022 is 0 in a float, and one above 2^1024 is infinite. Neither its sign nor its
size is known then. Such numbers are *lost*: in their place stands one next to the end of floats,
and only steps may follow that are right for all numbers beyond that end. The logarithm of a lost
number, for one, may be anything.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import jax.numpy as jnp
import numpy as np

# Steps, entry by entry, that make no zero of operands which are none.
_NO_ZERO = frozenset(
    {"div", "erfc", "exp", "exp2", "integer_pow", "logistic", "mul", "pow", "square"}
)
# Steps, entry by entry, that are finite where their operands are, and not zero.
_FINITE = frozenset(
    {"add", "add_any", "cosh", "div", "exp", "exp2", "expm1", "integer_pow", "mul", "pow"}
    | {"sinh", "square", "sub"}
)
_PRODUCTS = frozenset({"cumprod", "reduce_prod"})
_SUMS = frozenset(
    {"add_any", "conv_general_dilated", "cumsum", "dot_general", "reduce_sum"}
    | {"reduce_window_sum", "scatter-add"}
)
_SYSTEMS = frozenset({"lu", "triangular_solve"})
# Differences of numbers above this are no number below 2^-1022 unless they are zero.
_SMALL = 1e-290
LEAST = float(np.finfo(np.float64).tiny)
"""In place of a number too small."""
LARGEST = float(np.finfo(np.float64).max) * (1 - 1e-8)
"""In place of a number too large."""
HUGE = 1e280
"""What is smaller does not matter beside a number too large."""
# A number below it may be made of numbers too small, and of those alone.
_TINY = 1e-280
_NEGLIGIBLE = 1e-30
# Steps that choose among their operands.
_CHOICES = frozenset(
    {"convert_element_type", "dynamic_update_slice", "max", "min", "reduce_max", "reduce_min"}
    | {"select_n"}
)
# Steps, entry by entry, that take numbers too large to a limit, or to a number lost again.
_LIMITS = frozenset({"cosh", "erf", "erfc", "exp", "exp2", "expm1", "logistic", "sinh", "tanh"})
# Steps, entry by entry, that change little next to zero.
_REGULAR = _LIMITS | {"asinh", "atan", "atanh", "cos", "log1p", "sin", "square", "tan"}
_ENTRYWISE = _FINITE | _REGULAR | {"acosh", "cbrt", "log", "rsqrt", "sqrt"}


def ends(equation: Any, operands: Sequence[Any], result: Any) -> tuple[Any, Any]:
    """Where a result is too small, and where it is too large, for a float."""
    overflown = _overflown(equation, operands, result) | _is_huge(result)
    return _vanished(equation, operands, result), overflown


def unknown(equation: Any, operands: Sequence[Any], result: Any) -> Any:
    """Where a result may be anything because operands are lost."""
    if equation.primitive.name in _CHOICES:
        return False
    sizes = [jnp.abs(x) for x in map(jnp.asarray, operands) if x.dtype.kind == "f"]
    tiny = [(x > 0) & (x < _TINY) for x in sizes]
    huge = [_is_huge(x) for x in sizes]
    if equation.primitive.name not in _ENTRYWISE:
        tiny, huge = ([jnp.any(x) for x in lost] for lost in (tiny, huge))
    return _of_tiny(equation, sizes, tiny, jnp.abs(result)) | _of_huge(equation, sizes, huge)


def _is_huge(x: Any) -> Any:
    return (jnp.abs(x) >= LARGEST / 2) & jnp.isfinite(x)


def _of_huge(equation: Any, sizes: Sequence[Any], huge: Sequence[Any]) -> Any:
    """Where operands too large make a result that is not known: not where they reach a limit."""
    name = equation.primitive.name
    if name in _LIMITS:
        return False
    if name in {"add", "add_any", "sub"}:
        return reduce(jnp.logical_or, huge) & (reduce(jnp.minimum, sizes) > HUGE)
    if name == "div":
        return huge[0] | (huge[1] & (sizes[0] * _TINY > 1e-260))
    return reduce(jnp.logical_or, huge, False)


def _of_tiny(equation: Any, sizes: Sequence[Any], tiny: Sequence[Any], result: Any) -> Any:
    """Where operands too small make a result that is not known: not where they do not matter."""
    name = equation.primitive.name
    some, is_small = reduce(jnp.logical_or, tiny, False), result < _TINY
    if name in _REGULAR or (name == "integer_pow" and equation.params["y"] > 0):
        return False
    if name in {"add", "sub"}:
        return tiny[0] & tiny[1] & ~is_small
    if name in {"mul", "scatter-mul"} | _PRODUCTS:
        return some & ~is_small
    if name == "div":
        return tiny[1] | (tiny[0] & ~is_small)
    if name in _SUMS | {"scatter-sub"}:
        largest = reduce(jnp.maximum, (jnp.max(x, initial=1.0) for x in sizes))
        lost = (jnp.max(jnp.where(x < _TINY, x, 0.0), initial=0.0) for x in sizes)
        bound = reduce(jnp.maximum, lost) * largest * max(x.size for x in sizes)
        return some & ~is_small & (bound > _NEGLIGIBLE * result)
    return some


def sum_of_sizes(equation: Any, operands: Sequence[Any]) -> Any:
    """Σ|terms| of a sum with three terms or more, which may lose some of them; 0 for all else.

    A sum of two is zero only if they cancel.
    """
    if equation.primitive.name not in _SUMS - {"add_any"}:
        return 0.0
    real = [jnp.asarray(x) for x in operands]
    sizes = [jnp.abs(x) if x.dtype.kind == "f" else x for x in real]
    terms = [(x != 0).astype(x.dtype) if x.dtype.kind == "f" else x for x in real]
    bind = equation.primitive.bind
    total, count = (bind(*xs, **equation.params) for xs in (sizes, terms))
    return jnp.where(count > 2.5, total, 0.0)


def _vanished(equation: Any, operands: Sequence[Any], result: Any) -> Any:
    """Where a result is zero because the number is too small for a float.

    Sums may be zero because their terms cancel; of numbers that are not small they do so alone.
    """
    name, is_zero = equation.primitive.name, jnp.abs(result) < LEAST
    if name in _NO_ZERO:
        return reduce(jnp.logical_and, (x != 0 for x in operands), is_zero)
    if name in {"add", "sub"}:
        x, y = operands
        return is_zero & (x != (y if name == "sub" else -y))
    if name in _PRODUCTS:
        is_some = jnp.asarray(operands[0] != 0, result.dtype)
        return is_zero & (equation.primitive.bind(is_some, **equation.params) != 0)
    if name in _SUMS:
        real = [x for x in map(jnp.asarray, operands) if x.dtype.kind == "f"]
        sizes = (jnp.min(jnp.where(x == 0, 1.0, jnp.abs(x)), initial=1.0) for x in real)
        return is_zero & (reduce(jnp.multiply, sizes) < _SMALL)
    return is_zero if name in _SYSTEMS else False


def _overflown(equation: Any, operands: Sequence[Any], result: Any) -> Any:
    """Where a result is infinite because the number is too large for a float."""
    name, is_infinite = equation.primitive.name, jnp.isinf(result)
    if name in _FINITE:
        good = (jnp.isfinite(x) for x in operands)
        if name in {"div", "integer_pow", "pow"}:
            good = (jnp.isfinite(x) & (x != 0) for x in operands)
        return reduce(jnp.logical_and, good, is_infinite)
    if name in _PRODUCTS | _SUMS:
        real = [x for x in map(jnp.asarray, operands) if x.dtype.kind == "f"]
        return reduce(jnp.logical_and, (jnp.all(jnp.isfinite(x)) for x in real), is_infinite)
    return False
