"""The symmetry that carries one model to another, read off layers that agree."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neuromanifold.checkpoints.agreement import LayerAgreement, Rounding
from neuromanifold.checkpoints.block import Block
from neuromanifold.checkpoints.checkpoint import Checkpoint, Float64Tensors
from neuromanifold.checkpoints.frame import permute_heads, permute_neurons
from neuromanifold.checkpoints.stream import rotate_layer, rotate_outer


@dataclass(frozen=True)
class Ordered:
    """A model with its heads, neurons and stream in the order of another one's.

    Attributes:
        model: the model.
        layers: how its heads and neurons answer to the other's.
        turn: the signed permutation of the stream's coordinates; None for none.
    """

    model: Checkpoint
    layers: Sequence[LayerAgreement]
    turn: np.ndarray | None = None

    @property
    def block(self) -> Block:
        """What the tensors mean."""
        return self.model.block

    def outer(self) -> Float64Tensors:
        """The tensors outside the layers."""
        found = self.model.outer()
        if "score_table" in found:
            found["score_table"] = found["score_table"][:, self.layers[0].heads]
        return found if self.turn is None else rotate_outer(found, self.turn)

    def layer(self, layer: int) -> Float64Tensors:
        """The tensors of a layer."""
        found, match = self.model.layer(layer), self.layers[0 if self.block.shared else layer]
        permute_heads(self.block, found, match.heads)
        if match.neurons is not None:
            permute_neurons(found, match.neurons)
        return found if self.turn is None else rotate_layer(found, self.turn)


def note_changes(
    block: Block,
    layer: int,
    mine: Float64Tensors,
    theirs: Float64Tensors,
    agreement: LayerAgreement,
    changes: dict[str, np.ndarray],
    moved: set[str],
    rounding: Rounding,
) -> None:
    """The changes of basis between two layers that agree, by least squares."""
    a, order = block.attention, agreement.heads
    if not np.array_equal(order, np.arange(a.heads)):
        changes[f"layers.{layer}.heads"] = order
        moved.add("heads permuted")
    if agreement.neurons is not None and not np.array_equal(
        agreement.neurons, np.arange(len(agreement.neurons))
    ):
        changes[f"layers.{layer}.neurons"] = agreement.neurons
        moved.add("neurons permuted")
    groups = order.reshape(a.groups, a.sharing)[:, 0] // a.sharing
    loose = 1e3 * (rounding.first + rounding.second)
    for name, words in (
        ("key", "query–key change of basis"),
        ("value", "value–output change of basis"),
    ):
        pairs = [(mine[name][g], theirs[name][h]) for g, h in enumerate(groups)]
        found = np.stack(
            [  # a head that lacks rank has many changes of basis, the identity if that is one
                np.eye(len(x))
                if np.allclose(x, y, loose, loose * float(np.abs(x).max()))
                else np.linalg.lstsq(x.T, y.T, rcond=None)[0].T
                for x, y in pairs
            ]
        )
        if np.abs(found - np.eye(found.shape[-1])).max() > max(loose, 1e-9):
            changes[f"layers.{layer}.{name}"] = found
            moved.add(words)
    if "up" in mine and agreement.neurons is not None:
        theirs_up = theirs["up"][agreement.neurons]
        size = np.sum(mine["up"] ** 2, axis=1)
        scale = np.sum(theirs_up * mine["up"], axis=1) / np.where(size > 0, size, 1.0)
        scale = np.where(size > 0, scale, 1.0)
        if np.abs(scale - 1).max() > max(loose, 1e-9):
            changes[f"layers.{layer}.up"] = scale
            moved.add("neurons scaled")


def note_raw(a: Checkpoint, b: Checkpoint, layer: int, moved: set[str]) -> None:
    """Symmetries that folding removes are seen in the tensors as stored."""
    names = {"attention_norm": "norm gains", "attention_norm_shift": "norm shifts"}
    names |= {"key_bias": "key biases", "value_bias": "value biases"}
    for name, words in names.items():
        if name in a.block.layer_shapes:
            x, y = a.tensor(f"layers.{layer}.{name}"), b.tensor(f"layers.{layer}.{name}")
            if not np.allclose(x, y, rtol=1e-2, atol=1e-6):
                moved.add(words)
