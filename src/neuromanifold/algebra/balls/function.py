"""`in_balls`: a JAX function around real numbers.

What is said of a ball is true of all numbers in it. Arguments are balls around floats, so it is
true of all arguments close by, and of the function on an open set: at an edge, where the function
is another one on either side, both count.
"""

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from math import ulp
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb, fmpq
from jax.extend.core import Literal, jaxpr_as_fun

from neuromanifold.algebra.balls.arrays import (
    PRECISION,
    balls,
    entrywise,
    is_balls,
    precision,
)
from neuromanifold.algebra.balls.order import UNDECIDED, UndecidedError
from neuromanifold.algebra.balls.rules import OF_TRUTH, RULES
from neuromanifold.algebra.modular.flattening import flattened
from neuromanifold.algebra.modular.folding import folded
from neuromanifold.algebra.modular.literals import is_plain, last_place, rational_array
from neuromanifold.algebra.modular.location import where_from
from neuromanifold.algebra.modular.rules.elementary import OpeningRule
from neuromanifold.algebra.modular.rules.indexing import MOVED, sources_of
from neuromanifold.algebra.modular.rules.structural import ARRANGEMENTS, UNTOUCHED
from neuromanifold.algebra.modular.tracing import halves_of, shapes_of, traced
from neuromanifold.algebra.modular.whole_numbers import BEYOND_32_BITS, is_wrapped
from neuromanifold.errors import ArgumentError, NotCoveredError

_ROOT_OF_PI = math.sqrt(math.pi)
_NEAR_ZERO = arb(2) ** -2000
_SINGLE_PRECISION = 2.0**-23


def in_balls(
    f: Callable[..., Any],
    *arguments: Any,
    bits: int = PRECISION,
    constant: Callable[[np.ndarray], np.ndarray] = balls,
) -> Any:
    """The values of `f` around its arguments, a pytree of arrays of balls.

    >>> from flint import arb
    >>> value = in_balls(lambda x: jnp.exp(x) * jnp.exp(-x), np.array(3.0))
    >>> value.item().contains(1), bool(value.item().rad() < 1e-70)
    (True, True)

    Args:
        f: a JAX function, differentiated or not.
        *arguments: pytrees of arrays of floats or of whole numbers.
        bits: the precision.
        constant: what the floats in the function stand for.
    """
    program = BallProgram(f, *arguments, bits=bits, constant=constant)
    return program(*(around(leaf, bits) for leaf in jax.tree.leaves(arguments)))


class BallProgram:
    """A JAX function read once, to be evaluated in balls.

    Args:
        f: a JAX function, differentiated or not.
        *examples: pytrees with the shapes of its arguments.
        bits: the precision.
        constant: what the floats in the function stand for.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        *examples: Any,
        bits: int = PRECISION,
        constant: Callable[[np.ndarray], np.ndarray] = balls,
    ) -> None:
        closed, self._structure = flattened(f, *examples)
        self._jaxpr, self._bits = closed.jaxpr, bits
        with precision(bits):
            self._known = {
                v: _constant(c, constant)
                for v, c in zip(closed.jaxpr.constvars, closed.consts, strict=True)
            }
            atoms = [a for e in closed.jaxpr.eqns for a in e.invars] + closed.jaxpr.outvars
            self._literals = {
                id(a): _constant(a.val, constant) for a in atoms if isinstance(a, Literal)
            }

    def __call__(self, *leaves: np.ndarray) -> Any:
        """The value at leaves of balls and of whole numbers, a pytree of arrays of balls."""
        with precision(self._bits):
            return jax.tree.unflatten(self._structure, self._evaluated(leaves))

    def _evaluated(self, leaves: Sequence[np.ndarray]) -> list[Any]:
        values = self._known | dict(zip(self._jaxpr.invars, leaves, strict=True))

        def value_of(atom: Any) -> Any:
            return self._literals[id(atom)] if isinstance(atom, Literal) else values[atom]

        for equation in self._jaxpr.eqns:
            operands = [value_of(atom) for atom in equation.invars]
            try:
                outputs = [np.asarray(output) for output in _apply(equation, operands)]
            except NotCoveredError as error:
                raise type(error)(f"{where_from(equation)}: {error}") from None
            if is_wrapped(operands, outputs):
                raise NotCoveredError(f"{where_from(equation)} {BEYOND_32_BITS}")
            values.update(zip(equation.outvars, outputs, strict=True))
        return [value_of(atom) for atom in self._jaxpr.outvars]


def around(array: Any, bits: int = PRECISION) -> np.ndarray:
    """Balls around floats, as small beside them as precision allows; around zero as well.

    Whole numbers stay what they are.
    """
    near = arb(2) ** (8 - bits)

    def neighbourhood(x: float) -> Any:
        return arb(x, abs(arb(x)) * near if x else _NEAR_ZERO)

    return _constant(array, partial(entrywise, neighbourhood))


def rows_in_balls(
    f: Callable[[Any, Any], Any],
    weights: Any,
    inputs: Any,
    cotangents: Any,
    bits: int = PRECISION,
) -> Any:
    """The rows uᵀ ∂f/∂w, a pytree like the weights with a leading axis over the inputs.

    It is the function that `f` computes which is differentiated, whatever rules of its own `f`
    gives for that.

    Args:
        f: a JAX function of weights and one input.
        weights: a pytree of float64 arrays.
        inputs: inputs along a leading axis.
        cotangents: one for each input.
        bits: the precision.
    """
    one = jax.tree.map(operator.itemgetter(0), inputs)
    jaxpr, structure = flattened(f, weights, one, rules=_WITH_EDGES)
    function = jaxpr_as_fun(jaxpr)

    def row(w: Any, X: Any, u: Any) -> tuple[Any, Any]:
        def of_weights(w: Any) -> Any:
            return jax.tree.unflatten(structure, function(*jax.tree.leaves((w, X))))

        value, pull = jax.vjp(of_weights, w)
        return pull(u)[0], value

    rows, values = in_balls(
        jax.vmap(row, (None, 0, 0)),
        weights,
        inputs,
        cotangents,
        bits=bits,
        constant=partial(_of_derivative, _floats(jaxpr)),
    )
    if not all(entry.is_finite() for leaf in jax.tree.leaves(values) for entry in leaf.flat):
        raise ArgumentError(
            "entries of the output are infinite or undefined at these weights or close by, "
            "whatever their derivatives say; return the others alone"
        )
    return rows


def _larger(_: Any, equation: Any, operands: Sequence[Any]) -> list[Any]:
    """Maxima and minima as selections, whose slope at a tie contains that of both sides."""
    x, y = jnp.broadcast_arrays(*operands)
    return [jnp.where(x > y if equation.primitive.name == "max" else x < y, x, y)]


def _between(_: Any, __: Any, operands: Sequence[Any]) -> list[Any]:
    """Clamping as selections, which have the right slopes where the bounds are crossed.

    There the value is the upper bound; JAX's own rule gives that no slope while x is below it.
    """
    low, x, high = jnp.broadcast_arrays(*operands)
    above = jnp.where(low > x, low, x)
    return [jnp.where(above < high, above, high)]


CLAMPING: dict[str, OpeningRule] = {"clamp": _between}
"""What has to be opened before JAX differentiates it."""
_WITH_EDGES = CLAMPING | {"max": _larger, "min": _larger}


def floats_taken(f: Callable[..., Any], *arguments: Any) -> tuple[float, ...]:
    """The floats of a function that are no rational numbers of small height, in increasing order.

    Each stands for itself here, and not for the number which it may have been rounded from.
    """
    floats = sorted(_floats(flattened(f, *arguments)[0]))
    read = rational_array(np.array([x for x in floats if np.isfinite(x)]))
    halves = halves_of(traced(f, shapes_of(arguments, whole=True))[0])
    return tuple(sorted({*read.dyadic, *halves}))


def _floats(jaxpr: Any) -> frozenset[float]:
    """The floats of a program, each of which stands for itself."""
    literals = [a.val for e in jaxpr.jaxpr.eqns for a in e.invars if isinstance(a, Literal)]
    arrays = [np.asarray(x) for x in (*jaxpr.consts, *literals)]
    return frozenset(x for a in arrays if a.dtype.kind == "f" for x in a.reshape(-1).tolist())


def _of_derivative(known: frozenset[float], array: np.ndarray) -> np.ndarray:
    """Balls for the floats of a derivative: what its rules bring is known to a few last places.

    Those are log b for powers of b, products of constants, and 2/√π and √π/2 for error functions,
    which are put right here.
    """
    root = arb.pi().sqrt()
    exact = ((2.0 / _ROOT_OF_PI, 2 / root), (_ROOT_OF_PI / 2.0, root / 2))

    def ball(x: float) -> Any:
        if x in known or not np.isfinite(x) or (x * 1024.0).is_integer():
            return arb(x)
        for near, y in exact:
            if abs(abs(x) - near) <= ulp(x):
                return y if x > 0 else -y
        return arb(x, 4 * ulp(x))

    result = np.empty(array.shape, dtype=object)
    result.reshape(-1)[:] = [ball(x) for x in array.reshape(-1).tolist()]
    return result


def meant(array: np.ndarray) -> np.ndarray:
    """Balls that hold both the floats of a function and the numbers that they may stand for.

    A rational number of small height is read as that, as over a prime field (`literals`); others,
    such as the 2/√π of a derivative, are known to one unit in the last place of their precision.
    """
    is_finite = np.isfinite(array)
    if not is_finite.all():
        return np.where(is_finite, meant(np.where(is_finite, array, 0.0)), balls(array))
    read = rational_array(array)
    dyadic = {Fraction(x): arb(x, last_place(x)) for x in read.dyadic}
    table = [dyadic.get(q, arb(fmpq(q.numerator, q.denominator))) for q in read.distinct]
    entries = np.array(table, dtype=object)[read.places]
    return np.asarray(entries, dtype=object).reshape(array.shape)


def roughly(array: np.ndarray) -> np.ndarray:
    """Balls that hold what the floats of a function may stand for, in single precision.

    Those of one or two bits are themselves. The others may be rounded, and so may the numbers of
    which one is the difference: what holds for all numbers so near is no relation between them.
    """

    def ball(x: float) -> Any:
        return arb(x) if is_plain(x) else arb(x, abs(x) * _SINGLE_PRECISION)

    return entrywise(ball, array)


def _constant(array: Any, constant: Callable[[np.ndarray], np.ndarray]) -> Any:
    """Balls for floats; whole numbers stay what they are."""
    array = np.asarray(array)
    return constant(array) if array.dtype.kind == "f" else array


def _apply(equation: Any, operands: list[Any]) -> Sequence[Any]:
    name = equation.primitive.name
    if name in UNTOUCHED:
        return operands
    if name in ARRANGEMENTS:
        return [arrange(*operands) for arrange in ARRANGEMENTS[name](equation)]
    if name not in OF_TRUTH and any(map(_is_undecided, equation.invars, operands)):
        raise UndecidedError(UNDECIDED)
    real = equation.outvars[0].aval.dtype.kind == "f"
    if name in MOVED and real:
        return [_moved(equation, operands, MOVED[name])]
    if name in RULES and (real or any(map(is_balls, operands))):
        return RULES[name](equation, operands)
    if any(map(is_balls, operands)) or real:
        raise NotCoveredError(
            f"`{name}` cannot be evaluated in balls; write the function without it"
        )
    return folded(equation, operands)


def _is_undecided(atom: Any, array: np.ndarray) -> bool:
    """Whether truth values are not all known."""
    return is_balls(array) and atom.aval.dtype.kind != "f"


def _moved(equation: Any, operands: list[Any], moved: tuple[int, ...]) -> Any:
    """Entries moved to places that whole numbers say; a gather fills in NaN if it says nothing."""
    sources = [operands[place] for place in moved]
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        numbers = np.asarray(sources_of(equation, operands))
    filling = equation.params.get("fill_value")
    entries = [*sources, balls([np.nan if filling is None else filling])]
    return np.concatenate([x.reshape(-1) for x in entries])[numbers]
