"""Where floats end: results that are zero, or infinite, though the number that is meant is neither.

A number below 2^-1022 is 0 in a float, and one above 2^1024 is infinite. Neither its sign nor its
size is known then, and what is compared with it decides nothing.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import jax.numpy as jnp

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


def ends(equation: Any, operands: Sequence[Any], result: Any) -> tuple[Any, Any]:
    """Where a result is too small, and where it is too large, for a float."""
    return _vanished(equation, operands, result), _overflown(equation, operands, result)


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
    name, is_zero = equation.primitive.name, result == 0
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
