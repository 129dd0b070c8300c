"""One model moved along its fiber as near to another as its symmetries allow.

The second model is folded, its stream, heads and neurons are matched to the first one's, every
head and neuron is put in the basis nearest to the first one's (gauge-qk, gauge-rope, gauge-ov,
mlp-scale), and then everything is unfolded with the first model's norms, dead biases and means
(norm-absorption, layernorm-centring, dead-key-bias, value-bias, stream-one, tables). Its function
stays; what is free of choice in its weights becomes the first model's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.checkpoint import Checkpoint, layout_order, opened
from neuromanifold.checkpoints.distance.compare import Pair, check_comparable
from neuromanifold.checkpoints.distance.matching import match_neurons
from neuromanifold.checkpoints.distance.turning import turn
from neuromanifold.checkpoints.equality.uniform import block_difference
from neuromanifold.checkpoints.forms import Tensors, neuron_forms
from neuromanifold.checkpoints.normal_form.canonical import sheared
from neuromanifold.checkpoints.normal_form.fold import incoming
from neuromanifold.checkpoints.normal_form.frame import permute_heads, permute_neurons
from neuromanifold.checkpoints.normal_form.unfold import (
    set_means,
    unfold_biases,
    unfold_layer,
    unfolded_outer,
)
from neuromanifold.checkpoints.running import deviation, random_inputs, run
from neuromanifold.errors import ArgumentError

MIXTURES = (0.25, 0.5, 0.75)
"""The points of the straight line at which its barrier is measured."""


class Aligned:
    """The second model in the first one's gauge, one layer at a time."""

    def __init__(self, a: Checkpoint, b: Checkpoint) -> None:
        check_comparable(a, b)
        difference = block_difference(a.block, b.block)
        rotary = b.block.attention.rotary, a.block.attention.rotary
        if difference is None and layout_order(*rotary) is not None:
            difference = "their rotary layouts (`checkpoint convert-rope` makes them one)"
        if difference is not None:
            raise ArgumentError(
                f"{a.path} and {b.path} are models of different kinds: {difference}; only models "
                "of one kind can be aligned"
            )
        self.first, self.second = a, b
        self.pair = Pair(a, b)
        outer = self._unsheared(self.pair.outer[1])
        self._outer = unfolded_outer(self.block, outer, a.outer())
        self._held: tuple[int, Tensors] | None = None

    @property
    def block(self) -> Block:
        """What the tensors mean."""
        return self.second.block

    def outer(self) -> Tensors:
        """The tensors outside the layers."""
        return self._outer

    def layer(self, layer: int) -> Tensors:
        """The tensors of one layer; the last one asked for is kept."""
        if self._held is None or self._held[0] != layer:
            self._held = layer, self._aligned_layer(layer)
        return self._held[1]

    def tensor(self, name: str) -> np.ndarray:
        """A tensor by its name in the block."""
        if not name.startswith("layers."):
            return self._outer[name]
        _, layer, inner = name.split(".")
        return self.layer(int(layer))[inner]

    def _unsheared(self, tensors: Tensors, at: str = "") -> Tensors:
        """Folded tensors moved by the shear that leads from the first model's normal form to it."""
        factor = self.pair.forms[0].shear
        return tensors if factor is None else sheared(self.second, 1 / factor, tensors, at)

    def _aligned_layer(self, layer: int) -> Tensors:
        block = self.block
        first, second = self.pair.layer(layer)
        moved = dict(second)
        permute_heads(block, moved, self.pair.match(first, second))
        mine, yours = neuron_forms(block, first), neuron_forms(block, moved)
        if mine is not None and yours is not None:
            permute_neurons(moved, match_neurons(mine, yours))
        turn(block, first, moved, descend=False)
        raw = self.first.layer(layer)
        reads, own = (incoming(block, m.tensor, layer) for m in (self.first, self.second))
        unfold_layer(block, moved, raw, reads, own, last=layer == block.stored_layers - 1)
        moved = self._unsheared(moved, "layers.0.")
        set_means(block, moved, raw)
        turn(block, raw, moved, descend=True)
        unfold_biases(block, moved, raw)
        set_means(block, moved, raw)
        return moved


@dataclass(frozen=True)
class Mixture:
    """The model on the straight line between two others."""

    first: "Checkpoint | Aligned"
    second: "Checkpoint | Aligned"
    share: float

    @property
    def block(self) -> Block:
        """What the tensors mean."""
        return self.first.block

    def outer(self) -> Tensors:
        """The tensors outside the layers."""
        return self._mixed(self.first.outer(), self.second.outer())

    def layer(self, layer: int) -> Tensors:
        """The tensors of a layer."""
        return self._mixed(self.first.layer(layer), self.second.layer(layer))

    def _mixed(self, a: Tensors, b: Tensors) -> Tensors:
        return {name: (1 - self.share) * a[name] + self.share * b[name] for name in a}


@dataclass(frozen=True)
class Alignment:
    """What aligning did.

    Attributes:
        file: what was written; None when nothing was.
        first, second: the models.
        deviation: the largest relative change of the second model's outputs, in float64; it is
            zero up to rounding, because its function stays.
        distance: ‖θ − θ′‖/‖θ‖ of all weights, before and after.
        barrier: how far outputs on the straight line between the models are from the straight
            line between their outputs, relative to the larger of them, before and after: the
            largest of the mixtures 1/4, 1/2, 3/4.
        stream: what became of the second model's stream.
        seed: of the random inputs.
    """

    file: str | None
    first: str
    second: str
    deviation: float
    distance: tuple[float, float]
    barrier: tuple[float, float]
    stream: str
    seed: int

    def __str__(self) -> str:
        written = "" if self.file is None else f" Written to {self.file}."
        return (
            f"{self.second} moved towards {self.first}: distance of weights "
            f"{self.distance[0]:.3g} before, {self.distance[1]:.3g} after; barrier of the straight "
            f"line {self.barrier[0]:.3g} before, {self.barrier[1]:.3g} after (random inputs, seed "
            f"{self.seed}); outputs deviate by {self.deviation:.1e} in float64.{written}"
        )

    def to_dict(self) -> dict[str, object]:
        """The JSON of `checkpoint align`."""
        return {**vars(self), "distance": list(self.distance), "barrier": list(self.barrier)}


def align(
    first: str | Path | Checkpoint,
    second: str | Path | Checkpoint,
    out: str | Path | None = None,
    *,
    dtype: np.dtype | None = None,
    force: bool = False,
    seed: int = 0,
    config: str | Path | Mapping[str, object] | None = None,
    heads: int | None = None,
    family: str | Path | None = None,
) -> Alignment:
    """Move the second model along its fiber towards the first, and write it.

    Independently trained models are not brought together by this: gauge is not what separates
    them. Siblings, and models that a tool has rotated, permuted or rescaled, are.

    Args:
        first: a checkpoint, or its path.
        second: the one that is moved.
        out: the safetensors file to write, in the second model's names, layout and dtypes.
        dtype: of the tensors written.
        force: replace an existing file.
        seed: of the random inputs on which outputs are compared.
        config: for paths, a configuration where none lies beside the weights.
        heads: for paths, the number of heads where the configuration does not say.
        family: for paths, a file that describes a model of no known family.
    """
    a, b = (opened(item, config, heads, family) for item in (first, second))
    b = b.whole
    aligned = Aligned(a.as_block(replace(a.block, shows_tokens=b.block.shows_tokens)), b)
    distances = weight_distance(a, b), weight_distance(a, aligned)
    moved = aligned if distances[1] < distances[0] else b  # folding may lead away, to no avail
    inputs = random_inputs(a.block, seed)
    outputs = {name: run(model, inputs).outputs for name, model in (("a", a), ("b", b))}
    report = Alignment(
        None,
        str(a.path),
        str(b.path),
        deviation(outputs["b"], run(moved, inputs).outputs),
        (distances[0], min(distances)),
        (
            barrier(a, b, inputs, outputs["a"], outputs["b"]),
            barrier(a, moved, inputs, outputs["a"], outputs["b"]),
        ),
        aligned.pair.stream_kind,
        seed,
    )
    if out is None:
        return report
    b.write(out, moved.tensor, dtype=dtype, force=force)
    return replace(report, file=str(out))


def barrier(
    a: Checkpoint,
    b: "Checkpoint | Aligned",
    inputs: Mapping[str, np.ndarray],
    first: np.ndarray,
    second: np.ndarray,
) -> float:
    """The largest distance of mixed models' outputs from the mixed outputs `first`, `second`."""
    size = max(np.linalg.norm(first), np.linalg.norm(second))
    found = [
        np.linalg.norm(run(Mixture(a, b, t), inputs).outputs - (1 - t) * first - t * second)
        for t in MIXTURES
    ]
    return float(max(found) / size) if size else 0.0


def weight_distance(a: Checkpoint, b: "Checkpoint | Aligned") -> float:
    """‖θ_A − θ_B‖/‖θ_A‖ over all tensors, one layer in memory at a time."""
    squares = np.zeros(2)
    pairs = [(a.outer, b.outer)]
    pairs += [
        (lambda layer=layer: a.layer(layer), lambda layer=layer: b.layer(layer))
        for layer in range(a.block.stored_layers)
    ]
    for mine, yours in pairs:
        x, y = mine(), yours()
        squares += [
            sum(float(np.sum((x[name] - y[name]) ** 2)) for name in x),
            sum(float(np.sum(x[name] ** 2)) for name in x),
        ]
    return float(np.sqrt(squares[0] / squares[1])) if squares[1] else 0.0
