"""Complex numbers as pairs of real ones (docs/explanation/engine/complex-numbers.md).

A complex value is a pair (real, imaginary) of real arrays, the second of them None where it is zero
for all arguments. Each primitive below becomes what it does to the parts, in real JAX:

- what is linear over the real numbers and moves or adds entries acts on both parts alike;
- a bilinear product B has the parts B(a, c) − B(b, d) and B(a, d) + B(b, c);
- a discrete Fourier transform of length n is the matrix of the powers of e^(−2πi/n). Those of 1, 2
  and 4 are 1, −i, −1, i; of all other lengths some have parts that are not rational, and no float
  is such a part: a transform by floats and its inverse would not be the identity.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import source_info_util
from jax.extend.core import jaxprs_in_params

from neuromanifold.algebra.modular.literals import with_float64
from neuromanifold.algebra.modular.rules.structural import ARRANGEMENTS
from neuromanifold.errors import NotCoveredError

source_info_util.register_exclusion(__file__)

Pair = tuple[Any, Any]
"""The real part of a value, and the imaginary one or None."""
_QUARTER_TURNS = np.array([1.0, -1j, -1.0, 1j])


def is_complex(variable: Any) -> bool:
    """Whether a variable of a jaxpr is complex."""
    return jnp.issubdtype(getattr(variable.aval, "dtype", np.float64), np.complexfloating)


def has_complex(jaxpr: Any) -> bool:
    """Whether a jaxpr, or one inside it, has complex values."""
    return any(
        any(map(is_complex, equation.outvars))
        or any(map(has_complex, jaxprs_in_params(equation.params)))
        for equation in jaxpr.eqns
    )


def in_parts(where: str, equation: Any, operands: Sequence[Pair]) -> Sequence[Pair]:
    """What an equation with complex operands or results does to their parts."""
    name = equation.primitive.name
    if name in _ALIKE:
        return _alike(equation, operands)
    if name in _BILINEAR:
        return [_product(functools.partial(_bound, equation), *operands)]
    if name == "fft":
        return [_transformed(where, equation, *operands)]
    if name in _RULES:
        return [_RULES[name](equation, *operands)]
    raise NotCoveredError(
        f"{where} is taken of complex values that depend on the arguments, which is not covered; "
        "write it with real and imaginary parts"
    )


def _bound(equation: Any, *operands: Any, **params: Any) -> Any:
    return equation.primitive.bind(*operands, **with_float64(equation.params) | params)


def _alike(equation: Any, operands: Sequence[Pair]) -> Sequence[Pair]:
    """The same operation on both parts; places and choices are the same for both."""
    filling = equation.params.get("fill_value")
    real = _bound(equation, *(x for x, _ in operands), **_filled(filling, np.real))
    several = equation.primitive.multiple_results
    imaginary = [None] * len(equation.outvars)
    if any(y is not None for _, y in operands):
        parts = [
            x if not is_complex(variable) else jnp.zeros_like(x) if y is None else y
            for variable, (x, y) in zip(equation.invars, operands, strict=True)
        ]
        found = _bound(equation, *parts, **_filled(filling, np.imag))
        imaginary = found if several else [found]
    return list(zip(real if several else [real], imaginary, strict=True))


def _filled(filling: Any, part: Callable[[Any], Any]) -> dict[str, Any]:
    return {} if filling is None else {"fill_value": float(part(filling))}


def _product(bilinear: Callable[[Any, Any], Any], left: Pair, right: Pair) -> Pair:
    """(a + bi)(c + di) = (ac − bd) + (ad + bc) i."""
    (a, b), (c, d) = left, right

    def times(x: Any, y: Any) -> Any:
        return None if x is None or y is None else bilinear(x, y)

    square = times(b, d)
    real = times(a, c) if square is None else times(a, c) - square
    crossed = [x for x in (times(a, d), times(b, c)) if x is not None]
    return real, functools.reduce(lax.add, crossed) if crossed else None


def _divided(_: Any, left: Pair, right: Pair) -> Pair:
    """z/w = z w̄ / (w w̄)."""
    if right[1] is not None:
        left = _product(lax.mul, left, _conjugate(None, right))
        right = (_squared_norm(right), None)
    return left[0] / right[0], None if left[1] is None else left[1] / right[0]


def _power(equation: Any, z: Pair) -> Pair:
    exponent = equation.params.get("y", 2)
    one = (jnp.ones_like(z[0]), None)
    power = functools.reduce(functools.partial(_product, lax.mul), [z] * abs(exponent), one)
    return power if exponent >= 0 else _divided(None, one, power)


def _conjugate(_: Any, z: Pair) -> Pair:
    return z[0], None if z[1] is None else -z[1]


def _squared_norm(z: Pair) -> Any:
    return z[0] * z[0] + z[1] * z[1]


def _absolute(_: Any, z: Pair) -> Pair:
    return lax.abs(z[0]) if z[1] is None else lax.sqrt(_squared_norm(z)), None


def _paired(_: Any, x: Pair, y: Pair) -> Pair:
    return x[0], y[0]


def _real(_: Any, z: Pair) -> Pair:
    return z[0], None


def _exponential(_: Any, z: Pair) -> Pair:
    """e^(a + bi) = e^a (cos b + i sin b)."""
    size, angle = lax.exp(z[0]), z[1]
    return (size, None) if angle is None else (size * lax.cos(angle), size * lax.sin(angle))


def _imaginary(_: Any, z: Pair) -> Pair:
    return jnp.zeros_like(z[0]) if z[1] is None else z[1], None


def _converted(_: Any, z: Pair) -> Pair:
    return z if z[1] is not None else (lax.convert_element_type(z[0], np.float64), None)


def _transformed(where: str, equation: Any, z: Pair) -> Pair:
    """Fourier transforms along the last axes, of real values along the very last one first."""
    kind, lengths = equation.params["fft_type"], equation.params["fft_lengths"]
    other = next((n for n in lengths if n not in (1, 2, 4)), None)
    if other is not None:
        raise NotCoveredError(
            f"{where} has length {other} and multiplies by roots of unity, which are rational for "
            "the lengths 1, 2 and 4 only; multiply by matrices of cosines and sines, taken as the "
            "value of their floats"
        )
    axes = range(-len(lengths), 0)
    halved = kind in (lax.FftType.RFFT, lax.FftType.IRFFT)
    for axis in reversed(axes) if kind == lax.FftType.RFFT else axes:
        size = lengths[axis]
        matrix = _QUARTER_TURNS[np.outer(range(size), range(size)) * (4 // size) % 4]
        if kind in (lax.FftType.IFFT, lax.FftType.IRFFT):
            matrix = matrix.conj() / size
        if halved and axis == -1:
            kept = size // 2 + 1
            if kind == lax.FftType.RFFT:
                matrix = matrix[:kept]
            else:  # the others are conjugates of these, 0 and n/2 excepted
                matrix = matrix[:, :kept] * [1 + (0 < 2 * k < size) for k in range(kept)]
        parts = (matrix.real, matrix.imag if matrix.imag.any() else None)
        z = _product(functools.partial(_along, axis), parts, z)
    return (z[0], None) if kind == lax.FftType.IRFFT else z


def _along(axis: int, matrix: np.ndarray, x: Any) -> Any:
    """A matrix applied to one axis."""
    return jnp.moveaxis(jnp.tensordot(matrix, x, (1, x.ndim + axis)), 0, axis)


_ALIKE = frozenset(ARRANGEMENTS) | {
    *("add", "add_any", "sub", "neg", "reduce_sum", "cumsum", "select_n"),
    *("gather", "dynamic_slice", "dynamic_update_slice"),
}
_BILINEAR = frozenset({"mul", "dot_general", "conv_general_dilated"})
_RULES: dict[str, Callable[..., Pair]] = {
    "abs": _absolute,
    "complex": _paired,
    "conj": _conjugate,
    "convert_element_type": _converted,
    "div": _divided,
    "exp": _exponential,
    "imag": _imaginary,
    "integer_pow": _power,
    "real": _real,
    "square": _power,
}

OF_COMPLEX = _ALIKE | _BILINEAR | frozenset(_RULES) | {"fft"}
"""The primitives that may have complex operands or results which depend on the arguments."""
