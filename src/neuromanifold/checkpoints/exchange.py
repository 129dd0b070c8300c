"""An input that shows what a few wrong entries do, where the rounding of all others would hide it.

Two files whose stored numbers agree to rounding, but for entries of a few tensors, differ by what
those entries do. The first model is run as it is, and with those entries taken from the second;
both have all other numbers in common, so that only the rounding of the exchanged entries has to be
exceeded. Had a symmetry moved them, the exchange would take all of it over and change the outputs
by no more than that rounding. A symmetry that moves many tensors, some of them by less than their
rounding, is not taken over whole: then nothing is exchanged.
"""

from dataclasses import dataclass, replace
from itertools import islice

import ml_dtypes
import numpy as np

from neuromanifold.checkpoints.agreement import Rounding
from neuromanifold.checkpoints.block import Block
from neuromanifold.checkpoints.checkpoint import Checkpoint, Float64Tensors
from neuromanifold.checkpoints.running import TOKENS, deviation, random_inputs, run

FEW = 4
"""A wrong edit of two heads is in the weights and biases of queries and in the outputs."""


@dataclass(frozen=True)
class Exchanged:
    """The first model, and which of its entries are not roundings of the second one's.

    Attributes:
        first, second: the models, in the terms of one block.
        rounding: of what they store.
        taken: whether those entries are taken from the second.
        spoiled: whether they carry random errors, of the size of the rounding of the largest entry
            in their row or column: rotations that rounding hides move entries by that.
    """

    first: Checkpoint
    second: Checkpoint
    rounding: Rounding
    taken: bool = True
    spoiled: bool = False

    @property
    def block(self) -> Block:
        """What the tensors mean."""
        return self.first.block

    def outer(self) -> Float64Tensors:
        """The tensors outside the layers."""
        return {name: self._mixed(name) for name in self.block.global_shapes}

    def layer(self, layer: int) -> Float64Tensors:
        """The tensors of a layer."""
        at = 0 if self.block.shared else layer
        return {name: self._mixed(f"layers.{at}.{name}") for name in self.block.layer_shapes}

    def wrong(self, name: str) -> np.ndarray:
        """Which entries of a tensor are not roundings of common values."""
        x, y = self.first.tensor(name), self.second.tensor(name)
        explained = self.rounding.first * np.abs(x) + self.rounding.second * np.abs(y)
        return np.abs(x - y) > explained + self._least(name)

    def _least(self, name: str) -> float:
        """The distance of numbers around zero, in the coarser of two dtypes."""
        dtypes = (model.dtype(name) for model in (self.first, self.second))
        return max(float(ml_dtypes.finfo(dtype).smallest_subnormal) for dtype in dtypes)

    def _mixed(self, name: str) -> np.ndarray:
        x, y, wrong = self.first.tensor(name), self.second.tensor(name), self.wrong(name)
        mixed = np.where(wrong, y, x) if self.taken else x
        if not self.spoiled:
            return mixed
        size = np.abs(mixed).reshape(-1, x.shape[-1])
        size = np.maximum(size.max(axis=1, keepdims=True), size.max(axis=0)).reshape(x.shape)
        signs = np.random.default_rng(0).choice([-1.0, 1.0], x.shape)
        error = (self.rounding.first + self.rounding.second) * size + self._least(name)
        return np.where(wrong, mixed + signs * error, mixed)

    def inputs(self, seed: int) -> dict[str, np.ndarray]:
        """Random inputs that begin with a wrong row of the tokens, and reach one of positions."""
        rows = {name: np.flatnonzero(self.wrong(name).any(axis=1)) for name, _ in self.block.tables}
        reached = rows.get("positions", np.zeros(0, int))[:1] - self.block.position_offset + 1
        inputs = random_inputs(self.block, seed, max(TOKENS, *reached, 0))
        for name in ("tokens", "types"):
            if name in inputs and rows[name].size:
                inputs[name][0] = rows[name][0]
        return inputs


def exchange(
    first: Checkpoint, second: Checkpoint, rounding: Rounding, seed: int
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Outputs before and after the exchange, and what rounding makes of the exchanged entries.

    None when they are in more than a few tensors.
    """
    mixed = Exchanged(first, second, rounding)
    touched = (name for name in first.block.shapes if mixed.wrong(name).any())
    if len(list(islice(touched, FEW + 1))) > FEW:
        return None
    inputs = mixed.inputs(seed)
    before, after = run(first, inputs).outputs, run(mixed, inputs).outputs
    noise = max(
        deviation(clean, run(replace(mixed, taken=taken, spoiled=True), inputs).outputs)
        for clean, taken in ((before, False), (after, True))
    )
    return before, after, noise
