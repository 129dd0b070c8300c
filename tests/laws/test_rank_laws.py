"""Laws of rank, echelon form and null space over a prime field."""

import flint
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from neuromanifold.algebra.echelon import EchelonForm
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import null_space, rank, rank_profile, right_inverse

fields = st.sampled_from([3, 7, 251, 65537, 1048573, 8388593]).map(PrimeField)
seeds = st.integers(0, 2**32 - 1)
lengths = st.integers(0, 24)


@st.composite
def matrices(draw: st.DrawFn) -> tuple[PrimeField, np.ndarray, np.random.Generator]:
    """A field, a product of two sparse factors (so of every rank), and a generator for more."""
    field, rng = draw(fields), np.random.default_rng(draw(seeds))
    m, r, n = draw(lengths), draw(lengths), draw(lengths)
    density = draw(st.sampled_from([0.1, 0.5, 1.0]))
    left = residues(field, rng, m, r) * (rng.random((m, r)) < density)
    right = residues(field, rng, r, n) * (rng.random((r, n)) < density)
    return field, field.matmul(left, right), rng


def residues(field: PrimeField, rng: np.random.Generator, m: int, n: int) -> np.ndarray:
    return field.from_integers(rng.integers(0, field.modulus, (m, n)))


def invertible(field: PrimeField, rng: np.random.Generator, n: int) -> np.ndarray:
    """A unit lower times a unit upper triangular matrix, with permuted rows."""
    lower = np.tril(residues(field, rng, n, n), -1) + np.eye(n)
    upper = np.triu(residues(field, rng, n, n), 1) + np.eye(n)
    return field.matmul(lower, upper)[rng.permutation(n)]


@given(matrices())
@settings(deadline=None)
def test_rank_is_invariant_under_permutation_transposition_and_invertible_factors(case) -> None:
    field, matrix, rng = case
    m, n = matrix.shape
    found = rank(matrix, field)
    permuted = matrix[rng.permutation(m)][:, rng.permutation(n)]
    carried = field.matmul(
        field.matmul(invertible(field, rng, m), matrix), invertible(field, rng, n)
    )
    assert rank(permuted, field) == rank(carried, field) == rank(matrix.T, field) == found


@given(matrices(), lengths)
@settings(deadline=None)
def test_rank_of_a_product_is_at_most_that_of_each_factor(case, width: int) -> None:
    field, matrix, rng = case
    other = residues(field, rng, matrix.shape[1], width)
    product = rank(field.matmul(matrix, other), field)
    assert product <= min(rank(matrix, field), rank(other, field))
    # Sylvester's inequality bounds it from below.
    assert product >= rank(matrix, field) + rank(other, field) - matrix.shape[1]


@given(matrices(), lengths)
@settings(deadline=None)
def test_reduction_is_idempotent_and_kills_exactly_the_row_space(case, height: int) -> None:
    field, matrix, rng = case
    form = EchelonForm(matrix.shape[1], field)
    form.add(matrix)
    others = residues(field, rng, height, matrix.shape[1])
    reduced = form.reduce(others)
    np.testing.assert_array_equal(form.reduce(reduced), reduced)
    assert not reduced[:, form.pivots].any()
    expected = field.reduce(others - field.matmul(others[:, form.pivots], form.basis))
    np.testing.assert_array_equal(reduced, expected)
    assert not form.reduce(matrix).any()
    assert form.add(field.reduce(others - reduced)) == 0
    grown = EchelonForm(matrix.shape[1], field)
    grown.add(np.concatenate([matrix, others]))
    assert grown.rank == form.rank + rank(reduced, field)


@given(matrices())
@settings(deadline=None)
def test_the_null_space_annihilates_and_has_the_dimension_left_over(case) -> None:
    field, matrix, _ = case
    kernel = null_space(matrix, field)
    assert kernel.shape == (matrix.shape[1], matrix.shape[1] - rank(matrix, field))
    assert not field.matmul(matrix, kernel).any()
    assert rank(kernel, field) == kernel.shape[1]


@given(matrices())
@settings(deadline=None)
def test_the_profile_crosses_in_an_invertible_matrix_with_the_right_inverse(case) -> None:
    field, matrix, _ = case
    rows, columns = rank_profile(matrix, field)
    assert rank(matrix[np.ix_(rows, columns)], field) == len(rows) == len(columns)
    inverse = right_inverse(matrix[rows], field)
    np.testing.assert_array_equal(field.matmul(matrix[rows], inverse), np.eye(len(rows)))


@given(fields, seeds, st.integers(1, 12), st.integers(1, 12), st.integers(1, 12))
@settings(deadline=None)
def test_rank_mod_p_is_at_most_the_rational_rank(
    field: PrimeField, seed: int, m: int, r: int, n: int
) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-3, 4, (m, r)) @ rng.integers(-3, 4, (r, n))
    rational = flint.fmpz_mat(matrix.tolist()).rank()
    assert rank(field.from_integers(matrix), field) <= rational


def test_rank_mod_p_can_be_less_than_the_rational_rank() -> None:
    matrix = np.array([[1, 2], [2, 7]])
    assert flint.fmpz_mat(matrix.tolist()).rank() == 2
    assert rank(PrimeField(3).from_integers(matrix), PrimeField(3)) == 1
