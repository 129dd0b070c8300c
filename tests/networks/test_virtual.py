"""Virtual weights see what the network sees; three evaluations of one function agree."""

import jax
import numpy as np
import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError, NotCoveredError
from neuromanifold.networks.attention import attention
from neuromanifold.networks.virtual import (
    evaluate_recursion,
    evaluate_unrolled,
    evaluate_virtual,
    rescale_virtual,
    unrolled_factor,
    virtual_weights,
)
from neuromanifold.networks.weights import conditioned_weights, random_weights

LIGHTNING = [
    Architecture((3, 2), (2,), 3),
    Architecture((1, 1), (1,), 1),
    Architecture((4, 2, 3), (2, 2), 3),
    Architecture((2, 4, 2), (3, 1), 2),
    Architecture((3, 2, 4), (2, 2), 2, value_ranks=(1, 3)),
    Architecture((2, 3, 2, 2), (2, 1, 2), 2),
    Architecture((3, 2, 2, 3), (2, 2, 2), 2),
]


def relative_error(found, wanted):
    return np.linalg.norm(np.asarray(found) - wanted) / np.linalg.norm(wanted)


@pytest.mark.statement("eq-8")
@pytest.mark.statement("lemma-3.6")
@pytest.mark.statement("eq-10")
@pytest.mark.statement("eq-11")
@pytest.mark.statement("eq-12")
@pytest.mark.parametrize("network", LIGHTNING, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_layers_recursion_and_unrolled_sum_are_one_function(network, seed):
    weights = conditioned_weights(network, seed)
    X = np.random.default_rng(seed).standard_normal((network.widths[0], network.tokens))
    with jax.enable_x64(True):
        virtual, layers = virtual_weights(weights), np.asarray(attention(weights, X))
        for evaluate in (evaluate_recursion, evaluate_virtual, evaluate_unrolled):
            assert relative_error(evaluate(virtual, X), layers) <= 1e-10


@pytest.mark.statement("eq-8")
def test_every_network_with_virtual_weights_is_a_function_of_them(architecture):
    weights = random_weights(architecture, 0)
    if not architecture.has_virtual_weights:
        with pytest.raises(NotCoveredError, match="one head without a residual skip"):
            virtual_weights(weights)
        return
    X = np.random.default_rng(0).standard_normal((architecture.widths[0], architecture.tokens))
    with jax.enable_x64(True):
        expected = np.asarray(attention(weights, X))
        assert relative_error(evaluate_virtual(virtual_weights(weights), X), expected) <= 1e-12


@pytest.mark.statement("eq-12")
def test_the_base_three_rule_places_the_forms():
    """l = 2: M_1, M_1ᵀ, M_2 (the first three of four regions); then the pattern repeats."""
    rule = [unrolled_factor(j) for j in range(1, 13)]
    assert rule[:3] == [(1, False), (1, True), (2, False)]
    assert rule[3:9] == [(1, False), (1, True), (2, True), (1, False), (1, True), (3, False)]
    with pytest.raises(ArgumentError, match="count from 1"):
        unrolled_factor(0)


@pytest.mark.statement("eq-13")
@pytest.mark.parametrize("network", LIGHTNING, ids=str)
def test_rescalings_keep_the_function_exactly_when_the_exponents_are_right(network):
    with jax.enable_x64(True):
        virtual = virtual_weights(conditioned_weights(network, 0))
        X = np.random.default_rng(0).standard_normal((network.widths[0], network.tokens))
        factors = tuple(np.linspace(-1.1, 1.3, network.depth))
        expected = np.asarray(evaluate_recursion(virtual, X))
        rescaled = rescale_virtual(virtual, factors)
        assert relative_error(evaluate_recursion(rescaled, X), expected) <= 1e-10
        wrong = jax.tree.map(lambda M: M, rescaled)
        object.__setattr__(wrong, "linear", 1.01 * rescaled.linear)
        assert relative_error(evaluate_recursion(wrong, X), expected) > 5e-3


@pytest.mark.statement("eq-13")
def test_a_rescaling_needs_one_non_zero_factor_a_layer():
    virtual = virtual_weights(random_weights(LIGHTNING[2], 0))
    for factors in ((2.0,), (1.0, 0.0)):
        with pytest.raises(ArgumentError, match="2 factors other than 0 were wanted"):
            rescale_virtual(virtual, factors)


def test_the_recursion_refuses_networks_it_is_not_for():
    virtual = virtual_weights(random_weights(Architecture((2, 2), (1,), 2, "softmax"), 0))
    with pytest.raises(NotCoveredError, match="lightning networks without skip and mask"):
        evaluate_recursion(virtual, np.zeros((2, 2)))
