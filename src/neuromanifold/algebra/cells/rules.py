"""What each piecewise primitive becomes once its branches are fixed.

Every rule returns its outputs as polynomials in the branches and in its operands, of degree one in
these: max(x, y) = y + b (x − y), |x| = b x, a sorted list is a permutation matrix times the list.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from neuromanifold.algebra.cells.decisions import Decider, Decision
from neuromanifold.algebra.modular.location import where_from
from neuromanifold.algebra.modular.rules.indexing import MOVED, sources_of
from neuromanifold.algebra.modular.rules.windows import window_axes
from neuromanifold.errors import NotCoveredError

CellRule = Callable[[Decider, Any, Sequence[Any]], list[Any]]


def _largest(decider: Decider, lines: Any) -> Any:
    """The largest entry along the last axis: Σ b_k x_k with b_k in {0, 1}."""

    def compute() -> Decision:
        one = nn.one_hot(jnp.argmax(lines, axis=-1), lines.shape[-1], dtype=jnp.float64)
        return Decision(one, _gap(lines, one))

    branches = decider.decide(compute)
    return jnp.sum(branches * jnp.where(jnp.isfinite(lines), lines, 0.0), axis=-1)


def _gap(lines: Any, one: Any) -> Any:
    """By how much the chosen entry is larger than all others; infinite when there is none."""
    chosen = jnp.sum(jnp.where(one > 0, lines, 0.0), axis=-1)
    others = jnp.max(jnp.where(one > 0, -jnp.inf, lines), axis=-1, initial=-jnp.inf)
    return chosen - others


def _max(decider: Decider, _: Any, operands: Sequence[Any]) -> list[Any]:
    return [_larger(decider, *operands)]


def _min(decider: Decider, _: Any, operands: Sequence[Any]) -> list[Any]:
    x, y = operands
    return [-_larger(decider, -x, -y)]


def _larger(decider: Decider, x: Any, y: Any) -> Any:
    x, y = jnp.broadcast_arrays(x, y)
    return decider.mixed(decider.decide(lambda: Decision(x >= y, x - y)), [y, x])


def _clamp(decider: Decider, _: Any, operands: Sequence[Any]) -> list[Any]:
    low, x, high = operands
    return [-_larger(decider, -_larger(decider, low, x), -high)]


def _abs(decider: Decider, _: Any, operands: Sequence[Any]) -> list[Any]:
    (x,) = operands
    return [decider.decide(lambda: Decision(jnp.sign(x), x)) * x]


def _sign(decider: Decider, _: Any, operands: Sequence[Any]) -> list[Any]:
    (x,) = operands
    return [decider.decide(lambda: Decision(jnp.sign(x), x))]


def _rounding(edge: float) -> CellRule:
    """A whole number that changes where x − edge is a whole number.

    A constant of the cell may lie on an edge, and which way it goes is up to the primitive.
    """

    def rule(decider: Decider, equation: Any, operands: Sequence[Any]) -> list[Any]:
        (x,) = operands

        def compute() -> Decision:
            whole = equation.primitive.bind(x, **equation.params)
            return Decision(whole, _told(whole, x - edge - jnp.rint(x - edge)))

        return [decider.decide(compute)]

    return rule


def _rem(decider: Decider, _: Any, operands: Sequence[Any]) -> list[Any]:
    """X − n y with n = x / y rounded towards zero."""
    x, y = operands

    def compute() -> Decision:
        times = jnp.trunc(x / y)
        return Decision(times, _told(times, x / y - jnp.rint(x / y)))

    return [x - decider.decide(compute) * y]


def _told(whole: Any, gap: Any) -> Any:
    """The gap of a whole number that floats tell from its neighbours; there is none beyond 2^31."""
    return jnp.where(jnp.abs(whole) < 2.0**31, gap, jnp.nan)


def _reduce(sign: int) -> CellRule:
    """The largest entry of each line, or the smallest: minus the largest of −x."""

    def rule(decider: Decider, equation: Any, operands: Sequence[Any]) -> list[Any]:
        (x,) = operands
        axes = [int(axis) for axis in equation.params["axes"]]
        kept = [i for i in range(x.ndim) if i not in axes]
        shape = [x.shape[i] for i in kept]
        lines = x.transpose([*kept, *axes]).reshape(*shape, -1)
        return [sign * _largest(decider, sign * lines)]

    return rule


def _window(sign: int) -> CellRule:
    def rule(decider: Decider, equation: Any, operands: Sequence[Any]) -> list[Any]:
        return [sign * _largest(decider, _windows(sign * operands[0], equation))]

    return rule


def _windows(x: Any, equation: Any) -> Any:
    """All windows of x, the entries of each along one last axis, minus infinity outside of x."""
    axes = window_axes(equation)
    for i, axis in enumerate(axes):
        edge = jnp.full((*x.shape[: 2 * i], 1, *x.shape[2 * i + 1 :]), -np.inf)
        x = jnp.take(jnp.concatenate([x, edge], axis=2 * i), axis.positions, axis=2 * i)
    windows, entries = range(0, 2 * len(axes), 2), range(1, 2 * len(axes), 2)
    return x.transpose([*windows, *entries]).reshape(*(axis.windows for axis in axes), -1)


def _cumulative(sign: int) -> CellRule:
    """The largest of the entries so far: a maximum over each beginning of a line."""

    def rule(decider: Decider, equation: Any, operands: Sequence[Any]) -> list[Any]:
        axis, size = equation.params["axis"], operands[0].shape[equation.params["axis"]]
        seen = np.tril(np.ones((size, size), bool))
        seen = seen.T if equation.params["reverse"] else seen
        line = sign * jnp.moveaxis(operands[0], axis, -1)[..., None, :]
        lines = jnp.where(seen, line, -jnp.inf)
        return [jnp.moveaxis(sign * _largest(decider, lines), -1, axis)]

    return rule


def _permuted(decider: Decider, keys: Any, order: Callable[[Any], Any], count: int) -> Any:
    """Rows of a permutation matrix along the last axis: the first `count` in an order of the keys.

    The gaps are those between neighbours in that order, the first one left out included.
    """

    def compute() -> Decision:
        places = order(keys)
        line = jnp.take_along_axis(keys, places, axis=-1)[..., : count + 1]
        matrix = nn.one_hot(places[..., :count], keys.shape[-1], dtype=jnp.float64)
        return Decision(matrix, line[..., 1:] - line[..., :-1])

    return decider.decide(compute)


def _sort(decider: Decider, equation: Any, operands: Sequence[Any]) -> list[Any]:
    params = equation.params
    axis = params["dimension"]
    keys = operands[0]
    if params["num_keys"] != 1 or keys is None or keys.dtype.kind != "f":
        raise NotCoveredError(
            f"{where_from(equation)} sorts by several keys, or real numbers by whole ones that "
            "depend on the arguments, which is not covered: sort by one real key"
        )
    lines = jnp.moveaxis(keys, axis, -1)
    matrix = _permuted(decider, lines, lambda k: jnp.argsort(k, axis=-1), lines.shape[-1])
    outputs: list[Any] = []
    for x, variable in zip(operands, equation.outvars, strict=True):
        if x is None or variable.aval.dtype.kind != "f":
            outputs.append(decider.discrete(lambda x=x: _whole(matrix, x, axis)))
        else:
            moved = jnp.einsum("...kn,...n->...k", matrix, jnp.moveaxis(x, axis, -1))
            outputs.append(jnp.moveaxis(moved, -1, axis))
    return outputs


def _whole(matrix: Any, x: Any, axis: int) -> Any:
    moved = jnp.einsum("...kn,...n->...k", matrix, jnp.moveaxis(x, axis, -1).astype(jnp.float64))
    return jnp.moveaxis(moved, -1, axis).astype(x.dtype)


def _top_k(decider: Decider, equation: Any, operands: Sequence[Any]) -> list[Any]:
    (x,) = operands
    count, axis = equation.params["k"], equation.params["axis"]
    lines = jnp.moveaxis(x, axis, -1)
    matrix = _permuted(decider, lines, lambda k: jnp.argsort(-k, axis=-1), count)
    values = jnp.moveaxis(jnp.einsum("...kn,...n->...k", matrix, lines), -1, axis)
    dtype = equation.outvars[1].aval.dtype

    def places() -> Any:
        return jnp.moveaxis(jnp.argmax(matrix, axis=-1).astype(dtype), -1, axis)

    return [values, decider.discrete(places)]


PIECEWISE: dict[str, CellRule] = {
    "abs": _abs,
    "ceil": _rounding(0.0),
    "clamp": _clamp,
    "cummax": _cumulative(1),
    "cummin": _cumulative(-1),
    "floor": _rounding(0.0),
    "max": _max,
    "min": _min,
    "reduce_max": _reduce(1),
    "reduce_min": _reduce(-1),
    "reduce_window_max": _window(1),
    "reduce_window_min": _window(-1),
    "rem": _rem,
    "round": _rounding(0.5),
    "sign": _sign,
    "sort": _sort,
    "top_k": _top_k,
}
"""Primitives with real outputs that choose among branches."""


def compared(equation: Any, operands: Sequence[Any]) -> Decision:
    """A comparison of two real numbers: its outcome stays while their difference keeps its sign."""
    x, y = operands
    return Decision(equation.primitive.bind(x, y, **equation.params), x - y)


def place(equation: Any, operands: Sequence[Any]) -> Decision:
    """Argmax or argmin along one axis."""
    (x,) = operands
    (axis,) = equation.params["axes"]
    sign = 1.0 if equation.primitive.name == "argmax" else -1.0
    best = equation.primitive.bind(x, **equation.params)
    lines = sign * jnp.moveaxis(x, axis, -1)
    return Decision(best, _gap(lines, nn.one_hot(best, lines.shape[-1], dtype=jnp.float64)))


def cut(equation: Any, operands: Sequence[Any]) -> Decision:
    """A real number turned into a whole one or a truth value."""
    (x,) = operands
    whole = lax.convert_element_type(x, equation.params["new_dtype"])
    if whole.dtype == bool:
        return Decision(whole, x)
    return Decision(whole, x - jnp.rint(x))


OUTCOMES: dict[str, Callable[[Any, Sequence[Any]], Decision]] = {
    **dict.fromkeys(("eq", "ge", "gt", "le", "le_to", "lt", "lt_to", "ne"), compared),
    "argmax": place,
    "argmin": place,
    "convert_element_type": cut,
}
"""Primitives that make whole numbers or truth values of real numbers."""


def _select(decider: Decider, _: Any, operands: Sequence[Any]) -> list[Any]:
    which, *cases = operands
    return [decider.mixed(decider.decide(lambda: Decision(which, 1.0)), cases)]


def _convert(decider: Decider, _: Any, operands: Sequence[Any]) -> list[Any]:
    return [decider.decide(lambda: Decision(operands[0], 1.0))]


def _move(decider: Decider, equation: Any, operands: Sequence[Any]) -> list[Any]:
    """Entries taken from places that are outcomes: a matrix of zeros and ones times all entries."""
    filling = equation.params.get("fill_value")
    filling = np.nan if filling is None else float(filling)  # JAX fills with NaN by itself
    moved = [jnp.asarray(operands[place]) for place in MOVED[equation.primitive.name]]
    entries = jnp.concatenate([x.reshape(-1) for x in moved])

    def compute() -> Decision:
        sources = sources_of(equation, operands)
        return Decision(nn.one_hot(sources, entries.size, dtype=jnp.float64), 1.0)

    matrix = decider.decide(compute)
    taken = matrix @ entries
    if len(moved) > 1:  # what is not moved there stays
        return [taken]
    is_outside = 1.0 - jnp.sum(matrix, axis=-1)
    return [decider.mixed(is_outside, [taken, np.full(taken.shape, filling)])]


def _scatter_add(decider: Decider, equation: Any, operands: Sequence[Any]) -> list[Any]:
    """Entries added at places that are outcomes: a matrix of zeros and ones for each update."""
    x, places, updates = operands

    def compute() -> Decision:
        def alone(update: Any) -> Any:
            zeros = jnp.zeros(jnp.shape(x), jnp.float64)
            return equation.primitive.bind(zeros, places, update, **equation.params)

        basis = jnp.eye(updates.size, dtype=jnp.float64).reshape(-1, *updates.shape)
        return Decision(jax.vmap(alone)(basis), 1.0)

    return [x + jnp.tensordot(jnp.ravel(updates), decider.decide(compute), axes=1)]


MEETINGS: dict[str, CellRule] = {
    "convert_element_type": _convert,
    "dynamic_slice": _move,
    "dynamic_update_slice": _move,
    "gather": _move,
    "scatter": _move,
    "scatter-add": _scatter_add,
    "select_n": _select,
}
"""Primitives in which outcomes meet real numbers."""
