"""A normal form of a checkpoint: one file for all weights that the gauge group makes equal.

The order matters: norms are folded and dead parameters zeroed, every head and neuron is put in its
own frame, the stream in that of the tables, and heads and neurons in the order of their sizes.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

import jax
import numpy as np

from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.checkpoint import Checkpoint, Float64Tensors
from neuromanifold.checkpoints.gauge.stream import shear, shears
from neuromanifold.checkpoints.normal_form.fold import fold_layer, fold_outer, gains, incoming
from neuromanifold.checkpoints.normal_form.frame import (
    frame_heads,
    frame_neurons,
    head_order,
    neuron_order,
    permute_heads,
    permute_neurons,
)
from neuromanifold.checkpoints.normal_form.stream import (
    coordinate_order,
    frees_permutation,
    frees_rotation,
    principal_axes,
    rotate_layer,
    rotate_outer,
)
from neuromanifold.checkpoints.reading import Model, open_model
from neuromanifold.checkpoints.running import deviation, random_inputs, run
from neuromanifold.errors import NotCoveredError

RANGE = 120
"""Sizes of tensors between 2^-120 and 2^120: then products of four and their squares are floats."""


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
        self._held: tuple[int, Float64Tensors] | None = None

    def _folded_outer(self) -> Float64Tensors:
        steps, outer = self.steps, _in_range(self.checkpoint, self.checkpoint.outer())
        with jax.enable_x64(True):
            folded = fold_outer(self.block, outer, norms=steps.fold, dead=steps.drop_dead)
            return {name: np.asarray(value) for name, value in folded.items()}

    @cached_property
    def shear(self) -> float | None:
        """The factor of the shear that balances what shared layers read along 1 (stream-one)."""
        steps = self.steps
        if not (steps.fold and steps.drop_dead and shears(self.block)):
            return None
        norm = self.checkpoint.layer(0, ("mlp_norm", "mlp_norm_shift"))
        if not gains(self.block, norm, "mlp_norm").all():
            return None
        return balancing_shear(self.block, self._folded_outer(), norm)

    @cached_property
    def _frame(self) -> tuple[Float64Tensors, np.ndarray | None, np.ndarray | None]:
        """The tensors outside the layers, the basis of the stream, and a common order of heads."""
        block, steps = self.checkpoint.block, self.steps
        outer = self._folded_outer()
        if self.shear is not None:
            outer = sheared(self.checkpoint, self.shear, outer)
        basis, heads = None, None
        if steps.order and "score_table" in outer:
            heads = np.argsort(-np.sum(outer["score_table"] ** 2, axis=0), kind="stable")
            outer["score_table"] = outer["score_table"][:, heads]
        if steps.order and steps.fold and block.embed_width is not None and block.embed_norm:
            outer = outer if block.keeps_tokens else self._table_axes(outer)
        elif steps.order and steps.fold:
            basis = self._stream_basis(outer)
        if basis is not None:
            outer = rotate_outer(outer, basis)
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

    @property
    def block(self) -> Block:
        """What the tensors mean."""
        return self.checkpoint.block

    @property
    def basis(self) -> np.ndarray | None:
        """The change of basis of the stream, None when there is none."""
        return self._frame[1]

    def outer(self) -> Float64Tensors:
        """The tensors outside the layers."""
        return self._frame[0]

    def attention(self, layer: int) -> Float64Tensors:
        """The folded tensors of one layer without the maps of its MLP: what its heads are."""
        names = (name for name in self.block.layer_shapes if name not in ("up", "gate", "down"))
        return self._folded_layer(layer, names)

    def layer(self, layer: int) -> Float64Tensors:
        """The tensors of one layer; the last one asked for is kept."""
        if self._held is None or self._held[0] != layer:
            self._held = (layer, self._layer_form(layer))
        return self._held[1]

    def _layer_form(self, layer: int) -> Float64Tensors:
        block, steps = self.checkpoint.block, self.steps
        tensors = self._folded_layer(layer)
        _, basis, heads = self._frame
        if basis is not None:
            tensors = rotate_layer(tensors, basis)
        if steps.balance:
            frame_heads(block, tensors)
            frame_neurons(block, tensors)
        if steps.order:
            order = head_order(block, tensors) if heads is None else heads
            permute_heads(block, tensors, order)
            if block.mlp is not None:
                permute_neurons(tensors, neuron_order(tensors))
        return tensors

    def _folded_layer(self, layer: int, names: Iterable[str] | None = None) -> Float64Tensors:
        block, steps = self.checkpoint.block, self.steps
        raw = _in_range(self.checkpoint, self.checkpoint.layer(layer, names))
        if self.shear is not None:
            raw = sheared(self.checkpoint, self.shear, raw, "layers.0.")
        with jax.enable_x64(True):
            folded = fold_layer(
                block,
                raw,
                incoming(block, self.checkpoint.tensor, layer),
                last=layer == block.stored_layers - 1,
                norms=steps.fold,
                dead=steps.drop_dead,
            )
            return {name: np.asarray(value) for name, value in folded.items()}

    def tensor(self, name: str) -> np.ndarray:
        """A tensor by its name in the block."""
        if not name.startswith("layers."):
            return self.outer()[name]
        _, layer, inner = name.split(".")
        return self.layer(int(layer))[inner]

    def weights(self) -> Float64Tensors:
        """All tensors: for small models."""
        return {name: self.tensor(name) for name in self.checkpoint.block.shapes}


def _in_range(model: Checkpoint, tensors: Float64Tensors) -> Float64Tensors:
    """Tensors whose products of four have squares that float64 holds, or are zero."""
    for name, value in tensors.items():
        size = float(np.abs(value).max(initial=0.0))
        if size and not 2.0**-RANGE < size < 2.0**RANGE:
            word = "large that float64 overflows" if size > 1 else "small that float64 underflows"
            raise NotCoveredError(
                f"the numbers of {name} in {model.path} ({size:.1e}) are so {word} in products of "
                "them; rescale them"
            )
    return tensors


def balancing_shear(block: Block, outer: Float64Tensors, norm: Float64Tensors) -> float:
    """The factor of the shear that balances what a map writes along the normal of a norm.

    In the coordinates (x mod 1, gᵀ(x − β)) with g = 1/γ the shear multiplies the last by a factor,
    and with it the row gᵀE of the map E and the constant gᵀ(b − β); Π E stays. The row gets the
    size it would have if E wrote in all directions alike, and the constant a positive sign: they
    depend on the map alone, and no factor comes near to zero.
    """
    g, E = 1 / gains(block, norm, "mlp_norm"), outer["embed_map"]
    row, constant = g @ E, g @ (outer["embed_map_bias"] - norm.get("mlp_norm_shift", 0.0))
    rest = np.linalg.norm(E - E.mean(axis=0)) / np.sqrt(len(E) - 1)
    size = np.linalg.norm(row)
    if not min(size, rest) > 0:
        return 1.0
    return float(np.linalg.norm(g) * rest / size * (-1.0 if constant < 0 else 1.0))


def sheared(
    model: Checkpoint, factor: float, tensors: Float64Tensors, at: str = ""
) -> Float64Tensors:
    """Tensors of a model with shared layers, named without `at`, moved by the shear of a factor."""
    block, norm = model.block, model.layer(0, ("mlp_norm", "mlp_norm_shift"))
    amount = (factor - 1) / (1 / gains(block, norm, "mlp_norm")).sum()
    weights = {f"layers.0.{name}": value for name, value in norm.items()}
    weights |= {at + name: value for name, value in tensors.items()}
    with jax.enable_x64(True):
        moved = shear(block, {"shear": amount}, weights)
        return {name: np.asarray(moved[at + name]) for name in tensors}


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
    form = Canonical(checkpoint.whole, steps)
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
