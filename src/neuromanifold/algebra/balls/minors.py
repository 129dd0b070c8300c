"""Ranks of matrices of balls, proved by one minor (field-rank)."""

from dataclasses import dataclass

import numpy as np
from flint import arb, arb_mat
from jaxtyping import Shaped
from scipy.linalg import qr

from neuromanifold.algebra.balls.arrays import balls, midpoints, product

Balls = Shaped[np.ndarray, "rows columns"]


@dataclass(frozen=True)
class ProvedRank:
    """A rank that a matrix of real numbers, known up to errors, has at least.

    Attributes:
        rank: the number of rows of a minor that is proved not to vanish.
        estimate: the rank of the midpoints in floats, which the minor was chosen from.
    """

    rank: int
    estimate: int


_SMALL = 1e-10
"""Pivots this much smaller than the first are not tried."""


def proved_rank(matrix: Balls) -> ProvedRank:
    """The largest minor found that does not vanish.

    Rows without a value are left out, and the others are scaled to length one. Columns are chosen
    by QR with pivots of the midpoints, rows by the same for these columns; how many, by the size of
    the pivots relative to the first. That choice proves nothing, and need not: the minor does.
    """
    rows = [_scaled(row) for row in matrix if all(x.is_finite() for x in row)]
    matrix = np.array(rows, dtype=object).reshape(len(rows), matrix.shape[1])
    middle = midpoints(matrix)
    length = np.linalg.norm(middle, axis=1, keepdims=True)
    middle = middle / np.where(length == 0, 1.0, length)
    pivots, columns = qr(middle, mode="r", pivoting=True) if rows else (middle, [])
    sizes = np.abs(np.diag(pivots))
    estimate = int(np.sum(sizes > _SMALL * max(sizes[0], 1e-300))) if len(sizes) else 0
    rank = estimate
    while rank:
        chosen = columns[:rank]
        places = qr(middle[:, chosen].T, mode="r", pivoting=True)[1][:rank]
        if is_regular(matrix[np.ix_(places, chosen)]):
            break
        rank -= 1
    return ProvedRank(rank, estimate)


def _scaled(row: np.ndarray) -> np.ndarray:
    """A multiple of a row whose entries floats can hold."""
    largest = max((abs(x).mid() for x in row), default=arb(0))
    return row / largest if largest > 0 else row


def is_regular(matrix: Balls) -> bool:
    """Whether a square matrix of balls is proved to have no zero determinant.

    With R close to the inverse, ‖I − R M‖ < 1 in the largest row sum proves that M is regular, and
    costs one product. When the floats of R are too coarse for that, the determinant decides.
    """
    size = len(matrix)
    try:
        near = np.linalg.inv(midpoints(matrix))
    except np.linalg.LinAlgError:
        return False
    if np.isfinite(near).all():
        rest = balls(np.eye(size)) - product(balls(near), matrix)
        if all(sum(abs(x) for x in row) < 1 for row in rest):
            return True
    return not arb_mat(matrix.tolist()).det().contains(0)
