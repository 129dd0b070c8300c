"""What each primitive does to balls.

A ball encloses a number, and so does every result. What cannot be decided by the balls, a
comparison of two that overlap, is an error: more bits decide it, unless the numbers are equal. The
exception is a number compared with itself: the maximum of several balls is one of them, and that
one is known to be equal to it.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from flint import arb

from neuromanifold.algebra.balls.arrays import balls, entrywise, is_balls, product
from neuromanifold.algebra.modular.rules.contraction import contract
from neuromanifold.errors import NotCoveredError


class UndecidedError(NotCoveredError):
    """Two balls overlap, so a comparison between them is not decided."""


BallRule = Callable[[Any, Sequence[np.ndarray]], list[Any]]


def _unary(function: Callable[[Any], Any]) -> BallRule:
    def rule(_: Any, operands: Sequence[np.ndarray]) -> list[Any]:
        return [entrywise(function, operands[0])]

    return rule


def _binary(function: Callable[[Any, Any], Any]) -> BallRule:
    def rule(_: Any, operands: Sequence[np.ndarray]) -> list[Any]:
        return [entrywise(function, *operands)]

    return rule


def _less(x: Any, y: Any) -> bool:
    """Whether x < y, decided."""
    if x is y:
        return False
    if x < y:
        return True
    if x >= y:
        return False
    raise UndecidedError(
        "two balls overlap, so which number is the larger one is not decided; take more bits, or "
        "other weights if the two are equal"
    )


def _equal(x: Any, y: Any) -> bool:
    return x is y or not (_less(x, y) or _less(y, x))


def _is_finite(_: Any, operands: Sequence[np.ndarray]) -> list[Any]:
    return [entrywise(operator.methodcaller("is_finite"), operands[0], dtype=bool)]


def _decided(function: Callable[[Any, Any], bool], negated: bool = False) -> BallRule:
    """How two numbers compare; None for a tie, which is decided either way around it."""

    def compared(x: Any, y: Any) -> bool | None:
        if x is not y and x.is_exact() and y.is_exact() and x == y:
            return None
        return function(x, y) != negated

    def rule(_: Any, operands: Sequence[np.ndarray]) -> list[Any]:
        found = entrywise(compared, *operands)
        return [found if (found == None).any() else found.astype(bool)]  # noqa: E711

    return rule


def _greater(x: Any, y: Any) -> bool:
    return _less(y, x)


def _larger(x: Any, y: Any) -> Any:
    return y if _less(x, y) else x


def _smaller(x: Any, y: Any) -> Any:
    return x if _less(x, y) else y


def _folded(function: Callable[[Any, Any], Any], start: Any) -> BallRule:
    """A reduction over axes by an operation of two balls."""

    def rule(equation: Any, operands: Sequence[np.ndarray]) -> list[Any]:
        (x,) = operands
        axes = [int(axis) for axis in equation.params["axes"]]
        kept = [i for i in range(x.ndim) if i not in axes]
        shape = tuple(x.shape[i] for i in kept)
        lines = x.transpose([*axes, *kept]).reshape(-1, *shape)
        if not len(lines):
            return [np.broadcast_to(balls(start), shape)]
        result = lines[0]
        for line in lines[1:]:
            result = entrywise(function, result, line)
        return [result]

    return rule


def _along(function: Callable[[Any, Any], Any]) -> BallRule:
    """A cumulative operation."""

    def rule(equation: Any, operands: Sequence[np.ndarray]) -> list[Any]:
        axis, step = equation.params["axis"], -1 if equation.params["reverse"] else 1
        if not operands[0].size:
            return [operands[0]]
        lines = list(np.moveaxis(operands[0], axis, 0)[::step])
        for i in range(1, len(lines)):
            lines[i] = entrywise(function, lines[i - 1], lines[i])
        return [np.moveaxis(np.stack(lines[::step]), 0, axis)]

    return rule


def _dot_general(equation: Any, operands: Sequence[np.ndarray]) -> list[Any]:
    x, y = operands
    contraction = contract(equation.params["dimension_numbers"], x.shape, y.shape)
    return [contraction(product, x, y)]


def _integer_pow(equation: Any, operands: Sequence[np.ndarray]) -> list[Any]:
    return [entrywise(operator.pow, operands[0], balls(int(equation.params["y"])))]


def _select(_: Any, operands: Sequence[np.ndarray]) -> list[Any]:
    """One of the cases; what contains both after a tie, of a slope all that it is around it."""
    which, *cases = operands
    if any(map(is_balls, cases)):
        cases = [case if is_balls(case) else balls(case) for case in cases]
    if is_balls(which):
        return [entrywise(_either, which, *cases)]
    if len(cases) == 2:
        return [np.where(which.astype(bool), cases[1], cases[0])]
    return [np.choose(which, cases)]


def _either(which: bool | None, x: Any, y: Any) -> Any:
    if which is None:
        return x if x.is_exact() and y.is_exact() and x == y else x.union(y)
    return y if which else x


def _convert(equation: Any, operands: Sequence[np.ndarray]) -> list[Any]:
    (x,) = operands
    real = np.issubdtype(equation.params["new_dtype"], np.floating)
    if is_balls(x) and equation.invars[0].aval.dtype == bool:  # with a tie among them
        return _select(equation, [x, balls(np.zeros(x.shape)), balls(np.ones(x.shape))])
    if is_balls(x) and real:
        return [x]
    if is_balls(x):
        return [entrywise(_whole, x, dtype=equation.params["new_dtype"])]
    return [balls(x)] if real else [x.astype(equation.params["new_dtype"])]


def _step(name: str) -> BallRule:
    """Rounding down or up; at a whole number what it is on both sides."""
    rounded, half = operator.methodcaller(name), arb(0.5)

    def step(x: Any) -> Any:
        is_edge = x.is_exact() and x.is_integer()
        return rounded(x - half).union(rounded(x + half)) if is_edge else rounded(x)

    return _unary(step)


def _whole(x: Any) -> int:
    """The whole number next to x towards zero, decided."""
    lowest, highest = int(x.lower().floor().unique_fmpz()), int(x.upper().floor().unique_fmpz())
    if lowest != highest:
        raise UndecidedError("a ball contains a whole number, so rounding it is not decided")
    return lowest + 1 if lowest < 0 and x != lowest else lowest


def _scatter_add(equation: Any, operands: Sequence[np.ndarray]) -> list[Any]:
    from neuromanifold.algebra.modular.rules.indexing import scatter_targets

    x, indices, updates = operands
    targets = scatter_targets(equation, x.shape, indices, updates.shape)
    result = x.reshape(-1).copy()
    for target, update in zip(targets.tolist(), updates.reshape(-1).tolist(), strict=True):
        if target:
            result[target - 1] = result[target - 1] + update
    return [result.reshape(x.shape)]


def _logistic(x: Any) -> Any:
    return 1 / (1 + (-x).exp())


def _sign(x: Any) -> Any:
    """The sign; all that it is around 0, for the slope of |x| there."""
    if x.is_zero():
        return arb(0, 1)
    return arb(int(_less(arb(0), x)) - int(_less(x, arb(0))))


def _absolute(x: Any) -> Any:
    return -x if _less(x, arb(0)) else x


def _cube_root(x: Any) -> Any:
    return -(-x).root(3) if _less(x, arb(0)) else x.root(3)


def _bessel(order: int) -> Callable[[Any], Any]:
    """e^−|x| I(x)."""
    return lambda x: (-abs(x)).exp() * x.bessel_i(order)


def _polygamma(order: Any, x: Any) -> Any:
    """ψ^(m)(x) = (−1)^(m+1) m! ζ(m + 1, x), m > 0."""
    m = int(order.unique_fmpz())
    return (-1) ** (m + 1) * arb(m).gamma() * m * arb(m + 1).zeta(x) if m else x.digamma()


RULES: dict[str, BallRule] = {
    "abs": _unary(_absolute),
    "add": _binary(operator.add),
    "add_any": _binary(operator.add),
    "atan2": _binary(arb.atan2),
    "bessel_i0e": _unary(_bessel(0)),
    "bessel_i1e": _unary(_bessel(1)),
    "cbrt": _unary(_cube_root),
    "ceil": _step("ceil"),
    "convert_element_type": _convert,
    "cumprod": _along(operator.mul),
    "cumsum": _along(operator.add),
    "div": _binary(operator.truediv),
    "dot_general": _dot_general,
    "eq": _decided(_equal),
    "erf_inv": _unary(operator.methodcaller("erfinv")),
    "exp2": _unary(lambda x: arb(2) ** x),
    "floor": _step("floor"),
    "ge": _decided(_less, negated=True),
    "gt": _decided(_greater),
    "integer_pow": _integer_pow,
    "is_finite": _is_finite,
    "le": _decided(_greater, negated=True),
    "logistic": _unary(_logistic),
    "lt": _decided(_less),
    "max": _binary(_larger),
    "min": _binary(_smaller),
    "mul": _binary(operator.mul),
    "ne": _decided(_equal, negated=True),
    "neg": _unary(operator.neg),
    "polygamma": _binary(_polygamma),
    "pow": _binary(operator.pow),
    "reduce_max": _folded(_larger, -np.inf),
    "reduce_min": _folded(_smaller, np.inf),
    "reduce_prod": _folded(operator.mul, 1.0),
    "reduce_sum": _folded(operator.add, 0.0),
    "scatter-add": _scatter_add,
    "select_n": _select,
    "sign": _unary(_sign),
    "square": _unary(lambda x: x * x),
    "sub": _binary(operator.sub),
}
"""Primitives with rules of their own; those below are methods of balls."""

METHODS = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "digamma", "erf"),
    *("erfc", "exp", "expm1", "lgamma", "log", "log1p", "rsqrt", "sin", "sinh", "sqrt"),
    *("tan", "tanh"),
)
RULES |= {name: _unary(operator.methodcaller(name)) for name in METHODS}
