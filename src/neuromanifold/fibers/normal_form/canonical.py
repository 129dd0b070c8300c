"""A normal form for weights: one representative for all weights that symmetries relate.

Layer by layer, in coordinates of the layer's input that earlier layers have fixed:

1. scaling (eq-13): every A_h has Frobenius norm 1, and its sign is that of a frame (`balanced`);
2. heads are put in the order of a fixed linear function of A_h and of V_hᵀ G⁺ V_h, G = Σ V_h V_hᵀ,
   which no change of the output's coordinates moves;
3. inter-layer (eq-9): the outputs (V_1 … V_H) get orthonormal rows, the basis of their row space
   that is closest to a fixed frame. Where they have rank r < d_i, the coordinates beyond r are
   never used: what reads them is set to zero (a minimal representative: same function, another
   orbit);
4. key-query and value-output (lemma-3.1): balanced factors.

A head with A_h = 0 contributes nothing where scaling holds, so its V_h is set to zero.

All this happens in units (`fibers.units`), in which coordinates between layers have one size. What
counts as zero there is what rounding leaves of a zero: sums of n products are off by about n units
of rounding. The result is compared with the weights it came from, invariant by invariant or output
by output (`fibers.evidence`): the answer carries the distance, and is `undecided` where it is not
explained by rounding, or where rounding explains too much.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from neuromanifold.algebra import low_rank
from neuromanifold.algebra.low_rank import ROUNDED_ZERO
from neuromanifold.display import Displayed, Recorded
from neuromanifold.errors import NotCoveredError
from neuromanifold.fibers.agreement import Agreement
from neuromanifold.fibers.evidence import deviation
from neuromanifold.fibers.normal_form.balanced import balanced_factors, closest_rotation
from neuromanifold.fibers.normal_form.factors import numeric_rank
from neuromanifold.fibers.units import in_float64, in_units
from neuromanifold.networks.weights import Layer, Weights

Stack = Float[np.ndarray, "head _ _"]

TIED = 1e-7
"""Heads whose order is decided by less than this are reported as tied."""


@dataclass(frozen=True, slots=True)
class CanonicalForm(Displayed, Recorded):
    """The normal form, and what is special about it.

    Attributes:
        weights: the representative, float64.
        remarks: repeated and zero singular values, unused coordinates, idle or tied heads.
        deviation: how far its function is from that of the weights it came from.
        gap: the smallest factor between a singular value that was kept and one that was dropped;
            None where none was dropped.
    """

    weights: Weights
    remarks: tuple[str, ...]
    deviation: Agreement
    gap: float | None
    _json = (
        "architecture=weights.architecture remarks verdict "
        "distance=deviation.distance tolerance=deviation.tolerance gap"
    )

    @property
    def verdict(self) -> Literal["numerical", "undecided"]:
        """`undecided` where rounding does not explain the deviation, or would explain any."""
        return "numerical" if self.deviation.explained else "undecided"

    def __str__(self) -> str:
        special = "; ".join(self.remarks) or "nothing special"
        gap = "no singular value dropped" if self.gap is None else f"gap {self.gap:.1e}"
        name = self.weights.architecture.name
        if self.verdict == "undecided":
            return f"Undecided: no sure normal form of weights of {name} ({self.deviation}; {gap})."
        return f"Normal form of weights of {name} ({special}; {self.deviation}; {gap})."


@dataclass(frozen=True, slots=True)
class _Heads:
    """The factors of a layer's heads on the way to the normal form; V holds the products O V."""

    K: Stack
    Q: Stack
    V: Stack


def canonical_form(weights: Weights) -> CanonicalForm:
    """The normal form of weights (eq-9, eq-13, lemma-3.1).

    Idempotent, with the same function, and the same for all weights on one orbit of the symmetry
    groups (head mixing excepted).
    """
    exact = in_float64(weights)  # rounding to a shorter dtype is no excuse for the form's own error
    architecture = weights.architecture
    scaled = in_units(exact)
    remarks: list[str] = []
    gaps: list[float] = []
    layers = []
    coordinates = np.eye(architecture.widths[0])
    for i, layer in enumerate(scaled.weights.layers):
        heads = _Heads(
            np.asarray(layer.key) @ coordinates,
            np.asarray(layer.query) @ coordinates,
            np.asarray(layer.value_maps()) @ coordinates,
        )
        if architecture.trades_scale:
            heads = _scaled(heads, i, remarks)
        heads = _ordered(heads, i, remarks)
        V = heads.V
        if i + 1 < architecture.depth and not architecture.adds_input:
            V, coordinates = _output_coordinates(heads.V, i, remarks, gaps)
        elif not architecture.adds_input:
            with np.errstate(over="ignore", under="ignore"):
                V = np.ldexp(V, scaled.output)
        if not np.isfinite(V).all():
            raise NotCoveredError(
                f"the normal form of these weights of {architecture.name} has numbers beyond "
                "float64: give weights of less extreme size"
            )
        layers.append(_factored(_Heads(heads.K, heads.Q, V), layer, i, remarks))
    form = Weights.from_tensors(architecture, layers)
    return CanonicalForm(form, tuple(remarks), deviation(exact, form), min(gaps, default=None))


def _scaled(heads: _Heads, i: int, remarks: list[str]) -> _Heads:
    """‖A_h‖ = 1 with the sign closest to the frame; idle heads get V_h = 0 (eq-13)."""
    Q, V = heads.Q.copy(), heads.V.copy()
    for h in range(len(Q)):
        A = heads.K[h].T @ Q[h]
        size = float(np.linalg.norm(A))
        if size <= ROUNDED_ZERO * np.linalg.norm(heads.K[h]) * np.linalg.norm(Q[h]):
            remarks.append(f"layer {i} head {h}: A = 0, so the head is idle")
            Q[h], V[h] = 0.0, 0.0
            continue
        factor = float(closest_rotation(A.reshape(-1, 1) / size)[0, 0]) / size
        Q[h], V[h] = factor * Q[h], V[h] / factor
    return _Heads(heads.K, Q, V)


def _ordered(heads: _Heads, i: int, remarks: list[str]) -> _Heads:
    """Heads in the order of fixed random functionals of invariants, normalised to size 1."""
    if len(heads.V) == 1:
        return heads
    stacked = np.hstack(list(heads.V))
    pseudo = np.linalg.pinv(stacked, rcond=ROUNDED_ZERO) @ stacked
    blocks = np.split(np.arange(pseudo.shape[0]), len(heads.V))
    keys = []
    for h, at in enumerate(blocks):
        A = heads.K[h].T @ heads.Q[h]
        seen = pseudo[np.ix_(at, at)]
        functional = np.random.default_rng(0).standard_normal((2, *A.shape))
        keys.append(np.vdot(functional[0], A) + np.vdot(functional[1], seen))
    order = np.argsort(keys)
    gaps = np.diff(np.sort(keys))
    if gaps.min() <= TIED * max(1.0, float(np.abs(keys).max())):
        remarks.append(f"layer {i}: heads tie, so their order is not unique")
    return _Heads(heads.K[order], heads.Q[order], heads.V[order])


def _output_coordinates(
    V: Stack, i: int, remarks: list[str], gaps: list[float]
) -> tuple[Stack, Float[np.ndarray, "d d"]]:
    """The value maps in the output's new coordinates, and the matrix that undoes them (eq-9).

    With (V_1 … V_H) = U S Wᵀ of rank r, N the basis of the row space and V' = N padded with zero
    rows, the next layer reads through C^{-1} = (V_1 … V_H) Nᵀ, padded with zero columns.
    """
    d = V.shape[1]
    stacked = np.hstack(list(V))
    _, S, Wt = np.linalg.svd(stacked, full_matrices=False)
    r = numeric_rank(S, ROUNDED_ZERO)
    if 0 < r < len(S) and S[r] > 0:
        gaps.append(float(S[r - 1] / S[r]))
    N = (Wt[:r].T @ closest_rotation(Wt[:r].T)).T
    undo = np.zeros((d, d))
    undo[:, :r] = stacked @ N.T
    if r < d:
        remarks.append(f"between layers {i} and {i + 1}: only {r} of {d} coordinates are used")
    padded = np.vstack([N, np.zeros((d - r, N.shape[1]))])
    return np.stack(np.split(padded, len(V), axis=1)), undo


def _factored(heads: _Heads, layer: Layer, i: int, remarks: list[str]) -> dict[str, np.ndarray]:
    """Balanced factors of every A_h, and of every value map that the layer factors (lemma-3.1)."""
    scores = [balanced_factors(K, Q) for K, Q in zip(heads.K, heads.Q, strict=True)]
    tensors = {
        "key": np.stack([factors.left for factors in scores]),
        "query": np.stack([factors.right for factors in scores]),
    }
    for h, factors in enumerate(scores):
        remarks += factors.remarks(f"layer {i} head {h} key-query")
    if layer.output is None:
        return tensors | {"value": heads.V}
    v = layer.output.shape[2]
    values = [balanced_factors(*low_rank.balanced_factors(V, v)[:2]) for V in heads.V]
    for h, factors in enumerate(values):
        remarks += factors.remarks(f"layer {i} head {h} value-output")
    return tensors | {
        "output": np.stack([factors.left.T for factors in values]),
        "value": np.stack([factors.right for factors in values]),
    }
