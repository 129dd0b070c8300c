"""What elimination over a prime field answers: rank, rank profile, null space, right inverse.

A matrix is a float64 array of balanced residues; no function changes its argument.
"""

import numpy as np

from neuromanifold.algebra.echelon import EchelonForm
from neuromanifold.algebra.elimination import Indices, Matrix
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.errors import ArgumentError


def rank(matrix: Matrix, field: PrimeField) -> int:
    """The rank of a matrix of any shape, empty ones included."""
    return _echelon_form(matrix, field).rank


def rank_profile(matrix: Matrix, field: PrimeField) -> tuple[Indices, Indices]:
    """The lexicographically first independent rows, and columns, each in ascending order.

    A row is listed if and only if it is no combination of the rows above it, a column if and only
    if it is no combination of the columns left of it; the two lists cross in an invertible matrix.
    """
    form = _echelon_form(matrix, field)
    return form.independent_rows, form.pivots


def null_space(matrix: Matrix, field: PrimeField) -> Matrix:
    """A basis of {x : matrix @ x = 0} as columns, with the identity in the rows that are free."""
    return _echelon_form(matrix, field).null_space


def right_inverse(matrix: Matrix, field: PrimeField) -> Matrix:
    """A matrix X with matrix @ X = I, zero outside the rows of the first independent columns.

    The echelon form of [A | I] is [T A | T]; where the rows of A are independent its pivots P lie
    in A, so T A[:, P] = I and X[P] = T is a right inverse.

    Raises:
        ArgumentError: the rows of the matrix are dependent.
    """
    height, width = matrix.shape
    form = EchelonForm(width + height, field)
    form.add(np.concatenate([matrix, np.eye(height)], axis=1))
    found = int(np.searchsorted(form.pivots, width))
    if found < height:
        raise ArgumentError(
            f"a right inverse needs independent rows; the {height} rows have rank {found} "
            f"mod {field.modulus}: keep those of `rank_profile`"
        )
    inverse = np.zeros((width, height))
    inverse[form.pivots] = form.basis[:, width:]
    return inverse


def _echelon_form(matrix: Matrix, field: PrimeField) -> EchelonForm:
    form = EchelonForm(matrix.shape[1], field)
    form.add(matrix)
    return form
