"""python-flint as the independent oracle of elimination, on matrices made to break it."""

from collections.abc import Callable

import flint
import numpy as np
import pytest

from neuromanifold.algebra.echelon import EchelonForm
from neuromanifold.algebra.elimination import BlockSizes
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import null_space, rank, rank_profile, right_inverse

PRIMES = (3, 7, 251, 65537, 1048573, 8388593)
SHAPES = ((1, 1), (1, 9), (9, 1), (24, 36), (36, 24), (11, 70), (70, 11))
TINY = BlockSizes(panel=8, strip=2, window=3, direct=0, tile_rows=5, tile_columns=16)
SIZES = (
    TINY,
    BlockSizes(panel=3, strip=1, window=1, direct=0),
    BlockSizes(panel=13, strip=4, window=1, direct=0, tile_rows=7, tile_columns=64),
    BlockSizes(panel=32, strip=16, window=40, direct=0, tile_rows=16, tile_columns=16),
    BlockSizes(panel=37, strip=5, window=8, direct=60, tile_rows=10, tile_columns=9),
    BlockSizes(),
)

Generator = np.random.Generator
Family = Callable[[PrimeField, Generator, int, int], np.ndarray]


def uniform(field: PrimeField, rng: Generator, m: int, n: int) -> np.ndarray:
    return field.from_integers(rng.integers(0, field.modulus, (m, n)))


def product(field: PrimeField, rng: Generator, m: int, n: int) -> np.ndarray:
    r = int(rng.integers(0, min(m, n) + 1))
    return field.matmul(uniform(field, rng, m, r), uniform(field, rng, r, n))


def zero_first_rows_and_columns(field: PrimeField, rng: Generator, m: int, n: int) -> np.ndarray:
    matrix = product(field, rng, m, n)
    matrix[: rng.integers(0, m + 1)] = 0.0
    matrix[:, : rng.integers(0, n + 1)] = 0.0
    return matrix


def zero_rows_between(field: PrimeField, rng: Generator, m: int, n: int) -> np.ndarray:
    return uniform(field, rng, m, n) * rng.integers(0, 2, (m, 1)) * rng.integers(0, 2, n)


def repeated_rows(field: PrimeField, rng: Generator, m: int, n: int) -> np.ndarray:
    distinct = uniform(field, rng, max(1, m // 3), n)
    return distinct[rng.integers(0, len(distinct), m)]


def triangular(field: PrimeField, rng: Generator, m: int, n: int) -> np.ndarray:
    matrix = np.triu(uniform(field, rng, m, n), k=int(rng.integers(-3, 4)))
    return matrix[::-1] if rng.integers(2) else matrix


def sparse(field: PrimeField, rng: Generator, m: int, n: int) -> np.ndarray:
    return uniform(field, rng, m, n) * (rng.random((m, n)) < 2.0 / n)


def block_diagonal(field: PrimeField, rng: Generator, m: int, n: int) -> np.ndarray:
    matrix = np.zeros((m, n))
    i = j = 0
    while i < m and j < n:
        a, b = int(rng.integers(1, m - i + 1)), int(rng.integers(1, n - j + 1))
        matrix[i : i + a, j : j + b] = product(field, rng, a, b)
        i, j = i + a, j + b
    return matrix


def permuted_block_diagonal(field: PrimeField, rng: Generator, m: int, n: int) -> np.ndarray:
    matrix = block_diagonal(field, rng, m, n)
    return matrix[rng.permutation(m)][:, rng.permutation(n)]


def permutation(field: PrimeField, rng: Generator, m: int, n: int) -> np.ndarray:
    return np.eye(max(m, n))[rng.permutation(max(m, n))][:m, :n]


def constant(field: PrimeField, rng: Generator, m: int, n: int) -> np.ndarray:
    return np.full((m, n), uniform(field, rng, 1, 1)[0, 0])


def largest_residues(field: PrimeField, rng: Generator, m: int, n: int) -> np.ndarray:
    return (field.modulus // 2) * (2.0 * rng.integers(0, 2, (m, n)) - 1.0)


def dead_first_columns(field: PrimeField, rng: Generator, m: int, n: int) -> np.ndarray:
    """Columns that depend on those left of them: they vanish below the first pivots."""
    matrix = product(field, rng, m, n)
    matrix[:, : n // 2] = matrix[:, rng.integers(0, max(1, n // 8), n // 2)]
    return matrix


FAMILIES: tuple[Family, ...] = (
    uniform,
    product,
    zero_first_rows_and_columns,
    zero_rows_between,
    repeated_rows,
    triangular,
    sparse,
    block_diagonal,
    permuted_block_diagonal,
    permutation,
    constant,
    largest_residues,
    dead_first_columns,
)


def to_flint(matrix: np.ndarray, field: PrimeField) -> flint.nmod_mat:
    m, n = matrix.shape
    return flint.nmod_mat(
        m, n, [int(v) % field.modulus for v in matrix.ravel().tolist()], field.modulus
    )


def reduced_echelon_form(matrix: np.ndarray, field: PrimeField) -> np.ndarray:
    form, found = to_flint(matrix, field).rref()
    entries = [int(v) for v in form.entries()]
    return field.from_integers(np.array(entries, dtype=np.int64).reshape(matrix.shape)[:found])


def leading_columns(echelon: np.ndarray) -> list[int]:
    return [int(row.nonzero()[0][0]) for row in echelon]


@pytest.mark.parametrize("modulus", PRIMES)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_rank_and_reduced_form_are_flints(family: Family, modulus: int) -> None:
    field, rng = PrimeField(modulus), np.random.default_rng(modulus)
    for m, n in SHAPES:
        matrix = family(field, rng, m, n)
        expected = reduced_echelon_form(matrix, field)
        columns = leading_columns(expected)
        assert rank(matrix, field) == len(expected)
        for sizes in rng.choice(SIZES, 2, replace=False):
            form = EchelonForm(n, field, sizes=sizes)
            assert form.add(matrix) == form.rank == len(expected)
            assert form.pivots.tolist() == columns
            np.testing.assert_array_equal(form.basis, expected)


@pytest.mark.parametrize("modulus", [3, 8388593])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_rank_profile_is_the_leading_columns_of_flints_forms(family: Family, modulus: int) -> None:
    field, rng = PrimeField(modulus), np.random.default_rng(modulus + 1)
    for m, n in SHAPES:
        matrix = family(field, rng, m, n)
        form = EchelonForm(n, field, sizes=TINY)
        form.add(matrix)
        rows = leading_columns(reduced_echelon_form(matrix.T, field))
        columns = leading_columns(reduced_echelon_form(matrix, field))
        assert [part.tolist() for part in rank_profile(matrix, field)] == [rows, columns]
        assert form.independent_rows.tolist() == rows
        assert form.pivots.tolist() == columns


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_batches_of_any_size_give_the_form_of_one_batch(family: Family) -> None:
    rng = np.random.default_rng(5)
    for modulus in (3, 8388593):
        field = PrimeField(modulus)
        for sizes in (TINY, BlockSizes()):
            matrix = family(field, rng, 60, 45)
            whole = EchelonForm(45, field, sizes=sizes)
            whole.add(matrix)
            parts = EchelonForm(45, field, sizes=sizes)
            cuts = np.sort(rng.integers(0, 61, 9))
            growth = [parts.add(batch) for batch in np.split(matrix, cuts)]
            assert sum(growth) == parts.rank == whole.rank
            assert parts.independent_rows.tolist() == whole.independent_rows.tolist()
            np.testing.assert_array_equal(parts.pivots, whole.pivots)
            np.testing.assert_array_equal(parts.basis, whole.basis)


def test_thousands_of_small_ranks_are_flints() -> None:
    rng = np.random.default_rng(7)
    for _ in range(1500):
        field = PrimeField(int(rng.choice(PRIMES)))
        m, n = (int(k) for k in rng.integers(0, 9, 2))
        family = FAMILIES[rng.integers(len(FAMILIES))]
        matrix = family(field, rng, m, n) if m and n else np.zeros((m, n))
        form = EchelonForm(n, field, sizes=SIZES[rng.integers(len(SIZES))])
        assert form.add(matrix) == to_flint(matrix, field).rank()


@pytest.mark.parametrize("modulus", PRIMES)
def test_null_space_and_right_inverse_are_flints(modulus: int) -> None:
    field, rng = PrimeField(modulus), np.random.default_rng(11)
    for m, n in ((20, 50), (64, 64), (50, 20), (3, 200)):
        matrix = product(field, rng, m, n)
        kernel, nullity = to_flint(matrix, field).nullspace()
        ours = null_space(matrix, field)
        assert ours.shape == (n, nullity)
        theirs = np.array([int(v) for v in kernel.entries()]).reshape(n, n)[:, :nullity]
        both = np.concatenate([ours, field.from_integers(theirs)], axis=1)
        assert to_flint(both, field).rank() == nullity
        rows, _ = rank_profile(matrix, field)
        inverse = right_inverse(matrix[rows], field)
        identity = to_flint(matrix[rows], field) * to_flint(inverse, field)
        assert identity == to_flint(np.eye(len(rows)), field)


@pytest.mark.parametrize("shape", [(700, 900), (900, 700)])
def test_several_full_panels_have_flints_rank(shape: tuple[int, int]) -> None:
    """Default block sizes beyond one panel, threads included, at the prime with the least room."""
    field, rng = PrimeField(), np.random.default_rng(13)
    m, n = shape
    r = 600
    low = field.matmul(uniform(field, rng, m, r), uniform(field, rng, r, n))
    for matrix in (
        low,
        uniform(field, rng, m, n),
        largest_residues(field, rng, m, n),
        repeated_rows(field, rng, m, n),
        permuted_block_diagonal(field, rng, m, n),
        dead_first_columns(field, rng, m, n),
    ):
        assert rank(matrix, field) == to_flint(matrix, field).rank()
