"""Formal exponentials, and the functions that are made of them."""

import hashlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuromanifold.algebra.modular import FormalExponentials, exponents_of, over_prime_field
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.errors import ArgumentError, NotCoveredError

FIELD = PrimeField()
EXP = FormalExponentials(FIELD, seed=11, label="test")
X = FIELD.random(2, "arguments", (50,))


def element_by_plain_integers(argument, prime, seed, label):
    """The definition, in whole numbers of Python."""
    a = int(argument) % prime
    if a == 0:
        return 1
    text = f"neuromanifold formal exponentials 1|{seed}|{label}"
    digest = hashlib.shake_256(text.encode()).digest(16)
    word = a
    for key in (digest[:8], digest[8:]):
        word ^= int.from_bytes(key, "little")
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
        word ^= word >> 31
    return 1 + word % (prime - 1)


@pytest.mark.statement("softmax-exact")
@pytest.mark.parametrize("prime", [3, 101, 1048573, 8388593])
@pytest.mark.parametrize(("seed", "label"), [(0, ""), (7, "row 3"), (-1, "β")])
def test_elements_are_those_of_the_definition(prime, seed, label):
    field = PrimeField(prime)
    arguments = field.random(1, "a", (6, 5))
    elements = FormalExponentials(field, seed, label)(arguments)
    expected = [element_by_plain_integers(a, prime, seed, label) for a in arguments.ravel()]
    np.testing.assert_array_equal(elements.ravel(), field.from_integers(expected))


def test_zero_gives_one_and_no_element_is_zero():
    assert EXP(np.zeros(())) == 1
    arguments = FIELD.from_integers(np.arange(200_000))
    elements = EXP(arguments)
    assert elements[0] == 1
    assert elements.all()
    # Distinct elements of n draws from p − 1 are n − n²/2p in the mean, here 197,600 ± 50.
    assert 197_000 < np.unique(elements).size < 198_200


def test_equal_arguments_get_equal_elements_in_any_shape_and_order():
    order = np.random.default_rng(0).permutation(50)
    np.testing.assert_array_equal(EXP(X[order].reshape(5, 10)).ravel(), EXP(X)[order])
    # −(p−1)/2 and (p+1)/2 are the same residue, and so are these.
    np.testing.assert_array_equal(EXP(X + FIELD.modulus), EXP(X))


def test_seeds_and_labels_give_other_elements():
    others = [FormalExponentials(FIELD, 12, "test"), FormalExponentials(FIELD, 11, "other")]
    for other in others:
        assert np.mean(other(X) == EXP(X)) < 0.1


def evaluate(f):
    return over_prime_field(f, np.zeros(50))(FIELD, X, exponentials=EXP)


def test_exponential_functions_are_made_of_one_exponential():
    e, one = EXP(X), np.ones(50)
    np.testing.assert_array_equal(evaluate(jnp.exp), e)
    np.testing.assert_array_equal(evaluate(jnp.expm1), FIELD.reduce(e - 1))
    e_minus = EXP(FIELD.reduce(-X))
    logistic = FIELD.inverse(FIELD.reduce(one + e_minus))
    np.testing.assert_array_equal(evaluate(jax.nn.sigmoid), logistic)
    e_2 = EXP(FIELD.reduce(2 * X))
    tanh = FIELD.multiply(FIELD.reduce(e_2 - 1), FIELD.inverse(FIELD.reduce(e_2 + 1)))
    np.testing.assert_array_equal(evaluate(jnp.tanh), tanh)


@pytest.mark.statement("softmax-exact")
def test_derivatives_follow_the_chain_rule():
    derivative = evaluate(jax.grad(lambda x: jnp.sum(jnp.exp(3 * x * x))))
    expected = FIELD.multiply(FIELD.reduce(6 * X), EXP(FIELD.reduce(3 * FIELD.multiply(X, X))))
    np.testing.assert_array_equal(derivative, expected)
    s = evaluate(jax.nn.sigmoid)
    slope = FIELD.multiply(s, FIELD.reduce(1 - s))
    np.testing.assert_array_equal(evaluate(jax.grad(lambda x: jnp.sum(jax.nn.sigmoid(x)))), slope)


def test_exponentials_of_constants_are_numbers():
    modular = over_prime_field(lambda x: x * jnp.exp(jnp.zeros(50)) + jnp.exp(1.0), np.zeros(50))
    assert not modular.uses_exponentials
    assert modular.dyadic_constants == (float(np.exp(1.0)),)


def test_exponentials_have_to_be_given_and_to_fit():
    modular = over_prime_field(jnp.exp, np.zeros(2))
    assert modular.uses_exponentials
    with pytest.raises(ArgumentError, match=r"pass exponentials=FormalExponentials\(field, seed\)"):
        modular(FIELD, np.zeros(2))
    with pytest.raises(ArgumentError, match="belong to the prime 101 and the field has 8388593"):
        modular(FIELD, np.zeros(2), exponentials=FormalExponentials(PrimeField(101), 0))


def attention(x):
    scores = jnp.where(np.triu(np.ones((3, 3), bool)), x.T @ x, -jnp.inf)
    return x @ jax.nn.softmax(scores, axis=0)


def exponent_values(f, x):
    modular = over_prime_field(exponents_of(f), np.zeros(x.shape))
    return modular(FIELD, x, exponentials=EXP), modular.masked


def test_exponents_of_masked_softmax_are_differences_with_their_mask():
    x = FIELD.random(4, "x", (2, 3))
    values, masked = exponent_values(attention, x)
    s = FIELD.matmul(x.T, x)
    expected = FIELD.reduce(s - s[:1])
    mask = np.tril(np.ones((3, 3), bool), -1)
    assert masked.tolist() == mask.ravel().tolist()
    np.testing.assert_array_equal(values[~masked], expected[~mask])
    # The subtracted entry of each column is recognised by its zero.
    assert [int(v) for v in values[:3]] == [0, 0, 0]


def test_exponents_of_every_layer_are_listed_in_order():
    x = FIELD.random(4, "x", (2, 3))
    first, _ = exponent_values(attention, x)
    both, masked = exponent_values(lambda x: attention(attention(x)), x)
    y = over_prime_field(attention, x)(FIELD, x, exponentials=EXP)
    second, _ = exponent_values(attention, y)
    np.testing.assert_array_equal(both[~masked], np.concatenate([first, second])[~masked])


def test_exponents_are_found_inside_calls_and_loops():
    weights = np.array([1.0, 2.0, 3.0])

    def f(x):
        inner = jax.jit(jax.checkpoint(lambda y: jnp.exp(5 * y)))(x)
        _, rows = jax.lax.scan(lambda c, w: (c + x, jnp.exp(w * x + c)), 0 * x, weights)
        backwards, _ = jax.lax.scan(lambda c, w: (c + jnp.exp(w * x), 0), x, weights, reverse=True)
        return inner * rows.sum(0) * jax.nn.sigmoid(x) * jnp.tanh(x) * jnp.expm1(7 * x) * backwards

    x = FIELD.from_integers([10])
    values, _ = exponent_values(f, x)
    assert values.tolist() == [50, 10, 30, 50, 30, 20, 10, -10, 20, 70]


def test_an_operand_is_listed_once_and_constants_are_not():
    f = lambda x: jnp.exp(x) / jnp.sum(jnp.exp(x)) * jnp.exp(jnp.arange(3.0))  # noqa: E731
    values, _ = exponent_values(f, FIELD.from_integers([4, 5, 6]))
    assert values.tolist() == [4, 5, 6]


def test_a_function_without_exponentials_has_no_exponents():
    assert exponent_values(lambda x: x * x, X)[0].shape == (0,)


def test_exponents_can_be_batched():
    x = FIELD.random(8, "x", (4, 2, 3))
    batched = over_prime_field(jax.vmap(exponents_of(attention)), x)
    found = batched(FIELD, x, exponentials=EXP)
    assert found.shape == (4, 9)
    keep = ~batched.masked[0]
    for row, point in zip(found, x, strict=True):
        np.testing.assert_array_equal(row[keep], exponent_values(attention, point)[0][keep])


def test_exponents_are_the_true_arguments_of_exp():
    x = np.random.default_rng(0).normal(size=(2, 3))
    with jax.enable_x64(True):
        found = np.asarray(exponents_of(lambda x: x @ jax.nn.softmax(x.T @ x, axis=0))(x))
    scores = x.T @ x
    np.testing.assert_allclose(found.reshape(3, 3), scores - scores.max(axis=0), atol=1e-12)


def test_branches_are_refused_where_they_could_hide_exponents():
    f = lambda x: jax.lax.cond(True, jnp.exp, jnp.tanh, x)  # noqa: E731
    with pytest.raises(NotCoveredError, match=r"`cond` .* may hide exponentials"):
        over_prime_field(exponents_of(f), np.zeros(2))
