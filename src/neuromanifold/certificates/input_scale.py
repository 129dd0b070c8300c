"""Inputs of the size at which a network shows most in floating point.

Lightning without skip is homogeneous of degree 3^l. With g_i = ‖layer_i(X̂_{i-1})‖ at tokens X̂ of
norm one, log ‖X_i‖ = 3 log ‖X_{i-1}‖ + log g_i. The size of the input that makes the output of size
one is log ‖X_0‖ = −Σ_i 3^{−i} log g_i, and then log ‖X_i‖ = −Σ_{j>i} 3^{−(j−i)} log g_j: every
layer has tokens of size max g^{±1/2} at most, in every depth. So one number for each input scales
all layers, and nothing under- or overflows on the way.

Softmax shows nothing of its scores where it saturates, and little where they are tiny. Inputs are
scaled by a power of two until the scores of the first layer are of ordinary size; what later layers
do with their scores is measured: `is_saturated`.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from neuromanifold.networks.attention import attention_layer, normalised
from neuromanifold.networks.weights import Weights

Inputs = Float[np.ndarray, "n d t"]

LARGEST_SCORE, SMALLEST_SCORE = 2.0**4, 2.0**-8
"""Median scores of the first layer outside of these are scaled to size one."""
SATURATED = 2.0**-26
"""A token that leaves less than this to all others but one has its scores hidden in rounding."""


def scaled_inputs(weights: Weights, inputs: Inputs) -> Inputs:
    """The inputs in the sizes of the module's docstring."""
    architecture = weights.architecture
    if architecture.is_homogeneous:
        with jax.enable_x64(True):
            logs = np.asarray(_log_sizes(weights, inputs))
        usable = np.isfinite(logs)
        return inputs * np.exp(np.where(usable, -logs, 0.0))[:, None, None]
    if not architecture.averages_tokens:
        return inputs
    layer = weights.layers[0]
    K, Q = (np.asarray(x, dtype=np.float64) for x in (layer.key, layer.query))
    k, q = (int(np.frexp(np.abs(x).max())[1]) for x in (K, Q))
    scores = np.einsum(
        "hai,nit,haj,nju->nhtu", np.ldexp(K, -k), inputs, np.ldexp(Q, -q), inputs, optimize=True
    )
    exponent = int(np.frexp(np.median(np.abs(scores)))[1]) + k + q
    exponent -= int(np.frexp(architecture.temperature)[1])
    if np.log2(SMALLEST_SCORE) < exponent <= np.log2(LARGEST_SCORE) or not scores.any():
        return inputs
    return np.ldexp(inputs, -exponent // 2)


def is_saturated(weights: Weights, inputs: Inputs) -> bool:
    """Whether in some layer and head most tokens give all their attention to one token."""
    if not weights.architecture.averages_tokens or weights.architecture.tokens == 1:
        return False
    with jax.enable_x64(True):
        shares = np.asarray(_saturated_shares(weights, inputs))
    return bool((shares > 0.5).any())


@jax.jit
def _log_sizes(weights: Weights, inputs: Float[Array, "n d t"]) -> Float[Array, " n"]:
    """How far X is from giving an output of size one: log ‖X‖ + Σ_i 3^{−i} log g_i."""

    def one(X: Float[Array, "d t"]) -> Float[Array, ""]:
        size = jnp.linalg.norm(X)
        total, X = jnp.log(size), X / size
        for i, layer in enumerate(weights.layers, start=1):
            X = jnp.asarray(attention_layer(layer, X, weights.architecture))
            size = jnp.linalg.norm(X)
            total, X = total + jnp.log(size) / 3**i, X / jnp.where(size > 0, size, 1.0)
        return total

    return jax.vmap(one)(inputs)


@jax.jit
def _saturated_shares(
    weights: Weights, inputs: Float[Array, "n d t"]
) -> Float[Array, "layer head"]:
    """The share of tokens, over all inputs, whose attention is on one token only.

    Under the causal mask the first token always is, and does not count.
    """
    architecture = weights.architecture
    first = 1 if architecture.attends_to_past else 0

    def one(X: Float[Array, "d t"]) -> Float[Array, "layer head"]:
        shares = []
        for layer in weights.layers:
            scores = (jnp.asarray(layer.key) @ X).mT @ (layer.query @ X)
            P = normalised(scores, architecture)[:, :, first:]
            shares.append(jnp.mean(P.sum(axis=1) - P.max(axis=1) < SATURATED, axis=1))
            X = jnp.asarray(attention_layer(layer, X, architecture))
        return jnp.stack(shares)

    return jax.vmap(one)(inputs).mean(axis=0)
