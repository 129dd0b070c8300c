"""What the function sees of a layer: products of its tensors that no gauge of the layer changes.

After folding, a head is the bilinear form qᵀk of its scores and the product O V of what it writes
(gauge-qk, gauge-ov); under rotary positions the form is one complex product q̄ k for each plane and
a real one on the rest (gauge-rope). A neuron is its rows and its column, balanced where its
activation lets them be scaled (mlp-scale). Forms are kept as factors; the d × d products are never
formed.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.block.parts import Attention
from neuromanifold.checkpoints.checkpoint import Checkpoint
from neuromanifold.checkpoints.normal_form.canonical import Canonical, Steps
from neuromanifold.checkpoints.normal_form.frame import frame_neurons, with_bias

Tensors = dict[str, np.ndarray]
FOLDED = Steps(fold=True, drop_dead=True, balance=False, order=False)
"""The steps that need no choice of frame."""


@dataclass(frozen=True)
class Heads:
    """The heads of a layer: H of them, in G groups that share keys and values.

    Attributes:
        query: (H, m, e) on the m coordinates that do not rotate; the last of the e columns is the
            constant.
        key: (G, m, e).
        query_planes, key_planes: (H, p, e) and (G, p, e), complex, one for each rotary plane.
        query_all, key_all: (H, k, e) and (G, k, e), the vectors whose lengths a norm of queries
            and keys divides by; without such a norm no rows.
        output: (H, v, d), transposed.
        value: (G, v, e).
    """

    query: np.ndarray
    key: np.ndarray
    query_planes: np.ndarray
    key_planes: np.ndarray
    query_all: np.ndarray
    key_all: np.ndarray
    output: np.ndarray
    value: np.ndarray

    @property
    def sharing(self) -> int:
        """Heads in a group."""
        return len(self.query) // len(self.key)


@dataclass(frozen=True)
class Neurons:
    """The neurons of a layer, one a row.

    Attributes:
        signed: rows up and down, determined up to one common sign if `mirrored`.
        fixed: the gate's rows, without columns when there is none.
        mirrored: whether the sign is free.
    """

    signed: np.ndarray
    fixed: np.ndarray
    mirrored: bool


def folded(checkpoint: Checkpoint) -> Canonical:
    """The model with norms folded and dead parameters zero, in the frames of its file."""
    return Canonical(checkpoint, FOLDED)


def head_forms(block: Block, tensors: Tensors) -> Heads:
    """The heads of a folded layer."""
    a = block.attention
    query, key = with_bias(tensors, "query"), with_bias(tensors, "key")
    query = query.reshape(a.heads, a.key_size, -1)
    lengths = query[:, :0], key[:, :0]
    if a.qk_norm is not None:
        lengths = query, key
        query = (a.qk_norm_offset + tensors["query_norm"])[:, None] * query
        key = (a.qk_norm_offset + tensors["key_norm"])[:, None] * key
    output = tensors["output"].reshape(a.heads, block.width, a.value_size)
    return Heads(
        query[:, a.rotated :],
        key[:, a.rotated :],
        planes(a, query),
        planes(a, key),
        *lengths,
        np.swapaxes(output, 1, 2),
        with_bias(tensors, "value"),
    )


def planes(a: Attention, rows: np.ndarray) -> np.ndarray:
    """Rows of rotating coordinates as complex numbers, one for each plane whatever the layout."""
    if a.rotary is None:
        return np.zeros((len(rows), 0, rows.shape[-1]), complex)
    first, second = np.array(a.rotary.planes).T
    return rows[:, first] + 1j * rows[:, second]


def neuron_forms(block: Block, tensors: Mapping[str, np.ndarray]) -> Neurons | None:
    """The neurons of a folded layer, with their scalings used up."""
    mlp = block.mlp
    if mlp is None:
        return None
    framed = dict(tensors)
    frame_neurons(block, framed)
    fixed = with_bias(framed, "gate") if mlp.gated else np.zeros((mlp.size, 0))
    signed = np.hstack([with_bias(framed, "up"), framed["down"].T])
    return Neurons(signed, fixed, mlp.gated or mlp.activation == "tanh")


def vectors(block: Block, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What else of a folded layer is seen as it is: constants and gains."""
    return {
        name: tensors[name]
        for name, shape in block.layer_shapes.items()
        if len(shape) == 1 and name not in ("query_norm", "key_norm", "up_bias", "gate_bias")
    }
