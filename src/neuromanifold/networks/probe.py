"""Outputs at random inputs, and how far rounding moves them.

A lightning network without skip is homogeneous of degree 3^l (def-2), so its outputs overflow or
vanish at inputs of the wrong size; here inputs are scaled until the outputs have size 1.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.attention import attention, attention_layer
from neuromanifold.networks.reconditioned import reconditioned
from neuromanifold.networks.traits import is_homogeneous
from neuromanifold.networks.weights import Weights, unflatten

Inputs = Float[np.ndarray, "n d t"]

_DIRECTIONS = 8


def random_inputs(architecture: Architecture, count: int, seed: int) -> Inputs:
    """Normal tokens of length about 1."""
    if count < 1:
        raise ArgumentError(f"at least one input is needed; got {count}")
    d, t = architecture.widths[0], architecture.tokens
    return np.random.default_rng(seed).standard_normal((count, d, t)) / np.sqrt(d)


def outputs(weights: Weights, inputs: Inputs) -> Float[np.ndarray, "n d_l t"]:
    """φ_W at every input, in float64, accurate to what rounding the weights once would change."""
    with jax.enable_x64(True):
        return np.asarray(_outputs(reconditioned(weights), inputs))


def log_sizes(weights: Weights, inputs: Inputs) -> Float[np.ndarray, " n"]:
    """Logarithms of ‖φ_W(X)‖ for a homogeneous network, free of overflow; −inf for 0."""
    with jax.enable_x64(True):
        return np.asarray(_log_sizes(reconditioned(weights), inputs))


def well_scaled(weights: Weights, inputs: Inputs) -> Inputs:
    """The inputs scaled so that outputs are neither huge nor tiny, nor softmax saturated.

    A homogeneous network gets outputs of size 1 (inputs are left alone where the output is 0);
    others get scores of the first layer of size about 4, 1, 1/4, 1/16 in turn, since some
    differences show in small inputs and others in large ones.
    """
    if is_homogeneous(weights.architecture):
        logs = log_sizes(weights, inputs)
        exponents = np.where(np.isfinite(logs), logs / 3**weights.architecture.depth, 0.0)
        return inputs * np.exp(-exponents)[:, None, None]
    A = np.asarray(weights.layers[0].attention_matrices())
    size = float(np.linalg.norm(A, axis=(1, 2)).max())
    steps = 2.0 ** (1 - np.arange(len(inputs)) % 4)
    return inputs * (steps / np.sqrt(size or 1.0))[:, None, None]


def rounding_effect(weights: Weights, inputs: Inputs, seed: int) -> Float[np.ndarray, " n"]:
    """How far φ_W(X) moves when every tensor changes by its own size, to first order, for each X.

    The root mean square of ‖dφ(X)‖ over random directions dW in which each tensor has as large a
    norm as in W: times the unit roundoff this is the effect of rounding the weights.
    """
    generator = np.random.default_rng(seed)
    scales = np.concatenate(
        [
            np.full(tensor.size, np.linalg.norm(tensor) / np.sqrt(tensor.size))
            for _, tensor in weights.named_tensors()
        ]
    )
    directions = [
        unflatten(weights.architecture, scales * generator.standard_normal(len(scales)))
        for _ in range(_DIRECTIONS)
    ]
    with jax.enable_x64(True):
        stacked = jax.tree.map(_stacked, *directions)
        moved = np.asarray(_moved(weights, stacked, inputs))
    return np.sqrt(np.mean(np.square(moved), axis=0))


def _stacked(*parts: np.ndarray) -> np.ndarray:
    return np.stack(parts)


@jax.jit
def _outputs(weights: Weights, inputs: Float[Array, "n d t"]) -> Float[Array, "n d_l t"]:
    return jax.vmap(partial(attention, weights))(inputs)


@jax.jit
def _log_sizes(weights: Weights, inputs: Float[Array, "n d t"]) -> Float[Array, " n"]:
    """‖X_i‖ = ‖X_{i-1}‖³ ‖layer(X_{i-1} / ‖X_{i-1}‖)‖, in logarithms."""

    def one(X: Float[Array, "d t"]) -> Float[Array, ""]:
        size = jnp.linalg.norm(X)
        total, X = jnp.log(size), X / size
        for layer in weights.layers:
            X = jnp.asarray(attention_layer(layer, X, weights.architecture))
            size = jnp.linalg.norm(X)
            total, X = 3 * total + jnp.log(size), X / jnp.where(size > 0, size, 1.0)
        return total

    return jax.vmap(one)(inputs)


@jax.jit
def _moved(
    weights: Weights, directions: Weights, inputs: Float[Array, "n d t"]
) -> Float[Array, "directions n"]:
    """‖dφ(X)‖ in each direction, at each input."""

    def at_inputs(W: Weights) -> Float[Array, "n d_l t"]:
        return jax.vmap(partial(attention, W))(inputs)

    def one(direction: Weights) -> Float[Array, " n"]:
        return jnp.linalg.norm(jax.jvp(at_inputs, (weights,), (direction,))[1], axis=(1, 2))

    return jax.vmap(one)(directions)
