"""Rank, streaming echelon form and their errors; flint's word on them is in tests/oracles."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from neuromanifold.algebra.echelon import EchelonForm
from neuromanifold.algebra.elimination import BlockSizes, Elimination
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import null_space, rank, rank_profile, right_inverse
from neuromanifold.algebra.workers import workers
from neuromanifold.errors import ArgumentError

FIELD = PrimeField()


def of_rank(m: int, n: int, r: int) -> np.ndarray:
    return FIELD.matmul(FIELD.random(1, "left", (m, r)), FIELD.random(1, "right", (r, n)))


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0), (1, 1), (3, 4)])
def test_empty_and_zero_matrices_have_rank_zero(shape: tuple[int, int]) -> None:
    zeros = np.zeros(shape)
    assert rank(zeros, FIELD) == 0
    assert [part.size for part in rank_profile(zeros, FIELD)] == [0, 0]
    np.testing.assert_array_equal(null_space(zeros, FIELD), np.eye(shape[1]))


def test_the_argument_is_left_as_it_is() -> None:
    for shape in ((20, 30), (600, 700)):
        matrix = of_rank(*shape, 15)
        matrix.setflags(write=False)
        form = EchelonForm(shape[1], FIELD)
        assert (form.add(matrix), form.add(matrix), rank(matrix, FIELD)) == (15, 0, 15)
        assert not form.reduce(matrix).any()


def test_strided_views_are_matrices_too() -> None:
    matrix = of_rank(60, 80, 11)
    assert rank(matrix.T, FIELD) == rank(matrix[::2, ::-3], FIELD) == 11


def test_the_form_grows_with_its_batches() -> None:
    form = EchelonForm(50, FIELD)
    matrix = of_rank(40, 50, 20)
    assert [form.add(batch) for batch in np.split(matrix, [0, 5, 5, 12, 30])] == [0, 5, 0, 7, 8, 0]
    assert form.rank == 20
    assert form.independent_rows.tolist() == form.pivots.tolist() == list(range(20))
    np.testing.assert_array_equal(form.basis[:, form.pivots], np.eye(20))
    assert form.add(FIELD.random(2, "more", (40, 50))) == 30
    assert form.add(FIELD.random(3, "more", (9, 50))) == 0
    np.testing.assert_array_equal(form.basis, np.eye(50))


def test_profile_lists_the_first_independent_rows_and_columns() -> None:
    a, b = FIELD.random(4, "rows", (2, 6))
    a[:3], b[:3] = (0.0, 1.0, 5.0), (0.0, 2.0, 10.0)
    zero = np.zeros(6)
    rows, columns = rank_profile(np.stack([zero, a, zero, FIELD.reduce(2 * a), b]), FIELD)
    assert rows.tolist() == [1, 4]
    assert columns.tolist() == [1, 3]


def test_reduction_and_basis_are_balanced_at_the_longest_sum_of_the_largest_residues() -> None:
    """512 pivot rows [I | h], h = (p−1)/2, and rows near (h, …, h): sums reach 512 h², near 2^53.

    The last entry is chosen so that the result is ±h, where one pass of reduction can miss.
    """
    h, k = FIELD.modulus // 2, FIELD.exact_terms
    form = EchelonForm(k + 1, FIELD)
    form.add(np.concatenate([np.eye(k), np.full((k, 1), float(h))], axis=1))
    rows = np.full((400, k + 1), float(h))
    rows[:, 0] -= np.arange(400)
    expected = h * (-1) ** np.arange(400)
    sums = [h * (k * h - j) for j in range(400)]
    rows[:, -1] = FIELD.from_integers([int(e) + x for e, x in zip(expected, sums, strict=True)])
    np.testing.assert_array_equal(form.reduce(rows)[:, -1], expected)
    np.testing.assert_array_equal(form.reduce(-rows)[:, -1], -expected)
    late = EchelonForm(400 + k + 1, FIELD)
    late.add(np.concatenate([np.eye(400), rows], axis=1))
    late.add(np.concatenate([np.zeros((k, 400)), form.basis], axis=1))
    np.testing.assert_array_equal(late.basis[:400, -1], expected)


def test_a_panel_is_never_longer_than_an_exact_sum() -> None:
    assert Elimination(FIELD, BlockSizes(panel=4096)).panel_rows == FIELD.exact_terms
    assert Elimination(PrimeField(3), BlockSizes(panel=4096)).panel_rows == 4096


def test_threads_do_not_change_the_form() -> None:
    matrix = of_rank(700, 800, 550)
    forms = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            form = EchelonForm(800, FIELD)
            form.add(matrix)
            forms.append(form.basis)
    np.testing.assert_array_equal(*forms)


def test_blas_gets_its_threads_back() -> None:
    def blas_threads() -> list[int]:
        return [found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with workers() as team:
            assert team.count == max(before)
            assert set(blas_threads()) == {1}
        assert blas_threads() == before
        with pytest.raises(ZeroDivisionError), workers() as team:
            team.run(lambda x: 1 // x, [1, 0])
        assert blas_threads() == before


def test_a_right_inverse_of_dependent_rows_is_refused() -> None:
    text = "independent rows; the 6 rows have rank 4 mod 8388593: keep those of `rank_profile`"
    with pytest.raises(ArgumentError, match=text):
        right_inverse(of_rank(6, 9, 4), FIELD)


def test_numbers_outside_the_balanced_range_are_refused() -> None:
    for bad in (5.0, -5.0, np.nan, np.inf):
        with pytest.raises(ArgumentError, match=r"in \[−3, 3\] were wanted.*reduce them first"):
            rank(np.array([[0.0, bad]]), PrimeField(7))


def test_rows_of_another_length_are_refused() -> None:
    text = r"rows of length 4 were wanted; got float64 of shape \(2, 3\)"
    with pytest.raises(ArgumentError, match=text):
        EchelonForm(4, FIELD).add(np.zeros((2, 3)))


def test_sizes_without_meaning_are_refused() -> None:
    with pytest.raises(ArgumentError, match="columns must not be negative; got -1"):
        EchelonForm(-1, FIELD)
    with pytest.raises(ArgumentError, match="block sizes must be at least 1"):
        BlockSizes(strip=0)
