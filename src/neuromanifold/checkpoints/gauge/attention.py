"""Changes of basis inside attention and the MLP, and the biases that softmax does not see."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from neuromanifold.checkpoints.block.block import Block, Shapes
from neuromanifold.checkpoints.block.parts import Attention
from neuromanifold.checkpoints.gauge.part import GaugePart, Readout, Tensors, in_layers
from neuromanifold.networks.space import Group
from neuromanifold.symmetry.groups import GL, RotationCommutant

Parameters = Mapping[str, Any]


def key_group(a: Attention) -> Group | None:
    """The changes of basis of a head's keys: what commutes with the rotations, if there are any."""
    if a.qk_norm is not None:
        return None
    if a.rotary is None:
        return GL(a.key_size)
    pairing = "halves" if a.rotary.layout == "half" else "neighbours"
    return RotationCommutant(a.key_size, a.rotated, pairing)


def _turned(weights: Tensors, sums: str, matrices: Any, *names: str) -> Tensors:
    """Those of the tensors that are there, multiplied by matrices."""
    return {name: jnp.einsum(sums, matrices, weights[name]) for name in names if name in weights}


def _scaled(weights: Tensors, factor: Any, *names: str) -> Tensors:
    """Those of the tensors that are there, their first axes times a factor."""
    return {
        name: weights[name] * jnp.expand_dims(factor, tuple(range(factor.ndim, weights[name].ndim)))
        for name in names
        if name in weights
    }


def _qk_shapes(block: Block) -> Shapes:
    a = block.attention
    if a.qk_norm is not None:
        return {}
    rest = a.key_size - a.rotated
    return {"plane": (a.groups, a.rotated // 2, 2), "rest": (a.groups, rest, rest)}


def _qk(block: Block, parameters: Parameters, weights: Tensors) -> Tensors:
    """K_g → C K_g, and Q_h → C^{-T} Q_h for every h of the group (gauge-qk, gauge-rope).

    C = 1 + Σ tᵢ ξᵢ with the generators ξᵢ of the group: those of the planes first, then the rest.
    """
    a, group = block.attention, key_group(block.attention)
    if group is None:
        return {}
    t = jnp.concatenate([parameters[k].reshape(a.groups, -1) for k in ("plane", "rest")], axis=1)
    C = jnp.eye(a.key_size) + jnp.tensordot(t, group.generators(), 1)
    keys = _turned(weights, "gij,gj...->gi...", C, "key", "key_bias")
    D = jnp.linalg.inv(C)
    return keys | _turned(weights, "gji,grj...->gri...", D, "query", "query_bias")


def _qk_norm_shapes(block: Block) -> Shapes:
    a = block.attention
    return {} if a.qk_norm is None else {"scale": (a.key_size - a.rotated // 2,)}


def _qk_norm(block: Block, parameters: Parameters, weights: Tensors) -> Tensors:
    """γ_q → λ γ_q, γ_k → γ_k / λ, with one λ a plane, or a still coordinate (gauge-qk-norm)."""
    a = block.attention
    which = np.arange(a.key_size) - a.rotated // 2
    if a.rotary is not None:
        for number, plane in enumerate(a.rotary.planes):
            which[list(plane)] = number
    factor, offset = (1 + parameters["scale"])[which], a.qk_norm_offset
    return {
        name: (weights[name] + offset) * by - offset
        for name, by in (("query_norm", factor), ("key_norm", 1 / factor))
    }


def _head_scale_shapes(block: Block) -> Shapes:
    a = block.attention
    return {} if a.qk_norm is None else {"query": (a.groups, a.sharing), "key": (a.groups,)}


def _head_scale(block: Block, parameters: Parameters, weights: Tensors) -> Tensors:
    """Q_h → λ Q_h and K_g → μ K_g before their norm, λ, μ > 0 (gauge-qk-norm)."""
    moved: Tensors = {}
    for name, log in parameters.items():
        moved |= _scaled(weights, jnp.exp(log), name, f"{name}_bias")
    return moved


def _ov_shapes(block: Block) -> Shapes:
    a = block.attention
    return {"change": (a.groups, a.value_size, a.value_size)}


def _ov(block: Block, parameters: Parameters, weights: Tensors) -> Tensors:
    """V_g → D V_g, and O_h → O_h D^{-1} for every h of the group (gauge-ov)."""
    D = jnp.eye(block.attention.value_size) + parameters["change"]
    values = _turned(weights, "gij,gj...->gi...", D, "value", "value_bias")
    return values | _turned(weights, "gij,grdi->grdj", jnp.linalg.inv(D), "output")


def _key_bias_shapes(block: Block) -> Shapes:
    a = block.attention
    alive = not a.key_bias or not a.constants_die
    return {} if alive else {"bias": (a.groups, a.key_size - a.rotated)}


def _key_bias(block: Block, parameters: Parameters, weights: Tensors) -> Tensors:
    """b_K → b_K + δ off the rotated coordinates: a constant on a row of scores (dead-key-bias)."""
    bias = jnp.asarray(weights["key_bias"])
    return {"key_bias": bias.at[:, block.attention.rotated :].add(parameters["bias"])}


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


def _value_bias_shapes(block: Block) -> Shapes:
    a = block.attention
    if not a.value_bias or absorbing_bias(block) is None:
        return {}
    return {"bias": (a.groups, a.value_size)}


def _value_bias(block: Block, parameters: Parameters, weights: Tensors) -> Tensors:
    """b_V → b_V + δ, b_O → b_O − Σ O_h δ, because rows of attention sum to one (value-bias)."""
    moved = weights | {"value_bias": weights["value_bias"] + parameters["bias"]}
    absorb_value(block, weights, moved, "", parameters["bias"])
    return moved


def _score_table_shapes(block: Block, readout: Readout) -> Shapes:
    a = block.attention
    if a.relative is None:
        return {}
    shapes: Shapes = {"constant": (a.heads,)}
    return shapes | {"unused": (a.heads,)} if block.unused("score_table") else shapes


def _score_table(block: Block, parameters: Mapping[str, Any], weights: Tensors) -> Tensors:
    """The whole column of a head in the table of score biases + c; an unused row (score-table)."""
    table = weights["score_table"] + parameters["constant"]
    if "unused" in parameters:
        table = table.at[np.array(block.unused("score_table"))].add(parameters["unused"])
    return {"score_table": table}


def _mlp_shapes(block: Block) -> Shapes:
    return {} if block.mlp is None else dict.fromkeys(block.mlp.scalings, (block.mlp.size,))


def _mlp(block: Block, parameters: Parameters, weights: Tensors) -> Tensors:
    """The row of `up` times λ, the column of `down` by λ; for ReLU also the gate's (mlp-scale)."""
    moved = {"down": weights["down"]}
    scalings: dict[str, int] = {} if block.mlp is None else block.mlp.scalings
    for name, power in scalings.items():
        # ReLU needs λ > 0; a linear factor any λ ≠ 0, of which e^s is the part near 1.
        factor = jnp.exp(parameters[name])
        moved |= _scaled(weights, factor, name, f"{name}_bias")
        moved["down"] = moved["down"] / factor**power
    return moved


PARTS = (
    in_layers("query–key", "gauge-qk", "G (r + (d_k − r)²)", _qk_shapes, _qk),
    in_layers("query–key norm", "gauge-qk-norm", "d_k − r/2", _qk_norm_shapes, _qk_norm),
    in_layers(
        "query and key scale",
        "gauge-qk-norm",
        "H + G",
        _head_scale_shapes,
        _head_scale,
        without_eps=True,
    ),
    in_layers("value–output", "gauge-ov", "G d_v²", _ov_shapes, _ov),
    in_layers("key bias", "dead-key-bias", "G (d_k − r)", _key_bias_shapes, _key_bias),
    in_layers("value bias", "value-bias", "G d_v", _value_bias_shapes, _value_bias),
    GaugePart("score table", "score-table", "H (2H)", _score_table_shapes, _score_table),
    in_layers("MLP scale", "mlp-scale", "d_f", _mlp_shapes, _mlp),
)
