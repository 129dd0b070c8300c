"""Residues stay exact up to the edges of float64, and the stream never changes."""

from fractions import Fraction

import numpy as np
import pytest

from neuromanifold.algebra.prime_field import (
    DEFAULT_PRIME,
    EXACT_INTEGERS,
    PrimeField,
    ZeroResidueError,
)
from neuromanifold.errors import ArgumentError

PRIMES = (3, 5, 7, 251, 65537, 1048573, 4194301, DEFAULT_PRIME)

# Computed once from the definition of the stream with hashlib and Python integers alone.
STREAM_0_A = [-2666191.0, -3404636.0, -132485.0, 2042587.0]
STREAM_3_B_MOD_7 = [[3.0, 1.0, 0.0], [0.0, -2.0, 0.0]]


def balanced(value: int, p: int) -> int:
    residue = value % p
    return residue - p if residue > p // 2 else residue


def near_half_integers(field: PrimeField) -> list[int]:
    """Integers whose quotient by p is as near to a half-integer as it can be, small and large."""
    p, limit = field.modulus, EXACT_INTEGERS - field.slack_bound
    tops = (limit, 2**52, 2**51, 2**44, 40 * p)
    quotients = [q for top in tops for q in range(top // p - 9, top // p + 3)]
    values = [q * p + p // 2 + offset for q in quotients for offset in range(-2, 4)]
    values += [limit - k for k in range(200)]
    return [sign * v for v in values if v <= limit for sign in (1, -1)]


@pytest.mark.parametrize("p", PRIMES)
def test_reduce_is_integer_arithmetic_up_to_the_edge(p: int) -> None:
    field = PrimeField(p)
    values = near_half_integers(field)
    reduced = field.reduce(np.array(values, dtype=np.float64))
    assert reduced.tolist() == [balanced(v, p) for v in values]


@pytest.mark.parametrize("p", PRIMES)
def test_one_pass_stays_within_its_bound_and_balances_below_2_51(p: int) -> None:
    field = PrimeField(p)
    values = near_half_integers(field)
    once = np.array(values, dtype=np.float64)
    field.reduce_once(once, np.empty_like(once))
    assert np.abs(once).max() <= field.slack_bound
    for value, residue in zip(values, once.tolist(), strict=True):
        assert (int(residue) - value) % p == 0
        if abs(value) < 2**51:
            assert residue == balanced(value, p)


def test_one_pass_is_not_always_balanced() -> None:
    """The second pass of `reduce` is needed: near 2^53 the quotient can round to the wrong side."""
    field = PrimeField()
    values = np.array(near_half_integers(field), dtype=np.float64)
    once = values.copy()
    field.reduce_once(once, np.empty_like(once))
    assert np.abs(once).max() > field.modulus // 2


@pytest.mark.parametrize("p", PRIMES)
def test_exact_terms_is_the_largest_number_that_fits(p: int) -> None:
    field = PrimeField(p)
    k, s = field.exact_terms, field.slack_bound
    assert k * s**2 + s <= EXACT_INTEGERS - s < (k + 1) * s**2 + s


def test_the_default_prime_sums_512_terms() -> None:
    assert PrimeField().exact_terms == 512


@pytest.mark.parametrize("p", [1048573, 4194301, DEFAULT_PRIME])
@pytest.mark.parametrize("sign", [1, -1])
def test_longest_exact_dot_product_of_largest_residues(p: int, sign: int) -> None:
    field = PrimeField(p)
    for length in (field.exact_terms - 1, field.exact_terms, field.exact_terms + 1):
        x = np.full((3, length), p // 2, dtype=np.float64)
        y = np.full((length, 2), sign * (p // 2), dtype=np.float64)
        expected = balanced(sign * length * (p // 2) ** 2, p)
        np.testing.assert_array_equal(field.matmul(x, y), np.full((3, 2), float(expected)))


@pytest.mark.parametrize("length", [0, 1, 511, 512, 513, 1024, 1500])
def test_matmul_is_integer_arithmetic_for_every_length(length: int) -> None:
    field, rng = PrimeField(), np.random.default_rng(length)
    x = rng.integers(-(field.modulus // 2), field.modulus // 2 + 1, (2, 4, length))
    y = rng.integers(-(field.modulus // 2), field.modulus // 2 + 1, (2, length, 3))
    expected = field.from_integers(x.astype(object) @ y.astype(object)) if length else 0.0
    product = field.matmul(x.astype(np.float64), y.astype(np.float64))
    np.testing.assert_array_equal(product, np.broadcast_to(expected, (2, 4, 3)))


@pytest.mark.parametrize("p", PRIMES)
def test_inverses_powers_and_products_are_integer_arithmetic(p: int) -> None:
    field = PrimeField(p)
    values = [v for v in {1, 2, p // 2, p - 1, p // 3} if v % p]
    x = field.from_integers(values)
    np.testing.assert_array_equal(field.multiply(x, field.inverse(x)), np.ones(len(values)))
    for exponent in (0, 1, 2, 5, -3):
        expected = [balanced(pow(v, exponent, p), p) for v in values]
        assert field.power(x, exponent).tolist() == expected
    assert field.multiply(x, x).tolist() == [balanced(v * v, p) for v in values]


def test_zero_dimensional_arrays_stay_arrays() -> None:
    field, three = PrimeField(7), np.array(3.0)
    for result in (field.reduce(np.array(10.0)), field.multiply(three, np.array(1.0))):
        assert isinstance(result, np.ndarray)
        assert result == three


@pytest.mark.parametrize("length", [0, 1, 16, 17, 33, 100, 257])
def test_inverses_of_many_are_those_of_each(length: int) -> None:
    field, p = PrimeField(), DEFAULT_PRIME
    values = np.random.default_rng(length).integers(1, p, length)
    found = field.inverse(field.from_integers(values))
    assert found.tolist() == [balanced(pow(int(v), -1, p), p) for v in values]


def test_products_of_matrices_are_balanced_where_the_quotient_rounds_to_the_wrong_side() -> None:
    field, h = PrimeField(), DEFAULT_PRIME // 2
    for value in near_half_integers(field):
        quotient, rest = divmod(abs(value), h)
        length = -(-quotient // h)
        y = np.full(length + 1, h, dtype=np.float64)
        y[length - 1 :] = quotient - (length - 1) * h, rest
        x = np.append(np.full(length, float(h)), 1.0)
        found = field.matmul(x[None], y[:, None]).item()
        assert found == balanced(abs(value), DEFAULT_PRIME)


def test_zero_has_no_inverse() -> None:
    with pytest.raises(ZeroResidueError, match="is 0 mod 7"):
        PrimeField(7).inverse(np.array([1.0, 0.0]))
    with pytest.raises(ZeroResidueError, match="denominator of 1/14 is 0 mod 7"):
        PrimeField(7).from_fraction(Fraction(1, 14))


def test_integers_of_any_size_and_fractions_have_residues() -> None:
    field = PrimeField(251)
    assert field.from_integers([10**30, -(10**30)]).tolist() == [
        balanced(10**30, 251),
        balanced(-(10**30), 251),
    ]
    assert field.from_integers(np.array([250, 126, 125])).tolist() == [-1.0, -125.0, 125.0]
    large = np.array([2**64 - 1, 2**63], dtype=np.uint64)
    assert field.from_integers(large).tolist() == [balanced(int(v), 251) for v in large]
    half = field.from_fraction(Fraction(1, 2))
    assert (2 * half) % 251 == 1
    with pytest.raises(ArgumentError, match="integers were wanted; got dtype float64"):
        field.from_integers([0.5])


def test_the_residue_stream_is_fixed_for_ever() -> None:
    field = PrimeField()
    assert field.random(0, "a", (4,)).tolist() == STREAM_0_A
    assert PrimeField(7).random(3, "b", (2, 3)).tolist() == STREAM_3_B_MOD_7
    np.testing.assert_array_equal(field.random(0, "a", (2, 2)).ravel(), field.random(0, "a", (4,)))
    assert field.random(0, "a", (5, 0)).shape == (5, 0)


@pytest.mark.parametrize("p", [3, 7, DEFAULT_PRIME])
def test_the_residue_stream_is_spread_over_the_whole_range(p: int) -> None:
    draws = PrimeField(p).random(1, "spread", (20000,))
    assert np.abs(draws).max() <= p // 2
    cells, _ = np.histogram(draws, bins=min(p, 50), range=(-p / 2, p / 2))
    expected = 20000 / len(cells)
    # A cell's standard deviation is at most the square root of its mean; six of them never happen.
    assert np.abs(cells - expected).max() < 6 * expected**0.5


@pytest.mark.parametrize(
    ("modulus", "text"),
    [
        (9, "9 is not a prime; take 8388593 or 8388587, the largest"),
        (2, "the prime must be odd and below 2\\^23 = 8388608; got 2: take 8388593, the largest"),
        (8388617, "the prime must be odd and below 2\\^23"),
        (True, "the prime must be a whole number; got True"),
    ],
)
def test_a_modulus_that_is_no_odd_prime_below_2_23_is_refused(modulus: int, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        PrimeField(modulus)
