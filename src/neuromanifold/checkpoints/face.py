"""`nm.checkpoint(path)`: a real model with every question one can ask it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuromanifold.checkpoints.adapters.adapter import Adapter
from neuromanifold.checkpoints.align import Alignment, align
from neuromanifold.checkpoints.audit import Audit, audit
from neuromanifold.checkpoints.block import Block
from neuromanifold.checkpoints.block_parts import Layout
from neuromanifold.checkpoints.canonical import Canonical, CanonicalReport, Steps, write_canonical
from neuromanifold.checkpoints.checkpoint import Checkpoint, open_checkpoint
from neuromanifold.checkpoints.compare import Comparison, compare
from neuromanifold.checkpoints.edit import Edit, convert_rope, fold_norms
from neuromanifold.checkpoints.fingerprint import ModelFingerprint, model_fingerprint
from neuromanifold.checkpoints.gauge.part import Readout
from neuromanifold.checkpoints.merged import same_merged
from neuromanifold.checkpoints.same import Sameness, same


@dataclass(frozen=True)
class RealModel:
    """A model in a file; its tensors are read when they are asked for."""

    checkpoint: Checkpoint

    @property
    def block(self) -> Block:
        """What its configuration says."""
        return self.checkpoint.block

    @property
    def parameters(self) -> int:
        """The number of parameters, a tied head counted once."""
        return self.checkpoint.parameters

    def tensor(self, name: str) -> np.ndarray:
        """A tensor of the block in float64."""
        return self.checkpoint.tensor(name)

    def audit(self, readout: Readout = "logits", *, certify: bool = False) -> Audit:
        """Redundancy part by part, and every head; proved for a small block of the kind."""
        return audit(self.checkpoint, readout, certify=certify)

    def canonical(self, steps: Steps | None = None) -> Canonical:
        """The normal form, computed layer by layer when it is asked for."""
        return Canonical(self.checkpoint, steps)

    def write_canonical(
        self, out: str | Path, steps: Steps | None = None, *, dtype: np.dtype | None = None
    ) -> CanonicalReport:
        """Write the normal form in the model's own names and layout."""
        return write_canonical(self.checkpoint, out, steps, dtype=dtype)

    def same(
        self,
        other: "RealModel | str | Path",
        *,
        adapter: Adapter | str | Path | None = None,
        rtol: float | None = None,
        seed: int = 0,
    ) -> Sameness:
        """Whether another file holds the same function, or this one's with an adapter merged."""
        second = other if isinstance(other, RealModel) else checkpoint(other)
        if adapter is None:
            return same(self.checkpoint, second.checkpoint, rtol=rtol, seed=seed)
        return same_merged(self.checkpoint, second.checkpoint, adapter, rtol=rtol, seed=seed)

    def compare(self, other: "RealModel | str | Path") -> Comparison:
        """Distances to another model by layer and head that no gauge changes."""
        second = other if isinstance(other, RealModel) else checkpoint(other)
        return compare(self.checkpoint, second.checkpoint)

    def align(
        self, other: "RealModel | str | Path", out: str | Path | None = None, *, seed: int = 0
    ) -> Alignment:
        """Move another model along its fiber towards this one, and write it."""
        second = other if isinstance(other, RealModel) else checkpoint(other)
        return align(self.checkpoint, second.checkpoint, out, seed=seed)

    def fingerprint(self) -> ModelFingerprint:
        """Numbers that no exact symmetry changes, and their hash."""
        return model_fingerprint(self.checkpoint)

    def convert_rope(self, out: str | Path, to: Layout) -> Edit:
        """Write the model with the other layout of rotary positions."""
        return convert_rope(self.checkpoint, out, to)

    def fold_norms(self, out: str | Path, *, untie: bool = False) -> Edit:
        """Write the model with its norms folded into what reads them."""
        return fold_norms(self.checkpoint, out, untie=untie)


def checkpoint(
    path: str | Path,
    *,
    config: str | Path | Mapping[str, object] | None = None,
    heads: int | None = None,
    family: str | Path | None = None,
) -> RealModel:
    """Open a real model: a folder, safetensors (shards too), a PyTorch file, or GGUF.

    Args:
        path: the folder or file; nothing is downloaded, nothing executed.
        config: a configuration, when none lies beside the weights.
        heads: the number of query heads, when the configuration does not say.
        family: a file that describes a model of no known family.
    """
    return RealModel(open_checkpoint(path, config=config, heads=heads, family=family))
