"""Functions at points: the network, a naive twin straight from the definition, integer weights."""

from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Shaped

from neuromanifold.architecture import Architecture
from neuromanifold.networks.attention import attention
from neuromanifold.networks.evaluation import evaluate
from neuromanifold.networks.virtual import VirtualWeights, virtual_weights
from neuromanifold.networks.weights import Layer, Weights, conditioned_weights, unflatten

ROUNDING = 1e-10
"""Largest relative distance of two values that are equal but for rounding in float64.

Sums of a few hundred terms of weights of condition number 2 lose a few digits of sixteen; ten that
agree are far from what two different functions have in common.
"""
DIFFERENT = 1e-3
"""Least relative distance at a random input of functions that are meant to differ."""


def output(weights: Weights, X: Float[np.ndarray, "d t"]) -> Float[np.ndarray, "d_l t"]:
    """φ_W(X) in float64."""
    with jax.enable_x64(True):
        return np.asarray(attention(weights, X))


def virtual(weights: Weights) -> VirtualWeights:
    """The virtual weights of float64 weights, as NumPy arrays (eq-8)."""
    found = virtual_weights(weights)
    forms = tuple(np.asarray(M) for M in found.forms)
    return VirtualWeights(forms, np.asarray(found.linear), weights.architecture)


def from_forms(
    forms: Iterable[np.ndarray], X: np.ndarray, linear: np.ndarray, **kind: Any
) -> Shaped[np.ndarray, "d_l t"]:
    """L F_{M_l} ∘ … ∘ F_{M_1}(X) of a kind of network, for numbers of any kind (eq-8)."""
    layers = [{"query": M[None]} for M in forms]
    (d, t), depth = X.shape, len(layers)
    network = Architecture((d,) * (depth + 1), (d,) * depth, t, **kind)
    return linear @ evaluate(layers, X, network)


def token_loop(
    layer: Layer, X: Shaped[np.ndarray, "d t"], architecture: Architecture
) -> Shaped[np.ndarray, "d_next t"]:
    """One layer with one head, token by token as it is defined (eq-1, eq-15).

    Lightning layers may have Python integers for entries: then this is exact.
    """
    A = layer.attention_matrices()[0]
    V = layer.value_maps()[0]
    tokens = []
    for x in X.T:
        weights = [x_j @ A @ x for x_j in X.T]
        if architecture.attention == "softmax":
            weights = [np.exp(weight / architecture.temperature) for weight in weights]
            weights = [weight / sum(weights) for weight in weights]
        tokens.append(sum(weight * (V @ x_j) for weight, x_j in zip(weights, X.T, strict=True)))
    return np.stack(tokens, axis=1)


def integers(
    architecture: Architecture, seed: int, largest: int = 2
) -> tuple[Weights, Float[np.ndarray, "d t"]]:
    """Weights and an input of whole numbers from −largest to largest, held in float64."""
    shape = (architecture.widths[0], architecture.tokens)
    vector, X = (
        np.random.default_rng((seed, stream)).integers(-largest, largest + 1, size).astype(float)
        for stream, size in ((11, architecture.parameters), (12, shape))
    )
    return unflatten(architecture, vector), X


def generic(architecture: Architecture, seed: int) -> tuple[Weights, Float[np.ndarray, "d t"]]:
    """Well-conditioned weights and a normal input."""
    return conditioned_weights(architecture, seed), normal_input(architecture, seed)


def exact_output(weights: Weights, X: np.ndarray) -> np.ndarray:
    """φ_W(X) of a lightning network in Python integers, from the token loop."""
    exact = np.vectorize(int, otypes=[object])
    Y = exact(X)
    for layer in jax.tree.map(exact, weights).layers:
        Y = token_loop(layer, Y, weights.architecture)
    return Y


def normal_input(architecture: Architecture, seed: int) -> Float[np.ndarray, "d t"]:
    """A normal input."""
    generator = np.random.default_rng((seed, 13))
    return generator.standard_normal((architecture.widths[0], architecture.tokens))


def distance(first: np.ndarray, second: np.ndarray) -> float:
    """‖first − second‖ relative to the larger norm; 0 when both vanish."""
    size = max(np.linalg.norm(first), np.linalg.norm(second))
    return float(np.linalg.norm(np.asarray(first) - np.asarray(second)) / size) if size else 0.0
