"""Folding undone: a folded model with the norms, dead biases and means of another one.

Each step is a symmetry (norm-absorption, layernorm-centring, dead-key-bias, value-bias, stream-one,
tables, score-table), so the function stays.
"""

from collections.abc import Mapping

import jax
import numpy as np

from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.distance.nearest import nearest_scale
from neuromanifold.checkpoints.forms import Tensors
from neuromanifold.checkpoints.gauge.attention import absorbing_bias
from neuromanifold.checkpoints.normal_form.fold import (
    Incoming,
    gains,
    mean_row,
    move_padding,
    normal,
    used_rows,
)

FAINT = 1e-6
"""A gain this much smaller than the largest is not divided by: its norm stays folded."""


def unfold_layer(
    block: Block,
    moved: Tensors,
    raw: Tensors,
    reads: Incoming | None,
    own: Incoming | None,
    *,
    last: bool,
) -> None:
    """Give a folded layer the norms, dead biases and means of the first model's layer `raw`."""
    readers = ["query", "key", "value"]
    hidden = [name for name in ("up", "gate") if name in moved]
    if block.placement == "post":
        _unfold_post(block, moved, raw, reads, own, last)
    elif block.placement == "parallel" and block.mlp is not None:
        _unfold_norm(block, moved, raw, "attention_norm", readers + hidden)
    elif block.norm is not None:
        _unfold_norm(block, moved, raw, "attention_norm", readers)
        if "mlp_norm" in moved:
            _unfold_norm(block, moved, raw, "mlp_norm", hidden)


def set_means(block: Block, moved: Tensors, raw: Tensors) -> None:
    """What is written along 1, where that is lost, as in `raw`."""
    if not block.centred or not (block.final_norm or block.placement == "post"):
        return
    for name, axis in {"output": 2, "output_bias": 0, "down": 0, "down_bias": 0}.items():
        if name in moved:
            change = raw[name].mean(axis=axis, keepdims=True) - moved[name].mean(
                axis=axis, keepdims=True
            )
            moved[name] = moved[name] + change


def unfold_biases(block: Block, moved: Tensors, raw: Tensors) -> None:
    """Biases that softmax does not see, or that another bias pays for, as in `raw`."""
    a = block.attention
    if a.key_bias and a.constants_die:
        turns = np.arange(a.key_size) < a.rotated
        moved["key_bias"] = np.where(turns, moved["key_bias"], raw["key_bias"])
    takes = absorbing_bias(block)
    if a.value_bias and takes is not None:
        change = raw["value_bias"] - moved["value_bias"]
        moved[takes] = moved[takes] - np.einsum("grdv,gv->d", moved["output"], change)
        moved["value_bias"] = raw["value_bias"]
    if block.is_parallel and "output_bias" in moved and "down_bias" in moved:
        change = raw["down_bias"] - moved["down_bias"]
        moved["output_bias"] = moved["output_bias"] - change
        moved["down_bias"] = raw["down_bias"]


def _unfold_norm(block: Block, moved: Tensors, raw: Tensors, norm: str, readers: list[str]) -> None:
    """Give a folded norm a gain near to that of `raw`, its shift, and the readers what that takes.

    A reader W of the folded norm becomes (W + μ 1ᵀ)/γ, for any γ and, where means are removed, any
    μ, here that of `raw`; W β goes to its bias. Every γ is chosen so that it and its columns are
    nearest. Rows that no bias serves have their constant along 1, and μ must keep it.
    """
    gamma, beta = gains(block, raw, norm), raw.get(f"{norm}_shift")
    if np.abs(gamma).min() <= FAINT * np.abs(gamma).max() or (
        beta is not None and not block.centred
    ):
        return
    served = {name: _served(block, moved, name) for name in readers}
    slope = 0.0 if beta is None else np.sum(beta / gamma)
    forced = beta is not None and not all(rows.all() for rows in served.values())
    if forced and abs(slope) <= 1e-3 * np.linalg.norm(beta / gamma):
        return
    columns = {name: moved[name] for name in readers}
    if block.centred:
        for name in readers:
            W, mean = moved[name], moved[name].mean(axis=-1)
            mu = (raw[name] * gamma).mean(axis=-1)
            if beta is not None:
                W = W - mean[..., None]
                mu = np.where(served[name], mu, (mean - W @ (beta / gamma)) / (slope or 1.0))
            columns[name] = W + mu[..., None]
    if not forced:
        gamma = _nearest_gain(gamma, raw, columns)
    for name in readers:
        moved[name] = columns[name] / gamma
        if beta is not None:
            _pay(block, moved, name, moved[name] @ beta)
    moved[norm] = gamma - (0.0 if block.norm is None else block.norm.offset)
    if beta is not None:
        moved[f"{norm}_shift"] = beta


def _nearest_gain(gamma: np.ndarray, raw: Tensors, columns: Tensors) -> np.ndarray:
    """For every coordinate the gain that is, with the columns divided by it, nearest to `raw`."""
    width = len(gamma)
    mine = np.vstack([raw[name].reshape(-1, width) for name in columns]).T
    yours = np.vstack([columns[name].reshape(-1, width) for name in columns]).T
    return nearest_scale(gamma[:, None], mine, np.ones((width, 1)), yours)


def _served(block: Block, moved: Tensors, name: str) -> np.ndarray:
    """Which rows of a reader have something that takes up a constant, or nobody who sees it."""
    rows = np.zeros(moved[name].shape[:-1], bool)
    if f"{name}_bias" in moved or (name == "value" and absorbing_bias(block) is not None):
        return ~rows
    if name == "key" and block.attention.constants_die:
        rows[:, block.attention.rotated :] = True
    return rows


def _pay(block: Block, moved: Tensors, name: str, constant: np.ndarray) -> None:
    """Take back a constant that a shift adds to what a reader reads."""
    takes = absorbing_bias(block)
    if f"{name}_bias" in moved:
        moved[f"{name}_bias"] = moved[f"{name}_bias"] - constant
    elif name == "value" and takes is not None:
        moved[takes] = moved[takes] - np.einsum("grdv,gv->d", moved["output"], constant)


def _unfold_post(
    block: Block,
    moved: Tensors,
    raw: Tensors,
    reads: Incoming | None,
    own: Incoming | None,
    last: bool,
) -> None:
    """Norms after the sum: gains stay the second model's, shifts become the first one's."""
    inner = Incoming(gains(block, moved, "attention_norm"), raw.get("attention_norm_shift"))
    outer = None if reads is None or own is None else Incoming(own.gain, reads.shift)
    steps = (
        (outer, ("query", "key", "value"), "output_bias"),
        (inner, ("up", "gate"), "down_bias"),
    )
    for norm, readers, carried in steps:
        if norm is None or norm.shift is None:
            continue
        with jax.enable_x64(True):
            g = np.asarray(normal(norm.gain))
        for name in (name for name in readers if name in moved):
            if block.centred:
                moved[name] = moved[name] + (raw[name] @ g)[..., None] * g / (g @ g)
            moved[f"{name}_bias"] = moved[f"{name}_bias"] - moved[name] @ norm.shift
        moved[carried] = moved[carried] - norm.shift
    if inner.shift is not None:
        moved["attention_norm_shift"] = inner.shift
    if "mlp_norm_shift" in moved and not last:
        moved["mlp_norm_shift"] = raw["mlp_norm_shift"]


def unfolded_outer(block: Block, folded: Mapping[str, np.ndarray], raw: Tensors) -> Tensors:
    """The folded tensors outside the layers with the first model's norms, means and exchanges."""
    moved = dict(folded)
    if block.head.kind == "untied" and block.final_norm:
        _unfold_norm(block, moved, raw, "final_norm", ["unembedding"])
    elif "unembedding_bias" in moved and "final_norm_shift" in moved:
        moved["final_norm_shift"] = raw["final_norm_shift"]
        moved["unembedding_bias"] = (
            moved["unembedding_bias"] - moved["tokens"] @ raw["final_norm_shift"]
        )
    if block.embed_norm and block.embed_width is not None:
        _unfold_norm(block, moved, raw, "embed_norm", ["embed_map"])
    elif block.placement == "post" and "embed_norm_shift" in moved:
        moved["embed_norm_shift"] = raw["embed_norm_shift"]
    _unfold_tables(block, moved, raw)
    if "score_table" in moved:
        moved["score_table"] = moved["score_table"] + mean_row(block, raw, "score_table")
    for name in {"positions", "score_table"} & moved.keys():
        moved[name] = np.where(used_rows(block, name) > 0, moved[name], raw[name])
    return moved


def _unfold_tables(block: Block, moved: Tensors, raw: Tensors) -> None:
    names = [name for name, _ in block.tables]
    if block.patch is not None:
        mean, first = raw["positions"][1:].mean(axis=0), raw["positions"][:1]
        moved["positions"] = np.vstack([first, moved["positions"][1:] + mean])
        moved["patch_bias"] = moved["patch_bias"] - mean
        moved["class_token"] = moved["class_token"] - first[0]
        names += ["patch", "patch_bias", "class_token"]
    else:
        takes, *others = [n for n in names if not (n == "tokens" and block.keeps_tokens)] or [""]
        scale = block.embed_scale if takes == "tokens" else 1.0
        for name in others:
            mean = mean_row(block, raw, name)
            moved[name] = moved[name] + mean
            moved[takes] = moved[takes] - mean / scale
        if block.lone_padding is not None:
            move_padding(block, moved, raw["positions"][block.lone_padding])
    if block.centred and (block.final_norm or block.placement == "post"):
        for name in names:
            if name == "tokens" and block.keeps_tokens:
                continue
            axis = 1 if name in dict(block.tables) else 0
            mean = moved[name].mean(axis=axis, keepdims=True)
            moved[name] = moved[name] - mean + raw[name].mean(axis=axis, keepdims=True)
