"""What kind of point the weights of one lightning layer are (thm-3.4, low-rank-singular).

Under the hypotheses of thm-3.4, with rank A and rank V decided by a tolerance:

    critical   A = 0, or V = 0, or A = k⊗q and V = h⊗v of rank one with k ∥ v   (lemma-a.3);
    boundary   φ is a boundary point of the neuromanifold iff (A, V) is critical    (cor-a.6);
    singular   rank A · rank V ≤ 1                                                  (cor-a.4)
               or rank A < a < d                                           (low-rank-singular).

The ranks of the differentials are computed, not taken from these statements.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from neuromanifold.algebra.low_rank import NumericRank, numeric_rank
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.architecture import Architecture
from neuromanifold.display import Displayed, Recorded
from neuromanifold.errors import ArgumentError
from neuromanifold.fibers.units import in_float64, unit_roundoff
from neuromanifold.geometry.differential import (
    ExactRanks,
    check_size,
    exact_ranks,
    factor_differential,
    pair_differential,
)
from neuromanifold.geometry.layer import Factors, Matrix, check_layer
from neuromanifold.networks.weights import Weights

CLEAR = 1000.0
"""From this multiple of what counts as zero on a number counts as clearly not zero."""


@dataclass(frozen=True, slots=True)
class Distances:
    """How far (A, V) is from being special, at the scale where A and V have norm one.

    Rescaling (λA, V/λ) does not change them. Both are Frobenius distances in the space of pairs.

    Attributes:
        rank_one: to the pairs with rank A · rank V ≤ 1.
        boundary: to the critical pairs.
    """

    rank_one: float
    boundary: float


@dataclass(frozen=True, slots=True, eq=False)
class Classification(Displayed, Recorded):
    """What kind of point given weights are, with the numbers it was decided by.

    Attributes:
        architecture: the layer.
        attention: the rank of A with its singular values.
        value: the rank of V with its singular values.
        critical: whether (A, V) is critical for (A, V) ↦ φ.
        boundary: whether φ is a boundary point of the neuromanifold.
        singular: whether φ is a singular point of the neuromanifold.
        reasons: which conditions made it so, each with its statement; empty for a smooth point.
        pair_differential: the rank of the differential of (A, V) ↦ φ.
        weight_differential: the rank of the differential of (Q, K, V) ↦ φ.
        fiber_points: the number of pairs (A, V) up to rescaling with this function; None for φ = 0,
            whose fiber is not finite.
        parallel: for ranks one, the sine of the angle between k and v; otherwise None.
        distances: to the special pairs.
        tolerance: relative to the norms of the factors, what counts as zero.
        exact: the ranks over a prime field, when asked for.
    """

    architecture: Architecture
    attention: NumericRank
    value: NumericRank
    critical: bool
    boundary: bool
    singular: bool
    reasons: tuple[str, ...]
    pair_differential: NumericRank
    weight_differential: NumericRank
    fiber_points: int | None
    parallel: float | None
    distances: Distances
    tolerance: float
    exact: ExactRanks | None
    _json = (
        "rank_A=attention.rank rank_V=value.rank critical boundary singular reasons "
        "differential_rank fiber_points verdict gap distance=distances tolerance"
    )

    @property
    def differential_rank(self) -> dict[str, int]:
        """The ranks of both differentials."""
        return {"AV": self.pair_differential.rank, "QKV": self.weight_differential.rank}

    @property
    def gap(self) -> dict[str, float]:
        """The gaps of both ranks."""
        return {"A": self.attention.gap, "V": self.value.gap}

    @property
    def verdict(self) -> Literal["numerical", "undecided"]:
        """`undecided` when a number lies between what counts as zero and a thousand times that.

        A singular value there is too large for rounding and too small to be sure of, and so is the
        sine of the angle between k and v.
        """
        near = any(
            bool(np.any((found.singular_values > found.threshold) & (found.singular_values < far)))
            for found in (self.attention, self.value)
            for far in [CLEAR * found.threshold]
        )
        return "undecided" if near or self._nearly_parallel else "numerical"

    @property
    def _nearly_parallel(self) -> bool:
        if self.parallel is None or self.critical:
            return False
        sizes = (
            found.threshold / found.singular_values[0] for found in (self.attention, self.value)
        )
        return bool(self.parallel < CLEAR * sum(sizes))

    def __str__(self) -> str:
        kinds = [kind for kind in ("critical", "boundary", "singular") if getattr(self, kind)]
        what = ", ".join(kinds) if kinds else "a smooth point of the neuromanifold"
        why = "".join(f"; {reason}" for reason in self.reasons)
        ranks = f"rank A = {self.attention.rank}, rank V = {self.value.rank}"
        if self.verdict == "numerical":
            return f"{ranks}: {what}{why} ({self._numbers})"
        return f"undecided, near a special point; {ranks} here: {what}{why} ({self._numbers})"

    @property
    def _numbers(self) -> str:
        """Gaps, distances and the tolerance."""
        gaps = f"gaps {self.attention.gap:.1e} and {self.value.gap:.1e}"
        rank_one, boundary = self.distances.rank_one, self.distances.boundary
        apart = f"distance {rank_one:.1e} to rank one, {boundary:.1e} to the boundary"
        return f"{gaps}, {apart}, tolerance {self.tolerance:.1e}"


def classify(
    weights: Weights, *, tolerance: float | None = None, field: PrimeField | None = None
) -> Classification:
    """Critical, boundary and singular points of one lightning layer (thm-3.4, low-rank-singular).

    Args:
        weights: of one lightning layer with one head, no skip and no mask.
        tolerance: singular values of A below `tolerance` ‖K‖ ‖Q‖ count as zero, and those of V
            below `tolerance` ‖V‖; None takes a multiple of the rounding of the weights' dtype.
        field: a prime field, to compute all ranks over it too.
    """
    check_layer(weights.architecture, "low-rank-singular")
    factors = Factors.of(in_float64(weights))
    check_size(weights.architecture.widths[0], weights.architecture.widths[1])
    if tolerance is None:
        tolerance = _rounding(weights)
    if not 0 <= tolerance < 1:
        raise ArgumentError(
            f"tolerance must be at least 0 and below 1; got {tolerance}: leave it out for a "
            "multiple of the rounding of the weights"
        )
    scales = _scales(factors)
    A, V = factors.form / scales[0], factors.value_map / scales[1]
    attention, value = numeric_rank(A, tolerance), numeric_rank(V, tolerance)
    parallel = _sine(A, V) if attention.rank == value.rank == 1 else None
    of_pair, of_weights = _differential_ranks(factors, tolerance)
    a, d = factors.query.shape
    reasons, critical = _critical(attention, value, parallel, tolerance)
    singular_reasons = _singular(attention.rank, value.rank, a, d)
    return Classification(
        architecture=weights.architecture,
        attention=_rescaled(attention, scales[0]),
        value=_rescaled(value, scales[1]),
        critical=critical,
        boundary=critical,
        singular=bool(singular_reasons),
        reasons=reasons + singular_reasons,
        pair_differential=of_pair,
        weight_differential=of_weights,
        fiber_points=_fiber_points(attention.rank, value.rank, critical),
        parallel=parallel,
        distances=_distances(A, V, attention.rank * value.rank == 0),
        tolerance=tolerance,
        exact=None if field is None else exact_ranks(factors, field),
    )


def _rounding(weights: Weights) -> float:
    """16 times the bound of the rounding in Kᵀ Q, relative to ‖K‖ ‖Q‖, for the weights' dtype.

    A sum of a products is off by at most a·eps relative to the norms; the weights themselves, when
    they come from a computation with sizes d and d', by about as much. 16 covers such computations.
    """
    architecture = weights.architecture
    return 16 * max(*architecture.widths, *architecture.ranks) * unit_roundoff(weights)


def _scales(factors: Factors) -> tuple[float, float]:
    """‖K‖ ‖Q‖ and ‖V‖ (or ‖O‖ ‖V‖), which rounding errors are relative to; 1 in place of 0."""
    attention = _norm(factors.key) * _norm(factors.query)
    value = _norm(factors.value) * (1.0 if factors.output is None else _norm(factors.output))
    return attention or 1.0, value or 1.0


def _norm(matrix: Matrix) -> float:
    return float(np.linalg.norm(matrix, 2))


def _rescaled(found: NumericRank, scale: float) -> NumericRank:
    """The rank with its evidence in the units of the matrix itself."""
    values = found.singular_values * scale
    return replace(found, threshold=found.threshold * scale, singular_values=values)


def _differential_ranks(factors: Factors, tolerance: float) -> tuple[NumericRank, NumericRank]:
    """Both ranks, at the scale where Q, K and V have norm one.

    Rescaling them one by one changes no rank, and makes one tolerance fit all columns.
    """
    units = factors.each(lambda matrix: matrix / (_norm(matrix) or 1.0))
    # Of the tall matrix only its triangular factor is needed: it has the same singular values.
    of_table = pair_differential(units.form, units.value_map)
    of_pair = np.asarray(np.linalg.qr(of_table, mode="r"))
    of_weights = of_pair @ factor_differential(units)
    return _relative_rank(of_pair, tolerance), _relative_rank(of_weights, tolerance)


def _relative_rank(matrix: Matrix, tolerance: float) -> NumericRank:
    """The rank with a threshold relative to the norm, or to one where that is smaller."""
    return numeric_rank(matrix, tolerance * max(1.0, _norm(matrix)))


def _sine(A: Matrix, V: Matrix) -> float:
    """The sine of the angle between k and v, for A = k⊗q and V = h⊗v.

    k is the first left singular vector of A, v the first right one of V. The sine is the length of
    what is left of k off v, which is accurate for small angles, where 1 − cos² is not.
    """
    k = np.linalg.svd(A)[0][:, 0]
    v = np.linalg.svd(V)[2][0]
    return float(np.linalg.norm(k - (k @ v) * v))


def _critical(
    attention: NumericRank, value: NumericRank, parallel: float | None, tolerance: float
) -> tuple[tuple[str, ...], bool]:
    """Whether (A, V) is critical, and which condition says so (lemma-a.3, cor-a.6).

    An error of `tolerance` in a matrix of rank one turns its singular vector by at most about
    `tolerance` / σ_1, which is what the angle between k and v is compared with.
    """
    zeros = [
        f"{name} = 0: critical, a boundary point (lemma-a.3, cor-a.6)"
        for name, found in (("A", attention), ("V", value))
        if found.rank == 0
    ]
    if zeros:
        return tuple(zeros), True
    if parallel is None:
        return (), False
    allowed = tolerance * (1 / attention.singular_values[0] + 1 / value.singular_values[0])
    if parallel > allowed:
        return (), False
    reason = (
        f"A = k⊗q and V = h⊗v with k ∥ v (sine {parallel:.1e} ≤ {allowed:.1e}): critical, "
        "a boundary point (lemma-a.3, cor-a.6)"
    )
    return (reason,), True


def _singular(rank_A: int, rank_V: int, a: int, d: int) -> tuple[str, ...]:
    """Which conditions make the point singular (cor-a.4, low-rank-singular)."""
    reasons = []
    if rank_A * rank_V <= 1:
        reasons.append(f"rank A · rank V = {rank_A * rank_V} ≤ 1: singular (cor-a.4)")
    if rank_A < a < d:
        reasons.append(f"rank A = {rank_A} < a = {a} < d = {d}: singular (low-rank-singular)")
    return tuple(reasons)


def _fiber_points(rank_A: int, rank_V: int, critical: bool) -> int | None:
    """The points of the fiber up to rescaling (thm-3.2, cor-a.2)."""
    if rank_A * rank_V == 0:
        return None
    return 2 if rank_A * rank_V == 1 and not critical else 1


def _distances(A: Matrix, V: Matrix, zero: bool) -> Distances:
    """Distances at norm one, in closed form.

    The nearest pair of ranks one leaves all singular values but the first. The nearest
    (k qᵀ, h kᵀ) for a given unit vector k has q = Aᵀ k and h = V k and leaves
    ‖A‖² + ‖V‖² − kᵀ(A Aᵀ + Vᵀ V)k: the best k is the top eigenvector. Pairs with A = 0 or V = 0
    belong to both sets, at distance one.
    """
    if zero:
        return Distances(0.0, 0.0)
    A, V = A / np.linalg.norm(A), V / np.linalg.norm(V)
    rest = sum(np.sum(np.linalg.svd(M, compute_uv=False)[1:] ** 2) for M in (A, V))
    _, vectors = np.linalg.eigh(A @ A.T + V.T @ V)
    k = vectors[:, -1]
    # The remainders are formed themselves: 2 − λ would lose half of the digits near the boundary.
    off_A, off_V = A - np.outer(k, k @ A), V - np.outer(V @ k, k)
    boundary = float(np.hypot(np.linalg.norm(off_A), np.linalg.norm(off_V)))
    return Distances(min(float(np.sqrt(rest)), 1.0), min(boundary, 1.0))
