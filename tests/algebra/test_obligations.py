"""A formal element stands for a function only if that is shown: dependencies are found, or told."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from formal_ranks import FIELD, exact_rank, float_rank
from neuromanifold.algebra.modular import (
    Source,
    obligations,
    over_prime_field,
    relations_of,
    rows_over_prime_field,
)
from neuromanifold.algebra.modular.formal.relations import HEIGHT, NO_RELATIONS, rational
from neuromanifold.algebra.modular.square_roots.groups import character_rank
from neuromanifold.algebra.modular.tangents import Setting
from neuromanifold.errors import NotCoveredError

erf = jax.scipy.special.erf
sg = jax.lax.stop_gradient


@jax.custom_jvp
def wrong_rule(x):
    return 0.0 * x


wrong_rule.defjvp(lambda primals, tangents: (wrong_rule(*primals), primals[0] * tangents[0]))


@jax.custom_vjp
def wrong_pullback(x):
    return x * 0.0


wrong_pullback.defvjp(lambda x: (x * 0.0, x), lambda x, u: (u * x,))


@jax.custom_jvp
def exponential_with_another_in_its_rule(x):
    return jnp.exp(x)


exponential_with_another_in_its_rule.defjvp(
    lambda primals, tangents: (
        jnp.exp(primals[0]),
        jnp.exp(2 * primals[0]) / jnp.exp(primals[0]) * tangents[0],
    )
)

# Functions of two weights (or as many as told) that are one function, written in two ways.
PLANTED = {
    "logarithm of a product": (
        lambda w, x: w[0] * jnp.log(x[0] * x[1]) + w[1] * (jnp.log(x[0]) + jnp.log(x[1])),
        1,
    ),
    "logarithm of a power": (lambda w, x: w[0] * jnp.log(x[0] ** 3) + w[1] * jnp.log(x[0] ** 2), 1),
    "logarithm of an exponential": (lambda w, x: w[0] * jnp.log(jnp.exp(x[0])) + w[1] * x[0], 1),
    "exponential of a logarithm": (lambda w, x: w[0] * jnp.exp(jnp.log(x[0])) + w[1] * x[0], 1),
    "odd error function": (lambda w, x: w[0] * erf(-x[0]) + w[1] * erf(x[0]), 1),
    "sum of squares": (lambda w, x: w[0] * (jnp.sin(x[0]) ** 2 + jnp.cos(x[0]) ** 2) + w[1], 1),
    "double angle": (
        lambda w, x: w[0] * jnp.sin(2 * x[0]) + w[1] * jnp.sin(x[0]) * jnp.cos(x[0]),
        1,
    ),
    "odd sine": (lambda w, x: w[0] * jnp.sin(-x[0]) + w[1] * jnp.sin(x[0]), 1),
    "tanh by a sigmoid": (
        lambda w, x: w[0] * jnp.tanh(x[0]) + w[1] * (2 * jax.nn.sigmoid(2 * x[0]) - 1),
        1,
    ),
    "square of an exponential": (
        lambda w, x: w[0] * jnp.exp(2 * x[0]) + w[1] * jnp.exp(x[0]) ** 2,
        1,
    ),
    "shifted exponent": (lambda w, x: w[0] * jnp.exp(x[0] + 1) + w[1] * jnp.exp(x[0]), 1),
    "shift by a weight": (lambda w, x: jnp.exp(x[0] + w[0]) + w[1] * jnp.exp(x[0]), 1),
    "product of exponentials": (
        lambda w, x: w[0] * jnp.exp(x[0] + x[1]) + w[1] * jnp.exp(x[0]) * jnp.exp(x[1]),
        1,
    ),
    "fractions of an exponent": (
        lambda w, x: (
            w[0] * jnp.exp(x[0] / 2) ** 3
            + w[1] * jnp.exp(x[0] / 3) ** 3
            + w[2] * jnp.exp(1.5 * x[0])
            + w[3] * jnp.exp(x[0])
        ),
        2,
    ),
    "two layers": (
        lambda w, x: (
            w[0] * jnp.exp(x[1] * jnp.exp(2 * x[0])) + w[1] * jnp.exp(x[1] * jnp.exp(x[0]) ** 2)
        ),
        1,
    ),
    "gradient stopped": (lambda w, x: w[0] * x[0] + w[1] * x[0] ** 2 - sg(w[1] * x[0] ** 2), 1),
    "custom_jvp that lies": (lambda w, x: w[0] * x[0] + wrong_rule(w[1] * x[0]), 1),
    "custom_vjp that lies": (lambda w, x: w[0] * x[0] + wrong_pullback(w[1] * x[0]), 1),
    "custom_jvp with another exponential": (
        lambda w, x: w[0] * exponential_with_another_in_its_rule(x[0]) + w[1] * jnp.exp(x[0]),
        1,
    ),
    "weights alone": (lambda w, x: jnp.exp(2 * w[0]) * x[0] + jnp.exp(w[1]) ** 2 * x[0], 1),
    "constant chosen by where": (
        lambda w, x: (w[0] + w[1]) * jnp.where(np.array([True, False]), x, -1e9).sum(),
        1,
    ),
}


@pytest.mark.statement("softmax-exact")
@pytest.mark.parametrize("name", PLANTED)
def test_what_is_one_function_has_the_rank_of_one(name):
    f, dimension = PLANTED[name]
    found, checks = exact_rank(f, np.zeros(4 if "fractions" in name else 2), np.zeros(2))
    assert found == dimension
    assert all(check.met for check in checks.values()), checks


@pytest.mark.parametrize(
    ("f", "missing"),
    [
        (lambda w, x: w[0] * jnp.sqrt(x[0] ** 2) + w[1] * x[0], 1),
        (lambda w, x: w[0] * jnp.sqrt(4 * x[0]) + w[1] * jnp.sqrt(x[0]), 1),
        (lambda w, x: w[0] * jnp.sqrt(x[0] * x[1]) + w[1] * jnp.sqrt(x[0]) * jnp.sqrt(x[1]), 1),
        (lambda w, x: jnp.sqrt(w[0] ** 2) * x[0] + w[1], 1),
    ],
)
def test_roots_that_exist_already_are_told(f, missing):
    _, checks = exact_rank(f, np.zeros(2), np.zeros(2))
    roots = checks["square roots"]
    assert roots.columns - roots.rank == missing
    assert not roots.met


def test_equal_radicands_have_equal_roots():
    found, checks = exact_rank(
        lambda w, x: w[0] * jnp.sqrt(1 + x[0]) + w[1] * jnp.sqrt(x[0] + 1), np.zeros(2), np.zeros(2)
    )
    assert (found, checks["square roots"].columns, checks["square roots"].met) == (1, 1, True)


def test_error_functions_of_proportional_arguments_are_not_claimed():
    _, checks = exact_rank(
        lambda w, x: w[0] * erf(x[0]) + w[1] * erf(2 * x[0]), np.zeros(2), np.zeros(2)
    )
    assert not checks["error functions"].met


def test_exponents_with_an_irrational_ratio_are_not_claimed():
    _, checks = exact_rank(
        lambda w, x: w[0] * jnp.exp(x[0]) + w[1] * jnp.exp(np.sqrt(2) * x[0]),
        np.zeros(2),
        np.zeros(2),
    )
    assert not checks["exponentials"].met


def test_two_constants_are_not_claimed_and_one_is():
    one = lambda w, x: w[0] * jnp.exp(x[0] + 0.3) + w[1] * jnp.exp(x[0])  # noqa: E731
    two = lambda w, x: one(w, x) + w[0] * w[1] * jnp.exp(x[0] + 0.7)  # noqa: E731
    assert exact_rank(one, np.zeros(2), np.zeros(2))[1]["functions of the weights"].met
    assert not exact_rank(two, np.zeros(2), np.zeros(2))[1]["functions of the weights"].met


@pytest.mark.parametrize("factor", [FIELD.modulus, FIELD.modulus + 1])
def test_functions_that_agree_mod_one_prime_only_are_told(factor):
    """Mod p, exp(p x) is 1 and exp((p + 1) x) is exp(x)."""
    _, checks = exact_rank(
        lambda w, x: w[0] * jnp.exp(float(factor) * x[0]) + w[1] * jnp.exp(x[0]),
        np.zeros(2),
        np.zeros(2),
    )
    assert not all(check.met for check in checks.values())


def test_softmax_after_a_width_of_one_is_provable():
    def narrow(w, X):
        for V, A in zip(w["V"], w["A"], strict=True):
            X = V * X @ jax.nn.softmax(A * X.T @ X, axis=0)
        return X

    weights = {"V": np.zeros(2), "A": np.zeros(2)}
    found, checks = exact_rank(narrow, weights, np.zeros((1, 3)))
    assert found == float_rank(narrow, weights, np.zeros((1, 3))) == 3
    assert checks["exponentials"].relations == 2
    assert all(check.met for check in checks.values())


@pytest.mark.parametrize(
    "f",
    [
        lambda w, x: w[0] * jnp.max(x) + w[1] * jnp.max(jnp.roll(x, 1)),
        lambda w, x: w[0] + jnp.max(w[1] * x),
        lambda w, x: w[0] * jnp.exp(x - jnp.max(x))[1] + w[1],
    ],
)
def test_a_function_that_depends_on_a_maximum_is_refused(f):
    with pytest.raises(NotCoveredError, match=r"depends on the value of `reduce_max` \(.*py:\d+"):
        exact_rank(f, np.zeros(2), np.zeros(2))


def test_masks_are_read_as_such_only_where_they_are_exponentiated():
    scores = np.array([[0.0, -10000.0], [0.0, 0.0]])

    def masked(w, X):
        return w[0] * X @ jax.nn.softmax(w[1] * X.T @ X + scores, axis=0)

    rows = rows_over_prime_field(masked, np.zeros(2), np.zeros((1, 2)), 4)
    assert rows.masks_read == (-10000.0,)
    assert sum(int(formal.hidden[0].sum()) for formal in rows.formals) == 1
    plain = rows_over_prime_field(
        lambda w, x: w * jnp.sum(x + scores), np.zeros(()), np.zeros(()), 4
    )
    assert plain.masks_read == ()
    uniform = rows_over_prime_field(
        lambda w, x: w * jnp.exp(x - 10000.0), np.zeros(()), np.zeros(2), 4
    )
    assert uniform.masks_read == ()


def test_noise_in_constants_is_suspected():
    fourier = np.real(np.exp(2j * np.pi * np.outer(np.arange(4), np.arange(4)) / 4))
    rows = rows_over_prime_field(lambda w, x: (w * x) @ fourier, np.zeros(4), np.zeros(4), 2)
    assert rows.suspect_constants
    assert all(0 < abs(x) < 1e-12 for x in rows.suspect_constants)
    exact = rows_over_prime_field(
        lambda w, x: (w * x) @ np.rint(fourier), np.zeros(4), np.zeros(4), 2
    )
    assert exact.suspect_constants == ()


def test_without_relations_a_dependence_is_seen():
    """The check itself, not only the cure: exp(2x) beside exp(x) has rank 1 of 2."""
    rows = rows_over_prime_field(
        lambda w, x: w[0] * jnp.exp(2 * x) + w[1] * jnp.exp(x), np.zeros(2), np.zeros(()), 8
    )
    (check,) = obligations(rows, Source(FIELD, 0, ""), NO_RELATIONS)
    assert (check.columns, check.rank, check.met) == (2, 1, False)
    (cured,) = obligations(rows, Source(FIELD, 0, ""), relations_of(rows, FIELD))
    assert (cured.columns, cured.rank, cured.relations, cured.met) == (1, 1, 1, True)


def test_small_rationals_are_recovered_from_their_residues():
    for numerator in (-HEIGHT, -3, 0, 1, 7, HEIGHT):
        for denominator in (1, 2, 5, HEIGHT - 1):
            value = FIELD.from_integers(numerator) * 0 + FIELD.from_fraction(
                __import__("fractions").Fraction(numerator, denominator)
            )
            found = rational(float(value), FIELD)
            assert found is not None
            assert found * denominator == numerator
    misses = [rational(float(x), FIELD) for x in FIELD.random(5, "x", (2000,))]
    assert sum(found is not None for found in misses) < 10


def test_ranks_of_characters_are_over_two_elements():
    rows = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], dtype=bool)
    assert character_rank(rows) == 2
    assert character_rank(np.eye(3, dtype=bool)) == 3
    assert character_rank(np.zeros((4, 3), dtype=bool)) == 0


@pytest.mark.parametrize(
    "f",
    [
        lambda x: jnp.prod(x, axis=(0, 2), keepdims=True),
        lambda x: jnp.prod(x[:0]),
        lambda x: jax.lax.cumprod(x, axis=1),
        lambda x: jax.lax.cumprod(x, axis=2, reverse=True),
        lambda x: x**0 + x**3 / x**2,
        lambda x: x[0, 0].at[np.array([1, 1, 2, 9])].multiply(x[1, 1]),
    ],
)
def test_derivatives_along_a_program_are_those_of_its_function(f):
    x, dx = FIELD.random(1, "x", (2, 3, 4)), FIELD.random(1, "dx", (2, 3, 4))
    function = over_prime_field(f, np.zeros(x.shape))
    program = function.program(function.outputs, NO_RELATIONS)
    ((_, slope),) = program.run_with_tangents(
        Setting(FIELD, None, {}),
        [x],
        function.constants(program, FIELD),
        {function.slots[0]: dx},
    )

    def twin(x):  # JAX does not differentiate products at repeated positions
        a, u = x[0, 0], x[1, 1]
        return a * jnp.stack([1.0, u[0] * u[1], u[2], 1.0]) if np.ndim(slope) == 1 else f(x)

    both = over_prime_field(lambda x, dx: jax.jvp(twin, [x], [dx])[1], *2 * [np.zeros(x.shape)])
    expected = both(FIELD, x, dx)
    np.testing.assert_array_equal(np.zeros(expected.shape) if slope is None else slope, expected)


def test_gradients_flow_where_a_program_stops_them():
    rounded = lambda w, x: w[0] * x + sg(w[1] * x * x - w[0] * x)  # noqa: E731
    gradient = over_prime_field(lambda w: jax.grad(lambda w: rounded(w, 3.0))(w), np.zeros(2))
    assert gradient(FIELD, np.array([5.0, 7.0])).tolist() == [3, 0]
    rows = rows_over_prime_field(rounded, np.zeros(2), np.zeros(()), 1)
    (row,) = rows(FIELD, np.array([5.0, 7.0]), np.array([3.0]), np.array([1.0]))
    assert row.tolist() == [0, 9]
