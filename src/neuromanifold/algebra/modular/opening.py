"""The function itself: calls inlined, loops unrolled, custom derivatives opened.

What a program says about its derivative (`custom_jvp`, `custom_vjp`, `stop_gradient`) may differ
from the derivative of what it computes, and a rank proves something about a function only if the
function itself is differentiated. So the jaxpr of a function is read once, before anything is
differentiated: values that depend on no argument are folded into NumPy arrays, every call becomes
what it calls, complex values become pairs of real ones (`complex_parts`), and every transcendental
function becomes a rational function of formal ones (`elementary`, `formal`). The result is an
ordinary JAX function of real numbers.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import source_info_util
from jax.extend.core import ClosedJaxpr, Literal
from jax.interpreters import partial_eval

from neuromanifold.algebra.modular.folding import folded, plain
from neuromanifold.algebra.modular.formal.primitives import Kind, formal
from neuromanifold.algebra.modular.literals import in_float64, rational_array, with_float64
from neuromanifold.algebra.modular.location import where_from
from neuromanifold.algebra.modular.recorder import Known
from neuromanifold.algebra.modular.rules.complex_parts import in_parts, is_complex
from neuromanifold.algebra.modular.rules.control import CONTROL
from neuromanifold.algebra.modular.rules.elementary import OPENINGS, OpeningRule
from neuromanifold.algebra.modular.rules.structural import UNTOUCHED
from neuromanifold.algebra.modular.tracing import shapes_of, traced
from neuromanifold.algebra.modular.whole_numbers import BEYOND_32_BITS, is_wrapped
from neuromanifold.errors import NotCoveredError

source_info_util.register_exclusion(__file__)


@dataclass(frozen=True, eq=False, slots=True)
class Traced:
    """A value that depends on the arguments: an array of JAX, with what is known of its sign."""

    array: Any
    nonnegative: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Complex:
    """A complex value that depends on the arguments, by its parts; None is zero."""

    real: Known | Traced
    imaginary: Known | Traced | None


Value = Any
"""A `Known`, a `Traced` or a `Complex`."""


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

    def __init__(self, rules: Mapping[str, OpeningRule] = OPENINGS) -> None:
        self.rules = rules
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
        if name in UNTOUCHED or not equation.outvars:  # what only prints has none
            return operands[: len(equation.outvars)]
        known = [operand.array for operand in operands if isinstance(operand, Known)]
        if len(known) == len(operands):
            found = folded(equation, known)
            if is_wrapped(known, found):
                raise NotCoveredError(f"{self.where(equation)} {BEYOND_32_BITS}")
            results = [Known(in_float64(result)) for result in found]
            if name == "sqrt" and is_complex(equation.outvars[0]):
                self._refuse_irrational(equation, results[0].array)
            return results
        if name in _NEUTRAL and any(_NEUTRAL[name](array).all() for array in known):
            return [operand for operand in operands if not isinstance(operand, Known)]
        if name == "abs" and isinstance(operands[0], Traced) and operands[0].nonnegative:
            return operands
        if any(map(is_complex, (*equation.invars, *equation.outvars))):
            return self._in_parts(equation, operands)
        if (why := _underived(equation)) is not None:
            raise NotCoveredError(f"{self.where(equation)} {why}")
        arrays = [operand.array for operand in operands]
        with source_info_util.user_context(self._origin(equation)):
            if name == "select_n" and arrays[0].dtype != bool:
                arrays[0] = _number_of_case(arrays[0], len(arrays) - 1)
            if name in self.rules:
                outputs = self.rules[name](self, equation, arrays)
            else:
                result = equation.primitive.bind(*arrays, **with_float64(equation.params))
                outputs = result if equation.primitive.multiple_results else [result]
        nonnegative = name in _POSITIVE or (
            name in _KEEPS_SIGN and all(map(_is_nonnegative, operands))
        )
        nonnegative = nonnegative or (name == "mul" and arrays[0] is arrays[1])
        return [Traced(output, nonnegative) for output in outputs]

    def _refuse_irrational(self, equation: Any, root: np.ndarray) -> None:
        """Constant complex roots are the factors √n of transforms with norm="ortho"."""
        if rational_array(np.atleast_1d(root.real)).dyadic:
            raise NotCoveredError(
                f"{self.where(equation)} is no rational number, so that a Fourier transform with "
                'norm="ortho" and its inverse would not cancel; take norm="backward"'
            )

    def _in_parts(self, equation: Any, operands: Sequence[Value]) -> list[Value]:
        """An equation with complex operands or results, as what it does to their parts."""
        pairs = [_parts(operand) for operand in operands]
        leaves, structure = jax.tree.flatten(pairs)
        where = self.where(equation)

        def meaning(*arrays: Any) -> Any:
            return in_parts(where, equation, jax.tree.unflatten(structure, arrays))

        shapes = [jax.ShapeDtypeStruct(np.shape(x.array), x.array.dtype) for x in leaves]
        with jax.enable_x64(True):
            jaxpr, found = jax.make_jaxpr(meaning, return_shape=True)(*shapes)
        self.calls.append(equation)
        outputs = self.read(jaxpr.jaxpr, jaxpr.consts, leaves)
        self.calls.pop()
        pairs = jax.tree.unflatten(jax.tree.structure(found), outputs)
        return [
            Complex(*pair) if is_complex(variable) else pair[0]
            for variable, pair in zip(equation.outvars, pairs, strict=True)
        ]

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

    def radicand(self, y: Any) -> Any:
        """What a value is the square root of; None if it is not known to be one."""
        roots = (
            x for (kind, _), (x, (root, *_)) in self._met.items() if kind == "root" and root is y
        )
        return next(roots, None)

    def row(self, value: Any, i: int) -> Value:
        """Entry `i` along the first axis, for loops."""
        if isinstance(value, Complex):
            imaginary = None if value.imaginary is None else self.row(value.imaginary, i)
            return Complex(self.row(value.real, i), imaginary)
        if isinstance(value, Known):
            return Known(value.array[i])
        return Traced(lax.index_in_dim(value.array, i, keepdims=False), value.nonnegative)

    def stacked(self, turns: Sequence[Value], equation: Any, shape: tuple[int, ...]) -> Value:
        """The results of a loop's turns along a new first axis."""
        if any(isinstance(turn, Complex) for turn in turns):
            zero = Known(np.zeros(shape[1:]))
            parts = zip(*([x, y or zero] for x, y in map(_parts, turns)), strict=True)
            return Complex(*(self.stacked(part, equation, shape) for part in parts))
        rows = [lax.expand_dims(jnp.asarray(turn.array), [0]) for turn in turns]
        return Traced(lax.concatenate(rows, 0), all(map(_is_nonnegative, turns)))


_NEUTRAL = {"max": np.isneginf, "min": np.isposinf}
_POSITIVE = frozenset({"exp", "exp2", "logistic", "square", "cosh", "sqrt"})
_KEEPS_SIGN = frozenset(
    {"add", "add_any", "broadcast_in_dim", "concatenate", "cumsum", "div", "dot_general", "max"}
    | {"min", "mul", "reduce_max", "reduce_prod", "reduce_sum", "reshape", "rev", "slice"}
    | {"squeeze", "tile", "transpose"}
)


def _parts(value: Value) -> tuple[Any, Any]:
    """The real and the imaginary part of a value, None where that is known to be zero."""
    if isinstance(value, Complex):
        return value.real, value.imaginary
    if isinstance(value, Traced) or not np.iscomplexobj(value.array):
        return value, None
    imaginary = value.array.imag
    return Known(in_float64(value.array.real)), (
        Known(in_float64(imaginary)) if imaginary.any() else None
    )


def _underived(equation: Any) -> str | None:
    """Why an equation has no derivative, where JAX has none."""
    name, params = equation.primitive.name, equation.params
    if name == "scatter" and params["update_jaxpr"] is not None:
        return "applies a function at some places: compute it everywhere and use jax.numpy.where"
    if name == "reduce_window":
        return (
            "begins with a number of its own, or does something else than add or compare: take "
            "the sum or the maximum of windows, and what it begins with afterwards"
        )
    if name in {"nextafter", "zeta"}:
        return "has no derivative that is known here: write the function without it"
    return None


def _number_of_case(which: Any, count: int) -> Any:
    """The case that is taken: beyond the ends the first or last, of which JAX's rules know none."""
    if isinstance(which, np.ndarray):
        return which.clip(0, count - 1)
    return jax.lax.clamp(which.dtype.type(0), which, which.dtype.type(count - 1))


def _is_nonnegative(value: Value) -> bool:
    if isinstance(value, Traced):
        return value.nonnegative
    return value.array.dtype.kind in "fiub" and bool(np.all(value.array >= 0))


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
                if own is not None and any(used := _used(own.params["call_jaxpr"], inner)):
                    closed = jax.make_jaxpr(meaning)(*shapes)
                    part, _ = partial_eval.dce_jaxpr(closed.jaxpr, used, instantiate=True)
                    return ClosedJaxpr(part, closed.consts)
    return None


def _used(whole: Any, part: Any) -> list[bool]:
    """Which outputs of a jaxpr are those of another that is the same program; none if it is not."""
    for used in itertools.product((True, False), repeat=len(whole.jaxpr.outvars)):
        rest, _ = partial_eval.dce_jaxpr(whole.jaxpr, list(used), instantiate=True)
        if str(rest) == str(part.jaxpr):
            return list(used)
    return []


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


def _signed_log_determinant(a: Any) -> tuple[Any, Any]:
    determinant = _determinant(a)
    return jnp.sign(determinant), jnp.log(jnp.abs(determinant))


_SPECIAL = (
    (jnp.logaddexp, ["max", "sub"], _logaddexp),
    (jnp.linalg.det, ["jit", "exp"], _determinant),
    (jnp.linalg.slogdet, ["lu", "jit"], _signed_log_determinant),
)
"""Functions of JAX, the first primitives of their programs, and what they compute."""
