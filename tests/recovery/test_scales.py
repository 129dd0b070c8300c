"""Functions of every size: powers of two change no digit, so nothing else may change either."""

import numpy as np
import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.networks.virtual import virtual_weights
from neuromanifold.networks.weights import Layer, Weights, random_weights
from neuromanifold.recovery import network_oracle, recover

LIGHTNING = Architecture((3, 2), (2,), 2)
TWO_LIGHTNING = Architecture((2, 2, 2), (2, 2), 3)
SOFTMAX = Architecture((3, 2), (2,), 2, "softmax")
TWO_SOFTMAX = Architecture((2, 2, 2), (2, 2), 3, "softmax")
RESIDUAL = Architecture((2, 2), (2,), 3, skip="residual")
SIZES = [1e-200, 1e-60, 1e60, 1e200]


def scaled(architecture, *, scores=1.0, values=1.0, seed=0):
    """Random weights with all forms and the last value map times a factor."""
    layers = list(random_weights(architecture, seed).layers)
    root = float(np.sqrt(scores))
    layers = [Layer(root * layer.query, root * layer.key, layer.value) for layer in layers]
    last = layers[-1]
    layers[-1] = Layer(last.query, last.key, values * last.value)
    return Weights(tuple(layers), architecture)


@pytest.mark.parametrize("size", SIZES)
def test_two_heads_are_no_single_head_at_any_scale(size):
    heads = random_weights(Architecture((3, 2), (2,), 2, heads=2), 0)
    exact = network_oracle(heads)
    recovery = recover(lambda X: size * exact(X), LIGHTNING)
    assert recovery.verdict == "not identified"
    assert recovery.weights is None


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("architecture", [LIGHTNING, TWO_LIGHTNING, SOFTMAX, TWO_SOFTMAX], ids=str)
def test_functions_are_found_at_every_scale(architecture, size):
    recovery = recover(network_oracle(scaled(architecture, values=size)), architecture)
    assert recovery.verdict == "identified", recovery
    assert recovery.fit_error <= 1e-12
    truth = virtual_weights(scaled(architecture, values=size)).linear
    found = virtual_weights(recovery.weights).linear
    if architecture.attention == "softmax":
        np.testing.assert_allclose(found, truth, rtol=0, atol=1e-12 * np.abs(truth).max())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("architecture", [SOFTMAX, TWO_SOFTMAX, RESIDUAL], ids=str)
def test_forms_are_found_at_every_scale(architecture, size):
    truth = scaled(architecture, scores=size)
    recovery = recover(network_oracle(truth), architecture)
    assert recovery.verdict == "identified", recovery
    for found, wanted in zip(recovery.weights.layers, truth.layers, strict=True):
        A, A_found = (layer.attention_matrices()[0] for layer in (wanted, found))
        if architecture.depth == 1 and architecture.attention == "softmax":
            np.testing.assert_allclose(A_found, A, rtol=0, atol=1e-10 * np.abs(A).max())


def test_outputs_below_every_float_are_not_called_zero():
    architecture = Architecture((2, 2), (1,), 2)
    recovery = recover(lambda X: 0 * X + 5e-324, architecture)
    assert recovery.verdict == "not identified"
    assert "too small for float64" in recovery.reason


def test_a_function_that_float64_shows_at_large_inputs_only_is_found():
    """All outputs underflow at inputs of size one; at 2^60 they do not."""
    truth = scaled(TWO_LIGHTNING, scores=1e-120)
    assert not network_oracle(truth)(np.ones((2, 3))).any()
    assert recover(network_oracle(truth), TWO_LIGHTNING).verdict == "identified"
