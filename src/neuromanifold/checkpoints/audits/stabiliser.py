"""The changes of basis of a layer's heads that move none of its weights."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from neuromanifold.checkpoints.audits.spectra import spectrum
from neuromanifold.checkpoints.checkpoint import Checkpoint
from neuromanifold.checkpoints.normal_form.frame import with_bias

if TYPE_CHECKING:
    from neuromanifold.checkpoints.audits.audit import HeadRecord


def stabiliser_of(
    checkpoint: Checkpoint, layer: int, heads: Sequence["HeadRecord"], eps: float
) -> int:
    """The dimension of what moves nothing, (n − rank R)(n − rank L) for a group's pair of factors.

    The tangent X of GL_n fixes R = [K b_K] (or [V b_V]) and L, the queries (outputs) of all heads
    of the group side by side, when X R = 0 and Xᵀ L = 0. A product of full rank leaves nothing.
    Of keys that turn each plane is one complex coordinate, and GL acts on the rest (gauge-rope).
    """
    block, a, total = checkpoint.block, checkpoint.block.attention, 0
    kinds = [("value", "output", "value_output")]
    kinds += [("key", "query", "query_key")] if a.qk_norm is None else []
    for right, left, kind in kinds:
        rotary = a.rotary if right == "key" else None
        for g in range(a.groups):
            group = [getattr(head, kind) for head in heads if head.group == g]
            if not all(one.deficient for one in group):
                continue
            names = {right, left, f"{right}_bias", f"{left}_bias"} - {"output_bias"}
            tensors = checkpoint.layer(layer, names & block.layer_shapes.keys())
            R, L = (with_bias(tensors, name)[g] for name in (right, left))
            L = np.moveaxis(L[..., :-1], -2, -1) if left == "output" else L
            factors = R, np.concatenate(list(L), axis=1)
            for x, y in () if rotary is None else rotary.planes:
                total += 2 * _missing([F[[x]] + 1j * F[[y]] for F in factors], eps)
            total += _missing([F[0 if rotary is None else rotary.size :] for F in factors], eps)
    return total


def _missing(factors: Sequence[np.ndarray], eps: float) -> int:
    """The product of what the ranks of two factors (n, …) lack; nothing where one is undecided."""
    found = 1
    for F in factors:
        rank = spectrum(np.linalg.svd(F, compute_uv=False), F.shape[1], eps).rank
        found *= 0 if rank is None else len(F) - rank
    return found
