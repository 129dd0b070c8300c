"""Masks, maxima and softmax over a prime field."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuromanifold.algebra.modular import FormalElements, over_prime_field
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.errors import NotCoveredError

FIELD = PrimeField()
EXP = FormalElements(FIELD, seed=3, label="masks")
CAUSAL = np.triu(np.ones((3, 3), dtype=bool))
SCORES = FIELD.random(5, "scores", (3, 3))


def evaluate(f, *arguments):
    modular = over_prime_field(f, *(np.zeros(x.shape) for x in arguments))
    return modular(FIELD, *arguments, elements=EXP)


def softmax_by_hand(scores, mask):
    """Column by column, the first entry that is not masked subtracted."""
    columns = []
    for s, m in zip(scores.T, mask.T, strict=True):
        weights = np.where(m, EXP(FIELD.reduce(s - s[np.argmax(m)])), 0.0)
        total = FIELD.reduce(np.sum(weights, keepdims=True))
        columns.append(FIELD.multiply(weights, FIELD.inverse(total)))
    return np.stack(columns, axis=1)


MASKED_SOFTMAX = {
    "where −inf": lambda s: jax.nn.softmax(jnp.where(CAUSAL, s, -jnp.inf), axis=0),
    "where −10^9": lambda s: jax.nn.softmax(jnp.where(CAUSAL, s, -1e9), axis=0),
    "where the least float": lambda s: jax.nn.softmax(
        jnp.where(CAUSAL, s, jnp.finfo(jnp.float32).min), axis=0
    ),
    "added": lambda s: jax.nn.softmax(s + jnp.where(CAUSAL, 0.0, -1e9), axis=0),
    "subtracted": lambda s: jax.nn.softmax(s - 1e10 * (1 - CAUSAL), axis=0),
    "subtracted inf": lambda s: jax.nn.softmax(s - jnp.where(CAUSAL, 0.0, jnp.inf), axis=0),
    "added −inf": lambda s: jax.nn.softmax(jnp.where(CAUSAL, 0.0, -jnp.inf) + s, axis=0),
    "where=": lambda s: jax.nn.softmax(s, axis=0, where=jnp.asarray(CAUSAL)),
    "scaled after masking": lambda s: jax.nn.softmax(
        2.0 * (jnp.where(CAUSAL, s, -jnp.inf) / 2.0), axis=0
    ),
    "scan": lambda s: (
        jax.lax.scan(
            lambda _, row: (0, jax.nn.softmax(jnp.where(row[1], row[0], -jnp.inf))),
            0,
            (s.T, jnp.asarray(CAUSAL.T)),
        )[1].T
    ),
    "vmap": jax.vmap(
        lambda s, m: jax.nn.softmax(jnp.where(m, s, -jnp.inf)), in_axes=(1, 1), out_axes=1
    ),
}


@pytest.mark.parametrize("way", MASKED_SOFTMAX)
def test_every_way_to_mask_gives_the_same_softmax(way):
    f = MASKED_SOFTMAX[way]
    masked = (lambda s: f(s, jnp.asarray(CAUSAL))) if way == "vmap" else f
    np.testing.assert_array_equal(evaluate(masked, SCORES), softmax_by_hand(SCORES, CAUSAL))


@pytest.mark.statement("softmax-exact")
def test_softmax_is_normalised_whichever_entry_is_subtracted():
    plain = lambda s: jnp.exp(s - s[2:3]) / jnp.sum(jnp.exp(s - s[2:3]), axis=0)  # noqa: E731
    # With another entry subtracted the formal exponentials are others; the columns still sum to 1.
    for f in (plain, lambda s: jax.nn.softmax(s, axis=0)):
        np.testing.assert_array_equal(FIELD.reduce(evaluate(f, SCORES).sum(axis=0)), np.ones(3))


def test_masked_columns_sum_to_one_and_vanish_where_masked():
    weights = evaluate(MASKED_SOFTMAX["where −inf"], SCORES)
    np.testing.assert_array_equal(FIELD.reduce(weights.sum(axis=0)), np.ones(3))
    assert not weights[~CAUSAL].any()
    assert weights[CAUSAL].all()


def test_the_maximum_is_the_first_entry_that_is_not_masked():
    masked = lambda s: jnp.max(jnp.where(~CAUSAL, s, -jnp.inf), axis=1)  # noqa: E731
    modular = over_prime_field(masked, np.zeros((3, 3)))
    assert modular.masked.tolist() == [True, False, False]
    found = modular(FIELD, SCORES)
    assert found[1:].tolist() == [SCORES[1, 0], SCORES[2, 0]]


def test_the_maximum_of_two_needs_one_to_be_masked():
    both = lambda s: jnp.maximum(  # noqa: E731
        jnp.where(CAUSAL, s, -jnp.inf), jnp.where(CAUSAL, -jnp.inf, 2 * s)
    )
    expected = np.where(CAUSAL, SCORES, FIELD.reduce(2 * SCORES))
    np.testing.assert_array_equal(evaluate(both, SCORES), expected)
    with pytest.raises(NotCoveredError, match=r"`max` .* compares values"):
        over_prime_field(lambda s: jnp.maximum(s, 2 * s), np.zeros(2))


def test_comparisons_with_minus_infinity_are_known():
    def f(s):
        m = jnp.where(CAUSAL, s, -jnp.inf)
        return jnp.where(m == -jnp.inf, 7.0, 1.0) * s, jnp.where(m > -jnp.inf, s, 0.0)

    scaled, kept = evaluate(f, SCORES)
    np.testing.assert_array_equal(scaled, FIELD.reduce(np.where(CAUSAL, 1, 7) * SCORES))
    np.testing.assert_array_equal(kept, np.where(CAUSAL, SCORES, 0))


@pytest.mark.parametrize(
    "f",
    [
        lambda s: jnp.sum(jnp.where(CAUSAL, s, -jnp.inf)),
        lambda s: s @ jnp.where(CAUSAL, s, -jnp.inf),
        lambda s: -jnp.where(CAUSAL, s, -jnp.inf),
        lambda s: s - jnp.where(CAUSAL, s, -jnp.inf),
        lambda s: s * jnp.where(CAUSAL, s, -jnp.inf),
        lambda s: -2.0 * jnp.where(CAUSAL, s, -jnp.inf),
        lambda s: 1 / jnp.where(CAUSAL, s, -jnp.inf),
        lambda s: jax.nn.softmax(jnp.where(CAUSAL & ~CAUSAL[::-1], s, -jnp.inf), axis=0),
    ],
)
def test_minus_infinity_elsewhere_is_refused(f):
    with pytest.raises(NotCoveredError, match="minus infinity reaches `"):
        over_prime_field(f, np.zeros((3, 3)))


def test_a_selection_by_several_cases_takes_the_known_one():
    which = np.array([[0, 1, 2], [2, 1, 0], [1, 1, 1]], dtype=np.int32)
    f = lambda s: jax.lax.select_n(which, s, 2 * s, jnp.full((3, 3), 5.0))  # noqa: E731
    expected = FIELD.reduce(np.choose(which, [SCORES, 2 * SCORES, np.full((3, 3), 5.0)]))
    np.testing.assert_array_equal(evaluate(f, SCORES), expected)


def test_what_a_mask_hides_may_be_anything():
    f = lambda s: jnp.where(CAUSAL, s, jnp.where(CAUSAL, jnp.nan, 0.0))  # noqa: E731
    np.testing.assert_array_equal(evaluate(f, SCORES), np.where(CAUSAL, SCORES, 0))
