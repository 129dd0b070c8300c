"""Ranks and factors of float matrices, from singular values."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

Matrix = Float64[np.ndarray, "_ _"]

ROUNDED_ZERO = 2.0**-42
"""What float64 leaves of a zero, relative to the largest: 1024 units of rounding, which covers sums
of some hundred products."""


@dataclass(frozen=True, slots=True, eq=False)
class NumericRank:
    """A rank in floats, with the singular values it came from.

    Attributes:
        rank: the number of singular values above the threshold.
        gap: σ_r / σ_{r+1}, infinite when there is nothing below.
        threshold: what counts as zero.
        singular_values: all of them, descending.
    """

    rank: int
    gap: float
    threshold: float
    singular_values: Float64[np.ndarray, " values"]


def numeric_rank(matrix: Matrix, threshold: float) -> NumericRank:
    """The number of singular values above the threshold."""
    values = np.linalg.svd(matrix, compute_uv=False)
    found = int(np.sum(values > threshold))
    below = values[found] if found < values.size else 0.0
    gap = float(values[found - 1] / below) if found and below else np.inf
    return NumericRank(found, gap, threshold, values)


def balanced_factors(matrix: Matrix, size: int) -> tuple[Matrix, Matrix, float]:
    """K and Q with `size` rows, Kᵀ Q nearest to the matrix and K Kᵀ = Q Qᵀ diagonal (lemma-3.1).

    Returns:
        K and Q, the smallest factors there are, and the first singular value that is left out.
    """
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    kept = min(size, values.size)
    roots = np.sqrt(values[:kept])[:, None]
    K, Q = (pad(roots * rows[:kept], (size, rows.shape[1])) for rows in (left.T, right))
    return K, Q, float(values[kept]) if values[kept:].size else 0.0


def pad(matrix: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The matrix in the upper left corner of zeros."""
    padded = np.zeros(shape, dtype=matrix.dtype)
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    return padded
