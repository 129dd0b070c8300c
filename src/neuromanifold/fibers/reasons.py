"""Why two weights have the same function, when no symmetry of the weights says so.

Every reason is checked in coordinates in which the function can be read: (A, V) for one layer,
virtual weights (M, L) for one head, the table of products of linear forms for one lightning layer
with several heads. The functions have been compared already; a reason explains, it does not decide.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from neuromanifold.fibers.pairs import layer_spectra, swapped
from neuromanifold.networks.traits import is_homogeneous
from neuromanifold.networks.virtual import has_virtual_weights, virtual_weights
from neuromanifold.networks.weights import Weights

Matrix = Float[np.ndarray, "_ _"]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why two functions are the same.

    Attributes:
        statement: the id of the statement that makes them so, None when no reason is known.
        text: the reason in words.
    """

    statement: str | None
    text: str


def find_reason(first: Weights, second: Weights, tolerance: float) -> Reason:
    """The first reason that applies.

    Args:
        first: weights in float64.
        second: weights in float64 with the same function.
        tolerance: how far two directions may differ and still count as equal.
    """
    for check in (_rank_one_swap, _virtual, _symmetric_parts, _head_tables):
        reason = check(first, second, tolerance)
        if reason is not None:
            return reason
    return Reason(None, "the outputs agree, and no symmetry known here relates the weights")


def difference(first: Weights, second: Weights) -> str:
    """Which invariant of the two functions differs most, in words."""
    if not _both_virtual(first, second):
        return "the outputs at the witness"
    names = [f"M_{i}" for i in range(1, first.architecture.depth + 1)] + ["L"]
    scaled = is_homogeneous(first.architecture)
    gaps = [
        _distance(B, B_new, scaled=scaled)
        for B, B_new in zip(_virtual_list(first), _virtual_list(second), strict=True)
    ]
    worst = int(np.argmax(gaps))
    kind = "direction" if scaled else "value"
    return f"the {kind} of {names[worst]}, by {gaps[worst]:.2g} relative to its size"


def _rank_one_swap(first: Weights, second: Weights, tolerance: float) -> Reason | None:
    """(k⊗q, h⊗v) against (v⊗q, h⊗k), up to rescaling (thm-3.2)."""
    architecture = first.architecture
    plain = is_homogeneous(architecture) and architecture.mask == "none"
    if not plain or max(architecture.depth, architecture.heads, second.architecture.heads) > 1:
        return None
    if any(one.rank != 1 for weights in (first, second) for one in layer_spectra(weights, 0)):
        return None
    if _parallel(_virtual_list(swapped(first)), _virtual_list(second), tolerance):
        return Reason("thm-3.2", "A and V have rank one, and their factors k and v are swapped")
    return None


def _virtual(first: Weights, second: Weights, tolerance: float) -> Reason | None:
    """Equal virtual weights, up to rescaling for lightning (eq-8, eq-13)."""
    if not _both_virtual(first, second):
        return None
    pairs = _virtual_list(first), _virtual_list(second)
    if is_homogeneous(first.architecture):
        if _parallel(pairs[0], pairs[1], tolerance):
            return Reason("eq-13", "the virtual weights (M, L) agree up to rescaling")
    elif all(_distance(B, C, scaled=False) <= tolerance for B, C in zip(*pairs, strict=True)):
        return Reason("eq-8", "the virtual weights (M, L) agree")
    return None


def _symmetric_parts(first: Weights, second: Weights, tolerance: float) -> Reason | None:
    """Where tokens are parallel, forms count through their symmetric parts only (all-widths).

    After a layer whose form has rank one all tokens are parallel; one token is parallel to itself.
    """
    architecture = first.architecture
    plain = is_homogeneous(architecture) and architecture.mask == "none"
    if not plain or not _both_virtual(first, second):
        return None
    lists: list[list[Matrix]] = []
    for weights in (first, second):
        *forms, L = _virtual_list(weights)
        ranks = [np.linalg.matrix_rank(M, tol=tolerance * np.linalg.norm(M)) for M in forms]
        start = (
            0
            if architecture.tokens == 1
            else next((i + 1 for i, rank in enumerate(ranks) if rank <= 1), len(forms))
        )
        lists.append([*forms[:start], *((M + M.T) / 2 for M in forms[start:]), L])
    if not _parallel(lists[0], lists[1], tolerance):
        return None
    if architecture.tokens == 1:
        return Reason("one-token", "the symmetric parts of the forms agree up to rescaling")
    return Reason(
        "all-widths", "behind a layer of rank one only symmetric parts of forms count: they agree"
    )


def _head_tables(first: Weights, second: Weights, tolerance: float) -> Reason | None:
    """Mixing heads: a lightning layer is the table Σ_h α_m ν_n of linear forms (head-mixing)."""
    architecture = first.architecture
    if not is_homogeneous(architecture) or architecture.mask != "none" or architecture.depth > 1:
        return None
    tables = []
    for weights in (first, second):
        layer = weights.layers[0]
        T = np.einsum("hni,hjm->nmij", layer.value_maps(), layer.attention_matrices())
        tables.append((T + T.swapaxes(2, 3)).reshape(len(T), -1))
    if _distance(*tables, scaled=False) <= tolerance:
        return Reason("head-mixing", "the heads mix: their sums of products agree")
    return None


def _both_virtual(first: Weights, second: Weights) -> bool:
    a, b = first.architecture, second.architecture
    same_kind = (a.depth, a.skip, a.attention) == (b.depth, b.skip, b.attention)
    return same_kind and has_virtual_weights(a) and has_virtual_weights(b)


def _virtual_list(weights: Weights) -> list[Matrix]:
    virtual = virtual_weights(weights)
    return [np.asarray(M) for M in (*virtual.forms, virtual.linear)]


def _parallel(first: list[Matrix], second: list[Matrix], tolerance: float) -> bool:
    """Whether every matrix is a multiple of its partner.

    That the factors meet eq-13 follows from the functions being equal and not zero.
    """
    return all(
        _distance(B, C, scaled=True) <= tolerance for B, C in zip(first, second, strict=True)
    )


def _distance(B: Matrix, C: Matrix, *, scaled: bool) -> float:
    """‖B − C‖ relative to the larger, both divided by their sizes first where scale is free."""
    sizes = float(np.linalg.norm(B)), float(np.linalg.norm(C))
    if max(sizes) == 0:
        return 0.0
    if scaled:
        if min(sizes) == 0:
            return 1.0
        sign = -1.0 if np.vdot(B, C) < 0 else 1.0
        return float(np.linalg.norm(B / sizes[0] - sign * C / sizes[1]))
    return float(np.linalg.norm(B - C)) / max(sizes)
