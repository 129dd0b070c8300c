"""What each primitive does to balls: a ball encloses a number, and so does every result."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from flint import arb

from neuromanifold.algebra.balls.arrays import balls, entrywise, is_balls, product
from neuromanifold.algebra.balls.lifting import (
    BallRule,
    OfTwo,
    cumulated,
    cumulative,
    of_several,
    over_axes,
    unary,
)
from neuromanifold.algebra.balls.order import ORDER, UNDECIDED, UndecidedError, less
from neuromanifold.algebra.balls.rounding import ROUNDING, whole
from neuromanifold.algebra.balls.sorting import SORTING
from neuromanifold.algebra.balls.systems import SYSTEMS
from neuromanifold.algebra.balls.windows import WINDOWS
from neuromanifold.algebra.modular.folding import folded
from neuromanifold.algebra.modular.rules.contraction import contract
from neuromanifold.algebra.modular.rules.indexing import scatter_targets
from neuromanifold.errors import NotCoveredError


def _difference(x: Any, y: Any) -> Any:
    return arb(0) if x is y and x.is_finite() else x - y


def _dot_general(equation: Any, operands: Sequence[np.ndarray]) -> list[Any]:
    x, y = operands
    contraction = contract(equation.params["dimension_numbers"], x.shape, y.shape)
    return [contraction(product, x, y)]


def _integer_pow(equation: Any, operands: Sequence[np.ndarray]) -> list[Any]:
    return [entrywise(_power, operands[0], balls(int(equation.params["y"])))]


def _power(x: Any, y: Any) -> Any:
    """Powers; whole ones around zero, which `arb` does not enclose, by squares and products.

    Of balls around infinity it takes none, and ends the process.
    """
    if not (x.is_finite() or x.is_exact()):
        return arb("nan")
    if not (y.is_exact() and y.is_integer() and x.contains(0)):
        return x**y
    n = int(y.unique_fmpz())
    result = arb(1)
    for digit in f"{abs(n):b}":
        result = result * result * (x if digit == "1" else 1)
    return result if n >= 0 else 1 / result


def _select(_: Any, operands: Sequence[np.ndarray]) -> list[Any]:
    """One of the cases; what contains both where it is not decided which."""
    which, *cases = operands
    if is_balls(which):
        return [entrywise(_either, which, *cases, dtype=np.result_type(*cases))]
    if len(cases) == 2:
        return [np.where(which.astype(bool), cases[1], cases[0])]
    return [np.choose(which, cases)]


def _either(which: bool | None, x: Any, y: Any) -> Any:
    if which is not None:
        return y if which else x
    if isinstance(x, arb):
        is_one = x is y or (x.is_exact() and y.is_exact() and x == y)
        return x if is_one else x.union(y)
    if x != y:
        raise UndecidedError(UNDECIDED)
    return x


def _convert(equation: Any, operands: Sequence[np.ndarray]) -> list[Any]:
    (x,) = operands
    dtype = equation.params["new_dtype"]
    real = np.issubdtype(dtype, np.floating)
    if is_balls(x) and equation.invars[0].aval.dtype == bool:  # not all decided
        cases = [np.full(x.shape, truth, dtype) for truth in (False, True)]
        return _select(equation, [x, *map(balls, cases)] if real else [x, *cases])
    if is_balls(x) and real:
        return [x]
    if is_balls(x) and np.issubdtype(dtype, np.bool_):
        return ORDER["ne"](equation, [x, balls(np.zeros(x.shape))])
    if is_balls(x):
        return [_in_range(entrywise(whole, x), np.dtype(dtype))]
    return [balls(x)] if real else [x.astype(dtype)]


def _in_range(numbers: np.ndarray, dtype: np.dtype) -> np.ndarray:
    limits = np.iinfo(dtype)
    if any(not limits.min <= n <= limits.max for n in numbers.flat):
        raise NotCoveredError(f"a number is beyond the range of {dtype}; keep it real")
    return numbers.astype(dtype)


def _iota(equation: Any, _: Sequence[np.ndarray]) -> list[Any]:
    return [balls(x) for x in folded(equation, [])]


def _scattered(function: OfTwo) -> BallRule:
    """Updates combined with the entries that they meet, one after the other."""

    def rule(equation: Any, operands: Sequence[np.ndarray]) -> list[Any]:
        x, indices, updates = operands
        targets = scatter_targets(equation, x.shape, indices, updates.shape)
        result = x.reshape(-1).copy()
        for target, update in zip(targets.tolist(), updates.reshape(-1).tolist(), strict=True):
            if target:
                result[target - 1] = function(result[target - 1], update)
        return [result.reshape(x.shape)]

    return rule


def _cumulative_logarithm(equation: Any, operands: Sequence[np.ndarray]) -> list[Any]:
    """Logarithms of the partial sums of exponentials; of no terms but e^−∞, −∞."""

    def logarithm(x: Any) -> Any:
        return arb("-inf") if x.is_zero() else x.log()

    sums = cumulated(operator.add, equation, entrywise(arb.exp, operands[0]))
    return [entrywise(logarithm, sums)]


def _logistic(x: Any) -> Any:
    return 1 / (1 + (-x).exp())


def _sign(x: Any) -> Any:
    return x if x.is_nan() else x.sgn()


def _angle(y: Any, x: Any) -> Any:
    """The angle of (x, y), of which `arb` knows a bound even if there is none."""
    return x * y if x.is_nan() or y.is_nan() else arb.atan2(y, x)


def _wave(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A cosine or sine, which has no value at infinity."""
    return lambda x: function(x) if x.is_finite() else x - x


def _absolute(x: Any) -> Any:
    return -x if x < 0 else x if x >= 0 else abs(x)


def _cube_root(x: Any) -> Any:
    return -(-x).root(3) if less(x, arb(0)) else x.root(3)


def _bessel(order: int) -> Callable[[Any], Any]:
    """e^−|x| I(x)."""
    return lambda x: (-abs(x)).exp() * x.bessel_i(order)


def _polygamma(order: Any, x: Any) -> Any:
    """ψ^(m)(x) = (−1)^(m+1) m! ζ(m + 1, x), m > 0."""
    m = int(order.unique_fmpz())
    return (-1) ** (m + 1) * arb(m).gamma() * m * arb(m + 1).zeta(x) if m else x.digamma()


RULES: dict[str, BallRule] = {
    "abs": unary(_absolute),
    "add": of_several(operator.add),
    "add_any": of_several(operator.add),
    "atan2": of_several(_angle),
    "bessel_i0e": unary(_bessel(0)),
    "bessel_i1e": unary(_bessel(1)),
    "cbrt": unary(_cube_root),
    "convert_element_type": _convert,
    "cos": unary(_wave(arb.cos)),
    "cumlogsumexp": _cumulative_logarithm,
    "cumprod": cumulative(operator.mul),
    "cumsum": cumulative(operator.add),
    "div": of_several(operator.truediv),
    "dot_general": _dot_general,
    "erf_inv": unary(operator.methodcaller("erfinv")),
    "exp2": unary(lambda x: arb(2) ** x),
    "integer_pow": _integer_pow,
    "iota": _iota,
    "logistic": unary(_logistic),
    "mul": of_several(operator.mul),
    "neg": unary(operator.neg),
    "polygamma": of_several(_polygamma),
    "pow": of_several(_power),
    "reduce_prod": over_axes(operator.mul, 1.0),
    "reduce_sum": over_axes(operator.add, 0.0),
    "scatter-add": _scattered(operator.add),
    "scatter-mul": _scattered(operator.mul),
    "scatter-sub": _scattered(_difference),
    "select_n": _select,
    "sign": unary(_sign),
    "sin": unary(_wave(arb.sin)),
    "square": unary(lambda x: x * x),
    "sub": of_several(_difference),
}
"""Primitives with rules of their own; those below are in modules of theirs or methods of balls."""

OF_TRUTH = frozenset({"and", "convert_element_type", "not", "or", "select_n"})
"""Primitives that know what to do with truth values that are not decided."""

METHODS = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "digamma", "erf"),
    *("erfc", "exp", "expm1", "lgamma", "log", "log1p", "rsqrt", "sinh", "sqrt"),
    *("tan", "tanh"),
)
RULES |= ORDER | ROUNDING | SORTING | SYSTEMS | WINDOWS
RULES |= {name: unary(operator.methodcaller(name)) for name in METHODS}
