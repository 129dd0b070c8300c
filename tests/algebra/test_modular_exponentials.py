"""Formal exponentials, and the functions that are made of them."""

import hashlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuromanifold.algebra.modular import FormalElements, over_prime_field
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.errors import ArgumentError

FIELD = PrimeField()
EXP = FormalElements(FIELD, seed=11, label="test")
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
    elements = FormalElements(field, seed, label)(arguments)
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
    others = [FormalElements(FIELD, 12, "test"), FormalElements(FIELD, 11, "other")]
    for other in others:
        assert np.mean(other(X) == EXP(X)) < 0.1


def evaluate(f):
    return over_prime_field(f, np.zeros(50))(FIELD, X, elements=EXP)


def test_exponential_functions_are_made_of_one_exponential():
    e, one = EXP(X), np.ones(50)
    np.testing.assert_array_equal(evaluate(jnp.exp), e)
    np.testing.assert_array_equal(evaluate(jnp.expm1), FIELD.reduce(e - 1))
    logistic = FIELD.reduce(one - FIELD.inverse(FIELD.reduce(one + e)))
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
    assert not modular.formals
    assert modular.dyadic_constants == (float(np.exp(1.0)),)


def test_exponentials_have_to_be_given_and_to_fit():
    modular = over_prime_field(jnp.exp, np.zeros(2))
    assert [formal.kind for formal in modular.formals] == ["exp"]
    with pytest.raises(ArgumentError, match=r"pass elements=FormalElements\(field, seed\)"):
        modular(FIELD, np.zeros(2))
    with pytest.raises(ArgumentError, match="belong to the prime 101 and the field has 8388593"):
        modular(FIELD, np.zeros(2), elements=FormalElements(PrimeField(101), 0))
