"""Norms and what reads them: gains, shifts, and the direction that centring removes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from neuromanifold.checkpoints.block.block import Block, Shapes
from neuromanifold.checkpoints.gauge.attention import absorb_value, absorbing_bias
from neuromanifold.checkpoints.gauge.part import (
    GaugePart,
    Readout,
    Tensors,
    gain,
    layer_names,
    stored_gain,
)


@dataclass(frozen=True, slots=True)
class Reading:
    """A norm and the linear maps that read it.

    Attributes:
        norm: the norm's tensor.
        readers: the tensors whose last axis reads it.
        at: the prefix of their layer.
        alone: whether nothing else sees the norm, so that its gain is free.
        carried: the bias behind which a residual carries a shift of the norm, after the sum.
    """

    norm: str
    readers: tuple[str, ...]
    at: str = ""
    alone: bool = True
    carried: str | None = None


def readings(block: Block) -> list[Reading]:
    """The norms whose output is free up to what their readers take back."""
    if block.norm is None:
        return []
    found = _post_readings(block) if block.placement == "post" else _pre_readings(block)
    if block.head.kind == "untied" and (block.final_norm or block.placement == "post"):
        last = layer_names(block)[-1]
        name = "final_norm" if block.final_norm else f"{last}mlp_norm"
        found.append(Reading(name, ("unembedding",)))
    return found


def _tied_shift(block: Block) -> bool:
    """Whether the bias of a head that is the token table takes up the shift of the final norm."""
    shifts = block.final_norm and block.norm is not None and block.norm.shift
    return shifts and block.head.kind == "tied" and block.head.bias


def _mlp_readers(block: Block) -> tuple[str, ...]:
    return ("up", "gate") if block.mlp is not None and block.mlp.gated else ("up",)


def _pre_readings(block: Block) -> list[Reading]:
    attention, mlp = ("query", "key", "value"), _mlp_readers(block)
    found: list[Reading] = []
    for at in layer_names(block):
        if block.placement == "parallel" and block.mlp is not None:
            found.append(Reading(f"{at}attention_norm", (*attention, *mlp), at))
            continue
        found.append(Reading(f"{at}attention_norm", attention, at))
        if block.mlp is not None:
            found.append(Reading(f"{at}mlp_norm", mlp, at))
    return found


def _post_readings(block: Block) -> list[Reading]:
    """In x + f(x) the residual sees the norm too: only shifts are free, and the next bias pays."""
    before = "embed_norm"
    found: list[Reading] = []
    if block.embed_width is not None:
        found.append(Reading("embed_norm", ("embed_map",)))
        before = ""  # what the first layer reads is not the output of a norm
    for at in layer_names(block):
        if before:
            found.append(Reading(before, ("query", "key", "value"), at, False, f"{at}output_bias"))
        found.append(
            Reading(f"{at}attention_norm", _mlp_readers(block), at, False, f"{at}down_bias")
        )
        before = f"{at}mlp_norm"
    return found


def _bias(reader: str) -> str:
    return f"{reader}_bias"


def absorbs(block: Block, reading: Reading, reader: str) -> np.ndarray:
    """Which rows of a reader can have a constant added: a bias takes it up, or nobody sees it."""
    a, name = block.attention, reading.at + reader
    shape = block.shapes[name][:-1]
    if _bias(name) in block.shapes or (reader == "value" and absorbing_bias(block) is not None):
        return np.ones(shape, dtype=bool)
    rows = np.zeros(shape, dtype=bool)
    if reader == "key" and a.constants_die:
        rows[:, a.rotated :] = True
    return rows


def absorb(
    block: Block, reading: Reading, reader: str, weights: Tensors, moved: Tensors, constant: Any
) -> None:
    """Undo a constant that was added to what a reader reads, in rows where that can be done."""
    name = reading.at + reader
    if _bias(name) in moved:
        moved[_bias(name)] = moved[_bias(name)] - constant
    elif reader == "value" and absorbing_bias(block) is not None:
        absorb_value(block, weights, moved, reading.at, constant)


def _scale_shapes(block: Block, readout: Readout) -> Shapes:
    return {r.norm: block.shapes[r.norm] for r in readings(block) if r.alone}


def _scale_act(block: Block, parameters: Mapping[str, Any], weights: Tensors) -> Tensors:
    """γ → s γ, β → s β, W → W s^{-1} for every reader (norm-absorption)."""
    moved = dict(weights)
    for r in readings(block):
        if not r.alone:
            continue
        s = 1 + parameters[r.norm]
        moved[r.norm] = stored_gain(block, gain(block, weights, r.norm) * s)
        if f"{r.norm}_shift" in weights:
            moved[f"{r.norm}_shift"] = weights[f"{r.norm}_shift"] * s
        for reader in r.readers:
            moved[r.at + reader] = weights[r.at + reader] / s
    return moved


def _shift_shapes(block: Block, readout: Readout) -> Shapes:
    if block.norm is None or not block.norm.shift:
        return {}
    tied = {"final_norm": (block.width,)} if _tied_shift(block) else {}
    return {r.norm: block.shapes[r.norm] for r in readings(block)} | tied


def _shift_act(block: Block, parameters: Mapping[str, Any], weights: Tensors) -> Tensors:
    """β → β + δ, b_W → b_W − W δ for every reader (norm-absorption).

    A row that no bias serves uses that gᵀ(y − β) = 0 for the norm's output y, g = 1/γ: adding u gᵀ
    to it adds the constant u gᵀβ, so u = −W δ / gᵀ(β + δ) takes W δ back (layernorm-centring).
    """
    moved = dict(weights)
    for r in readings(block):
        delta = parameters[r.norm]
        shift = weights[f"{r.norm}_shift"] + delta
        g = 1 / gain(block, weights, r.norm)
        moved[f"{r.norm}_shift"] = shift
        for reader in r.readers:
            rows = absorbs(block, r, reader)
            constant = jnp.asarray(weights[r.at + reader]) @ delta
            absorb(block, r, reader, weights, moved, jnp.where(rows, constant, 0.0))
            if not rows.all():
                u = jnp.where(rows, 0.0, -constant / (g @ shift))
                moved[r.at + reader] = moved[r.at + reader] + u[..., None] * g
        if r.carried is not None:
            moved[r.carried] = moved[r.carried] - delta
    if _tied_shift(block):
        delta, bias = parameters["final_norm"], "unembedding_bias"
        moved["final_norm_shift"] = weights["final_norm_shift"] + delta
        moved[bias] = moved[bias] - jnp.asarray(weights["tokens"]) @ delta
    return moved


def _centring_rows(block: Block) -> dict[str, tuple[Reading, str, np.ndarray]]:
    """The rows of readers that may get a multiple of the direction centring removes."""
    if not block.centred or block.norm is None:
        return {}
    found = {}
    for r in readings(block):
        for reader in r.readers:
            rows = absorbs(block, r, reader)
            found[r.at + reader] = (r, reader, rows if block.norm.shift else np.ones_like(rows))
    return found


def _centring_shapes(block: Block, readout: Readout) -> Shapes:
    return {name: (int(rows.sum()),) for name, (_, _, rows) in _centring_rows(block).items()}


def _centring_act(block: Block, parameters: Mapping[str, Any], weights: Tensors) -> Tensors:
    """W → W + u gᵀ, b_W → b_W − u gᵀβ, with g = 1/γ orthogonal to y − β (layernorm-centring)."""
    moved = dict(weights)
    for name, (r, reader, rows) in _centring_rows(block).items():
        u = jnp.zeros(rows.shape).at[np.nonzero(rows)].set(parameters[name])
        g = 1 / gain(block, weights, r.norm)
        moved[name] = moved[name] + u[..., None] * g
        if f"{r.norm}_shift" in weights:
            constant = u * (g @ weights[f"{r.norm}_shift"])
            absorb(block, r, reader, weights, moved, constant)
    return moved


PARTS = (
    GaugePart("norm gains", "norm-absorption", "d a norm", _scale_shapes, _scale_act),
    GaugePart("norm shifts", "norm-absorption", "d a norm", _shift_shapes, _shift_act),
    GaugePart("centring", "layernorm-centring", "1 a row", _centring_shapes, _centring_act),
)
