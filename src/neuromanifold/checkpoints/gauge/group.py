"""The whole gauge group: its parts, its dimension, and where the count is not covered."""

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.gauge import attention, norms, stream
from neuromanifold.checkpoints.gauge.part import GaugePart, Readout, Tensors

PARTS: tuple[GaugePart, ...] = (*attention.PARTS, *norms.PARTS, *stream.PARTS)


def parts(block: Block, readout: Readout = "logits") -> list[GaugePart]:
    """The parts that are not trivial for this block, with its eps."""
    return [
        part
        for part in PARTS
        if part.dimension(block, readout) and not (part.without_eps and has_eps(block, part))
    ]


def has_eps(block: Block, part: GaugePart) -> bool:
    """Whether the norms this part rescales have an eps that sees it."""
    if part.statement == "gauge-qk-norm":
        return block.attention.qk_norm_eps > 0
    return block.norm is not None and block.norm.eps > 0


def redundancy(block: Block, readout: Readout = "logits") -> dict[str, int]:
    """The dimension of every part that is not trivial."""
    return {part.name: part.dimension(block, readout) for part in parts(block, readout)}


def unmet(block: Block) -> tuple[str, ...]:
    """Why the count is not claimed for this block; empty when it is."""
    a, d = block.attention, block.width
    room = min(d, block.embed_width or d) - (1 if block.centred else 0)
    found = []
    if room < (3 if block.centred and block.head.kind == "tied" else 2):
        found.append(f"a stream of width {d}, of which norms leave a space of dimension {room}")
    if a.key_size > room or a.value_size > room:
        found.append(f"heads of size {max(a.key_size, a.value_size)} > {room}")
    constants = a.value_bias or (block.norm is not None and block.norm.shift)
    if constants and attention.absorbing_bias(block) is None and a.groups * a.value_size > d - 1:
        found.append(f"value constants without output bias, G d_v = {a.groups * a.value_size}")
    if block.head.kind == "tied" and block.head.rows <= d:
        found.append(f"tied head with {block.head.rows} ≤ d = {d} tokens")
    if a.rotary is not None and len({*a.rotary.frequencies, 0.0}) <= len(a.rotary.frequencies):
        found.append("rotary frequencies that are zero or equal")
    return (*found, *_unmet_norms(block))


def _unmet_norms(block: Block) -> list[str]:
    norm = block.norm
    found: list[str] = []
    post = block.placement == "post"
    if norm is None:
        return ["an MLP without norms"] if block.mlp and block.mlp.output_bias else []
    if norm.shift and norm.kind == "rms":
        found.append("RMS norms with a shift")
    if block.placement == "sandwich" and (norm.kind == "layer" or _low_rank(block)):
        found.append("output norms behind a writer of low rank, or layer norms there")
    if block.embed_norm and not post:
        found.append("a norm after the tables and norms before the layers")
    if post and (block.head.kind == "tied" or not block.embed_norm or block.mlp is None):
        found.append("norms after the sum with a tied head, or without embedding norm or MLP")
    if block.embed_width is not None and not (block.shared and block.layers > 1):
        found.append("a map after the tables whose output is read once")
    if block.shared and not post:
        found.append("shared layers with norms before them")
    if post and norm.shift and not _all_biases(block):
        found.append("norms after the sum and maps without bias")
    if not post and not block.final_norm and block.mlp is not None and not block.is_parallel:
        found.append("no final norm")
    return found


def _low_rank(block: Block) -> bool:
    """Whether what output norms read has so low a rank ρ that more than their gains is free.

    A gain gives d unknowns, the rotations of an untied stream d(d − 1)/2 for all norms together,
    and a quadratic form that vanishes on what is written ρ(ρ + 1)/2 equations.
    """
    d, a = block.width, block.attention
    sizes = [a.heads * a.value_size] + ([block.mlp.size] if block.mlp else [])
    spare = [min(n, d) * (min(n, d) + 1) // 2 - d for n in sizes]
    rotations = 0 if block.head.kind == "tied" else d * (d - 1) // 2
    return min(spare) < 0 or block.stored_layers * sum(spare) < rotations


def unseen(block: Block, readout: Readout = "logits") -> tuple[str, ...]:
    """Why a model's own inputs and outputs show too little of it; empty when they show enough.

    The count is for streams that fill the space. Tables with few rows start only that many (and a
    patch of p numbers p + 1); in parallel blocks the first MLP reads nothing else: with n = d − ρ
    and m neurons of s parameters up to scale, s m ≤ n (points − d − 1) was measured to be enough.
    """
    found: list[str] = []
    d, mlp = block.embed_width or block.width, block.mlp
    rows = [n - len(block.unused(name)) for name, n in block.tables]
    rows += [block.patch.size + 1] if block.patch is not None else []
    if block.rows("positions") and block.rows("positions") - block.position_offset < 3:
        found.append("inputs of fewer than 3 tokens")
    if 1 in block.attention.windows:
        found.append("a layer in which a token sees only itself")
    if rows and sum(rows) - len(rows) <= d:
        found.append(f"tables of {sum(rows)} rows in all for a stream of width {d}")
    elif rows and block.patch is None and block.is_parallel and mlp is not None:
        n = d - (1 if block.centred else 0)
        maps = 2 if mlp.gated else 1
        neuron = maps * (n + mlp.bias) + n - len(mlp.scalings)
        if neuron * mlp.size > n * (prod(rows) - d - 1):
            found.append(f"{prod(rows)} tokens for a first MLP of {mlp.size} neurons")
    if block.lone_padding is not None and block.embed_norm and block.norm and not block.norm.eps:
        found.append("a norm without eps, which does not see the size of padding")
    if readout == "probabilities" and block.head.rows == 1:
        found.append("the probability of a single output")
    return tuple(found)


def _all_biases(block: Block) -> bool:
    names = ("query_bias", "value_bias", "output_bias", "up_bias", "down_bias")
    return all(name in block.layer_shapes for name in names)


def random_element(
    block: Block, seed: int, size: float = 0.3, readout: Readout = "logits"
) -> dict[str, dict[str, np.ndarray]]:
    """Parameters of every part, normal with this standard deviation over √n for n × n changes."""
    generator = np.random.default_rng(seed)
    return {
        part.name: {
            name: generator.normal(size=shape) * size / max(1.0, np.sqrt(shape[-1] if shape else 1))
            for name, shape in part.shapes(block, readout).items()
        }
        for part in parts(block, readout)
    }


def act(block: Block, element: dict[str, dict[str, Any]], weights: Tensors) -> Tensors:
    """The tensors moved by an element, part after part."""
    by_name = {part.name: part for part in PARTS}
    with jax.enable_x64(True):
        moved = {name: jnp.asarray(value) for name, value in weights.items()}
        for name, parameters in element.items():
            moved = by_name[name].act(block, parameters, moved)
        return {name: np.asarray(value) for name, value in moved.items()}
