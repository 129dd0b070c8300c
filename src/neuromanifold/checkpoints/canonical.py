"""A normal form of a checkpoint: one file for all weights that the gauge group makes equal.

The order matters: norms are folded and dead parameters zeroed, every head and neuron is put in its
own frame, the stream in that of the tables, and heads and neurons in the order of their sizes.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from neuromanifold.checkpoints.audit import read_by
from neuromanifold.checkpoints.block import Block
from neuromanifold.checkpoints.checkpoint import Checkpoint, Float64Tensors
from neuromanifold.checkpoints.fold import fold_layer, fold_outer, gains
from neuromanifold.checkpoints.frame import (
    frame_heads,
    frame_neurons,
    head_order,
    neuron_order,
    permute_heads,
    permute_neurons,
)
from neuromanifold.checkpoints.gauge.stream import shear, shears
from neuromanifold.checkpoints.reading import Model, open_model
from neuromanifold.checkpoints.running import deviation, random_inputs, run
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
        self._shear: float | None = None
        self._outer, self._basis, self._heads = self._outer_form()
        self._held: tuple[int, Float64Tensors] | None = None

    def _outer_form(self) -> tuple[Float64Tensors, np.ndarray | None, np.ndarray | None]:
        block, steps = self.checkpoint.block, self.steps
        with jax.enable_x64(True):
            folded = fold_outer(
                block, self.checkpoint.outer(), norms=steps.fold, dead=steps.drop_dead
            )
            if steps.fold and steps.drop_dead and shears(block):
                folded = self._sheared(folded)
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

    def _sheared(self, outer: Mapping[str, Any]) -> dict[str, Any]:
        """A map that writes as little as can be along 1; what the layers read goes along."""
        block, layer = self.checkpoint.block, _numbered(self.checkpoint.layer(0))
        g = 1 / gains(block, layer, "layers.0.mlp_norm")
        seen = g @ outer["embed_map"]
        self._shear = -float(outer["embed_map"].mean(axis=0) @ seen / (seen @ seen))
        moved = shear(block, {"shear": self._shear}, {**outer, **layer})
        return {name: moved[name] for name in outer}

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

    @property
    def block(self) -> Block:
        """What the tensors mean."""
        return self.checkpoint.block

    @property
    def basis(self) -> np.ndarray | None:
        """The change of basis of the stream, None when there is none."""
        return self._basis

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
        raw = self.checkpoint.layer(layer)
        with jax.enable_x64(True):
            if self._shear is not None:
                moved = shear(block, {"shear": self._shear}, _numbered(raw))
                raw = {name: moved[f"layers.0.{name}"] for name in raw}
            folded = fold_layer(
                block,
                raw,
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


def _numbered(tensors: Float64Tensors) -> dict[str, Any]:
    return {f"layers.0.{name}": value for name, value in tensors.items()}


@dataclass(frozen=True, slots=True)
class CanonicalReport:
    """What writing a normal form did.

    Attributes:
        file: what was written.
        steps: the steps taken.
        seed: of the input on which the outputs were compared.
        float64: the largest relative deviation of the normal form's outputs, in float64.
        stored: the same after rounding to the dtype that was written.
        layers: the relative deviation of the normalised stream after each layer, as written.
        remarks: what a reader should know.
    """

    file: str
    steps: Steps
    seed: int
    float64: float
    stored: float
    layers: tuple[float, ...]
    remarks: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """The report as JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"Written to {self.file}. Outputs on random inputs (seed {self.seed}) deviate by "
            f"{self.float64:.1e} in float64 and by {self.stored:.1e} as written."
            + "".join(f" Note: {remark}." for remark in self.remarks)
        )


def write_canonical(
    checkpoint: Checkpoint,
    path: str | Path,
    steps: Steps | None = None,
    *,
    dtype: np.dtype | None = None,
    force: bool = False,
    seed: int = 0,
) -> CanonicalReport:
    """Write the normal form in the model's own names and layout, and measure what it changed.

    The order of steps is that of the module; (gauge-qk, gauge-rope, gauge-ov, norm-absorption,
    stream-rotation) make each of them a symmetry.
    """
    form = Canonical(checkpoint, steps)
    checkpoint.write(path, form.tensor, dtype=dtype, force=force)
    written = replace(checkpoint, model=Model(Path(path), open_model(path).contents, {}))
    inputs = random_inputs(checkpoint.block, seed)
    before = run(checkpoint, inputs)
    exact, stored = run(form, inputs), run(written, inputs)
    basis = form.basis
    return CanonicalReport(
        file=str(path),
        steps=form.steps,
        seed=seed,
        float64=deviation(before.outputs, exact.outputs),
        stored=deviation(before.outputs, stored.outputs),
        layers=tuple(
            deviation(x if basis is None else basis @ x, y)
            for x, y in zip(before.streams, stored.streams, strict=True)
        ),
        remarks=tuple(form.remarks),
    )
