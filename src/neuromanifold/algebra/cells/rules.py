"""What each piecewise primitive becomes once its branches are fixed.

Every rule returns its outputs as polynomials in the branches and in its operands, of degree one in
these: max(x, y) = y + b (x − y), |x| = b x, a sorted list is a permutation matrix times the list.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from neuromanifold.algebra.cells.decisions import Decider, Decision, Holds
from neuromanifold.algebra.modular.location import where_from
from neuromanifold.algebra.modular.rules.indexing import MOVED, sources_of
from neuromanifold.algebra.modular.rules.windows import window_axes
from neuromanifold.errors import NotCoveredError

CellRule = Callable[[Decider, Any, Sequence[Any]], list[Any]]
Outcome = Callable[[Any, Sequence[Any]], Decision]


def _extreme(decider: Decider, lines: Any, sign: int) -> Any:
    """The largest entry along the last axis, or the smallest: Σ b_k x_k with b_k in {0, 1}."""
    if not lines.shape[-1]:
        return jnp.full(lines.shape[:-1], -sign * jnp.inf)

    def branches() -> Any:
        best = (jnp.argmax if sign == 1 else jnp.argmin)(lines, axis=-1)
        return nn.one_hot(best, lines.shape[-1], dtype=jnp.float64)

    def holds(one: Any) -> Holds:
        chosen = decider.taken(one, lines)[..., None]
        return Holds(ties=jnp.where(one > 0, chosen * 0.0, sign * (chosen - lines)))

    one = decider.decide(Decision(branches, holds))
    return decider.taken(one, jnp.where(jnp.isfinite(lines), lines, 0.0))


def _of_two(sign: int) -> CellRule:
    """The larger one of two numbers, or the smaller one."""

    def rule(decider: Decider, _: Any, operands: Sequence[Any]) -> list[Any]:
        x, y = jnp.broadcast_arrays(*operands)

        def holds(is_first: Any) -> Holds:
            return Holds(ties=(2 * is_first - 1) * sign * (x - y))

        decision = Decision(lambda: x >= y if sign == 1 else x <= y, holds)
        return [decider.mixed(decider.decide(decision), [y, x])]

    return rule


def _clamp(decider: Decider, equation: Any, operands: Sequence[Any]) -> list[Any]:
    low, x, high = operands
    return _of_two(-1)(decider, equation, [*_of_two(1)(decider, equation, [low, x]), high])


def _real(branches: Any) -> Any:
    """Branches as the real numbers that they are."""
    return jnp.asarray(branches, jnp.float64)


def _abs(decider: Decider, _: Any, operands: Sequence[Any]) -> list[Any]:
    (x,) = operands
    return [_sign_of(decider, x) * x]


def _sign(decider: Decider, _: Any, operands: Sequence[Any]) -> list[Any]:
    return [_real(_sign_of(decider, *operands))]


def _sign_of(decider: Decider, x: Any) -> Any:
    def holds(sign: Any) -> Holds:
        is_zero = 1 - sign * sign
        return Holds(sign * x + is_zero, -is_zero * x * x)

    return decider.decide(Decision(lambda: jnp.sign(x), holds))


def _rounding(rest: Callable[[Any], Any]) -> CellRule:
    """A whole number n at a distance from x that `rest` takes to a number in [0, 1)."""

    def rule(decider: Decider, equation: Any, operands: Sequence[Any]) -> list[Any]:
        (x,) = operands

        def branches() -> Any:
            return equation.primitive.bind(x, **equation.params)

        def holds(whole: Any) -> Holds:
            return Holds(1 - rest(x - whole), rest(x - whole))

        return [_real(decider.decide(Decision(branches, holds)))]

    return rule


def _round(decider: Decider, equation: Any, operands: Sequence[Any]) -> list[Any]:
    """The nearest whole number; where there are two, the one further from zero or the even one."""
    (x,) = operands
    is_away = equation.params["rounding_method"] == lax.RoundingMethod.AWAY_FROM_ZERO

    def branches() -> Any:
        return equation.primitive.bind(x, **equation.params)

    def away(whole: Any) -> Holds:
        rest, near_zero = x - whole, 1 - 4 * (x - whole) ** 2
        outwards = 2 * jnp.sign(whole) * rest
        return Holds(jnp.where(whole == 0, near_zero, 1 - outwards), 1 + outwards)

    def even(whole: Any) -> Holds:
        gap, with_ties = 1 - 4 * (x - whole) ** 2, whole % 2 == 0
        return Holds(jnp.where(with_ties, 1.0, gap), jnp.where(with_ties, gap, 0.0))

    return [_real(decider.decide(Decision(branches, away if is_away else even)))]


def _towards_zero(x: Any, whole: Any) -> Holds:
    """What holds a whole number to which x was rounded towards zero."""
    rest = x - whole
    return Holds(1 - rest**2, jnp.sign(whole) * rest)


def _rem(decider: Decider, _: Any, operands: Sequence[Any]) -> list[Any]:
    """X − n y with n = x / y rounded towards zero."""
    x, y = operands

    def holds(times: Any) -> Holds:
        return _towards_zero(x / y, times)

    return [x - decider.decide(Decision(lambda: jnp.trunc(x / y), holds)) * y]


def _reduce(sign: int) -> CellRule:
    """The largest entry of each line, or the smallest."""

    def rule(decider: Decider, equation: Any, operands: Sequence[Any]) -> list[Any]:
        (x,) = operands
        axes = [int(axis) for axis in equation.params["axes"]]
        kept = [i for i in range(x.ndim) if i not in axes]
        shape = [x.shape[i] for i in kept]
        return [_extreme(decider, x.transpose([*kept, *axes]).reshape(*shape, -1), sign)]

    return rule


def _window(sign: int) -> CellRule:
    def rule(decider: Decider, equation: Any, operands: Sequence[Any]) -> list[Any]:
        return [_extreme(decider, _windows(operands[0], equation, decider.outside(sign)), sign)]

    return rule


def _windows(x: Any, equation: Any, outside: float) -> Any:
    """All windows of x, the entries of each along one last axis.

    They are slices: a gather would be compiled anew, and slowly, for every number of inputs.
    """
    axes = window_axes(equation)
    for i, axis in enumerate(axes):
        reach = max((axis.windows - 1) * axis.stride + 1, 0)
        length = (axis.window - 1) * axis.dilation + reach
        spread = max((axis.size - 1) * axis.spread + 1, 0)
        sides = [(0, 0, 0)] * x.ndim
        sides[2 * i] = (axis.padding, length - axis.padding - spread, axis.spread - 1)
        line = lax.pad(x, jnp.asarray(outside, x.dtype), sides)
        starts = range(0, axis.window * axis.dilation, axis.dilation)
        entries = [lax.slice_in_dim(line, k, k + reach, axis.stride, 2 * i) for k in starts]
        x = jnp.stack(entries, axis=2 * i + 1)
    numbers, within = range(0, 2 * len(axes), 2), range(1, 2 * len(axes), 2)
    shape = (*(axis.windows for axis in axes), prod(axis.window for axis in axes))
    return x.transpose([*numbers, *within]).reshape(shape)


def _cumulative(sign: int) -> CellRule:
    """The largest of the entries so far, or the smallest: that of each beginning of a line."""

    def rule(decider: Decider, equation: Any, operands: Sequence[Any]) -> list[Any]:
        axis, size = equation.params["axis"], operands[0].shape[equation.params["axis"]]
        seen = np.tril(np.ones((size, size), bool))
        seen = seen.T if equation.params["reverse"] else seen
        line = jnp.moveaxis(operands[0], axis, -1)[..., None, :]
        lines = jnp.where(seen, line, decider.outside(sign))
        return [jnp.moveaxis(_extreme(decider, lines, sign), -1, axis)]

    return rule


def _ordered(decider: Decider, keys: Any, sign: int, count: int) -> Any:
    """Rows of a permutation matrix along the last axis: the smallest keys, or the largest.

    Equal keys stay in the order in which they stand.
    """

    def branches() -> Any:
        places = jnp.argsort(sign * keys, axis=-1)[..., :count]
        return nn.one_hot(places, keys.shape[-1], dtype=jnp.float64)

    def holds(matrix: Any) -> Holds:
        places = jnp.argmax(matrix, axis=-1)
        line = jnp.take_along_axis(keys, places, axis=-1, mode="clip")
        later = sign * (keys[..., None, :] - line[..., None])
        is_before = jnp.cumsum(matrix, axis=-2) > 0
        is_behind = jnp.arange(keys.shape[-1]) > places[..., None]
        return Holds(
            jnp.where(is_before | is_behind, 1.0, later),
            jnp.where(is_before | ~is_behind, 0.0, later),
        )

    return decider.decide(Decision(branches, holds))


def _sort(decider: Decider, equation: Any, operands: Sequence[Any]) -> list[Any]:
    params = equation.params
    axis = params["dimension"]
    keys = operands[0]
    if params["num_keys"] != 1 or keys is None or keys.dtype.kind != "f":
        raise NotCoveredError(
            f"{where_from(equation)} sorts by several keys, or real numbers by whole ones that "
            "depend on the arguments, which is not covered: sort by one real key"
        )
    if not keys.size:
        return list(operands)
    lines = jnp.moveaxis(keys, axis, -1)
    matrix = _ordered(decider, lines, 1, lines.shape[-1])
    outputs: list[Any] = []
    for x, variable in zip(operands, equation.outvars, strict=True):
        if x is None or variable.aval.dtype.kind != "f":
            outputs.append(decider.discrete(lambda x=x: _whole(matrix, x, axis)))
        else:
            moved = decider.taken(matrix, jnp.moveaxis(x, axis, -1))
            outputs.append(jnp.moveaxis(moved, -1, axis))
    return outputs


def _whole(matrix: Any, x: Any, axis: int) -> Any:
    moved = jnp.einsum("...kn,...n->...k", matrix, jnp.moveaxis(x, axis, -1).astype(jnp.float64))
    return jnp.moveaxis(moved, -1, axis).astype(x.dtype)


def _top_k(decider: Decider, equation: Any, operands: Sequence[Any]) -> list[Any]:
    (x,) = operands
    count, axis = equation.params["k"], equation.params["axis"]
    lines = jnp.moveaxis(x, axis, -1)
    matrix = _ordered(decider, lines, -1, count)
    values = jnp.moveaxis(decider.taken(matrix, lines), -1, axis)
    dtype = equation.outvars[1].aval.dtype

    def places() -> Any:
        return jnp.moveaxis(jnp.argmax(matrix, axis=-1).astype(dtype), -1, axis)

    return [values, decider.discrete(places)]


PIECEWISE: dict[str, CellRule] = {
    "abs": _abs,
    "ceil": _rounding(jnp.negative),
    "clamp": _clamp,
    "cummax": _cumulative(1),
    "cummin": _cumulative(-1),
    "floor": _rounding(jnp.positive),
    "max": _of_two(1),
    "min": _of_two(-1),
    "reduce_max": _reduce(1),
    "reduce_min": _reduce(-1),
    "reduce_window_max": _window(1),
    "reduce_window_min": _window(-1),
    "rem": _rem,
    "round": _round,
    "sign": _sign,
    "sort": _sort,
    "top_k": _top_k,
}
"""Primitives with real outputs that choose among branches."""


def _compared(sign: int, ties: bool | None) -> Outcome:
    """Whether sign (x − y) is positive, or also when x = y; None if that is not to occur."""

    def outcome(equation: Any, operands: Sequence[Any]) -> Decision:
        x, y = operands

        def holds(is_so: Any) -> Holds:
            gap = jnp.where(is_so, sign, -sign) * (x - y)
            if ties is None:
                return Holds(gap)
            with_ties = is_so == ties
            return Holds(jnp.where(with_ties, 1.0, gap), jnp.where(with_ties, gap, 0.0))

        return Decision(lambda: equation.primitive.bind(x, y, **equation.params), holds)

    return outcome


def _equal(equal: bool) -> Outcome:
    """Whether x = y, or whether they differ."""

    def outcome(equation: Any, operands: Sequence[Any]) -> Decision:
        x, y = operands

        def holds(is_so: Any) -> Holds:
            square, are_equal = (x - y) ** 2, is_so == equal
            return Holds(jnp.where(are_equal, 1.0, square), jnp.where(are_equal, -square, 0.0))

        return Decision(lambda: equation.primitive.bind(x, y, **equation.params), holds)

    return outcome


def _place(sign: int) -> Outcome:
    """The place of the largest entry along one axis, or of the smallest, and the first of these."""

    def outcome(equation: Any, operands: Sequence[Any]) -> Decision:
        (x,) = operands
        (axis,) = equation.params["axes"]

        def holds(best: Any) -> Holds:
            lines, best = jnp.moveaxis(x, axis, -1), best[..., None]
            chosen = jnp.take_along_axis(lines, best, axis=-1, mode="clip")
            rest = sign * (chosen - lines)
            numbers = jnp.arange(lines.shape[-1])
            return Holds(jnp.where(numbers < best, rest, 1.0), jnp.where(numbers > best, rest, 0.0))

        return Decision(lambda: equation.primitive.bind(x, **equation.params), holds)

    return outcome


def _cut(equation: Any, operands: Sequence[Any]) -> Decision:
    """A real number turned into a whole one or a truth value."""
    (x,) = operands
    dtype = equation.params["new_dtype"]

    def holds(result: Any) -> Holds:
        if jnp.issubdtype(dtype, jnp.integer):
            return _towards_zero(x, result)
        return Holds(jnp.where(result, x * x, 1.0), jnp.where(result, 0.0, -x * x))

    return Decision(lambda: lax.convert_element_type(x, dtype), holds)


OUTCOMES: dict[str, Outcome] = {
    "argmax": _place(1),
    "argmin": _place(-1),
    "convert_element_type": _cut,
    "eq": _equal(True),
    "ge": _compared(1, True),
    "gt": _compared(1, False),
    "le": _compared(-1, True),
    "le_to": _compared(-1, None),
    "lt": _compared(-1, False),
    "lt_to": _compared(-1, None),
    "ne": _equal(False),
}
"""Primitives that make whole numbers or truth values of real numbers."""


def _select(decider: Decider, _: Any, operands: Sequence[Any]) -> list[Any]:
    which, *cases = operands
    return [decider.mixed(decider.decide(Decision(lambda: which)), cases)]


def _convert(decider: Decider, _: Any, operands: Sequence[Any]) -> list[Any]:
    return [_real(decider.decide(Decision(lambda: operands[0])))]


def _move(decider: Decider, equation: Any, operands: Sequence[Any]) -> list[Any]:
    """Entries taken from places that are outcomes: a matrix of zeros and ones times all entries."""
    filling = equation.params.get("fill_value")
    filling = np.nan if filling is None else float(filling)  # JAX fills with NaN by itself
    moved = [jnp.asarray(operands[place]) for place in MOVED[equation.primitive.name]]
    entries = jnp.concatenate([x.reshape(-1) for x in moved])

    def branches() -> Any:
        return nn.one_hot(sources_of(equation, operands), entries.size, dtype=jnp.float64)

    matrix = decider.decide(Decision(branches))
    taken = decider.taken(matrix.reshape(-1, entries.size), entries).reshape(matrix.shape[:-1])
    if len(moved) > 1:  # what is not moved there stays
        return [taken]
    is_outside = 1.0 - jnp.sum(matrix, axis=-1)
    return [decider.mixed(is_outside, [taken, np.full(taken.shape, filling)])]


def _scatter_add(decider: Decider, equation: Any, operands: Sequence[Any]) -> list[Any]:
    """Entries added at places that are outcomes: a matrix of zeros and ones for each update."""
    x, places, updates = operands

    def branches() -> Any:
        def alone(update: Any) -> Any:
            zeros = jnp.zeros(jnp.shape(x), jnp.float64)
            return equation.primitive.bind(zeros, places, update, **equation.params)

        basis = jnp.eye(updates.size, dtype=jnp.float64).reshape(-1, *updates.shape)
        return jax.vmap(alone)(basis)

    moved = decider.decide(Decision(branches))
    return [x + jnp.tensordot(jnp.ravel(updates), moved, axes=1)]


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
