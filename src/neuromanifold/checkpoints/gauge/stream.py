"""The stream and its tables: rotations, scales, the direction 1, and what can be exchanged."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import jax.numpy as jnp
import numpy as np

from neuromanifold.checkpoints.block.block import Block, Shapes
from neuromanifold.checkpoints.gauge.norms import readings
from neuromanifold.checkpoints.gauge.part import (
    GaugePart,
    Readout,
    Tensors,
    gain,
    in_layers,
    layer_names,
    off_diagonal,
    padded,
    stored_gain,
)

Parameters = Mapping[str, Any]


def writers(block: Block) -> dict[str, int]:
    """The tensors of the layers that write to the stream, each with its axis in the stream."""
    axes = {"output": 2, "output_bias": 0, "down": 0, "down_bias": 0}
    return {
        at + name: axis
        for at in layer_names(block)
        for name, axis in axes.items()
        if name in block.layer_shapes
    }


def tables(block: Block) -> dict[str, int]:
    """The tensors whose sum starts the stream, each with its axis there."""
    axes = {"tokens": 1, "positions": 1, "types": 1, "patch": 0, "patch_bias": 0, "class_token": 0}
    return {name: axis for name, axis in axes.items() if name in block.global_shapes}


def _one_axes(block: Block) -> dict[str, int]:
    """What may get a multiple of 1 in every column: written, and then seen only centred."""
    if not block.centred or not (block.final_norm or block.placement == "post"):
        return {}
    found = writers(block) | tables(block)
    if block.keeps_tokens:
        del found["tokens"]
    return found


def _one_shapes(block: Block, readout: Readout) -> Shapes:
    return {
        name: tuple(np.delete(block.shapes[name], axis).tolist())
        for name, axis in _one_axes(block).items()
    }


def _one(block: Block, parameters: Parameters, weights: Tensors) -> Tensors:
    """Everything written gets a multiple of 1 (stream-one)."""
    return {
        name: weights[name] + jnp.expand_dims(parameters[name], axis)
        for name, axis in _one_axes(block).items()
    }


def rotates(block: Block) -> bool:
    """Whether the whole stream may be rotated."""
    return (
        block.placement in ("pre", "parallel", "parallel two")
        and block.head.kind == "untied"
        and block.final_norm
        and not block.embed_norm
    )


def antisymmetric(block: Block, entries: Any, width: int) -> Any:
    """An antisymmetric matrix, with A 1 = 0 where the norms subtract the mean."""
    n = off_diagonal(block, width)
    upper = jnp.zeros((n, n)).at[np.triu_indices(n, 1)].set(entries)
    A = upper - upper.T
    if not block.centred:
        return A
    basis = np.vstack([np.eye(n), -np.ones((1, n))])  # its columns span the complement of 1
    return basis @ A @ basis.T


def cayley(A: Any) -> Any:
    """The rotation (1 − A/2)^{-1} (1 + A/2): rational, and the identity at zero."""
    one = jnp.eye(A.shape[0])
    return jnp.linalg.solve(one - A / 2, one + A / 2)


def rotate_reader(block: Block, weights: Tensors, moved: Tensors, norm: str, R: Any) -> Any:
    """Move a norm's shift along with a rotation of what it normalises; the change for readers.

    y = Γ n + β becomes Γ R n + β′, and W′ y′ = W y for W′ = W Γ Rᵀ Γ^{-1}, β′ = Γ R Γ^{-1} β.
    """
    gamma = gain(block, weights, norm)
    if f"{norm}_shift" in weights:
        moved[f"{norm}_shift"] = gamma * (R @ (weights[f"{norm}_shift"] / gamma))
    return gamma[:, None] * R.T / gamma[None, :]


def _rotation_shapes(block: Block, readout: Readout) -> Shapes:
    n = off_diagonal(block, block.width)
    return {"stream": (n * (n - 1) // 2,)} if rotates(block) else {}


def rotate_stream(block: Block, R: Any, weights: Tensors) -> Tensors:
    """The tensors after x → R x in the whole stream (stream-rotation)."""
    moved = dict(weights)
    for name, axis in (writers(block) | tables(block)).items():
        turned = jnp.tensordot(R, weights[name], axes=(1, axis))
        moved[name] = jnp.moveaxis(turned, 0, axis)
    for r in readings(block):
        change = rotate_reader(block, weights, moved, r.norm, R)
        for reader in r.readers:
            moved[r.at + reader] = jnp.asarray(weights[r.at + reader]) @ change
    return moved


def _rotation(block: Block, parameters: Parameters, weights: Tensors) -> Tensors:
    R = cayley(antisymmetric(block, parameters["stream"], block.width))
    return rotate_stream(block, R, weights)


def _table_rotation_shapes(block: Block, readout: Readout) -> Shapes:
    if block.embed_width is None or not block.embed_norm or block.keeps_tokens:
        return {}
    n = off_diagonal(block, block.embed_width)
    return {"tables": (n * (n - 1) // 2,)}


def _table_rotation(block: Block, parameters: Parameters, weights: Tensors) -> Tensors:
    """Tables behind a norm that only one linear map reads are rotated (stream-rotation)."""
    R = cayley(antisymmetric(block, parameters["tables"], block.embed_width or block.width))
    moved = {name: jnp.asarray(weights[name]) @ R.T for name in tables(block)}
    change = rotate_reader(block, weights, moved, "embed_norm", R)
    moved["embed_map"] = jnp.asarray(weights["embed_map"]) @ change
    return moved


def shears(block: Block) -> bool:
    """Whether shared layers read a map's output first, and then that of their own last norm."""
    again = block.shared and block.layers > 1 and block.placement == "post"
    return again and block.centred and block.embed_width is not None


def _shear_shapes(block: Block, readout: Readout) -> Shapes:
    return {"shear": ()} if shears(block) else {}


def shear(block: Block, parameters: Parameters, weights: Tensors) -> Tensors:
    """X → x + a 1 gᵀ(x − β) for what shared layers read, g = 1/γ of their last norm (stream-one).

    It is the identity on that norm's outputs; the map's change is along 1, which the residual's
    norm does not see, and the readers take it back: W → W − c (W 1) gᵀ with c = a/(1 + a gᵀ1).
    """
    moved, a = dict(weights), parameters["shear"]
    g = 1 / gain(block, weights, "layers.0.mlp_norm")
    beta = weights.get("layers.0.mlp_norm_shift", jnp.zeros_like(g))
    if "embed_map" in weights:
        moved["embed_map"] = weights["embed_map"] + a * (g @ jnp.asarray(weights["embed_map"]))
        moved["embed_map_bias"] = weights["embed_map_bias"] + a * (
            g @ (weights["embed_map_bias"] - beta)
        )
    for name in (f"layers.0.{reader}" for reader in ("query", "key", "value")):
        if name not in weights:
            continue
        change = a / (1 + a * g.sum()) * jnp.asarray(weights[name]).sum(axis=-1)
        moved[name] = weights[name] - change[..., None] * g
        moved[f"{name}_bias"] = weights[f"{name}_bias"] + change * (g @ beta)
    return moved


def _scaled(weights: Tensors, names: Any, factor: Any) -> Tensors:
    return {name: weights[name] * factor for name in names if name in weights}


def _stream_scale_shapes(block: Block, readout: Readout) -> Shapes:
    if not block.final_norm or block.embed_norm or not tables(block) or block.shows_tokens:
        return {}
    return {"stream": ()}


def _stream_scale(block: Block, parameters: Parameters, weights: Tensors) -> Tensors:
    """X → λ x: every norm divides it out again (stream-scale)."""
    factor = jnp.exp(parameters["stream"])
    moved = _scaled(weights, tables(block), factor)
    if block.placement == "sandwich":
        for at in layer_names(block):
            for norm in (f"{at}attention_out_norm", f"{at}mlp_out_norm"):
                moved[norm] = stored_gain(block, gain(block, weights, norm) * factor)
    else:
        moved |= _scaled(weights, writers(block), factor)
    if block.head.kind == "tied":
        moved["final_norm"] = stored_gain(block, gain(block, weights, "final_norm") / factor)
        moved |= _scaled(weights, ["final_norm_shift"], 1 / factor)
    return moved


def _norm_scale_shapes(block: Block, readout: Readout) -> Shapes:
    """Post-norm: each norm but the last, and the tables; sandwich: what each output norm reads."""
    L = block.stored_layers
    if block.placement == "sandwich":
        return {"attention": (L,), "mlp": (L,)}
    if block.placement != "post" or block.mlp is None:
        return {}
    last = 0 if block.shared else L - 1
    shapes: Shapes = {"tables": ()} if block.embed_norm and not block.keeps_tokens else {}
    if block.embed_norm and block.embed_width is None:
        shapes["embed_norm"] = ()
    return shapes | {"attention": (L,)} | ({"mlp": (last,)} if last else {})


def _norm_scale(block: Block, parameters: Parameters, weights: Tensors) -> Tensors:
    """What an output norm reads times λ; after the sum: a norm times λ (stream-scale)."""
    moved, wrote = dict(weights), {"attention": "output", "mlp": "down"}
    if "tables" in parameters:
        moved |= _scaled(moved, tables(block), jnp.exp(parameters["tables"]))
    if block.placement == "sandwich":
        for (part, name), (layer, at) in product(wrote.items(), enumerate(layer_names(block))):
            written = (f"{at}{name}", f"{at}{name}_bias")
            moved |= _scaled(moved, written, jnp.exp(parameters[part][layer]))
        return moved
    logs = _post_scales(block, parameters)
    for r in readings(block):
        if not r.alone and r.norm in logs:
            factor = jnp.exp(logs[r.norm])
            name = r.at + wrote["attention" if "query" in r.readers else "mlp"]
            moved |= _scaled(moved, (r.norm, f"{r.norm}_shift", name, f"{name}_bias"), factor)
            moved |= _scaled(moved, [r.at + reader for reader in r.readers], 1 / factor)
    return moved


def _post_scales(block: Block, parameters: Parameters) -> dict[str, Any]:
    """The logarithm of the scale of each norm after a sum that has one."""
    found = {"embed_norm": parameters["embed_norm"]} if "embed_norm" in parameters else {}
    for part, layers in parameters.items():
        if part in ("attention", "mlp"):
            found |= {f"layers.{layer}.{part}_norm": log for layer, log in enumerate(layers)}
    return found


def _exchange_shapes(block: Block, readout: Readout) -> Shapes:
    """One exchange for each table beyond the first; a token table that is the head has none."""
    n = off_diagonal(block, block.embed_width or block.width)
    if block.patch is not None:
        return {"patch": (n,), "class": (n,)}
    others = [name for name, _ in block.tables if name != "tokens"]
    if block.keeps_tokens:
        others = others[1:]
    return dict.fromkeys(others, (n,))


def _exchange(block: Block, parameters: Parameters, weights: Tensors) -> Tensors:
    """A vector moves from one table to another that is always added to it (tables)."""
    width = block.embed_width or block.width
    full = {name: padded(w, width) for name, w in parameters.items()}
    if block.patch is not None:
        positions = jnp.asarray(weights["positions"])
        return {
            "patch_bias": weights["patch_bias"] + full["patch"],
            "class_token": weights["class_token"] + full["class"],
            "positions": positions.at[1:].add(-full["patch"]).at[0].add(-full["class"]),
        }
    moved = dict(weights)
    base = "positions" if block.keeps_tokens else "tokens"
    for name, w in full.items():
        moved[name] = moved[name] - w
        moved[base] = moved[base] + w / (block.embed_scale if base == "tokens" else 1.0)
    return moved


def _unused_shapes(block: Block, readout: Readout) -> Shapes:
    """Rows of positions that nothing reads, less the direction 1 where that is counted already."""
    width = (block.embed_width or block.width) - (1 if "positions" in _one_axes(block) else 0)
    unused = len(block.unused("positions"))
    return {"rows": (unused, width)} if unused else {}


def _unused(block: Block, parameters: Parameters, weights: Tensors) -> Tensors:
    """A row that nothing reads is anything (tables)."""
    rows, width = parameters["rows"].shape
    return {
        "positions": jnp.asarray(weights["positions"]).at[:rows, :width].add(parameters["rows"])
    }


def _padding_shapes(block: Block, readout: Readout) -> Shapes:
    width = off_diagonal(block, block.embed_width or block.width)
    return {"shift": (width,)} if block.lone_padding is not None else {}


def _padding(block: Block, parameters: Parameters, weights: Tensors) -> Tensors:
    """The rows of padding are added to each other and to nothing else but types (tables)."""
    w, row = padded(parameters["shift"], block.embed_width or block.width), block.padding
    return {
        "tokens": jnp.asarray(weights["tokens"]).at[row].add(w / block.embed_scale),
        "positions": jnp.asarray(weights["positions"]).at[row].add(-w),
    }


def _tied_shapes(block: Block, readout: Readout) -> Shapes:
    others = [name for name, _ in block.tables if name != "tokens"]
    if block.head.kind != "tied" or block.head.softcap is not None:
        return {}
    if readout == "probabilities" and others:
        return {"shift": (block.width,)}
    if readout == "probabilities":
        return {"one": ()} if _one_axes(block) else {}
    return {"along": ()} if others and block.head.bias and block.centred else {}


def _tied(block: Block, parameters: Parameters, weights: Tensors) -> Tensors:
    """E → E + 1wᵀ, P → P − 1wᵀ: all logits get the same; for w = 1/γ a constant (tables).

    Without other tables w is along 1, which the stream does not show (stream-one).
    """
    if "one" in parameters:
        return {"tokens": weights["tokens"] + parameters["one"]}
    other = next(name for name, _ in block.tables if name != "tokens")
    moved: Tensors = {}
    if "shift" in parameters:
        w = parameters["shift"]
    else:
        g = 1 / gain(block, weights, "final_norm")
        w = parameters["along"] * g
        if "final_norm_shift" in weights:
            constant = block.head.scale * parameters["along"] * (g @ weights["final_norm_shift"])
            moved["unembedding_bias"] = weights["unembedding_bias"] - constant
    moved["tokens"] = weights["tokens"] + w
    moved[other] = weights[other] - block.embed_scale * w
    return moved


def _unembedding_shapes(block: Block, readout: Readout) -> Shapes:
    """The shift along 1 that probabilities do not see, less what centring has of it already."""
    head = block.head
    if readout != "probabilities" or head.kind == "none" or head.softcap is not None:
        return {}
    shapes: Shapes = {"bias": ()} if head.bias else {}
    if head.kind == "untied":
        counted = block.centred and (head.bias or (block.norm and not block.norm.shift))
        shapes["rows"] = (block.width - (1 if counted else 0),)
    return shapes


def _unembedding(block: Block, parameters: Parameters, weights: Tensors) -> Tensors:
    """W_U → W_U + 1wᵀ, b → b + c1 (unembedding-shift)."""
    moved: Tensors = {}
    if "rows" in parameters:
        moved["unembedding"] = weights["unembedding"] + padded(parameters["rows"], block.width)
    if "bias" in parameters:
        moved["unembedding_bias"] = weights["unembedding_bias"] + parameters["bias"]
    return moved


def _parallel_shapes(block: Block) -> Shapes:
    both = {"output_bias", "down_bias"} <= block.layer_shapes.keys()
    return {"bias": (off_diagonal(block, block.width),)} if block.is_parallel and both else {}


def _parallel(block: Block, parameters: Parameters, weights: Tensors) -> Tensors:
    """b_O → b_O + δ, b_2 → b_2 − δ: both are added to the same stream (parallel-biases)."""
    delta = padded(parameters["bias"], block.width)
    signs = {"output_bias": delta, "down_bias": -delta}
    return {name: weights[name] + change for name, change in signs.items()}


PARTS = (
    GaugePart("along 1", "stream-one", "1 a column written", _one_shapes, _one),
    GaugePart("rotation", "stream-rotation", "n(n − 1)/2", _rotation_shapes, _rotation),
    GaugePart(
        "table rotation", "stream-rotation", "n(n − 1)/2", _table_rotation_shapes, _table_rotation
    ),
    GaugePart("shear", "stream-one", "1", _shear_shapes, shear),
    GaugePart("tables", "tables", "(k − 1)(d − ρ)", _exchange_shapes, _exchange),
    GaugePart("unused positions", "tables", "rows (d − ρ)", _unused_shapes, _unused),
    GaugePart("padding", "tables", "d − ρ", _padding_shapes, _padding),
    GaugePart("tied tables", "tables", "d, or 1", _tied_shapes, _tied),
    in_layers("parallel biases", "parallel-biases", "d − ρ", _parallel_shapes, _parallel),
    GaugePart("unembedding", "unembedding-shift", "d", _unembedding_shapes, _unembedding),
    GaugePart("stream scale", "stream-scale", "1", _stream_scale_shapes, _stream_scale, True),
    GaugePart("norm scales", "stream-scale", "1 a norm", _norm_scale_shapes, _norm_scale, True),
)
