"""What the rows of a matrix show of its rank in floating point (`numeric` has the rule)."""

import numpy as np
from jaxtyping import Float

NOISE = 100
"""The tolerance, in units of rounding times the largest singular value."""

Matrix = Float[np.ndarray, "rows columns"]


def unit_rows(J: Matrix) -> Matrix:
    """The matrix with its rows scaled to length one, zero rows left alone.

    First by the largest entry, so that no square overflows or is lost.
    """
    J = _divided(J, np.max(np.abs(J), axis=1, initial=0))
    return _divided(J, np.linalg.norm(J, axis=1))


def _divided(rows: Matrix, lengths: Float[np.ndarray, " rows"]) -> Matrix:
    return rows / np.where(lengths == 0, 1, lengths)[:, None]


def read_off(
    sigma: Float[np.ndarray, " values"],
) -> tuple[int, float, float | None, bool]:
    """The rank at the tolerance, the tolerance, the gap there, and whether the band is empty."""
    if not np.any(sigma):
        return 0, 0.0, None, True
    tolerance = NOISE * float(np.finfo(sigma.dtype).eps) * float(sigma[0])
    rank = int(np.sum(sigma > tolerance))
    last, following = float(sigma[rank - 1]), float(sigma[rank]) if rank < sigma.size else 0.0
    clear = last >= float(np.cbrt(np.finfo(sigma.dtype).eps)) * float(sigma[0])
    return rank, tolerance, last / following if following else None, clear


def clear_rank(J: Matrix) -> int | None:
    """The rank that rows of length one show by the rule, None if it is unclear."""
    if not J.size:
        return 0
    rank, _, _, clear = read_off(np.linalg.svd(unit_rows(J), compute_uv=False))
    return rank if clear else None
