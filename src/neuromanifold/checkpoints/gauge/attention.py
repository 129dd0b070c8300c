"""Changes of basis inside attention and the MLP, and the biases that softmax does not see."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from neuromanifold.checkpoints.block import Block, Shapes
from neuromanifold.checkpoints.block_parts import Attention
from neuromanifold.checkpoints.gauge.part import GaugePart, Readout, Tensors, layer_names


def commutant(a: Attention, plane: Any, rest: Any) -> Any:
    """The matrices C (…, d_k, d_k) that commute with the rotations, near the identity (gauge-rope).

    On plane p it is multiplication by the complex number 1 + x + iy, elsewhere 1 + rest.
    """
    r, k = a.rotated, a.key_size
    C = jnp.zeros((*rest.shape[:-2], k, k))
    C = C.at[..., r:, r:].set(rest)
    if a.rotary is not None:
        first, second = np.array(a.rotary.planes).T
        x, y = plane[..., 0], plane[..., 1]
        C = C.at[..., first, first].set(x).at[..., second, second].set(x)
        C = C.at[..., first, second].set(-y).at[..., second, first].set(y)
    return C + jnp.eye(k)


def _qk_shapes(block: Block, readout: Readout) -> Shapes:
    a, L = block.attention, block.stored_layers
    if a.qk_norm is not None:
        return {}
    rest = a.key_size - a.rotated
    shapes: Shapes = {"plane": (L, a.groups, a.rotated // 2, 2), "rest": (L, a.groups, rest, rest)}
    return shapes


def _qk_act(block: Block, parameters: Mapping[str, Any], weights: Tensors) -> Tensors:
    """K_g → C K_g, and Q_h → C^{-T} Q_h for every h of the group (gauge-qk, gauge-rope)."""
    moved = dict(weights)
    for layer, at in enumerate(layer_names(block)):
        C = commutant(block.attention, parameters["plane"][layer], parameters["rest"][layer])
        D = jnp.linalg.inv(C)
        moved[f"{at}key"] = jnp.einsum("gij,gjd->gid", C, weights[f"{at}key"])
        moved[f"{at}query"] = jnp.einsum("gji,grjd->grid", D, weights[f"{at}query"])
        if block.attention.key_bias:
            moved[f"{at}key_bias"] = jnp.einsum("gij,gj->gi", C, weights[f"{at}key_bias"])
        if block.attention.query_bias:
            moved[f"{at}query_bias"] = jnp.einsum("gji,grj->gri", D, weights[f"{at}query_bias"])
    return moved


def _qk_norm_shapes(block: Block, readout: Readout) -> Shapes:
    a = block.attention
    if a.qk_norm is None:
        return {}
    return {"scale": (block.stored_layers, a.key_size - a.rotated // 2)}


def _qk_norm_act(block: Block, parameters: Mapping[str, Any], weights: Tensors) -> Tensors:
    """γ_q → λ γ_q, γ_k → γ_k / λ, with one λ a plane, or a still coordinate (gauge-qk-norm)."""
    a, moved = block.attention, dict(weights)
    which = np.concatenate([np.zeros(a.rotated, int), np.arange(a.key_size - a.rotated)])
    which[a.rotated :] += a.rotated // 2
    if a.rotary is not None:
        for number, plane in enumerate(a.rotary.planes):
            which[list(plane)] = number
    for layer, at in enumerate(layer_names(block)):
        factor = (1 + parameters["scale"][layer])[which]
        for name, by in (("query_norm", factor), ("key_norm", 1 / factor)):
            value = (weights[at + name] + a.qk_norm_offset) * by
            moved[at + name] = value - a.qk_norm_offset
    return moved


def _head_scale_shapes(block: Block, readout: Readout) -> Shapes:
    a, L = block.attention, block.stored_layers
    if a.qk_norm is None:
        return {}
    return {"query": (L, a.groups, a.sharing), "key": (L, a.groups)}


def _head_scale_act(block: Block, parameters: Mapping[str, Any], weights: Tensors) -> Tensors:
    """Q_h → λ Q_h and K_g → μ K_g before their norm, λ, μ > 0 (gauge-qk-norm)."""
    moved = dict(weights)
    for layer, at in enumerate(layer_names(block)):
        for name in ("query", "key"):
            factor = jnp.exp(parameters[name][layer])
            moved[at + name] = weights[at + name] * factor[..., None, None]
            if f"{at}{name}_bias" in weights:
                moved[f"{at}{name}_bias"] = weights[f"{at}{name}_bias"] * factor[..., None]
    return moved


def _ov_shapes(block: Block, readout: Readout) -> Shapes:
    a = block.attention
    return {"change": (block.stored_layers, a.groups, a.value_size, a.value_size)}


def _ov_act(block: Block, parameters: Mapping[str, Any], weights: Tensors) -> Tensors:
    """V_g → D V_g, and O_h → O_h D^{-1} for every h of the group (gauge-ov)."""
    moved = dict(weights)
    for layer, at in enumerate(layer_names(block)):
        D = jnp.eye(block.attention.value_size) + parameters["change"][layer]
        moved[f"{at}value"] = jnp.einsum("gij,gjd->gid", D, weights[f"{at}value"])
        inverse = jnp.linalg.inv(D)
        moved[f"{at}output"] = jnp.einsum("grdi,gij->grdj", weights[f"{at}output"], inverse)
        if block.attention.value_bias:
            moved[f"{at}value_bias"] = jnp.einsum("gij,gj->gi", D, weights[f"{at}value_bias"])
    return moved


def _key_bias_shapes(block: Block, readout: Readout) -> Shapes:
    a = block.attention
    if not a.key_bias or not a.constants_die:
        return {}
    return {"bias": (block.stored_layers, a.groups, a.key_size - a.rotated)}


def _key_bias_act(block: Block, parameters: Mapping[str, Any], weights: Tensors) -> Tensors:
    """b_K → b_K + δ off the rotated coordinates: a constant on a row of scores (dead-key-bias)."""
    moved, r = dict(weights), block.attention.rotated
    for layer, at in enumerate(layer_names(block)):
        bias = jnp.asarray(weights[f"{at}key_bias"])
        moved[f"{at}key_bias"] = bias.at[:, r:].add(parameters["bias"][layer])
    return moved


def absorbing_bias(block: Block) -> str | None:
    """The bias that takes up a constant in the values: the output's, in parallel also the MLP's."""
    if block.attention.output_bias:
        return "output_bias"
    if block.is_parallel and block.mlp is not None and block.mlp.output_bias:
        return "down_bias"
    return None


def absorb_value(block: Block, weights: Tensors, moved: Tensors, at: str, constant: Any) -> None:
    """Take a constant (G, d_v) that was added to the values out of the output bias."""
    name = f"{at}{absorbing_bias(block)}"
    written = jnp.einsum("grdv,gv->d", weights[f"{at}output"], constant)
    moved[name] = moved[name] - written


def _value_bias_shapes(block: Block, readout: Readout) -> Shapes:
    a = block.attention
    if not a.value_bias or absorbing_bias(block) is None:
        return {}
    return {"bias": (block.stored_layers, a.groups, a.value_size)}


def _value_bias_act(block: Block, parameters: Mapping[str, Any], weights: Tensors) -> Tensors:
    """b_V → b_V + δ, b_O → b_O − Σ O_h δ, because rows of attention sum to one (value-bias)."""
    moved = dict(weights)
    for layer, at in enumerate(layer_names(block)):
        delta = parameters["bias"][layer]
        moved[f"{at}value_bias"] = weights[f"{at}value_bias"] + delta
        absorb_value(block, weights, moved, at, delta)
    return moved


def unused_bucket(block: Block) -> int | None:
    """The bucket of keys after the query at distance zero, of which there are none."""
    relative = block.attention.relative
    return relative.buckets // 2 if relative is not None and relative.both else None


def _score_table_shapes(block: Block, readout: Readout) -> Shapes:
    a = block.attention
    if a.relative is None:
        return {}
    shapes: Shapes = {"constant": (a.heads,)}
    return shapes if unused_bucket(block) is None else shapes | {"unused": (a.heads,)}


def _score_table_act(block: Block, parameters: Mapping[str, Any], weights: Tensors) -> Tensors:
    """The whole column of a head in the table of score biases + c; an unused row (score-table)."""
    table = weights["score_table"] + parameters["constant"]
    if "unused" in parameters:
        table = table.at[unused_bucket(block)].add(parameters["unused"])
    return {**weights, "score_table": table}


def _mlp_shapes(block: Block, readout: Readout) -> Shapes:
    mlp, L = block.mlp, block.stored_layers
    return {} if mlp is None else dict.fromkeys(mlp.scalings, (L, mlp.size))


def _mlp_act(block: Block, parameters: Mapping[str, Any], weights: Tensors) -> Tensors:
    """The row of `up` times λ, the column of `down` by λ; for ReLU also the gate's (mlp-scale)."""
    moved, mlp = dict(weights), block.mlp
    for name, values in parameters.items():
        # ReLU needs λ > 0; a linear factor any λ ≠ 0, of which e^s is the part near 1.
        power = 1 if mlp is None else mlp.scalings[name]
        for layer, at in enumerate(layer_names(block)):
            factor = jnp.exp(values[layer])
            moved[at + name] = moved[at + name] * factor[:, None]
            if f"{at}{name}_bias" in moved:
                moved[f"{at}{name}_bias"] = moved[f"{at}{name}_bias"] * factor
            moved[f"{at}down"] = moved[f"{at}down"] / factor**power
    return moved


PARTS = (
    GaugePart("query–key", "gauge-qk", "G (r + (d_k − r)²)", _qk_shapes, _qk_act),
    GaugePart("query–key norm", "gauge-qk-norm", "d_k − r/2", _qk_norm_shapes, _qk_norm_act),
    GaugePart(
        "query and key scale",
        "gauge-qk-norm",
        "H + G",
        _head_scale_shapes,
        _head_scale_act,
        without_eps=True,
    ),
    GaugePart("value–output", "gauge-ov", "G d_v²", _ov_shapes, _ov_act),
    GaugePart("key bias", "dead-key-bias", "G (d_k − r)", _key_bias_shapes, _key_bias_act),
    GaugePart("value bias", "value-bias", "G d_v", _value_bias_shapes, _value_bias_act),
    GaugePart("score table", "score-table", "H (2H)", _score_table_shapes, _score_table_act),
    GaugePart("MLP scale", "mlp-scale", "d_f", _mlp_shapes, _mlp_act),
)
