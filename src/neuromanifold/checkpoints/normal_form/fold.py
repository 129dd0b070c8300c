"""Gauge fixing that needs no choice of frame: norms folded, dead parameters zero, means removed.

The result is again tensors of the block, with the same function (norm-absorption,
layernorm-centring, dead-key-bias, value-bias, stream-one, tables, score-table):

- a norm that only linear maps read has gain one and no shift; its gain is in the readers' columns,
  its shift in their biases. Rows that no bias serves keep their constant as a multiple of 1ᵀ, which
  the shift 1/d reads;
- after layer norms readers are orthogonal to the direction that centring removes;
- key biases are zero where softmax does not see them, value biases are in the output bias;
- what is written is centred where norms subtract the mean; tables beyond the first have mean zero;
- norms after the sum keep their gain, and lose their shift to the biases behind them.

Only rational operations are used, in JAX, so that the same code runs over a prime field.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.gauge.attention import absorbing_bias

Tensors = dict[str, Any]
_READERS = {"attention_norm": ("query", "key", "value"), "mlp_norm": ("up", "gate")}


@dataclass(frozen=True, slots=True)
class Incoming:
    """The norm whose output a layer reads and carries on, in blocks with norms after the sum."""

    gain: Any
    shift: Any


def gains(block: Block, tensors: Mapping[str, Any], norm: str) -> Any:
    """The gain of a norm, which is not always what is stored."""
    return tensors[norm] + (0.0 if block.norm is None else block.norm.offset)


def norm_of(block: Block, name: str) -> str | None:
    """The norm before a map whose gain may be in the map's columns instead (norm-absorption)."""
    if name == "unembedding":
        return "final_norm" if block.final_norm and block.head.kind == "untied" else None
    if block.norm is None or block.placement == "post":
        return None
    found = [norm for norm, readers in _READERS.items() if name in readers]
    found += ["attention_norm"] if found and block.is_parallel else []
    return next((norm for norm in found if norm in block.layer_shapes), None)


def incoming_norm(block: Block, layer: int) -> str | None:
    """What a layer reads after the sum: the last norm of the layer before it, or the tables'."""
    name = "embed_norm" if layer == 0 else f"layers.{layer - 1}.mlp_norm"
    maps = layer == 0 and block.embed_width is not None  # a map lies between the norm and the layer
    return name if block.placement == "post" and name in block.shapes and not maps else None


def incoming(block: Block, tensor: Callable[[str], Any], layer: int) -> Incoming | None:
    """Gain and shift of the norm that a layer reads, where norms follow the sum."""
    name = incoming_norm(block, layer)
    if name is None:
        return None
    shift = tensor(f"{name}_shift") if f"{name}_shift" in block.shapes else None
    return Incoming(gains(block, {name: tensor(name)}, name), shift)


def fold_layer(
    block: Block,
    tensors: Tensors,
    reads: Incoming | None = None,
    *,
    last: bool = False,
    norms: bool = True,
    dead: bool = True,
) -> Tensors:
    """A layer with its norms folded and its dead parameters zero.

    Args:
        block: what the tensors mean.
        tensors: of the layer, by their names inside it.
        reads: what the layer reads, when norms follow the sum.
        last: whether the norm at the end of the layer is seen, so that its shift stays.
        norms: whether to fold norms.
        dead: whether to zero what the function does not see.
    """
    folded = dict(tensors)
    if norms and block.norm is not None and block.placement == "post":
        _fold_post(block, folded, reads, last)
    elif norms and block.norm is not None:
        _fold_pre(block, folded)
    if dead:
        _drop_key_constants(block, folded)
        _absorb_values(block, folded)
        _centre_writers(block, folded)
    return folded


def _fold_pre(block: Block, folded: Tensors) -> None:
    for norm, readers in _READERS.items():
        if norm not in folded:
            continue
        if block.placement == "parallel" and block.mlp is not None:
            readers = (*readers, *_READERS["mlp_norm"])
        served = [name for name in readers if name in folded]
        _fold_norm(block, folded, norm, served)


def _fold_norm(block: Block, folded: Tensors, norm: str, readers: list[str]) -> None:
    """Gain into the columns, shift into biases, centring; the norm becomes 1 and 0 (or 1/d)."""
    gamma, beta = gains(block, folded, norm), folded.get(f"{norm}_shift")
    constants = {name: folded[name] @ beta for name in readers} if beta is not None else {}
    for name in readers:
        folded[name] = folded[name] * gamma
        if block.centred:
            folded[name] = folded[name] - folded[name].mean(axis=-1, keepdims=True)
    folded[norm] = jnp.full_like(gamma, 1.0 - (block.norm.offset if block.norm else 0.0))
    if beta is None:
        return
    kept = False
    for name, constant in constants.items():
        kept |= _add_constant(block, folded, name, constant)
    folded[f"{norm}_shift"] = jnp.full_like(beta, 1 / beta.size if kept else 0.0)


def _add_constant(block: Block, folded: Tensors, name: str, constant: Any) -> bool:
    """Put a reader's constant where it belongs; True when only the direction 1 can hold it."""
    a = block.attention
    if f"{name}_bias" in folded:
        folded[f"{name}_bias"] = folded[f"{name}_bias"] + constant
        return False
    if name == "value" and absorbing_bias(block) is not None:
        _write_value_constant(block, folded, constant)
        return False
    if name == "key" and a.constants_die:
        constant = jnp.where(np.arange(a.key_size) < a.rotated, constant, 0.0)
        if a.rotated == 0:
            return False
    folded[name] = folded[name] + constant[..., None]
    return True


def _fold_post(block: Block, folded: Tensors, reads: Incoming | None, last: bool) -> None:
    """Shifts into the biases of readers and of what is added next; gains stay."""
    inner = Incoming(gains(block, folded, "attention_norm"), folded.get("attention_norm_shift"))
    steps = (
        (reads, ("query", "key", "value"), "output_bias"),
        (inner, ("up", "gate"), "down_bias"),
    )
    for norm, readers, carried in steps:
        if norm is None:
            continue
        for name in readers:
            if name not in folded:
                continue
            if norm.shift is not None:
                folded[f"{name}_bias"] = folded[f"{name}_bias"] + folded[name] @ norm.shift
            if block.centred:
                g = normal(norm.gain)
                folded[name] = folded[name] - (folded[name] @ g)[..., None] * g / (g @ g)
        if norm.shift is not None:
            folded[carried] = folded[carried] + norm.shift
    if "attention_norm_shift" in folded:
        folded["attention_norm_shift"] = jnp.zeros_like(folded["attention_norm_shift"])
    if "mlp_norm_shift" in folded and not last:
        folded["mlp_norm_shift"] = jnp.zeros_like(folded["mlp_norm_shift"])


def normal(gain: Any) -> Any:
    """A multiple of 1/γ without overflow; in the limit of gains zero, their coordinates."""
    zero = gain == 0
    return jnp.where(zero, 1.0, jnp.abs(gain).min() / jnp.where(zero, 1.0, gain))


def _drop_key_constants(block: Block, folded: Tensors) -> None:
    a = block.attention
    if a.key_bias and a.constants_die:
        turns = np.arange(a.key_size) < a.rotated
        folded["key_bias"] = jnp.where(turns, folded["key_bias"], 0.0)


def _write_value_constant(block: Block, folded: Tensors, constant: Any) -> None:
    name = absorbing_bias(block)
    if name is not None:
        folded[name] = folded[name] + jnp.einsum("grdv,gv->d", folded["output"], constant)


def _absorb_values(block: Block, folded: Tensors) -> None:
    """The value bias into the output bias; in parallel blocks all constants into one bias."""
    if block.attention.value_bias and absorbing_bias(block) is not None:
        _write_value_constant(block, folded, folded["value_bias"])
        folded["value_bias"] = jnp.zeros_like(folded["value_bias"])
    if block.is_parallel and "output_bias" in folded and "down_bias" in folded:
        folded["output_bias"] = folded["output_bias"] + folded["down_bias"]
        folded["down_bias"] = jnp.zeros_like(folded["down_bias"])


def _centre_writers(block: Block, folded: Tensors) -> None:
    if not block.centred or not (block.final_norm or block.placement == "post"):
        return
    for name, axis in {"output": 2, "output_bias": 0, "down": 0, "down_bias": 0}.items():
        if name in folded:
            folded[name] = folded[name] - folded[name].mean(axis=axis, keepdims=True)


def fold_outer(block: Block, outer: Tensors, *, norms: bool = True, dead: bool = True) -> Tensors:
    """What lies outside the layers: tables centred and exchanged, final norm folded if untied."""
    folded = dict(outer)
    if dead:
        _exchange_tables(block, folded)
        _centre_tables(block, folded)
        _centre_scores(block, folded)
    if norms and block.head.kind == "untied" and block.final_norm:
        _fold_norm(block, folded, "final_norm", ["unembedding"])
    elif norms and "unembedding_bias" in folded and "final_norm_shift" in folded:
        shift = folded["final_norm_shift"]  # of a head that is the token table
        folded["unembedding_bias"] = folded["unembedding_bias"] + folded["tokens"] @ shift
        folded["final_norm_shift"] = jnp.zeros_like(shift)
    if norms and block.embed_norm and block.embed_width is not None:
        _fold_norm(block, folded, "embed_norm", ["embed_map"])
    elif norms and "embed_norm_shift" in folded and block.placement == "post":
        folded["embed_norm_shift"] = jnp.zeros_like(folded["embed_norm_shift"])
    return folded


def _centre_scores(block: Block, folded: Tensors) -> None:
    """The table of score biases with mean zero over its used rows, and its unused row zero."""
    if "score_table" not in folded:
        return
    used = used_rows(block, "score_table")
    folded["score_table"] = used * (folded["score_table"] - mean_row(block, folded, "score_table"))


def used_rows(block: Block, table: str) -> np.ndarray:
    """One for each row of a table that something reads, and zero for the others, as a column."""
    used = np.ones((block.global_shapes[table][0], 1))
    used[block.unused(table)] = 0.0
    return used


def mean_row(block: Block, tensors: Mapping[str, Any], table: str) -> Any:
    """The mean of the rows of a table that something reads, and not only with padding."""
    used = used_rows(block, table)
    if table == "positions" and block.lone_padding is not None:
        used[block.lone_padding] = 0.0
    return (tensors[table] * used).sum(axis=0) / used.sum()


def _centre_tables(block: Block, folded: Tensors) -> None:
    if block.centred and (block.final_norm or block.placement == "post"):
        for name in ("tokens", "positions", "types", "patch", "patch_bias", "class_token"):
            axis = 1 if name in dict(block.tables) else 0
            if name in folded and not (name == "tokens" and block.keeps_tokens):
                folded[name] = folded[name] - folded[name].mean(axis=axis, keepdims=True)


def _exchange_tables(block: Block, folded: Tensors) -> None:
    """Means of the tables beyond the first into the first, and unused rows zero (tables)."""
    if block.patch is not None:
        positions = jnp.asarray(folded["positions"])
        mean, first = positions[1:].mean(axis=0), positions[0]
        folded["positions"] = positions.at[1:].add(-mean).at[0].add(-first)
        folded["patch_bias"] = folded["patch_bias"] + mean
        folded["class_token"] = folded["class_token"] + first
        return
    names = [name for name, _ in block.tables]
    if block.keeps_tokens:
        names.remove("tokens")
    if block.lone_padding is not None:
        move_padding(block, folded, mean_row(block, folded, "positions"))
    for name in names[1:]:
        mean = mean_row(block, folded, name)
        folded[name] = folded[name] - mean
        scale = block.embed_scale if names[0] == "tokens" else 1.0
        folded[names[0]] = folded[names[0]] + mean / scale
    if "positions" in names:
        folded["positions"] = folded["positions"] * used_rows(block, "positions")


def move_padding(block: Block, tables: Tensors, row: Any) -> None:
    """Give padding this row of positions, and its token what the two are together without it."""
    tokens, positions = tables["tokens"], tables["positions"]
    change = (positions[block.padding] - row) / block.embed_scale
    at, there = ((np.arange(len(t)) == block.padding)[:, None] for t in (tokens, positions))
    tables |= {"tokens": tokens + at * change, "positions": positions * ~there + there * row}


def untied(block: Block) -> Block:
    """The block with a head of its own, for a model whose head is the token table."""
    if block.head.kind != "tied":
        return block
    return replace(block, head=replace(block.head, kind="untied"))
