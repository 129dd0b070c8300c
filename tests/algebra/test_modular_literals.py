"""Constants as rational numbers."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuromanifold.algebra.modular import over_prime_field
from neuromanifold.algebra.modular.literals import HEIGHT, rational_array, widen
from neuromanifold.algebra.modular.tracing import halves_of, traced
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.errors import ArgumentError

FIELD = PrimeField()


def reading(x):
    (number,) = rational_array(np.array([x])).distinct
    return number


@pytest.mark.parametrize(
    "number",
    [Fraction(1, 2), Fraction(1, 3), Fraction(-1, 3), Fraction(1, 10), Fraction(-22, 7),
     Fraction(1, HEIGHT), Fraction(999_999, 999_998), Fraction(300_001, 3), Fraction(4, 999_999)],
)  # fmt: skip
def test_a_float_next_to_a_rational_of_small_height_is_read_as_it(number):
    x = float(number)
    assert reading(x) == number
    other_side = np.nextafter(x, np.inf if number > Fraction(x) else -np.inf)
    assert reading(other_side) == number
    assert rational_array(np.array([x])).dyadic == ()


@pytest.mark.parametrize("x", [999_999 / 999_997, 1e-8, 0.1, np.sqrt(2), np.float32(97 / 99)])
@pytest.mark.parametrize("power", [-20, -3, 1, 3, 20])
def test_a_float_times_a_power_of_two_is_read_as_that_times_its_reading(x, power):
    assert reading(x * 2.0**power) == reading(x) * Fraction(2) ** power


@pytest.mark.parametrize(
    "x",
    [
        *(np.sqrt(2), np.pi, -np.exp(1), 1 / 3 + 1e-13, 1e-9, np.finfo(float).max, np.exp(36.0)),
        *np.exp(np.array([0.6, 2.3, 17.0])).astype(np.float32),
    ],
)
def test_other_floats_are_read_as_their_dyadic_value_and_listed(x):
    assert reading(x) == Fraction(float(x))
    assert rational_array(np.array([x])).dyadic == (float(x),)


@pytest.mark.parametrize("x", [0.0, -0.0, 1.0, -7.0, 10000.0, 123456789.0, 2.0**40, 0.375, 1e6])
def test_numbers_of_few_digits_are_themselves_and_not_listed(x):
    assert reading(x) == Fraction(x)
    assert rational_array(np.array([x])).dyadic == ()


def test_random_floats_are_hardly_ever_taken_for_rationals():
    x = np.random.default_rng(0).normal(size=4000)
    assert len(rational_array(x).dyadic) >= 3990


def test_random_floats_of_single_precision_are_hardly_ever_taken_for_rationals():
    generator = np.random.default_rng(0)
    for size in (1.0, 1e6, 1e9):
        x = widen((size * generator.normal(size=2000)).astype(np.float32))
        assert len(rational_array(x).dyadic) >= 1990


def test_one_number_of_single_precision_stays_an_array():
    """Powers with such an exponent were no longer whole ones."""
    assert isinstance(widen(np.array(2, np.float32)), np.ndarray)


def test_broadcast_constants_are_read_once():
    values = np.broadcast_to(np.array([[0.5], [0.25]]), (2, 1000))
    array = rational_array(values)
    assert array.distinct == (Fraction(1, 4), Fraction(1, 2))
    np.testing.assert_array_equal(FIELD.reduce(4 * array.residues(FIELD)), 4 * values)


def test_constants_are_folded_in_float64_before_they_are_read():
    f = lambda x: x / jnp.sqrt(jnp.sum(jnp.full(4, 1.0))) + (0.1 + 0.2) * jnp.ones(2)  # noqa: E731
    modular = over_prime_field(f, np.zeros(2))
    assert modular.dyadic_constants == ()
    found = modular(FIELD, FIELD.from_integers([2, 4]))
    expected = [FIELD.from_fraction(q) for q in (1 + Fraction(3, 10), 2 + Fraction(3, 10))]
    assert found.tolist() == expected


def test_dyadic_constants_are_listed_once_in_order():
    modular = over_prime_field(lambda x: np.pi * x + np.sqrt(2) * x * x - np.pi, np.zeros(2))
    assert modular.dyadic_constants == (float(np.sqrt(2)), float(np.pi))


def test_single_precision_constants_mean_what_was_written():
    tenth = np.array([0.1, 1 / 3, np.pi], dtype=np.float32)
    assert widen(tenth).tolist() == [0.1, 1 / 3, float(np.float32(np.pi))]
    closed_over = jnp.asarray([0.1, 1 / 3])
    assert closed_over.dtype == jnp.float32
    modular = over_prime_field(lambda x: closed_over * x, np.zeros(2))
    assert modular.dyadic_constants == ()
    assert modular(FIELD, FIELD.from_integers([10, 6])).tolist() == [1.0, 2.0]


def test_scalars_of_single_precision_mean_what_was_written():
    third, whole = np.float32(1 / 3), np.float32(7.0)
    modular = over_prime_field(lambda x: third * x - whole, np.zeros(()))
    assert modular.dyadic_constants == ()
    assert modular(FIELD, FIELD.from_integers(6)).item() == -5


def test_floats_of_half_precision_are_themselves_and_listed():
    constants = jnp.asarray([1.0, 0.75, 0.1, np.e, -jnp.inf], jnp.bfloat16)
    f = lambda x: jax.jit(lambda y: constants[:4] * y)(x.astype(jnp.bfloat16)) + 0.7  # noqa: E731
    shapes = (np.zeros(4),)
    assert halves_of(traced(f, shapes)[0]) == (0.10009765625, 0.69921875, 2.71875)
    assert halves_of(traced(lambda x: np.float32(0.1) * x + 0.7, shapes)[0]) == ()


def test_a_constant_without_residue_asks_for_another_prime():
    third = over_prime_field(lambda x: x / 3, np.zeros(2))
    with pytest.raises(ArgumentError, match=r"denominator .* is 0 mod 3; take another prime"):
        third(PrimeField(3), np.zeros(2))


@pytest.mark.parametrize("x", [1 / 3, np.sqrt(2), -1e-9, 2.5, 12345.0])
def test_residues_of_constants_are_those_of_the_rationals(x):
    (residue,) = rational_array(np.array([x])).residues(FIELD)
    number = reading(x)
    p = FIELD.modulus
    assert (int(residue) * number.denominator - number.numerator) % p == 0
