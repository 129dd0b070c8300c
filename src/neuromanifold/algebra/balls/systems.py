"""Elimination on stacks of matrices of balls: triangular systems and factors L U.

Which rows are exchanged is chosen by the midpoints, and proves nothing: the pivots and the
permutation are those of the factors, whatever order a float program would have taken. What does not
depend on the order of the rows, as solutions and determinants do not, is enclosed.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from neuromanifold.algebra.balls.arrays import product
from neuromanifold.algebra.balls.lifting import BallRule
from neuromanifold.algebra.modular.rules.linear_systems import from_the_left


def _lu(_: Any, operands: Sequence[np.ndarray]) -> list[Any]:
    (a,) = operands
    *batch, rows, columns = a.shape
    factors = a.reshape(prod(batch), rows, columns).copy()
    pivots = np.empty((len(factors), min(rows, columns)), np.int32)
    order = np.empty((len(factors), rows), np.int32)
    for i, matrix in enumerate(factors):
        pivots[i], order[i] = _eliminate(matrix)
    shaped = (x.reshape(*batch, -1) for x in (pivots, order)) if a.size else (pivots, order)
    return [factors.reshape(a.shape), *shaped]


def _eliminate(a: np.ndarray) -> tuple[list[int], np.ndarray]:
    """Puts L below the diagonal and U above; the row met at each step, and the order of all.

    Below a pivot that vanishes there are zeros alone, and L has zeros there.
    """
    order, pivots = np.arange(len(a)), list[int]()
    for i in range(min(a.shape)):
        sizes = [abs(x).mid() for x in a[i:, i]]
        pivots.append(i + max(range(len(sizes)), key=sizes.__getitem__))
        exchanged = [pivots[-1], i]
        a[[i, pivots[-1]]], order[[i, pivots[-1]]] = a[exchanged], order[exchanged]
        for row in a[i + 1 :]:
            if not row[i].is_zero():
                row[i] = row[i] / a[i, i]
                row[i + 1 :] = row[i + 1 :] - a[i, i + 1 :] * row[i]
    return pivots, order


def _triangular_solve(equation: Any, operands: Sequence[np.ndarray]) -> list[Any]:
    a, b = operands
    params = equation.params
    turned, sided = from_the_left(equation)
    a, x = a.swapaxes(-1, -2) if turned else a, sided(b).copy()
    size, step = a.shape[-1], 1 if params["lower"] != turned else -1
    count, order = prod(a.shape[:-2]), range(size)[::step]
    stacks = a.reshape(count, size, size), x.reshape(count, *x.shape[-2:])
    for matrix, right in zip(*stacks, strict=True):
        _substitute(matrix, right, order, params["unit_diagonal"])
    return [sided(x)]


def _substitute(a: np.ndarray, x: np.ndarray, order: Sequence[int], unit: bool) -> None:
    """Row i becomes (b_i − Σ_j a_ij x_j) / a_ii over the rows j found so far."""
    for step, i in enumerate(order):
        done = list(order[:step])
        row = x[i] - product(a[i : i + 1, done], x[done])[0] if done else x[i]
        x[i] = row if unit else row / a[i, i]


SYSTEMS: dict[str, BallRule] = {"lu": _lu, "triangular_solve": _triangular_solve}
