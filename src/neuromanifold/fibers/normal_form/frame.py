"""Orthonormal bases made unique: the basis of a subspace that is closest to a fixed frame.

An orthonormal basis U of a subspace is unique up to an orthogonal m × m matrix O. Closest to a
fixed frame F is U O with O the orthogonal polar factor of Uᵀ F: it depends on the subspace only,
and smoothly as long as Uᵀ F is far from singular. For one vector this is a rule for its sign. The
first frame is made of unit vectors; fixed pseudo-random ones follow, and the first that is far
enough from singular counts.
"""

import numpy as np
from jaxtyping import Float

_FRAMES = 8
_FAR_FROM_SINGULAR = 0.1


def closest_to_frame(U: Float[np.ndarray, "d m"]) -> Float[np.ndarray, "d m"]:
    """The orthonormal basis of the span of U's orthonormal columns that is closest to a frame.

    For a random subspace the smallest singular value of Uᵀ F is about 1/√(d m).
    """
    return U @ closest_rotation(U)


def closest_rotation(U: Float[np.ndarray, "d m"]) -> Float[np.ndarray, "m m"]:
    """The orthogonal O for which U O is closest to the frame."""
    d, m = U.shape
    if m == 0:
        return np.zeros((0, 0))
    best, best_value = np.eye(m), -1.0
    for k in range(_FRAMES):
        left, values, right = np.linalg.svd(U.T @ _frame(d, m, k))
        if values[-1] > best_value:
            best, best_value = left @ right, values[-1]
        if values[-1] >= _FAR_FROM_SINGULAR / np.sqrt(d * m):
            break
    return best


def _frame(d: int, m: int, k: int) -> Float[np.ndarray, "d m"]:
    """Frame number k: unit vectors, then the orthonormal factors of fixed random matrices."""
    if k == 0:
        return np.eye(d, m)
    return np.linalg.qr(np.random.default_rng(k).standard_normal((d, m)))[0]
