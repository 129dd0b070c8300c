"""`nm.checkpoint(path)`: a real model with every question one can ask it."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from neuromanifold.checkpoints.adapters.adapter import Adapter
from neuromanifold.checkpoints.audits.audit import audit
from neuromanifold.checkpoints.checkpoint import Checkpoint, open_checkpoint
from neuromanifold.checkpoints.distance.align import Alignment, align
from neuromanifold.checkpoints.distance.compare import Comparison, compare
from neuromanifold.checkpoints.distance.fingerprint import model_fingerprint
from neuromanifold.checkpoints.edit import convert_rope, fold_norms
from neuromanifold.checkpoints.equality.merged import same_merged
from neuromanifold.checkpoints.equality.same import same
from neuromanifold.checkpoints.equality.sameness import Sameness
from neuromanifold.checkpoints.normal_form.canonical import (
    Canonical,
    CanonicalReport,
    Steps,
    write_canonical,
)


class RealModel(Checkpoint):
    """A model in a file; its tensors are read when they are asked for."""

    audit = audit
    fingerprint = model_fingerprint
    convert_rope = convert_rope
    fold_norms = fold_norms

    def canonical(self, steps: Steps | None = None) -> Canonical:
        """The normal form, computed layer by layer when it is asked for."""
        return Canonical(self.whole, steps)

    def write_canonical(
        self, out: str | Path, steps: Steps | None = None, *, dtype: np.dtype | None = None
    ) -> CanonicalReport:
        """Write the normal form in the model's own names and layout."""
        return write_canonical(self, out, steps, dtype=dtype)

    def same(
        self,
        other: str | Path | Checkpoint,
        *,
        adapter: Adapter | str | Path | None = None,
        rtol: float | None = None,
        seed: int = 0,
    ) -> Sameness:
        """Whether another file holds the same function, or this one's with an adapter merged."""
        second = other if isinstance(other, Checkpoint) else open_checkpoint(other)
        if adapter is None:
            return same(self, second, rtol=rtol, seed=seed)
        return same_merged(self, second, adapter, rtol=rtol, seed=seed)

    def compare(self, other: str | Path | Checkpoint) -> Comparison:
        """Distances to another model by layer and head that no gauge changes."""
        return compare(self, other)

    def align(
        self, other: str | Path | Checkpoint, out: str | Path | None = None, *, seed: int = 0
    ) -> Alignment:
        """Move another model along its fiber towards this one, and write it."""
        return align(self, other, out, seed=seed)


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
    found = open_checkpoint(path, config=config, heads=heads, family=family)
    return RealModel(found.model, found.found, found.remarks)
