"""The network is the paper's: checked against sums over tokens written from the definition."""

import jax
import numpy as np
import pytest

from architectures import ARCHITECTURES
from neuromanifold.algebra.balls.arrays import balls, midpoints, precision
from neuromanifold.architecture import Architecture
from neuromanifold.errors import WeightsError
from neuromanifold.networks import attention as module
from neuromanifold.networks.attention import attention
from neuromanifold.networks.evaluation import evaluate
from neuromanifold.networks.weights import random_weights


def inputs_for(architecture, seed=0):
    shape = (architecture.widths[0], architecture.tokens)
    return np.random.default_rng(seed).standard_normal(shape)


def naive(weights, X):
    """def-1, def-2 and eq-15 token by token, head by head, in plain loops."""
    architecture = weights.architecture
    for layer in weights.layers:
        t, Y = X.shape[1], None
        for h in range(architecture.heads):
            A = np.asarray(layer.key[h]).T @ np.asarray(layer.query[h])
            V = np.asarray(layer.value_maps()[h])
            out = np.zeros((V.shape[0], t))
            for i in range(t):
                js = range(i + 1) if architecture.mask == "causal" else range(t)
                weight = {j: X[:, j] @ A @ X[:, i] / architecture.temperature for j in js}
                if architecture.attention == "softmax":
                    total = sum(np.exp(s) for s in weight.values())
                    weight = {j: np.exp(s) / total for j, s in weight.items()}
                out[:, i] = sum(weight[j] * (V @ X[:, j]) for j in js)
                if architecture.skip == "inner":
                    out[:, i] += V @ X[:, i]
            Y = out if Y is None else Y + out
        X = X + Y if architecture.skip == "residual" else Y
    return X


@pytest.mark.statement("def-1")
@pytest.mark.statement("def-2")
@pytest.mark.statement("eq-1")
@pytest.mark.statement("eq-2")
@pytest.mark.statement("eq-3")
@pytest.mark.statement("eq-4")
@pytest.mark.statement("eq-15")
def test_every_network_is_the_sum_over_tokens_of_its_definition(architecture):
    weights, X = random_weights(architecture, 0), inputs_for(architecture)
    with jax.enable_x64(True):
        Y = np.asarray(attention(weights, X))
    expected = naive(weights, X)
    assert Y.dtype == np.float64
    assert np.linalg.norm(Y - expected) <= 1e-12 * np.linalg.norm(expected)


@pytest.mark.statement("def-1")
@pytest.mark.statement("eq-15")
def test_numpy_and_balls_give_the_values_of_the_definition(architecture):
    weights, X = random_weights(architecture, 0), inputs_for(architecture)
    layers, expected = [layer.arrays() for layer in weights.layers], naive(weights, X)
    found = evaluate(layers, X, architecture)
    assert np.linalg.norm(found - expected) <= 1e-12 * np.linalg.norm(expected)
    with precision(128):
        exact = [{name: balls(T) for name, T in layer.items()} for layer in layers]
        enclosed = evaluate(exact, balls(X), architecture)
        assert max(float(ball.rad()) for ball in enclosed.flat) < 1e-25
    assert np.linalg.norm(midpoints(enclosed) - expected) <= 1e-12 * np.linalg.norm(expected)


def test_imaginary_steps_in_the_weights_are_derivatives():
    architecture = Architecture((3, 3), (2,), 3, "softmax", skip="inner", mask="causal")
    layer, X = random_weights(architecture, 0).layers[0].arrays(), inputs_for(architecture)
    moved = layer | {"key": layer["key"] + 1e-40j}
    slope = evaluate([moved], X, architecture).imag / 1e-40
    ahead, behind = (layer | {"key": layer["key"] + h} for h in (1e-6, -1e-6))
    difference = evaluate([ahead], X, architecture) - evaluate([behind], X, architecture)
    np.testing.assert_allclose(slope, difference / 2e-6, rtol=1e-7, atol=1e-9)


@pytest.mark.statement("def-2")
def test_lightning_networks_are_homogeneous_of_degree_three_to_the_depth():
    architecture = Architecture((3, 4, 2), (2, 3), 3)
    weights, X = random_weights(architecture, 0), inputs_for(architecture)
    with jax.enable_x64(True):
        np.testing.assert_allclose(attention(weights, 2 * X), 2**9 * attention(weights, X))


@pytest.mark.parametrize("tokens", [1, module.CHUNK, module.CHUNK + 1, 3 * module.CHUNK - 5])
@pytest.mark.parametrize("value_ranks", [None, (2, 2)])
def test_the_scan_over_chunks_is_the_masked_form(tokens, value_ranks, monkeypatch):
    architecture = Architecture(
        (3, 2, 3), (2, 2), tokens, heads=2, mask="causal", value_ranks=value_ranks
    )
    weights, X = random_weights(architecture, 1), inputs_for(architecture)
    with jax.enable_x64(True):
        chunked = np.asarray(attention(weights, X))
        monkeypatch.setattr(module, "CHUNK", 10_000)
        masked = np.asarray(attention(weights, X))
    assert np.linalg.norm(chunked - masked) <= 1e-12 * np.linalg.norm(masked)


@pytest.mark.parametrize("architecture", ARCHITECTURES[::4], ids=str)
def test_works_under_jit_vmap_and_grad_in_both_precisions(architecture):
    X = inputs_for(architecture)
    exact = naive(random_weights(architecture, 0), X)
    for dtype, tolerance in ((np.float32, 1e-4), (np.float64, 1e-12)):
        weights = random_weights(architecture, 0, dtype=dtype)
        with jax.enable_x64(dtype is np.float64):
            batch = np.stack([X, 2 * X]).astype(dtype)
            outputs = np.asarray(jax.jit(jax.vmap(attention, (None, 0)))(weights, batch))
            slope = jax.grad(lambda w, X: attention(w, X).sum())(weights, batch[0])
        assert outputs.dtype == dtype
        assert np.linalg.norm(outputs[0] - exact) <= tolerance * np.linalg.norm(exact)
        assert np.isfinite(slope.flatten()).all()


def test_an_input_of_the_wrong_width_is_refused():
    architecture = Architecture((3, 2), (2,), 4)
    with pytest.raises(WeightsError, match=r"has shape \(3, tokens\), one token a column; got \(4"):
        attention(random_weights(architecture, 0), np.zeros((4, 3)))
