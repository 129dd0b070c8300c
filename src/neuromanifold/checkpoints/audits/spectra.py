"""Singular values of products of thin factors, through QR: the product is never formed."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

CLEAR_GAP = 10.0
"""A rank is given when σ_r / σ_{r+1} is at least this much at the threshold, else `undecided`."""


@dataclass(frozen=True, slots=True)
class Spectrum:
    """Singular values, and the rank they show.

    Attributes:
        values: in decreasing order.
        threshold: values at or below it are rounding: σ_1 · max(sizes) · eps of the stored dtype.
        rank: how many lie above the threshold, None when there is no clear gap.
        gap: σ_r / σ_{r+1}, None when infinite or without meaning.
        verdict: `numerical` or `undecided`.
    """

    values: tuple[float, ...]
    threshold: float
    rank: int | None
    gap: float | None
    verdict: Literal["numerical", "undecided"]

    @property
    def deficient(self) -> bool:
        """Whether the rank is known and smaller than it could be."""
        return self.rank is not None and self.rank < len(self.values)


def product_spectrum(left: np.ndarray, right: np.ndarray, eps: float) -> Spectrum:
    """The spectrum of leftᵀ right for factors (n, a) and (n, b), with at most n values."""
    values = product_values(left, right)
    return spectrum(values, max(left.shape[1], right.shape[1]), eps)


def product_values(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Singular values of leftᵀ right, from the n × n product of triangular factors."""
    return np.linalg.svd(_core(left, right), compute_uv=False)


def _core(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """A small matrix with the singular values of leftᵀ right."""
    first, second = (np.asarray(np.linalg.qr(part.T, mode="r")) for part in (left, right))
    return first @ second.T


def spectrum(values: np.ndarray, size: int, eps: float) -> Spectrum:
    """A rank with its gap, relative to the precision of what is stored."""
    top = float(values[0]) if values.size else 0.0
    threshold = top * size * eps
    rank = int(np.sum(values > threshold))
    listed = tuple(map(float, values))
    if rank == len(values):
        return Spectrum(listed, threshold, rank, None, "numerical")
    below = float(values[rank])
    gap = float(values[rank - 1]) / below if rank and below > 0 else None
    if gap is not None and gap < CLEAR_GAP:
        return Spectrum(listed, threshold, None, gap, "undecided")
    return Spectrum(listed, threshold, rank, gap, "numerical")


def product_distance(
    left: np.ndarray, right: np.ndarray, other_left: np.ndarray, other_right: np.ndarray
) -> float:
    """‖leftᵀ right − other_leftᵀ other_right‖_F, without cancellation in the squares."""
    stacked = np.concatenate([left, -other_left])
    beside = np.concatenate([right, other_right])
    return float(np.linalg.norm(_core(stacked, beside)))
