"""The symmetry that carries one model to another, read off layers that agree."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.checkpoint import Checkpoint, Float64Tensors
from neuromanifold.checkpoints.equality.agreement import LayerAgreement, Rounding
from neuromanifold.checkpoints.normal_form.frame import permute_heads, permute_neurons
from neuromanifold.checkpoints.normal_form.stream import rotate_layer, rotate_outer

LOOSE = 1e3
"""A change of basis is one when it differs from the identity by so many roundings."""
LACKING = 10.0
"""Singular values below so many roundings of the largest are none."""


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
    there = dict(theirs)
    permute_heads(block, there, order)
    if agreement.neurons is not None:
        permute_neurons(there, agreement.neurons)
    u = rounding.first + rounding.second
    for name, words, found in _changes(block, mine, there, u):
        identity = np.eye(found.shape[-1]) if found.ndim > 1 else 1.0
        if np.abs(found - identity).max() > max(LOOSE * u, 1e-9):
            changes[f"layers.{layer}.{name}"] = found
            moved.add(words)


def _changes(
    block: Block, mine: Float64Tensors, there: Float64Tensors, u: float
) -> Iterator[tuple[str, str, np.ndarray]]:
    """Changes of basis of keys and values, and scales, of layers in the same order."""
    for shared, own, words in (
        ("key", "query", "query–key change of basis"),
        ("value", "output", "value–output change of basis"),
    ):
        pairs = zip(_factors(mine, shared, own), _factors(there, shared, own), strict=True)
        yield shared, words, np.stack([_change_of_basis(x, y, u) for x, y in pairs])
    for name in (name for name in ("up", "gate") if name in mine):
        yield name, "neurons scaled", _scales(mine[name], there[name])
    if "query_norm" in mine:
        gains = (t["query_norm"][:, None] + block.attention.qk_norm_offset for t in (mine, there))
        yield "query_norm", "query and key norms scaled", _scales(*gains)


def _factors(
    tensors: Float64Tensors, shared: str, own: str
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For every group the rows that its heads share, and those of all its heads side by side."""
    heads = np.swapaxes(tensors[own], 2, 3) if own == "output" else tensors[own]
    for rows, group in zip(tensors[shared], heads, strict=True):
        yield rows, np.concatenate(group, axis=1)


def _change_of_basis(
    first: tuple[np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray], u: float
) -> np.ndarray:
    """The C with C x = y and Cᵀ q = p for pairs (x, p), (y, q) of factors with equal products.

    Where x lacks rank it is p and q that say what C is, and where they say nothing the identity:
    C = y x⁺ + (q⁺ᵀ pᵀ + 1 − q q⁺)(1 − x x⁺).
    """
    (x, p), (y, q) = first, second
    one = np.eye(len(x))
    if np.allclose(x, y, LOOSE * u, LOOSE * u * float(np.abs(x).max())):
        return one
    C, _, rank, _ = np.linalg.lstsq(x.T, y.T, rcond=LACKING * u)
    if rank == len(x):
        return C.T
    beyond = one - x @ np.linalg.pinv(x, rcond=LACKING * u)
    inverse = np.linalg.pinv(q, rcond=LACKING * u)
    return C.T + (inverse.T @ p.T + one - q @ inverse) @ beyond


def _scales(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The factor of every row of y over that of x, 1 for rows of zeros."""
    size = np.sum(x**2, axis=1)
    return np.where(size > 0, np.sum(x * y, axis=1) / np.where(size > 0, size, 1.0), 1.0)


def note_raw(a: Checkpoint, b: Checkpoint, layer: int, moved: set[str]) -> None:
    """Symmetries that folding removes are seen in the tensors as stored."""
    names = {"attention_norm": "norm gains", "attention_norm_shift": "norm shifts"}
    names |= {"key_bias": "key biases", "value_bias": "value biases"}
    for name, words in names.items():
        if name in a.block.layer_shapes:
            x, y = a.tensor(f"layers.{layer}.{name}"), b.tensor(f"layers.{layer}.{name}")
            if not np.allclose(x, y, rtol=1e-2, atol=1e-6):
                moved.add(words)
