"""Elimination on stacks of matrices of residues: triangular systems and factors L U.

Every entry of a solution, an inverse or a determinant is a rational function of the entries, so
elimination over GF(p) gives its residue. A float program exchanges rows to keep its pivots large.
Over GF(p) any non-zero pivot is as good as another, and no row is exchanged: the factors are those
on the open set of matrices for which the float program exchanges none, and what is made of them,
if it does not depend on the order of the rows (as solutions and determinants do not), is the same
rational function everywhere.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from neuromanifold.algebra.modular.recorder import Known, Recorder, Rule, Value
from neuromanifold.algebra.modular.tangents import Division, Setting
from neuromanifold.algebra.prime_field import PrimeField, Residues


def solve_triangular(
    field: PrimeField, a: Residues, b: Residues, *, lower: bool, unit: bool
) -> Residues:
    """The X with A X = B for stacks of triangular A: one row of X at a time.

    Row i is (b_i − Σ_j a_ij x_j) / a_ii over the rows j found so far, a matrix product.
    """
    size, x = a.shape[-1], np.zeros(b.shape)
    inverse = None if unit else field.inverse(np.diagonal(a, axis1=-2, axis2=-1))
    for step in range(size):
        i = step if lower else size - 1 - step
        done = slice(0, i) if lower else slice(i + 1, size)
        row = b[..., i : i + 1, :]
        if step:
            row = field.reduce(row - field.matmul(a[..., i : i + 1, done], x[..., done, :]))
        if inverse is not None:
            row = field.multiply(row, inverse[..., i, None, None])
        x[..., i : i + 1, :] = row
    return x


def factors(field: PrimeField, a: Residues) -> Residues:
    """L below the diagonal and U above for stacks of matrices A = L U, L with unit diagonal."""
    a = np.array(a)
    rows, columns = a.shape[-2:]
    for i in range(min(rows, columns)):
        if i + 1 == rows:
            break
        pivot = field.inverse(a[..., i, i])[..., None]
        a[..., i + 1 :, i] = field.multiply(a[..., i + 1 :, i], pivot)
        below = field.multiply(a[..., i + 1 :, i, None], a[..., i, None, i + 1 :])
        a[..., i + 1 :, i + 1 :] = field.reduce(a[..., i + 1 :, i + 1 :] - below)
    return a


def factors_tangent(field: PrimeField, a: Residues, da: Residues) -> Residues:
    """The derivative of `factors`: every step of the elimination with its derivative."""
    a, da = np.array(a), np.array(da)
    for i in range(min(a.shape[-2] - 1, a.shape[-1])):
        pivot = field.inverse(a[..., i, i])[..., None]
        left, right = (..., slice(i + 1, None), i), (..., i, slice(i + 1, None))
        a[left] = field.multiply(a[left], pivot)
        moved = da[left] - field.multiply(a[left], da[..., i, i, None])
        da[left] = field.multiply(field.reduce(moved), pivot)
        block = (..., slice(i + 1, None), slice(i + 1, None))
        first = field.multiply(da[left][..., None], a[right][..., None, :])
        second = field.multiply(a[left][..., None], da[right][..., None, :])
        da[block] = field.reduce(da[block] - first - second)
        below = field.multiply(a[left][..., None], a[right][..., None, :])
        a[block] = field.reduce(a[block] - below)
    return da


def from_the_left(equation: Any) -> tuple[bool, Callable[[np.ndarray], np.ndarray]]:
    """Every variant as A X = B: whether A is transposed in it, and what B and X are turned by."""
    params = equation.params

    def sided(x: np.ndarray) -> np.ndarray:
        return x if params["left_side"] else np.ascontiguousarray(x.swapaxes(-1, -2))

    # X A = B is Aᵀ Xᵀ = Bᵀ; with both, the transposes of A cancel.
    return params["transpose_a"] == params["left_side"], sided


def _triangular_solve(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """A X = B by elimination, and its derivative."""
    a, b = (recorder.finite(value, equation) for value in values)
    lower, unit = equation.params["lower"], equation.params["unit_diagonal"]
    turned, sided = from_the_left(equation)

    def solve(setting: Setting, a: Residues, b: Residues) -> Residues:
        a = a.swapaxes(-1, -2) if turned else a
        x = solve_triangular(setting.field, a, sided(b), lower=lower != turned, unit=unit)
        return sided(x)

    def tangent(
        setting: Setting, x: Residues, operands: Sequence[Residues], moved: Sequence[Residues]
    ) -> Residues:
        """A dX = dB − dA X, where of dA only the triangle counts."""
        part = np.tril(moved[0], -unit) if lower else np.triu(moved[0], unit)
        part = np.ascontiguousarray(part.swapaxes(-1, -2) if turned else part)
        right = sided(moved[1]) - setting.field.matmul(part, sided(x))
        return solve(setting, operands[0], sided(setting.field.reduce(right)))

    order = a.shape[-1]
    count = prod(a.shape[:-2])
    division = Division("nothing" if unit else "determinants", order, count)
    return [recorder.emit(solve, [a, b], b.shape, tangent=tangent, division=division)]


def _lu(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """The factors, and the pivots and the permutation of no exchange."""
    a = recorder.finite(values[0], equation)

    def lu(setting: Setting, x: Residues) -> Residues:
        return factors(setting.field, x)

    def tangent(
        setting: Setting, _: Residues, operands: Sequence[Residues], moved: Sequence[Residues]
    ) -> Residues:
        return factors_tangent(setting.field, operands[0], moved[0])

    pivots, permutation = (variable.aval for variable in equation.outvars[1:])
    division = Division("leading minors", min(a.shape[-2:]), prod(a.shape[:-2]))
    order = [np.broadcast_to(np.arange(v.shape[-1]), v.shape) for v in (pivots, permutation)]
    return [
        recorder.emit(lu, [a], a.shape, tangent=tangent, division=division),
        Known(order[0].astype(pivots.dtype)),
        Known(order[1].astype(permutation.dtype)),
    ]


LINEAR_SYSTEMS: dict[str, Rule] = {"lu": _lu, "triangular_solve": _triangular_solve}
