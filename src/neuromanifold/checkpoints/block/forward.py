"""The function of a block's tensors, written once, in JAX; tokens are columns.

`apply` is the whole function. `embed`, `layer_step` and `readout` are its pieces, so that a large
model runs with the weights of one layer in memory.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.block.parts import Attention, Mlp, Norm, Relative, Rotary
from neuromanifold.errors import ArgumentError

Tensors = Mapping[str, Any]
"""Arrays by their names in the block."""


def apply(block: Block, weights: Tensors, inputs: Tensors) -> jax.Array:
    """The outputs, one column a token.

    Args:
        block: what the tensors mean.
        weights: the block's tensors by name.
        inputs: one of `tokens` (ids, or a matrix whose columns weigh the rows of the table),
            `patches` (numbers × patches) and `stream` (the stream itself, d × tokens); `types` as
            `tokens`, by default the first type everywhere.
    """
    x = embed(block, weights, inputs)
    for layer in range(block.layers):
        x = layer_step(block, layer_tensors(block, weights, layer), x, layer)
    return readout(block, weights, x)


def layer_tensors(block: Block, weights: Tensors, layer: int) -> dict[str, Any]:
    """The tensors one layer uses, by their names inside a layer."""
    stored = 0 if block.shared else layer
    tensors = {name: weights[f"layers.{stored}.{name}"] for name in block.layer_shapes}
    if block.attention.relative is not None:
        tensors["score_table"] = weights["score_table"]
    return tensors


def embed(block: Block, weights: Tensors, inputs: Tensors) -> jax.Array:
    """The stream before the first layer."""
    if "stream" in inputs:
        return jnp.asarray(inputs["stream"])
    if block.patch is not None:
        x = _patches(weights, inputs)
    else:
        x = block.embed_scale * _rows(weights, inputs, "tokens")
    count = x.shape[1]
    if block.rows("positions"):
        first = block.position_offset
        if first + count > block.rows("positions"):
            raise ArgumentError(
                f"{count} tokens were given and the block has positions for "
                f"{block.rows('positions') - first}; give fewer"
            )
        x = x + jnp.asarray(weights["positions"])[_places(block, inputs, count)].T
    if block.rows("types"):
        types = {"types": inputs.get("types", np.zeros(count, dtype=np.int32))}
        x = x + _rows(weights, types, "types")
    if block.embed_norm and block.norm is not None:
        x = normalise(block.norm, weights, "embed_norm", x)
    if block.embed_width is not None:
        x = jnp.asarray(weights["embed_map"]) @ x + weights["embed_map_bias"][:, None]
    return x


def _places(block: Block, inputs: Tensors, count: int) -> jax.Array:
    """The row of positions for each token: padding is not counted, and has a row of its own."""
    if block.padding is None:
        return jnp.arange(count)
    which = jnp.asarray(inputs["tokens"])
    text = which != block.padding if which.ndim == 1 else which[block.padding] != 1
    return jnp.where(text, block.padding + jnp.cumsum(text), block.padding)


def _rows(weights: Tensors, inputs: Tensors, name: str) -> jax.Array:
    """Rows of a table as columns: by ids, or weighed by the columns of a matrix."""
    which = jnp.asarray(inputs[name])
    table = jnp.asarray(weights[name])
    return table[which].T if which.ndim == 1 else table.T @ which


def _patches(weights: Tensors, inputs: Tensors) -> jax.Array:
    """The class token, then the patches."""
    x = jnp.asarray(weights["patch"]) @ inputs["patches"] + weights["patch_bias"][:, None]
    return jnp.concatenate([weights["class_token"][:, None], x], axis=1)


def layer_step(block: Block, tensors: Tensors, x: jax.Array, layer: int = 0) -> jax.Array:
    """One layer, with the tensors of `layer_tensors`."""

    def norm(name: str, y: jax.Array) -> jax.Array:
        return y if block.norm is None else normalise(block.norm, tensors, name, y)

    window = block.attention.windows[layer] if block.attention.windows else None
    parts: dict[str, Callable[[jax.Array], jax.Array]]
    parts = {"attention": partial(attend, block.attention, tensors, window=window)}
    if block.mlp is not None:
        parts["mlp"] = partial(perceptron, block.mlp, tensors)
    if block.is_parallel:
        other = "attention_norm" if block.placement == "parallel" else "mlp_norm"
        return x + parts["attention"](norm("attention_norm", x)) + parts["mlp"](norm(other, x))
    for kind, part in parts.items():
        if block.placement == "post":
            x = norm(f"{kind}_norm", x + part(x))
        else:
            written = part(norm(f"{kind}_norm", x))
            sandwich = block.placement == "sandwich"
            x = x + (norm(f"{kind}_out_norm", written) if sandwich else written)
    return x


def readout(block: Block, weights: Tensors, x: jax.Array) -> jax.Array:
    """What is seen of the stream after the last layer: logits, or the hidden states."""
    if block.final_norm and block.norm is not None:
        x = normalise(block.norm, weights, "final_norm", x)
    if block.head.kind == "none":
        return x
    table = weights["tokens" if block.head.kind == "tied" else "unembedding"]
    logits = jnp.asarray(table) @ (block.head.scale * x)
    if block.head.bias:
        logits = logits + weights["unembedding_bias"][:, None]
    cap = block.head.softcap
    return logits if cap is None else cap * jnp.tanh(logits / cap)


def normalise(norm: Norm, tensors: Tensors, name: str, x: jax.Array) -> jax.Array:
    """The norm of every column, with the gain and shift of this name."""
    if norm.kind == "layer":
        x = x - jnp.mean(x, axis=0)
    n = x / jnp.sqrt(jnp.mean(x**2, axis=0) + norm.eps)
    y = (norm.offset + tensors[name])[:, None] * n
    return y + tensors[f"{name}_shift"][:, None] if norm.shift else y


def attend(a: Attention, tensors: Tensors, n: jax.Array, window: int | None = None) -> jax.Array:
    """What the heads write, from what they read."""
    count = n.shape[1]
    query, key, value = (_read(tensors, name, n) for name in ("query", "key", "value"))
    if a.qk_norm is not None:
        query = _head_norm(query, tensors["query_norm"], a)
        key = _head_norm(key, tensors["key_norm"], a)
    if a.rotary is not None:
        query, key = rotate(a.rotary, query), rotate(a.rotary, key)
    scores = a.scale * jnp.einsum("grks,gkt->grst", query, key)
    if a.softcap is not None:
        scores = a.softcap * jnp.tanh(scores / a.softcap)
    if a.relative is not None:
        buckets = relative_buckets(a.relative, count)
        bias = jnp.asarray(tensors["score_table"])[buckets]  # query, key, head
        scores = scores + jnp.moveaxis(bias, 2, 0).reshape(a.groups, a.sharing, count, count)
    scores = jnp.where(seen(a, count, window), scores, -jnp.inf)
    mixed = jnp.einsum("grst,gvt->grvs", jax.nn.softmax(scores, axis=-1), value)
    written = jnp.einsum("grdv,grvs->ds", tensors["output"], mixed)
    return written + tensors["output_bias"][:, None] if a.output_bias else written


def _read(tensors: Tensors, name: str, n: jax.Array) -> jax.Array:
    """The map of this name, of every head, and its bias if it has one."""
    y = jnp.einsum("...kd,dt->...kt", tensors[name], n)
    bias = tensors.get(f"{name}_bias")
    return y if bias is None else y + bias[..., None]


def _head_norm(x: jax.Array, gain: Any, a: Attention) -> jax.Array:
    size = jnp.sqrt(jnp.mean(x**2, axis=-2, keepdims=True) + a.qk_norm_eps)
    return (a.qk_norm_offset + gain)[:, None] * x / size


def rotate(rotary: Rotary, x: jax.Array) -> jax.Array:
    """Every plane of the columns (…, d_k, tokens) turned by its angle times the position."""
    angles = np.outer(rotary.frequencies, np.arange(x.shape[-1]))
    cosine, sine = rotary.factor * np.cos(angles), rotary.factor * np.sin(angles)
    planes = np.array(rotary.planes)
    first, second = x[..., planes[:, 0], :], x[..., planes[:, 1], :]
    turned = jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], -2)
    # `turned` lists first coordinates, then second ones: put each back to its place.
    order = np.argsort(np.concatenate([planes[:, 0], planes[:, 1]]))
    return jnp.concatenate([turned[..., order, :], x[..., rotary.size :, :]], axis=-2)


def seen(a: Attention, count: int, window: int | None) -> np.ndarray:
    """Which keys (second axis) a query (first axis) sees."""
    distance = np.arange(count)[:, None] - np.arange(count)[None, :]
    allowed = distance >= 0 if a.causal else np.ones((count, count), dtype=bool)
    return allowed if window is None else allowed & (np.abs(distance) < window)


def relative_buckets(relative: Relative, count: int) -> np.ndarray:
    """T5's buckets of distances: exact when small, then logarithmic up to the largest distance."""
    distance = np.arange(count)[None, :] - np.arange(count)[:, None]  # key minus query
    buckets, start = relative.buckets, np.zeros_like(distance)
    if relative.both:
        buckets //= 2
        start = np.where(distance > 0, buckets, 0)
        distance = np.abs(distance)
    else:
        distance = np.maximum(-distance, 0)
    exact = buckets // 2
    large = np.log(np.maximum(distance, 1) / exact) / np.log(relative.distance / exact)
    far = np.minimum(exact + (large * (buckets - exact)).astype(np.int64), buckets - 1)
    return start + np.where(distance < exact, distance, far)


def perceptron(mlp: Mlp, tensors: Tensors, n: jax.Array) -> jax.Array:
    """What the MLP writes, from what it reads."""
    up = _read(tensors, "up", n)
    if mlp.gated:
        hidden = activate(mlp.activation, _read(tensors, "gate", n)) * up
    else:
        hidden = activate(mlp.activation, up)
    return _read(tensors, "down", hidden)


def activate(name: str, x: jax.Array) -> jax.Array:
    """The activation of this name."""
    match name:
        case "gelu":
            return jax.nn.gelu(x, approximate=False)
        case "gelu_tanh":
            return jax.nn.gelu(x, approximate=True)
        case "gelu_fast":  # the same with ten digits of √(2/π): another function
            return 0.5 * x * (1 + jnp.tanh(0.7978845608 * x * (1 + 0.044715 * x * x)))
        case "silu":
            return x * jax.nn.sigmoid(x)
        case "tanh":
            return jnp.tanh(x)
    rectified = jnp.maximum(x, 0)
    return rectified if name == "relu" else rectified**2
