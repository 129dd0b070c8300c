import numpy as np
import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.networks.virtual import virtual_weights
from neuromanifold.networks.weights import Layer, Weights, random_weights
from neuromanifold.recovery import network_oracle, recover

ONE_LAYER = [
    Architecture((4, 3), (2,), 2, "softmax"),
    Architecture((3, 1), (3,), 4, "softmax", temperature=2.0),
    Architecture((1, 2), (1,), 2, "softmax"),
]
TWO_LAYERS = [
    Architecture((3, 3, 3), (2, 2), 3, "softmax"),
    Architecture((4, 2, 3), (2, 2), 4, "softmax", temperature=0.5),
    Architecture((3, 4, 1), (1, 3), 3, "softmax"),
]
TWO_LAYERS_MANY = [*TWO_LAYERS, Architecture((4, 4, 4), (4, 4), 3, "softmax")]


def virtual_error(found, wanted):
    """The largest relative distance of a form or of L: softmax has no rescalings."""
    found, wanted = virtual_weights(found), virtual_weights(wanted)
    pairs = zip((*found.forms, found.linear), (*wanted.forms, wanted.linear), strict=True)
    return max(np.linalg.norm(M - M_wanted) / np.linalg.norm(M_wanted) for M, M_wanted in pairs)


def check_one_layer(architecture, seed):
    truth = random_weights(architecture, seed)
    recovery = recover(network_oracle(truth), architecture, seed=seed)
    assert recovery.verdict == "identified", recovery
    assert recovery.fit_error <= 1e-8
    assert virtual_error(recovery.weights, truth) <= 1e-8


@pytest.mark.statement("thm-3.9")
@pytest.mark.parametrize("architecture", ONE_LAYER, ids=str)
def test_one_softmax_layer_is_found_as_a_single_point(architecture):
    for seed in range(4):
        check_one_layer(architecture, seed)


@pytest.mark.slow
@pytest.mark.statement("thm-3.9")
@pytest.mark.parametrize("architecture", ONE_LAYER, ids=str)
def test_one_softmax_layer_is_found_over_many_seeds(architecture):
    for seed in range(60):
        check_one_layer(architecture, seed)


@pytest.mark.statement("conj-3.10")
@pytest.mark.parametrize("architecture", TWO_LAYERS, ids=str)
def test_two_softmax_layers_are_found_as_a_single_point(architecture):
    for seed in range(3):
        truth = random_weights(architecture, seed)
        recovery = recover(network_oracle(truth), architecture, seed=seed)
        assert recovery.verdict == "identified", recovery
        assert virtual_error(recovery.weights, truth) <= 1e-7


@pytest.mark.slow
@pytest.mark.statement("conj-3.10")
@pytest.mark.parametrize("architecture", TWO_LAYERS_MANY, ids=str)
def test_two_softmax_layers_are_found_or_refused_over_many_seeds(architecture):
    found = 0
    for seed in range(50):
        truth = random_weights(architecture, seed)
        recovery = recover(network_oracle(truth), architecture, seed=seed)
        assert (recovery.weights is None) == (recovery.verdict == "not identified")
        found += recovery.verdict == "identified" and recovery.fit_error <= 1e-5
    assert found >= 45


@pytest.mark.parametrize("size", [0.1, 30.0])
def test_small_and_large_forms_are_found(size):
    architecture = Architecture((3, 2), (3,), 3, "softmax")
    weights = random_weights(architecture, 0)
    layer = weights.layers[0]
    truth = Weights((Layer(size * layer.query, layer.key, layer.value),), architecture)
    recovery = recover(network_oracle(truth), architecture)
    assert recovery.verdict == "identified", recovery
    assert virtual_error(recovery.weights, truth) <= 1e-8


@pytest.mark.parametrize("size", [0.0, 1e-17])
def test_without_a_first_form_the_second_is_not_seen(size):
    """A_1 = 0 makes all tokens of the second layer equal: any second form fits as well.

    A tiny first form is seen at large inputs only, where the second layer is saturated.
    """
    architecture = Architecture((3, 3, 3), (2, 2), 3, "softmax")
    first, second = random_weights(architecture, 0).layers
    blind = Layer(size * first.query, first.key, first.value)
    recovery = recover(network_oracle(Weights((blind, second), architecture)), architecture)
    assert recovery.verdict == "not identified"
    assert size or "undetermined" in recovery.reason


@pytest.mark.statement("thm-3.9")
def test_the_zero_function_is_recognised():
    architecture = Architecture((3, 2), (2,), 2, "softmax")
    recovery = recover(lambda _: np.zeros((2, 2)), architecture)
    assert recovery.verdict == "identified"
    assert "zero function" in recovery.reason
