"""The matrix that carries one factorisation of a matrix to another (lemma-3.1).

If Kᵀ Q = K'ᵀ Q' has rank a there is exactly one C with K' = C K and Q' = C^{-T} Q. In general the
conditions C K = K' and Q'ᵀ C = Qᵀ are linear in C. With an orthonormal basis U of the columns of K
and U_⊥ of their complement the first fixes C U, the second fixes C U_⊥ up to the kernel of Q'ᵀ:

    C U = K' K⁺ U,    C U_⊥ = (Q'ᵀ)⁺ Qᵀ U_⊥ + G Z,    the columns of G spanning ker Q'ᵀ,

so (a − rank Q')(a − rank K) entries Z are free; any Z that makes C invertible will do.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

RANK_TOLERANCE = 1e-10
"""Singular values below it, relative to the largest, count as zero when factors are matched: they
carry what condition numbers have made of rounding, and what they are wrong by is measured after."""

_DRAWS = 16
_WORST_CONDITION = 1e12

Matrix = Float[np.ndarray, "_ _"]


@dataclass(frozen=True, slots=True)
class FactorMatch:
    """The matrix found, and how many of its entries were free to choose.

    Attributes:
        matrix: C, always invertible; the identity when no invertible C was found.
        free: the dimension of the affine space that C was chosen from: 0 when it is unique.
    """

    matrix: Float[np.ndarray, "a a"]
    free: int


def numeric_rank(values: Float[np.ndarray, " n"], tolerance: float = RANK_TOLERANCE) -> int:
    """The number of singular values, in decreasing order, that do not count as zero."""
    return int(np.sum(values > tolerance * values[0])) if len(values) else 0


def match_factors(
    K: Float[np.ndarray, "a m"],
    Q: Float[np.ndarray, "a n"],
    K_new: Float[np.ndarray, "a m"],
    Q_new: Float[np.ndarray, "a n"],
) -> FactorMatch:
    """C with C K = K' and Cᵀ Q' = Q, in the sense of least squares (lemma-3.1)."""
    a = len(K)
    U, S, Wt = np.linalg.svd(K)
    r = numeric_rank(S)
    on_columns = (K_new @ Wt[:r].T) / S[:r]
    if r == a:
        return FactorMatch(_invertible_or_identity(on_columns @ U.T), 0)
    rest = U[:, r:]
    G, T, Ht = np.linalg.svd(Q_new)
    s = numeric_rank(T)
    on_rest = G[:, :s] @ ((Ht[:s] @ Q.T @ rest) / T[:s, None])
    fixed = on_columns @ U[:, :r].T + on_rest @ rest.T
    free = (a - s) * (a - r)
    if not free:
        return FactorMatch(_invertible_or_identity(fixed), 0)
    candidates = [
        fixed + G[:, s:] @ Z @ rest.T for Z in _draws((a - s, a - r), float(np.linalg.norm(fixed)))
    ]
    return FactorMatch(best_invertible(candidates), free)


def best_invertible(candidates: list[Float[np.ndarray, "a a"]]) -> Float[np.ndarray, "a a"]:
    """The best conditioned candidate, among those of positive determinant when there are any.

    A positive determinant puts C into the identity component, so that a path leads to it.
    """
    positive = [C for C in candidates if np.linalg.slogdet(C).sign > 0]
    return _invertible_or_identity(min(positive or candidates, key=np.linalg.cond))


def _draws(shape: tuple[int, int], size: float) -> list[np.ndarray]:
    """Fixed pseudo-random matrices of about the given size, the same in every call."""
    generator = np.random.default_rng(0)
    scale = (size or 1.0) / np.sqrt(max(shape))
    return [scale * generator.standard_normal(shape) for _ in range(_DRAWS)]


def _invertible_or_identity(C: Float[np.ndarray, "a a"]) -> Float[np.ndarray, "a a"]:
    """C, or 1 in place of a singular C: the residual that is measured afterwards then tells."""
    return C if np.linalg.cond(C) < _WORST_CONDITION else np.eye(len(C))
