"""The networks: one JAX function for all architectures (def-1, def-2, eq-1, eq-2, eq-4, eq-15).

Notation. X is d × t, one token a column. Head h of a layer has A_h = K_hᵀ Q_h, and token i attends
to token j with the score s_ji = (K_h x_j)·(Q_h x_i), so the scores are the t × t matrix Xᵀ A_h X
and a layer is Σ_h V_h X P_h, where P_h is

    lightning:  the scores, with 0 for j > i under the causal mask;
    softmax:    the scores over the temperature, softmax down each column (over j ≤ i if causal).

Lightning attention never needs the t × t matrix. Without a mask the product is associated as
(V (X Xᵀ) Kᵀ) (Q X), in time linear in t. With the causal mask column i is
Σ_{j≤i} V x_j (K x_j)ᵀ (Q x_i): tokens are cut into chunks, a running sum S = Σ_j V x_j (K x_j)ᵀ
carries what earlier chunks contribute, and only inside a chunk is the masked form used.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from neuromanifold.architecture import Architecture
from neuromanifold.errors import WeightsError
from neuromanifold.networks.weights import Layer, Numeric, Weights

CHUNK = 128
"""Tokens up to which causal lightning attention uses the masked t × t form."""

Tokens = Float[Numeric, "d t"]


def attention(weights: Weights, X: Tokens) -> Float[Array, "d_l t"]:
    """The output φ_W(X) of the network.

    Works under `jit`, `vmap` and `grad`; any number of tokens is accepted, not only the
    architecture's own, since the weights do not depend on it.

    Args:
        weights: the weights W; the result has their dtype.
        X: the input, shape (d_0, t), one token a column.
    """
    architecture = weights.architecture
    if X.ndim != 2 or X.shape[0] != architecture.widths[0]:
        raise WeightsError(
            f"an input of {architecture.name} has shape ({architecture.widths[0]}, tokens), "
            f"one token a column; got {tuple(X.shape)}"
        )
    for layer in weights.layers:
        X = attention_layer(layer, X, architecture)
    return jnp.asarray(X)


def attention_layer(
    layer: Layer, X: Tokens, architecture: Architecture
) -> Float[Numeric, "d_next t"]:
    """One layer of the network (def-1), all heads, with its skip connection.

    `inner` adds Σ_h V_h X to the heads' sum, `residual` adds X (inner-skip, residual-skip).
    """
    X = jnp.asarray(X)
    if architecture.attention == "lightning" and architecture.mask == "none":
        mixed = _lightning(layer, X)
    elif architecture.attention == "lightning" and X.shape[1] > CHUNK:
        mixed = _causal_lightning(layer, X)
    else:
        mixed = _heads_summed(_values(layer, X), attention_pattern(layer, X, architecture))
    if architecture.skip == "residual":
        return X + mixed
    if architecture.skip == "inner":
        return _values(layer, X).sum(axis=0) + mixed
    return mixed


def _heads_summed(
    left: Float[Numeric, "head a b"], right: Float[Numeric, "head b c"]
) -> Float[Numeric, "a c"]:
    """Σ_h L_h R_h, as one product over heads and the axis between."""
    return jnp.tensordot(left, right, axes=((0, 2), (0, 1)))


def _head_by_head(
    left: Float[Numeric, "head a b"], right: Float[Numeric, "head c d"], axis: int
) -> Float[Numeric, "head e f"]:
    """L_hᵀ R_h (axis 1) or L_h R_hᵀ (axis 2) of every head, as one product."""
    return lax.dot_general(left, right, (((axis,), (axis,)), ((0,), (0,))))


def _values(layer: Layer, X: Float[Array, "d t"]) -> Float[Numeric, "head d_next t"]:
    """V_h X, or O_h V_h X."""
    values = jnp.asarray(layer.value) @ X
    return values if layer.output is None else layer.output @ values


def _lightning(layer: Layer, X: Float[Array, "d t"]) -> Float[Numeric, "d_next t"]:
    """Σ_h V_h X Xᵀ K_hᵀ Q_h X without the t × t matrix, in time and memory linear in t."""
    summary = _head_by_head(jnp.asarray(layer.value) @ jnp.inner(X, X), layer.key, 2)
    if layer.output is not None:
        summary = layer.output @ summary
    return _heads_summed(summary, layer.query @ X)


def _causal_lightning(layer: Layer, X: Float[Array, "d t"]) -> Float[Numeric, "d_next t"]:
    """Causal lightning attention as a scan over chunks, in time and memory linear in t.

    Tokens are padded with zeros to whole chunks: a zero token has value and key zero, so it adds
    nothing to S, and its own columns are cut off at the end.
    """
    d, t = X.shape
    chunks = -(-t // CHUNK)
    padded = jnp.pad(X, ((0, 0), (0, chunks * CHUNK - t)))
    blocks = padded.reshape(d, chunks, CHUNK).swapaxes(0, 1)

    def step(
        S: Float[Numeric, "head d_next a"], block: Float[Array, "d chunk"]
    ) -> tuple[Float[Numeric, "head d_next a"], Float[Numeric, "d_next chunk"]]:
        values, keys, queries = _values(layer, block), layer.key @ block, layer.query @ block
        inside = _heads_summed(values, jnp.triu(_head_by_head(keys, queries, 1)))
        return S + _head_by_head(values, keys, 2), _heads_summed(S, queries) + inside

    heads, a, _ = layer.query.shape
    d_next = (layer.value if layer.output is None else layer.output).shape[1]
    start = jnp.zeros((heads, d_next, a), dtype=jnp.result_type(layer.value, X))
    _, outputs = lax.scan(step, start, blocks)
    return jnp.moveaxis(outputs, 0, 1).reshape(d_next, chunks * CHUNK)[:, :t]


def attention_pattern(
    layer: Layer, X: Tokens, architecture: Architecture
) -> Float[Numeric, "head t t"]:
    """P_h of every head: column i says how much token i attends to each token (def-1, eq-15)."""
    X = jnp.asarray(X)
    return pattern(_head_by_head(layer.key @ X, layer.query @ X, 1), architecture)


def pattern(
    scores: Float[Numeric, "*h t t"], architecture: Architecture
) -> Float[Numeric, "*h t t"]:
    """P from the scores Xᵀ A X, in which row j, column i says how i attends to j (eq-15)."""
    if architecture.attention == "softmax":
        return normalised(scores, architecture)
    return jnp.triu(scores) if architecture.mask == "causal" else scores


def normalised(
    scores: Float[Numeric, "*h t t"], architecture: Architecture
) -> Float[Array, "*h t t"]:
    """The attention weights of scores: softmax down each column, over j ≤ i if causal (eq-15)."""
    scores = scores / architecture.temperature if architecture.temperature != 1 else scores
    if architecture.mask == "causal":
        seen = np.triu(np.ones(scores.shape[-2:], dtype=bool))
        scores = jnp.where(seen, scores, -jnp.inf)
    return jax.nn.softmax(scores, axis=-2)
