"""Weights check their shapes, survive JAX, and start well conditioned."""

import jax
import numpy as np
import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError, WeightsError
from neuromanifold.networks.weights import (
    Layer,
    Weights,
    conditioned_weights,
    random_weights,
    unflatten,
)

NETWORK = Architecture((3, 2), (2,), 3, heads=2)


@pytest.mark.statement("def-3")
@pytest.mark.statement("eq-5")
def test_the_parameters_are_the_entries(architecture):
    weights = random_weights(architecture, 0)
    assert weights.flatten().shape == (architecture.parameters,)
    if architecture.heads == 1 and architecture.value_ranks is None:
        d, a = architecture.widths, architecture.ranks
        count = sum(d[i] * (2 * a[i] + d[i + 1]) for i in range(len(a)))
        assert architecture.parameters == count


def test_unflatten_undoes_flatten(architecture):
    weights = random_weights(architecture, 3)
    again = unflatten(architecture, weights.flatten())
    for (name, tensor), (other_name, other) in zip(
        weights.named_tensors(), again.named_tensors(), strict=True
    ):
        assert name == other_name
        np.testing.assert_array_equal(tensor, other)
    with pytest.raises(WeightsError, match="parameters; got a vector of shape"):
        unflatten(architecture, np.zeros(architecture.parameters + 1))


def test_a_seed_gives_the_same_weights_and_another_seed_others(architecture):
    for draw in (random_weights, conditioned_weights):
        first = draw(architecture, 5).flatten()
        np.testing.assert_array_equal(first, draw(architecture, 5).flatten())
        assert not np.allclose(first, draw(architecture, 6).flatten())


def test_conditioned_weights_have_the_condition_asked_for(architecture):
    weights = conditioned_weights(architecture, 0, condition=4.0)
    for _, tensor in weights.named_tensors():
        singular = np.linalg.svd(tensor, compute_uv=False)
        if singular.shape[-1] > 1:
            np.testing.assert_allclose(singular[:, 0] / singular[:, -1], 4.0)


def test_a_wrong_shape_is_named():
    layer = random_weights(NETWORK, 0).layers[0]
    with pytest.raises(WeightsError, match=r"layers.0.value .* shape \(2, 2, 3\); got \(2, 3, 3\)"):
        Weights((Layer(layer.query, layer.key, np.zeros((2, 3, 3))),), NETWORK)
    with pytest.raises(WeightsError, match="has 1 layers; got 2"):
        Weights((layer, layer), NETWORK)
    with pytest.raises(WeightsError, match=r"layers.0.output .* be left out; got"):
        Weights((Layer(layer.query, layer.key, layer.value, np.zeros((2, 2, 2))),), NETWORK)


def test_weights_carry_batches_through_vmap():
    weights = random_weights(NETWORK, 0)
    batch = jax.tree.map(lambda tensor: np.stack([tensor, 2 * tensor]), weights)
    doubled = jax.vmap(lambda w: jax.tree.map(lambda tensor: 2 * tensor, w))(batch)
    assert doubled.layers[0].query.shape == (2, 2, 2, 3)
    assert doubled.architecture == NETWORK


@pytest.mark.parametrize("seed", [-1, True])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(ArgumentError, match="seed must be a whole number"):
        random_weights(NETWORK, seed)


def test_a_condition_below_one_is_refused():
    with pytest.raises(ArgumentError, match=r"condition must be at least 1; got 0.5"):
        conditioned_weights(NETWORK, 0, condition=0.5)
