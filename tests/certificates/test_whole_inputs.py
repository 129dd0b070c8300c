"""Inputs that are integers or truth values are drawn as such, and are constants of their row."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import neuromanifold as nm
from neuromanifold.algebra.cells.whole import WholeInputs, range_of
from neuromanifold.errors import ArgumentError

TABLE = {"u": np.zeros((2, 2)), "e": np.zeros((3, 2))}
PAIRS = np.array([0, 2])


def _lookups(w, t):
    return w["u"] @ jnp.sum(w["e"][t], axis=0)


def _one_hot(w, t):
    return w["u"] @ jnp.sum(jax.nn.one_hot(t, 3) @ w["e"], axis=0)


@pytest.mark.parametrize(
    ("f", "weights", "sample", "rank"),
    [
        (lambda w, b: w[0] * b + w[1] * b**2, np.zeros(2), np.zeros((), bool), 1),
        (
            lambda w, b: w[0] * b[0] + w[1] * (b[0] & b[1]) + w[2] * b[1],
            np.zeros(3),
            np.zeros(2, bool),
            3,
        ),
        (lambda w, t: w[t], np.zeros((3, 2)), np.array(2), 6),
        (lambda w, t: w[t], np.zeros((3, 2)), np.array(1), 4),
        (lambda w, t: w[0] * t + w[1] * t**2 + w[2] * t**3, np.zeros(3), np.array([2]), 2),
        (lambda w, t: jnp.take(w, t, axis=0), np.zeros((3, 2)), np.array([0, 2]), 6),
        (lambda w, t: w.at[t].get(mode="fill", fill_value=5.0), np.zeros(2), np.array(3), 2),
        (_lookups, TABLE, PAIRS, 6),
        (_one_hot, TABLE, PAIRS, 6),
        (lambda w, t: jnp.where(t > 1, w[0], w[1]) * w[2], np.zeros(3), np.array(4), 2),
    ],
)
def test_ranks_on_whole_numbers_are_those_of_all_inputs(f, weights, sample, rank):
    """The true rank: the rank of all rows of the Jacobian, at every input there is, in floats."""
    found = nm.certify(nm.network(f, weights, sample, name="f"))
    assert found.lower == rank
    assert found.readings.whole == found.readings.possible
    inputs = WholeInputs([sample.shape], [range_of(sample)])
    (every,) = inputs.drawn(0, range(inputs.possible))
    assert len(np.unique(every, axis=0)) == inputs.possible
    with jax.enable_x64(True):
        at = jax.tree.map(lambda x: np.random.default_rng(0).standard_normal(x.shape), weights)
        if sample.dtype == bool:
            every = every.astype(bool)
        rows = jax.vmap(jax.jacrev(f), in_axes=(None, 0))(at, every)
    columns = [
        np.asarray(x).reshape(-1, max(1, y.size))
        for x, y in zip(jax.tree.leaves(rows), jax.tree.leaves(weights), strict=True)
    ]
    assert np.linalg.matrix_rank(np.concatenate(columns, axis=1)) == rank


def test_examples_with_negative_entries_only_are_drawn_up_to_zero():
    network = nm.network(lambda w, n: w[0] * n + w[1] * n**2, np.zeros(2), np.array(-3))
    certificate = nm.certify(network)
    assert (certificate.lower, certificate.readings.possible) == (2, 4)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint32, np.int64])
def test_whole_numbers_keep_the_type_of_their_example(dtype):
    """JAX makes integers of 32 bits where nobody asks for more; literals beside them have those."""
    f = lambda w, t: w @ jax.nn.one_hot(t[0] // 2, 2) + w[:, 0] * (t[0] % 2)  # noqa: E731
    found = nm.certify(nm.network(f, np.zeros((2, 2)), np.array([3], dtype=dtype), name="f"))
    assert (found.verdict, found.lower) == ("exact", 4)


def test_whole_numbers_beside_real_ones_and_formal_functions():
    sample = {"t": np.array(2), "x": np.zeros(())}
    network = nm.network(
        lambda w, x: w["e"][x["t"]] * jnp.exp(x["x"] * w["a"]),
        {"a": np.zeros(()), "e": np.zeros(3)},
        sample,
        name="f",
    )
    found = nm.certify(network)
    assert (found.verdict, found.lower) == ("exact", 4)
    assert found.readings.patterns == 0
    assert "all 3 possible inputs" in str(found)
    assert nm.verify(found, network).agrees


def test_formal_functions_of_tokens_alone_are_not_called_proved():
    found = nm.certify(nm.network(lambda w, t: jnp.exp(w[t]), np.zeros(3), np.array(2), name="f"))
    assert not found.lower_is_proved


def test_a_whole_part_of_a_constant_that_has_none_may_be_left_out():
    """A table of relative positions, as T5 has one, takes the logarithm of distance zero too."""

    def f(w, x):
        distance = jnp.arange(3)
        return w[jnp.where(distance < 1, 0, 1 + jnp.log(distance).astype(int))] @ x

    found = nm.certify(nm.network(f, np.zeros(2), np.zeros(3)))
    assert (found.verdict, found.lower) == ("exact", 2)


def _rms(x):
    return x / jnp.sqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sample", [np.array(3), np.zeros(())])
def test_roots_of_weights_in_different_rows_are_shown_together(sample, seed):
    """√(w c²) = c √w: one function, c (w_0 √w_2 + w_1), though each row has a root of its own."""

    def f(w, t):
        c = jnp.where(t > 0, 3.0, 1.0) if sample.dtype == float else t + 1.0
        return w[0] * jnp.sqrt(w[2] ** 2 * c**2 + c**2) + w[1] * c

    found = nm.certify(nm.network(f, np.zeros(3), sample, name="f"), seed=seed)
    (roots,) = found.obligations
    assert roots.rank < roots.columns
    assert not found.lower_is_proved


@pytest.mark.parametrize("seed", range(3))
def test_norms_of_tokens_are_roots_of_weights(seed):
    """Weights are drawn again until the norms of all tokens are squares, whatever the seed."""
    weights = {"e": np.zeros((3, 2)), "v": np.zeros((2, 2))}
    network = nm.network(
        lambda w, t: _rms(_rms(w["e"][t]) @ w["v"]), weights, np.array(2), name="f"
    )
    found = nm.certify(network, seed=seed)
    assert found.lower_is_proved
    assert found.lower == 6
    assert nm.verify(found, network).agrees


def test_estimates_draw_whole_numbers_too():
    network = nm.network(_lookups, TABLE, PAIRS, name="f")
    assert nm.estimate(network).rank == 6


def test_many_possible_inputs_are_drawn_one_by_one():
    inputs = WholeInputs([(3,), ()], [range(-1, 1000), range(2)])
    pairs, flags = inputs.drawn(4, range(50))
    assert inputs.possible == 1001**3 * 2
    assert pairs.shape == (50, 3)
    assert pairs.min() >= -1
    assert pairs.max() < 1000
    assert set(flags.tolist()) == {0, 1}
    np.testing.assert_array_equal(inputs.drawn(4, [7])[0][0], pairs[7])


@pytest.mark.parametrize(
    ("weights", "sample", "reason"),
    [
        (np.zeros(3), np.zeros((), int), "give an example that contains the largest integer"),
        (np.zeros(3), jax.ShapeDtypeStruct((3,), np.int32), "contains the largest integer"),
        (np.zeros(3), np.zeros(3, complex), "complex inputs"),
        (np.zeros(3, complex), np.zeros(3), "complex weights"),
    ],
)
def test_what_cannot_be_drawn_is_refused(weights, sample, reason):
    with pytest.raises(ArgumentError, match=reason):
        nm.certify(nm.network(lambda w, x: w * x, weights, sample, name="f"))


def test_a_probable_dimension_is_about_the_inputs_that_were_used():
    """Only one token in 50001 looks at w₀, and no degree bounds how often it is drawn."""

    def f(w, token):
        return jnp.where(token[0] == 12345, w[0], w[1])

    found = nm.certify(nm.network(f, np.zeros(2), np.array([50000])))
    assert (found.verdict, found.rank) == ("probable", 1)
    assert "the dimension at these inputs is 1 (probable" in str(found)
