"""What cannot be evaluated over a prime field is refused with the reason and the way out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuromanifold.algebra.modular import over_prime_field, rows_over_prime_field
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.errors import ArgumentError, NotCoveredError

FIELD = PrimeField()
HERE = r"\(.*test_modular_errors\.py:\d+.*\)"


@pytest.mark.parametrize(
    ("name", "f"),
    [
        ("atan", lambda x: jnp.arctan(x)),
        ("cbrt", lambda x: jnp.cbrt(x)),
        ("sort", lambda x: jnp.sort(x)),
        ("lgamma", lambda x: jax.scipy.special.gammaln(x)),
    ],
)
def test_an_unknown_primitive_is_named_with_its_line_and_the_way_out(name, f):
    with pytest.raises(
        NotCoveredError,
        match=f"`{name}` {HERE} cannot be evaluated over a prime field.*write the function without"
        f" `{name}`, or apply it to constants only",
    ):
        over_prime_field(f, np.zeros(3))


@pytest.mark.parametrize(
    ("name", "f"),
    [
        ("max", lambda x: jax.nn.relu(x)),
        ("gt", lambda x: jnp.where(x > 0, x, 0.0)),
        ("eq", lambda x: jax.grad(jnp.max)(x)),
        ("min", lambda x: jnp.minimum(x, 1.0)),
        ("ne", lambda x: jnp.where(x != x, 0.0, x)),
    ],
)
def test_a_comparison_of_residues_is_refused(name, f):
    with pytest.raises(
        NotCoveredError,
        match=f"`{name}` {HERE} compares values that depend on the arguments: the function is not "
        "built from rational functions and exponentials alone.*constant mask or a polynomial",
    ):
        over_prime_field(f, np.zeros(3))


@pytest.mark.parametrize(
    ("name", "f"),
    [
        ("cond", lambda x: jax.lax.cond(x[0] > 0, lambda y: y, lambda y: 2 * y, x)),
        ("while", lambda x: jax.lax.while_loop(lambda y: y[0] < 9, lambda y: 2 * y, x)),
    ],
)
def test_branches_and_loops_are_decided_by_constants(name, f):
    with pytest.raises(NotCoveredError, match=f"`{name}` {HERE} is decided by an argument"):
        over_prime_field(f, np.zeros(3))


@pytest.mark.parametrize(
    ("constant", "f"),
    [
        ("NaN", lambda x: x * jnp.nan),
        (r"\+infinity", lambda x: x + jnp.inf),
        (r"\+infinity", lambda x: x + 1 / jnp.zeros(3)),
        ("NaN", lambda x: jnp.stack([x, jnp.full(3, jnp.nan)])),
    ],
)
def test_constants_without_residue_are_refused(constant, f):
    with pytest.raises(ArgumentError, match=rf"the constant {constant} in `.*` {HERE}"):
        over_prime_field(f, np.zeros(3))


@pytest.mark.parametrize("denominator", [0.0, np.nan, np.inf, [1.0, 0.0, 2.0]])
def test_division_by_a_constant_that_has_no_inverse_is_refused(denominator):
    with pytest.raises(ArgumentError, match=rf"divides by a constant 0, NaN .* in `div` {HERE}"):
        over_prime_field(lambda x: x / jnp.asarray(denominator), np.zeros(3))


def test_powers_of_a_negative_constant_are_refused():
    with pytest.raises(NotCoveredError, match=rf"`pow` {HERE} raises a constant that is not pos"):
        over_prime_field(lambda x: (-2.0) ** x, np.zeros(3))


def test_positions_from_arguments_are_refused():
    with pytest.raises(NotCoveredError, match="into the type int32"):
        over_prime_field(lambda x: x[x[0].astype(jnp.int32)], np.zeros(3))


def test_reading_outside_an_array_is_refused():
    f = lambda x: x.at[jnp.array([1, 5])].get(mode="fill")  # noqa: E731
    with pytest.raises(ArgumentError, match=rf"`gather` {HERE} reads outside its operand"):
        over_prime_field(f, np.zeros(3))


def test_complex_values_are_refused():
    with pytest.raises(ArgumentError, match=r"values of type complex128; return real numbers"):
        over_prime_field(lambda x: x * 1j, np.zeros(3))
    with pytest.raises(NotCoveredError, match=r"`tanh` .* is taken of complex values"):
        over_prime_field(lambda x: jnp.tanh(x * 1j).imag, np.zeros(3))


@pytest.mark.parametrize(
    ("example", "found"),
    [(np.zeros(2, int), "int64"), (np.zeros(2, complex), "complex128"), (3, "int"), ("w", "str")],
)
def test_arguments_that_are_not_real_are_refused(example, found):
    with pytest.raises(ArgumentError, match=f"must be real floating-point arrays .*; got {found}"):
        over_prime_field(lambda x: x, example)


def test_residues_have_to_fit_what_was_traced():
    double = over_prime_field(lambda x: x + x, np.zeros((2, 3)))
    with pytest.raises(ArgumentError, match=r"has shape \(3, 2\), .* traced for \(2, 3\)"):
        double(FIELD, np.zeros((3, 2)))
    with pytest.raises(ArgumentError, match="residues in float64 NumPy arrays; got int64"):
        double(FIELD, np.zeros((2, 3), dtype=int))
    with pytest.raises(ArgumentError, match="residues in float64 NumPy arrays; got float32"):
        double(FIELD, jnp.zeros((2, 3)))
    with pytest.raises(ArgumentError, match="was traced for arguments"):
        double(FIELD, {"x": np.zeros((2, 3))})


def test_random_constants_are_constants():
    numbers = lambda: jax.random.randint(jax.random.key(0), (3,), 1, 1000, jnp.int32)  # noqa: E731
    f = over_prime_field(lambda x: x * numbers(), np.zeros(3))
    np.testing.assert_array_equal(f(FIELD, np.ones(3)), np.asarray(numbers()))


def test_random_numbers_that_depend_on_the_precision_are_refused():
    """Half of the entries are kept; which ones, is another thing in single and double precision."""
    f = lambda x: jnp.where(jax.random.bernoulli(jax.random.key(0), 0.5, (3,)), x, 0)  # noqa: E731
    with pytest.raises(NotCoveredError, match="draws random numbers, and the function is read in"):
        over_prime_field(f, np.zeros(3))


@pytest.mark.parametrize(
    ("f", "reason"),
    [
        (lambda x: x.at[1].apply(jnp.square), "`scatter` .* applies a function at some places"),
        (lambda x: jax.lax.reduce_window(x, 3.0, jax.lax.add, (2,), (1,), "VALID"),
         "`reduce_window` .* begins with a number of its own"),
        (lambda x: jax.scipy.special.zeta(x, 2.0), "`zeta` .* has no derivative that is known"),
        (lambda x: jnp.nextafter(x, 1.0), "`nextafter` .* has no derivative that is known"),
    ],
    ids=["apply", "window", "zeta", "nextafter"],
)  # fmt: skip
def test_what_jax_does_not_differentiate_is_named(f, reason):
    with pytest.raises(NotCoveredError, match=reason):
        over_prime_field(f, np.zeros(3))


def test_products_at_places_that_may_be_equal_are_refused_in_a_sentence():
    twice = jnp.array([0, 0])
    with pytest.raises(ArgumentError, match=r"places that may be equal.*unique_indices=True"):
        rows_over_prime_field(lambda w, x: x.at[twice].multiply(w), np.zeros(()), np.zeros(2), 1)
