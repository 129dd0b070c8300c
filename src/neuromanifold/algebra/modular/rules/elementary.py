"""Elementary functions as rational functions of formal ones: exp, log, √, erf, (cos, sin)."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import source_info_util

from neuromanifold.algebra.modular.formal.primitives import Kind, formal_p
from neuromanifold.algebra.modular.literals import with_float64
from neuromanifold.errors import NotCoveredError

if TYPE_CHECKING:
    from neuromanifold.algebra.modular.opening import Opening

source_info_util.register_exclusion(__file__)

OpeningRule = Callable[["Opening", Any, Sequence[Any]], list[Any]]
"""From the equation and its operands, JAX or NumPy arrays, to the outputs."""
_Expression = Callable[[Callable[[Kind, Any], Any], Any], Any]
"""From the formal functions of one output, and an operand, to a value."""

_EIGHTHS = 8
"""Floats are whole numbers over powers of two; each power takes one root more."""


def _made(expression: _Expression) -> OpeningRule:
    def rule(opening: "Opening", _: Any, operands: Sequence[Any]) -> list[Any]:
        return [expression(lambda kind, x: opening.formal(kind, x)[0], *operands)]

    return rule


def _turned(expression: Callable[[Any, Any], Any]) -> OpeningRule:
    """An expression of the cosine and the sine."""

    def rule(opening: "Opening", _: Any, operands: Sequence[Any]) -> list[Any]:
        return [expression(*opening.formal("turn", operands[0]))]

    return rule


def _hyperbolic(sign: float) -> OpeningRule:
    """(exp(x) ± exp(−x)) / 2, with exp(−x) = 1 / exp(x)."""

    def expression(f: Callable[[Kind, Any], Any], x: Any) -> Any:
        e = f("exp", x)
        return 0.5 * (e + sign / e)

    return _made(expression)


def _reduce_max(_: "Opening", equation: Any, operands: Sequence[Any]) -> list[Any]:
    """A maximum from which no derivative flows: only where it does not matter which entry it is.

    The program that is recorded keeps a list of such maxima, and the check that the function does
    not depend on them is one of its obligations.
    """
    return [equation.primitive.bind(lax.stop_gradient(operands[0]), **equation.params)]


def _cumulative(opening: "Opening", equation: Any, operands: Sequence[Any]) -> list[Any]:
    (e,) = opening.formal("exp", operands[0])
    return opening.formal("log", lax.cumsum_p.bind(e, **equation.params))


def _pow(opening: "Opening", equation: Any, operands: Sequence[Any]) -> list[Any]:
    """Powers with whole numbers of eighths as exponents, one for each entry; else exp(y log x)."""
    base, exponent = operands
    if isinstance(exponent, np.ndarray) and np.all(np.isfinite(exponent)):
        distinct = np.unique(exponent).tolist()
        if all(Fraction(y).denominator <= _EIGHTHS for y in distinct):
            powers = [_rooted_power(opening, base, Fraction(y)) for y in distinct]
            if len(powers) == 1:
                return powers
            shape = equation.outvars[0].aval.shape
            places = np.broadcast_to(np.searchsorted(distinct, exponent), shape).astype(np.int32)
            return [lax.select_n(places, *(jnp.broadcast_to(x, shape) for x in powers))]
    if isinstance(base, np.ndarray):
        if not np.all(base > 0):
            raise NotCoveredError(
                f"{opening.where(equation)} raises a constant that is not positive to a power that "
                "depends on the arguments; use a positive base"
            )
        return opening.formal("exp", np.log(base) * exponent)
    return opening.formal("exp", exponent * opening.formal("log", base)[0])


def _whole_power(opening: "Opening", equation: Any, operands: Sequence[Any]) -> list[Any]:
    """(√x)² = x, so that |z|² of a complex number needs no root."""
    (y,), exponent = operands, equation.params.get("y", 2)
    x = opening.radicand(y)
    if x is None or exponent % 2:
        return [equation.primitive.bind(y, **equation.params)]
    return [lax.integer_pow(x, exponent // 2)]


def _rooted_power(opening: "Opening", base: Any, exponent: Fraction) -> Any:
    """A whole power of a root, or of a root of a root."""
    while exponent.denominator > 1:
        base, exponent = opening.formal("root", base)[0], 2 * exponent
    return lax.integer_pow(base, int(exponent))


def _convert(opening: "Opening", equation: Any, operands: Sequence[Any]) -> list[Any]:
    if not jax.dtypes.issubdtype(equation.invars[0].aval.dtype, np.floating):
        return [equation.primitive.bind(*operands, **with_float64(equation.params))]
    if not jax.dtypes.issubdtype(equation.params["new_dtype"], np.floating):
        raise NotCoveredError(
            f"{opening.where(equation)} turns values that depend on the arguments into the type "
            f"{equation.params['new_dtype']}, which is no rational function; keep them real"
        )
    return list(operands)


def _again(_: "Opening", equation: Any, operands: Sequence[Any]) -> list[Any]:
    return formal_p.bind(*operands, **equation.params)


OPENINGS: dict[str, OpeningRule] = {
    "acosh": _made(lambda f, x: f("log", x + f("root", x * x - 1.0))),
    "asinh": _made(lambda f, x: f("log", x + f("root", x * x + 1.0))),
    "atanh": _made(lambda f, x: 0.5 * f("log", (1.0 + x) / (1.0 - x))),
    "convert_element_type": _convert,
    "cos": _turned(lambda cos, _: cos),
    "cosh": _hyperbolic(1.0),
    "cumlogsumexp": _cumulative,
    "erf": _made(lambda f, x: f("erf", x)),
    "erfc": _made(lambda f, x: 1.0 - f("erf", x)),
    "exp": _made(lambda f, x: f("exp", x)),
    "exp2": _made(lambda f, x: f("exp", np.log(2.0) * x)),
    "expm1": _made(lambda f, x: f("exp", x) - 1.0),
    "formal": _again,
    "integer_pow": _whole_power,
    "log": _made(lambda f, x: f("log", x)),
    "log1p": _made(lambda f, x: f("log", 1.0 + x)),
    "logistic": _made(lambda f, x: 1.0 - 1.0 / (1.0 + f("exp", x))),  # a mask in x hides it
    "pow": _pow,
    "reduce_max": _reduce_max,
    "rsqrt": _made(lambda f, x: 1.0 / f("root", x)),
    "sin": _turned(lambda _, sin: sin),
    "sinh": _hyperbolic(-1.0),
    "square": _whole_power,
    "sqrt": _made(lambda f, x: f("root", x)),
    "tan": _turned(lambda cos, sin: sin / cos),
    "tanh": _made(lambda f, x: 1.0 - 2.0 / (1.0 + f("exp", 2.0 * x))),
}
"""What some primitives become when a function is opened; all others stay what they are."""
