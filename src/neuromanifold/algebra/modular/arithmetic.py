"""Field operations: sums, products, quotients, powers, and formal exponentials.

A residue is at most h = p/2 + 4 < 2^22 + 4 in absolute value, and a float64 holds every integer up
to 2^53; each rule says why its sums and products stay below that.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from neuromanifold.algebra.modular.contraction import contract
from neuromanifold.algebra.modular.recorder import (
    Known,
    Operation,
    Recorder,
    Rule,
    Setting,
    Shape,
    Unknown,
    Value,
)
from neuromanifold.algebra.prime_field import Residues
from neuromanifold.errors import NotCoveredError


def _shape(equation: Any) -> Shape:
    return equation.outvars[0].aval.shape


def _plus(setting: Setting, x: Residues, y: Residues) -> Residues:
    return setting.field.reduce(x + y)  # at most 2h


def _minus(setting: Setting, x: Residues, y: Residues) -> Residues:
    return setting.field.reduce(x - y)  # at most 2h


def _times(setting: Setting, x: Residues, y: Residues) -> Residues:
    return setting.field.multiply(x, y)  # at most h² < 2^45


def _negative(_: Setting, x: Residues) -> Residues:
    return np.negative(x)


def _add(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    x, y = (recorder.unknown(value, equation) for value in values)
    masked = None
    if x.masked is not None or y.masked is not None:
        masked = np.asarray(x.mask | y.mask)
    return [recorder.emit_entrywise(_plus, [x, y], _shape(equation), masked)]


def _sub(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    x, y = recorder.unknown(values[0], equation), recorder.finite(values[1], equation)
    return [recorder.emit_entrywise(_minus, [x, y], _shape(equation), x.masked)]


def _neg(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    x = recorder.finite(values[0], equation)
    return [recorder.emit_entrywise(_negative, [x], x.shape)]


def _mul(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """A product; minus infinity may only be scaled by a positive constant."""
    x, y = _scaled(recorder, equation, values)
    return [recorder.emit_entrywise(_times, [x, y], _shape(equation), x.masked)]


def _scaled(recorder: Recorder, equation: Any, values: Sequence[Value]) -> tuple[Unknown, Unknown]:
    """The two factors, the one with masked entries first."""
    first, second = values
    if isinstance(second, Unknown) and second.masked is not None:
        first, second = second, first
    if isinstance(second, Known) and np.all(second.array > 0):
        return recorder.unknown(first, equation), recorder.unknown(second, equation)
    return recorder.finite(first, equation), recorder.finite(second, equation)


def _div(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """A quotient; a zero denominator raises `ZeroResidueError` when the program runs."""
    numerator, denominator = values
    y = recorder.denominator(denominator, equation)
    if isinstance(denominator, Known) and np.all(denominator.array > 0):
        x = recorder.unknown(numerator, equation)
    else:
        x = recorder.finite(numerator, equation)
    return [recorder.emit_entrywise(_times, [x, y], _shape(equation), x.masked)]


def _square(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    x = recorder.finite(values[0], equation)
    return [recorder.emit_entrywise(_times, [x, x], x.shape)]


def _whole_power(recorder: Recorder, x: Unknown, exponent: int) -> Unknown:
    if exponent < 0:
        return _whole_power(recorder, recorder.inverse(x), -exponent)

    def power(setting: Setting, a: Residues) -> Residues:
        return setting.field.power(a, exponent)

    return recorder.emit_entrywise(power, [x], x.shape)


def _integer_pow(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    x = recorder.finite(values[0], equation)
    return [_whole_power(recorder, x, int(equation.params["y"]))]


def _pow(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    base, exponent = values
    exponents = np.unique(exponent.array).tolist() if isinstance(exponent, Known) else []
    if len(exponents) != 1 or exponents[0] != int(exponents[0]):
        raise NotCoveredError(
            f"{recorder.where(equation)} raises to a power that is not one constant whole "
            "number, which is no rational function; use whole exponents"
        )
    return [_whole_power(recorder, recorder.finite(base, equation), int(exponents[0]))]


def _sum(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """A sum over axes of n entries is at most n h, exact for n up to 2^30."""
    x = recorder.finite(values[0], equation)
    axes = tuple(int(axis) for axis in equation.params["axes"])

    def total(setting: Setting, a: Residues) -> Residues:
        return setting.field.reduce(np.asarray(np.sum(a, axis=axes)))

    return [recorder.emit(total, [x], _shape(equation))]


def _prod(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """A product over axes, one factor at a time, so that each step is a product of two residues."""
    x = recorder.finite(values[0], equation)
    axes = [int(axis) for axis in equation.params["axes"]]
    shape = _shape(equation)

    def product(setting: Setting, a: Residues) -> Residues:
        factors = np.moveaxis(a, axes, range(len(axes))).reshape(-1, *(shape or (1,)))
        result = np.ones(factors.shape[1:])
        for factor in factors:
            result = setting.field.multiply(result, factor)
        return result.reshape(shape)

    return [recorder.emit(product, [x], shape)]


def _cumsum(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """Partial sums of up to n entries are at most n h, exact for n up to 2^30."""

    def partial_sums(setting: Setting, a: Residues) -> Residues:
        return setting.field.reduce(np.cumsum(a, 0))

    return _cumulative(recorder, equation, values, partial_sums)


def _cumprod(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """Partial products, one factor at a time."""

    def partial_products(setting: Setting, a: Residues) -> Residues:
        result = np.array(a)
        for i in range(1, len(a)):
            result[i] = setting.field.multiply(result[i - 1], a[i])
        return result

    return _cumulative(recorder, equation, values, partial_products)


def _cumulative(
    recorder: Recorder, equation: Any, values: Sequence[Value], along_first: Operation
) -> list[Value]:
    """An operation along one axis, possibly from its end, given along the first axis."""
    x = recorder.finite(values[0], equation)
    axis, step = equation.params["axis"], -1 if equation.params["reverse"] else 1

    def along(setting: Setting, a: Residues) -> Residues:
        line = along_first(setting, np.moveaxis(a, axis, 0)[::step])
        return np.moveaxis(line[::step], 0, axis)

    return [recorder.emit(along, [x], x.shape)]


def _dot_general(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """A contraction, by matrix products that `PrimeField.matmul` keeps exact at every length."""
    x, y = (recorder.finite(value, equation) for value in values)
    product = contract(equation.params["dimension_numbers"], x.shape, y.shape)

    def contraction(setting: Setting, a: Residues, b: Residues) -> Residues:
        return product(setting.field.matmul, a, b)

    return [recorder.emit(contraction, [x, y], _shape(equation))]


def _convert(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    if not jax.dtypes.issubdtype(equation.params["new_dtype"], np.floating):
        raise NotCoveredError(
            f"{recorder.where(equation)} turns values that depend on the arguments into the type "
            f"{equation.params['new_dtype']}, which is no rational function; keep them real"
        )
    return list(values)


def exponential(recorder: Recorder, x: Unknown) -> Unknown:
    """exp(x), formal; exp(−inf) = 0 (softmax-exact)."""
    recorder.uses_exponentials = True
    masked = x.masked

    def exp(setting: Setting, a: Residues) -> Residues:
        assert setting.exponentials is not None
        element = setting.exponentials(a)
        return element if masked is None else np.where(masked, 0.0, element)

    return recorder.emit(exp, [x], x.shape)


def _exp(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    return [exponential(recorder, recorder.unknown(values[0], equation))]


def _expm1(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    e = exponential(recorder, recorder.unknown(values[0], equation))
    return [_affine(recorder, e, 1, -1)]


def _logistic(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """1 / (1 + exp(−x))."""
    x = recorder.finite(values[0], equation)
    e = exponential(recorder, _affine(recorder, x, -1, 0))
    return [recorder.inverse(_affine(recorder, e, 1, 1))]


def _tanh(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """1 − 2 / (1 + exp(2x))."""
    x = recorder.finite(values[0], equation)
    e = exponential(recorder, _affine(recorder, x, 2, 0))
    return [_affine(recorder, recorder.inverse(_affine(recorder, e, 1, 1)), -2, 1)]


def _affine(recorder: Recorder, x: Unknown, slope: int, shift: int) -> Unknown:
    def affine(setting: Setting, a: Residues) -> Residues:
        return setting.field.reduce(slope * a + shift)  # at most 2h + 1, as |slope| ≤ 2

    return recorder.emit_entrywise(affine, [x], x.shape)


ARITHMETIC: dict[str, Rule] = {
    "add": _add,
    "add_any": _add,
    "convert_element_type": _convert,
    "cumprod": _cumprod,
    "cumsum": _cumsum,
    "div": _div,
    "dot_general": _dot_general,
    "exp": _exp,
    "expm1": _expm1,
    "integer_pow": _integer_pow,
    "logistic": _logistic,
    "mul": _mul,
    "neg": _neg,
    "pow": _pow,
    "reduce_prod": _prod,
    "reduce_sum": _sum,
    "square": _square,
    "sub": _sub,
    "tanh": _tanh,
}
