"""The balanced form: Q Qᵀ = K Kᵀ diagonal in every layer and head (lemma-3.1).

With the singular value decomposition A = Kᵀ Q = U S Wᵀ the factors K = S^{1/2} Uᵀ, Q = S^{1/2} Wᵀ
have Q Qᵀ = K Kᵀ = S. Among all factorisations of A they have the smallest ‖K‖² + ‖Q‖², since
‖K‖² + ‖Q‖² ≥ 2 tr S for every one. Singular values decrease; what remains free is a sign for every
singular value, and a rotation for a repeated one: both are fixed as follows.

An orthonormal basis U of a subspace is unique up to an orthogonal m × m matrix O. Closest to a
fixed frame F is U O with O the orthogonal polar factor of Uᵀ F: it depends on the subspace only,
and smoothly as long as Uᵀ F is far from singular. For one vector this is a rule for its sign. The
first frame is made of unit vectors; fixed pseudo-random ones follow, and the first that is far
enough from singular counts.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.low_rank import ROUNDED_ZERO
from neuromanifold.fibers.units import in_float64
from neuromanifold.networks.weights import Weights, replace_layers

_FRAMES = 8
_FAR_FROM_SINGULAR = 0.1

REPEATED = 1e-7
"""Singular values closer than this, relative to the largest, are treated as one repeated value."""


@dataclass(frozen=True, slots=True)
class BalancedFactors:
    """Balanced factors K and Q of one matrix Kᵀ Q.

    Attributes:
        left: K.
        right: Q.
        blocks: the sizes of the groups of equal singular values, in decreasing order of the values;
            zeros, which are not part of any group, are `a − sum(blocks)` in number.
    """

    left: Float[np.ndarray, "a m"]
    right: Float[np.ndarray, "a n"]
    blocks: tuple[int, ...]

    def remarks(self, place: str) -> list[str]:
        """What is special about the singular values, for a reader."""
        notes = [f"{place}: a singular value repeated {n} times" for n in self.blocks if n > 1]
        zeros = len(self.left) - sum(self.blocks)
        return notes + ([f"{place}: {zeros} singular values zero"] if zeros else [])


def balanced_factors(K: Float[np.ndarray, "a m"], Q: Float[np.ndarray, "a n"]) -> BalancedFactors:
    """The balanced factors of Kᵀ Q (lemma-3.1).

    Kᵀ Q is never formed: with Kᵀ = P R and Qᵀ = P' R' its singular values are those of R R'ᵀ.
    Inside a group U_b, S_b, W_b of equal singular values the rotation O acts as
    K_b = Oᵀ S_b^{1/2} U_bᵀ, Q_b = Oᵀ S_b^{1/2} W_bᵀ, which keeps K_bᵀ Q_b whether or not the values
    are exactly equal.
    """
    P, R = np.linalg.qr(K.T)
    P_new, R_new = np.linalg.qr(Q.T)
    U, S, Wt = np.linalg.svd(R @ R_new.T, full_matrices=False)
    U, W = P @ U, P_new @ Wt.T
    left, right = np.zeros_like(K), np.zeros_like(Q)
    blocks = _groups(S)
    start = 0
    for size in blocks:
        at = slice(start, start + size)
        O = closest_rotation(U[:, at])
        root = np.sqrt(S[at, None])
        left[at], right[at] = O.T @ (root * U[:, at].T), O.T @ (root * W[:, at].T)
        start += size
    return BalancedFactors(left, right, blocks)


def _groups(values: Float[np.ndarray, " n"]) -> tuple[int, ...]:
    """The sizes of the groups of equal values among those that are not zero."""
    sizes: list[int] = []
    for k, value in enumerate(values):
        if value <= ROUNDED_ZERO * values[0] or value == 0:
            break
        if k and values[k - 1] - value <= REPEATED * values[0]:
            sizes[-1] += 1
        else:
            sizes.append(1)
    return tuple(sizes)


def balanced(weights: Weights) -> Weights:
    """The weights with balanced keys and queries: same A and V, smallest norm (lemma-3.1)."""
    layers = []
    for layer in in_float64(weights).layers:
        heads = list(map(balanced_factors, np.asarray(layer.key), np.asarray(layer.query)))
        K, Q = (np.stack([getattr(head, side) for head in heads]) for side in ("left", "right"))
        layers.append({"key": K, "query": Q})
    return replace_layers(weights, layers)


def closest_rotation(U: Float[np.ndarray, "d m"]) -> Float[np.ndarray, "m m"]:
    """The orthogonal O for which U O, of orthonormal columns, is closest to the frame.

    For a random subspace the smallest singular value of Uᵀ F is about 1/√(d m).
    """
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
