"""A normal form of a checkpoint: one file for all weights that the gauge group makes equal.

The order matters: norms are folded and dead parameters zeroed, every head and neuron is put in its
own frame, the stream in that of the tables, and heads and neurons in the order of their sizes.
"""

from dataclasses import dataclass

import jax
import numpy as np

from neuromanifold.checkpoints.audit import read_by
from neuromanifold.checkpoints.checkpoint import Checkpoint, Float64Tensors
from neuromanifold.checkpoints.fold import fold_layer, fold_outer
from neuromanifold.checkpoints.frame import (
    frame_heads,
    frame_neurons,
    head_order,
    neuron_order,
    permute_heads,
    permute_neurons,
)
from neuromanifold.checkpoints.stream import (
    coordinate_order,
    frees_permutation,
    frees_rotation,
    principal_axes,
    rotate_layer,
    rotate_outer,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Which steps of the normal form are taken.

    Attributes:
        fold: norms into what reads them.
        drop_dead: what the function does not see becomes zero.
        balance: every head and neuron in its balanced frame.
        order: the stream, heads and neurons in canonical order and basis.
    """

    fold: bool = True
    drop_dead: bool = True
    balance: bool = True
    order: bool = True


class Canonical:
    """The normal form of a checkpoint, computed one layer at a time when it is asked for."""

    def __init__(self, checkpoint: Checkpoint, steps: Steps | None = None) -> None:
        self.checkpoint = checkpoint
        self.steps = steps or Steps()
        self.remarks: list[str] = []
        self._outer, self._basis, self._heads = self._outer_form()
        self._held: tuple[int, Float64Tensors] | None = None

    def _outer_form(self) -> tuple[Float64Tensors, np.ndarray | None, np.ndarray | None]:
        block, steps = self.checkpoint.block, self.steps
        with jax.enable_x64(True):
            folded = fold_outer(
                block, self.checkpoint.outer(), norms=steps.fold, dead=steps.drop_dead
            )
            outer = {name: np.asarray(value) for name, value in folded.items()}
        basis, heads = None, None
        if steps.order and "score_table" in outer:
            heads = np.argsort(-np.sum(outer["score_table"] ** 2, axis=0), kind="stable")
            outer["score_table"] = outer["score_table"][:, heads]
        if steps.order and steps.fold and block.embed_width is not None and block.embed_norm:
            outer = self._table_axes(outer)
        elif steps.order and steps.fold:
            basis = self._stream_basis(outer)
        if basis is not None:
            outer = rotate_outer(block, outer, basis)
        return outer, basis, heads

    def _table_axes(self, outer: Float64Tensors) -> Float64Tensors:
        """Tables behind a map of their own in their principal axes (stream-rotation)."""
        axes = principal_axes(self.checkpoint.block, outer)
        if axes is None:
            self.remarks.append("the tables do not span their space: their basis was left alone")
            return outer
        moved = {**outer, "embed_map": outer["embed_map"] @ axes.T}
        return moved | {name: outer[name] @ axes.T for name, _ in self.checkpoint.block.tables}

    def _stream_basis(self, outer: Float64Tensors) -> np.ndarray | None:
        block = self.checkpoint.block
        if frees_rotation(block):
            axes = principal_axes(block, outer)
            if axes is None:
                self.remarks.append("the tables do not span the stream: its basis was left alone")
            return axes
        return coordinate_order(block, outer) if frees_permutation(block) else None

    def outer(self) -> Float64Tensors:
        """The tensors outside the layers."""
        return self._outer

    def layer(self, layer: int) -> Float64Tensors:
        """The tensors of one layer; the last one asked for is kept."""
        if self._held is None or self._held[0] != layer:
            self._held = (layer, self._layer_form(layer))
        return self._held[1]

    def _layer_form(self, layer: int) -> Float64Tensors:
        block, steps = self.checkpoint.block, self.steps
        with jax.enable_x64(True):
            folded = fold_layer(
                block,
                self.checkpoint.layer(layer),
                read_by(self.checkpoint, layer),
                last=layer == block.stored_layers - 1,
                norms=steps.fold,
                dead=steps.drop_dead,
            )
            tensors = {name: np.array(value) for name, value in folded.items()}
        if self._basis is not None:
            tensors = rotate_layer(tensors, self._basis)
        if steps.balance:
            frame_heads(block, tensors)
            frame_neurons(block, tensors)
        if steps.order:
            order = head_order(block, tensors) if self._heads is None else self._heads
            permute_heads(block, tensors, order)
            if block.mlp is not None:
                permute_neurons(tensors, neuron_order(tensors))
        return tensors

    def tensor(self, name: str) -> np.ndarray:
        """A tensor by its name in the block."""
        if not name.startswith("layers."):
            return self._outer[name]
        _, layer, inner = name.split(".")
        return self.layer(int(layer))[inner]

    def weights(self) -> Float64Tensors:
        """All tensors: for small models."""
        return {name: self.tensor(name) for name in self.checkpoint.block.shapes}


def canonical(checkpoint: Checkpoint, steps: Steps | None = None) -> Canonical:
    """The normal form of a checkpoint (gauge-qk, gauge-ov, norm-absorption, stream-rotation)."""
    return Canonical(checkpoint, steps)

