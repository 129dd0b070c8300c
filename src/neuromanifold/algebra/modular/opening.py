"""The function itself: calls inlined, loops unrolled, custom derivatives opened.

What a program says about its derivative (`custom_jvp`, `custom_vjp`, `stop_gradient`) may differ
from the derivative of what it computes, and a rank proves something about a function only if the
function itself is differentiated. So the jaxpr of a function is read once, before anything is
differentiated: values that depend on no argument are folded into NumPy arrays, every call becomes
what it calls, and every transcendental function becomes a rational function of formal ones
(`formal`). The result is an ordinary JAX function.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import source_info_util
from jax.extend.core import Literal

from neuromanifold.algebra.modular.control import CONTROL
from neuromanifold.algebra.modular.folding import folded, plain
from neuromanifold.algebra.modular.formal import Kind, formal, formal_p
from neuromanifold.algebra.modular.literals import in_float64
from neuromanifold.algebra.modular.location import where_from
from neuromanifold.algebra.modular.recorder import Known
from neuromanifold.algebra.modular.tracing import shapes_of, traced
from neuromanifold.errors import NotCoveredError

source_info_util.register_exclusion(__file__)


@dataclass(frozen=True, eq=False, slots=True)
class Traced:
    """A value that depends on the arguments: an array of JAX, with what is known of its sign."""

    array: Any
    nonnegative: bool = False


Value = Known | Traced
OpeningRule = Callable[["Opening", Any, Sequence[Any]], list[Any]]
"""From the equation and its operands, JAX or NumPy arrays, to the outputs."""


def opened(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function that `f` computes, of the same arguments, made of rational and formal functions.

    Its derivative is that of the function, whatever rule of its own `f` gives for it.

    >>> straight_through = lambda x: 2 * x + jax.lax.stop_gradient(x * x - 2 * x)
    >>> print(jax.grad(straight_through)(3.0), jax.grad(opened(straight_through))(3.0))
    2.0 6.0
    """

    def function(*args: Any) -> Any:
        jaxpr, structure = traced(f, shapes_of(args))
        arguments = [Traced(jnp.asarray(leaf)) for leaf in jax.tree.leaves(args)]
        values = Opening().read(jaxpr.jaxpr, jaxpr.consts, arguments)
        return jax.tree.unflatten(structure, [jnp.asarray(value.array) for value in values])

    return function


class Opening:
    """Reads jaxprs equation by equation and does in JAX what each computes.

    Args:
        rules: what some primitives become, `OPENINGS` by default; all others stay what they are.
    """

    def __init__(self, rules: "Mapping[str, OpeningRule] | None" = None) -> None:
        self.rules = OPENINGS if rules is None else rules
        self.calls: list[Any] = []
        # Operands are kept, so that no other value can get the id of one that was met.
        self._met: dict[tuple[str, int], tuple[Any, list[Any]]] = {}

    def where(self, equation: Any) -> str:
        """The primitive and the innermost line known to call it, for error texts."""
        return where_from(equation, *reversed(self.calls))

    def read(self, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[Value]) -> list[Value]:
        """The outputs of a jaxpr for these arguments."""
        values: dict[Any, Value] = {}

        def value_of(atom: Any) -> Value:
            if isinstance(atom, Literal):
                return Known(in_float64(np.asarray(atom.val)))
            return values[atom]

        for variable, constant in zip(jaxpr.constvars, constants, strict=True):
            values[variable] = Known(in_float64(plain(constant)))
        values.update(zip(jaxpr.invars, arguments, strict=True))
        for equation in jaxpr.eqns:
            operands = [value_of(atom) for atom in equation.invars]
            values.update(zip(equation.outvars, self._apply(equation, operands), strict=True))
        return [value_of(atom) for atom in jaxpr.outvars]

    def _apply(self, equation: Any, operands: list[Value]) -> list[Value]:
        name = equation.primitive.name
        undecided = name == "cond" and name in self.rules and isinstance(operands[0], Traced)
        if (special := _special(equation)) is not None:
            return self.read(special.jaxpr, special.consts, operands)
        if name in CONTROL and not undecided:
            self.calls.append(equation)
            outputs = CONTROL[name](Opening.read, self, equation, operands)
            self.calls.pop()
            return outputs
        if name in _UNTOUCHED:
            return operands
        known = [operand.array for operand in operands if isinstance(operand, Known)]
        if len(known) == len(operands):
            return [Known(in_float64(result)) for result in folded(equation, known)]
        if name == "abs" and isinstance(operands[0], Traced) and operands[0].nonnegative:
            return operands
        self._check_real(equation)
        arrays = [operand.array for operand in operands]
        with source_info_util.user_context(self._origin(equation)):
            if name in self.rules:
                outputs = self.rules[name](self, equation, arrays)
            else:
                result = equation.primitive.bind(*arrays, **_in_float64(equation.params))
                outputs = result if equation.primitive.multiple_results else [result]
        nonnegative = name in _POSITIVE or (
            name in _KEEPS_SIGN and all(map(_is_nonnegative, operands))
        )
        nonnegative = nonnegative or (name == "mul" and arrays[0] is arrays[1])
        return [Traced(output, nonnegative) for output in outputs]

    def _check_real(self, equation: Any) -> None:
        """Refuse complex numbers that depend on the arguments."""
        kinds = {v.aval.dtype for v in equation.outvars if jnp.iscomplexobj(v.aval)}
        if equation.primitive.name == "fft":
            raise NotCoveredError(
                f"{self.where(equation)} multiplies by roots of unity, which are not rational; "
                "multiply by matrices of cosines and sines, taken as the value of their floats"
            )
        if kinds:
            raise NotCoveredError(
                f"{self.where(equation)} turns values that depend on the arguments into the type "
                f"{kinds.pop()}, which is not covered; keep them real"
            )

    def _origin(self, equation: Any) -> Any:
        """The traceback with the user's line: JAX keeps none inside its own library functions."""
        if self.calls and not source_info_util.summarize(equation.source_info):
            for call in reversed(self.calls):
                if source_info_util.summarize(call.source_info):
                    return call.source_info.traceback
        return equation.source_info.traceback

    def formal(self, kind: Kind, x: Any) -> list[Any]:
        """The formal function of an operand, one and the same each time."""
        if (kind, id(x)) not in self._met:
            self._met[kind, id(x)] = (x, formal(kind, x))
        return self._met[kind, id(x)][1]

    def row(self, value: Any, i: int) -> Value:
        """Entry `i` along the first axis, for loops."""
        return Traced(lax.index_in_dim(value.array, i, keepdims=False), value.nonnegative)

    def stacked(self, turns: Sequence[Value], equation: Any, shape: tuple[int, ...]) -> Value:
        """The results of a loop's turns along a new first axis."""
        del equation, shape
        rows = [lax.expand_dims(jnp.asarray(turn.array), [0]) for turn in turns]
        return Traced(lax.concatenate(rows, 0), all(map(_is_nonnegative, turns)))


# Converting between floats changes no value: everything is computed in exact numbers.
_UNTOUCHED = frozenset(
    {"copy", "copy_p", "optimization_barrier", "reduce_precision", "stop_gradient"}
)
_POSITIVE = frozenset({"exp", "exp2", "logistic", "square", "cosh", "sqrt"})
_KEEPS_SIGN = frozenset(
    {"add", "add_any", "broadcast_in_dim", "concatenate", "cumsum", "div", "dot_general", "max"}
    | {"min", "mul", "reduce_max", "reduce_prod", "reduce_sum", "reshape", "rev", "slice"}
    | {"squeeze", "transpose"}
)


def _is_nonnegative(value: Value) -> bool:
    if isinstance(value, Traced):
        return value.nonnegative
    return value.array.dtype.kind in "fiub" and bool(np.all(value.array >= 0))


def _in_float64(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters that ask for another type of float ask for float64."""

    def mended(value: Any) -> Any:
        is_type = isinstance(value, (np.dtype, type)) and not isinstance(value, bool)
        if is_type and jax.dtypes.issubdtype(value, np.floating):
            return np.dtype(np.float64)
        return value

    return {name: mended(value) for name, value in params.items()}


def _special(equation: Any) -> Any:
    """A jaxpr without comparisons for a function of JAX that is written with them and has none."""
    if equation.primitive.name != "custom_jvp_call":
        return None
    inner = equation.params["call_jaxpr"]
    shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in equation.invars]
    for function, first, meaning in _SPECIAL:
        if [one.primitive.name for one in inner.eqns[:2]] == first:
            with jax.enable_x64(True):
                own = _custom(jax.make_jaxpr(function)(*shapes).jaxpr)
                if own is not None and str(own.params["call_jaxpr"]) == str(inner):
                    return jax.make_jaxpr(meaning)(*shapes)
    return None


def _custom(jaxpr: Any) -> Any:
    """The equation with a derivative of its own that a jaxpr consists of, inside of calls."""
    equation = jaxpr.eqns[-1]
    if equation.primitive.name == "custom_jvp_call":
        return equation
    return _custom(equation.params["jaxpr"].jaxpr) if equation.primitive.name == "jit" else None


def _logaddexp(x: Any, y: Any) -> Any:
    return jnp.log(jnp.exp(x) + jnp.exp(y))


def _determinant(a: Any) -> Any:
    """The product of the pivots of an elimination that exchanges no rows."""
    if a.shape[-1] == 1:
        return a[..., 0, 0]
    below = a[..., 1:, :1] * a[..., :1, 1:] / a[..., :1, :1]
    return a[..., 0, 0] * _determinant(a[..., 1:, 1:] - below)


_SPECIAL = (
    (jnp.logaddexp, ["max", "sub"], _logaddexp),
    (jnp.linalg.det, ["jit", "exp"], _determinant),
)
"""Functions of JAX, the first primitives of their programs, and what they compute."""


def _logistic(opening: Opening, _: Any, operands: Sequence[Any]) -> list[Any]:
    """1 / (1 + exp(−x))."""
    (e,) = opening.formal("exp", -operands[0])
    return [1.0 / (1.0 + e)]


def _tanh(opening: Opening, _: Any, operands: Sequence[Any]) -> list[Any]:
    """1 − 2 / (1 + exp(2x))."""
    (e,) = opening.formal("exp", 2.0 * operands[0])
    return [1.0 - 2.0 / (1.0 + e)]


def _hyperbolic(sign: float) -> OpeningRule:
    """(exp(x) ± exp(−x)) / 2, with exp(−x) = 1 / exp(x)."""

    def rule(opening: Opening, _: Any, operands: Sequence[Any]) -> list[Any]:
        (e,) = opening.formal("exp", operands[0])
        return [0.5 * (e + sign / e)]

    return rule


def _exp2(opening: Opening, _: Any, operands: Sequence[Any]) -> list[Any]:
    return opening.formal("exp", np.log(2.0) * operands[0])


def _expm1(opening: Opening, _: Any, operands: Sequence[Any]) -> list[Any]:
    return [opening.formal("exp", operands[0])[0] - 1.0]


def _log1p(opening: Opening, _: Any, operands: Sequence[Any]) -> list[Any]:
    return opening.formal("log", 1.0 + operands[0])


def _rsqrt(opening: Opening, _: Any, operands: Sequence[Any]) -> list[Any]:
    return [1.0 / opening.formal("root", operands[0])[0]]


def _erfc(opening: Opening, _: Any, operands: Sequence[Any]) -> list[Any]:
    return [1.0 - opening.formal("erf", operands[0])[0]]


def _cos(opening: Opening, _: Any, operands: Sequence[Any]) -> list[Any]:
    return opening.formal("turn", operands[0])[:1]


def _sin(opening: Opening, _: Any, operands: Sequence[Any]) -> list[Any]:
    return opening.formal("turn", operands[0])[1:]


def _tan(opening: Opening, _: Any, operands: Sequence[Any]) -> list[Any]:
    cos, sin = opening.formal("turn", operands[0])
    return [sin / cos]


def _asinh(opening: Opening, _: Any, operands: Sequence[Any]) -> list[Any]:
    """log(x + √(x² + 1))."""
    (x,) = operands
    return opening.formal("log", x + opening.formal("root", x * x + 1.0)[0])


def _acosh(opening: Opening, _: Any, operands: Sequence[Any]) -> list[Any]:
    """log(x + √(x² − 1))."""
    (x,) = operands
    return opening.formal("log", x + opening.formal("root", x * x - 1.0)[0])


def _atanh(opening: Opening, _: Any, operands: Sequence[Any]) -> list[Any]:
    """log((1 + x) / (1 − x)) / 2."""
    (x,) = operands
    return [0.5 * opening.formal("log", (1.0 + x) / (1.0 - x))[0]]


def _primary(kind: Kind) -> OpeningRule:
    def rule(opening: Opening, _: Any, operands: Sequence[Any]) -> list[Any]:
        return opening.formal(kind, operands[0])

    return rule


def _reduce_max(_: Opening, equation: Any, operands: Sequence[Any]) -> list[Any]:
    """A maximum from which no derivative flows: only where it does not matter which entry it is.

    The program that is recorded keeps a list of such maxima, and the check that the function does
    not depend on them is one of its obligations.
    """
    return [equation.primitive.bind(lax.stop_gradient(operands[0]), **equation.params)]


def _pow(opening: Opening, equation: Any, operands: Sequence[Any]) -> list[Any]:
    """Powers with whole and half exponents, one for each entry; else exp(y log x)."""
    base, exponent = operands
    if isinstance(exponent, np.ndarray) and np.all(np.isfinite(exponent)):
        distinct = np.unique(exponent).tolist()
        if all(Fraction(y).denominator <= 2 for y in distinct):
            powers = [_half_power(opening, base, Fraction(y)) for y in distinct]
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


def _half_power(opening: Opening, base: Any, exponent: Fraction) -> Any:
    if exponent.denominator == 2:
        base, exponent = opening.formal("root", base)[0], 2 * exponent
    return lax.integer_pow(base, int(exponent))


def _convert(opening: Opening, equation: Any, operands: Sequence[Any]) -> list[Any]:
    if not jax.dtypes.issubdtype(equation.invars[0].aval.dtype, np.floating):
        return [equation.primitive.bind(*operands, **_in_float64(equation.params))]
    if not jax.dtypes.issubdtype(equation.params["new_dtype"], np.floating):
        raise NotCoveredError(
            f"{opening.where(equation)} turns values that depend on the arguments into the type "
            f"{equation.params['new_dtype']}, which is no rational function; keep them real"
        )
    return list(operands)


def _again(_: Opening, equation: Any, operands: Sequence[Any]) -> list[Any]:
    return formal_p.bind(*operands, **equation.params)


OPENINGS: dict[str, OpeningRule] = {
    "acosh": _acosh,
    "asinh": _asinh,
    "atanh": _atanh,
    "convert_element_type": _convert,
    "cos": _cos,
    "cosh": _hyperbolic(1.0),
    "erf": _primary("erf"),
    "erfc": _erfc,
    "exp": _primary("exp"),
    "exp2": _exp2,
    "expm1": _expm1,
    "formal": _again,
    "log": _primary("log"),
    "log1p": _log1p,
    "logistic": _logistic,
    "pow": _pow,
    "reduce_max": _reduce_max,
    "rsqrt": _rsqrt,
    "sin": _sin,
    "sinh": _hyperbolic(-1.0),
    "sqrt": _primary("root"),
    "tan": _tan,
    "tanh": _tanh,
}
