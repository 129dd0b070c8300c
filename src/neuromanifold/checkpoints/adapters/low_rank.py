"""A matrix of low rank given by two factors, and its spectrum without forming it."""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, sqrt

import ml_dtypes
import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import rank

NOISE = 100
"""Singular values up to this many units of rounding times s‖B‖‖A‖ are taken as zero.

Householder QR of both factors and the SVD of the core are backward stable: each singular value is
off by at most c ε s‖B‖‖A‖, with c growing with r and seen below 10 for r ≤ 256.
"""
CLEAR = 1e3
"""A singular value less than this many times above the noise leaves the rank undecided."""


@dataclass(frozen=True)
class Scale:
    """The factor s of an update: α/r, or α/√r (rank-stabilised), kept exactly where rational."""

    alpha: Fraction
    rank: int
    stabilised: bool = False

    @property
    def value(self) -> float:
        """The factor in floating point."""
        return float(self.alpha) / (sqrt(self.rank) if self.stabilised else self.rank)

    @property
    def exact(self) -> Fraction | None:
        """The factor as a rational number; None when it has a square root that is not whole."""
        root = isqrt(self.rank)
        if not self.stabilised:
            return self.alpha / self.rank
        return self.alpha / root if root * root == self.rank else None


@dataclass(frozen=True)
class LowRank:
    """The update s B A, its factors in float64; `dtype` is the one they were stored in."""

    B: Float[np.ndarray, "out r"]
    A: Float[np.ndarray, "r in"]
    scale: Scale
    dtype: np.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the update."""
        return self.B.shape[0], self.A.shape[1]

    @property
    def size(self) -> int:
        """The inner size r."""
        return self.B.shape[1]

    @property
    def zero(self) -> "LowRank":
        """The update of this shape that changes nothing."""
        return LowRank(self.B[:, :0], self.A[:0], Scale(Fraction(1), 1), self.dtype)

    @property
    def sizes(self) -> tuple[float, float, float]:
        """The largest entries of both factors, and the scale, without their signs."""
        B, A = (float(np.abs(factor).max(initial=0.0)) for factor in (self.B, self.A))
        return B, A, abs(self.scale.value)

    @property
    def is_moderate(self) -> bool:
        """Whether squares of the factors and of the update neither overflow nor vanish."""
        B, A, s = self.sizes
        return all(1e-100 < size < 1e100 for size in (B, A, s, B * A, B * A * s) if size)

    @property
    def rounding(self) -> tuple[Float[np.ndarray, "out r"], Float[np.ndarray, "r in"]]:
        """Two factors whose product bounds what rounding makes of each entry of the update.

        An entry b of a factor is off by at most u max(|b|, m), m the smallest normal number of the
        dtype: below it numbers are evenly spaced. So the product is off by 2u |B||A|, and again by
        as much where the factors were computed from rounded ones.
        """
        least = float(ml_dtypes.finfo(self.dtype).tiny)
        B, A = (np.maximum(np.abs(factor), least) for factor in (self.B, self.A))
        return 4 * roundoff(self.dtype) * abs(self.scale.value) * B, A

    @property
    def dense(self) -> Float[np.ndarray, "out in"]:
        """The update itself, which nothing here needs; for small sizes and for applying it."""
        return self.scale.value * (self.B @ self.A)


@dataclass(frozen=True)
class Spectrum:
    """The singular value decomposition left · diag(values) · right of an update, r values.

    Attributes:
        left: orthonormal columns.
        values: decreasing.
        right: orthonormal rows.
        magnitude: s‖B‖‖A‖ in the spectral norm, what errors are relative to: larger than the
            largest singular value where the factors cancel.
    """

    left: Float[np.ndarray, "out k"]
    values: Float[np.ndarray, " k"]
    right: Float[np.ndarray, "k in"]
    magnitude: float

    @property
    def noise(self) -> float:
        """What singular values must exceed to count."""
        return NOISE * float(np.finfo(np.float64).eps) * self.magnitude

    @property
    def norm(self) -> float:
        """The Frobenius norm of the update."""
        return float(np.linalg.norm(self.values))

    def tail(self, rank: int) -> float:
        """The Frobenius distance to the nearest matrix of that rank (Eckart and Young)."""
        return float(np.linalg.norm(self.values[rank:]))


def spectrum(*terms: LowRank, weights: tuple[float, ...] | None = None) -> Spectrum:
    """The spectrum of a weighted sum of updates of one shape, of inner size the sum of theirs.

    Σ wᵢ sᵢ Bᵢ Aᵢ is one product of the factors put side by side (lora), each pair balanced first:
    B and A may differ in size by any factor without a meaning, and large columns of one term would
    otherwise meet large rows of another only in the noise.
    """
    weights = (1.0,) * len(terms) if weights is None else weights
    lefts: list[np.ndarray] = []
    rights: list[np.ndarray] = []
    for term, weight in zip(terms, weights, strict=True):
        factor = weight * term.scale.value
        large, small = np.linalg.norm(term.B), np.linalg.norm(term.A)
        balance = np.sqrt(abs(factor) * small / large) if large > 0 < small else 0.0
        lefts.append(np.sign(factor) * balance * term.B)
        rights.append(abs(factor) / balance * term.A if balance > 0 else 0 * term.A)
    P, R = np.linalg.qr(np.hstack(lefts))
    Q, T = np.linalg.qr(np.vstack(rights).T)
    u, values, v = np.linalg.svd(R @ T.T, full_matrices=False)
    magnitude = float(np.linalg.norm(R, 2) * np.linalg.norm(T, 2)) if values.size else 0.0
    return Spectrum(P @ u, values, v @ Q.T, magnitude)


def exact_rank(update: LowRank, field: PrimeField, seed: int = 0) -> int:
    """The rank of the stored numbers modulo p: never more than their rank (field-rank).

    The rank of S B A T with random square S, T of size r is that of B A unless chance is against
    it, and never more; all products are of size r.
    """
    r, (rows, columns) = update.size, update.shape
    S = field.random(seed, "left", (min(r, rows), rows))
    T = field.random(seed, "right", (columns, min(r, columns)))
    B, A = field.from_floats(update.B), field.from_floats(update.A)
    return rank(field.matmul(field.matmul(S, B), field.matmul(A, T)), field)


def widest(*dtypes: np.dtype) -> np.dtype:
    """The dtype that holds numbers of all these floating-point dtypes."""
    if len(set(dtypes)) == 1:
        return dtypes[0]
    return np.dtype(np.float64 if np.dtype(np.float64) in dtypes else np.float32)


def roundoff(dtype: np.dtype) -> float:
    """The unit of rounding of a floating-point dtype."""
    return float(ml_dtypes.finfo(dtype).eps) / 2
