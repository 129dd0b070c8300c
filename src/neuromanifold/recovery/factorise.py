"""From virtual weights (M, L) to weights of given widths and ranks, in float64 (eq-8).

Wanted are V_i and A_i with V_l ⋯ V_1 = L and M_{i+1} = L_iᵀ A_{i+1} L_i, L_i = V_i ⋯ V_1. The row
space of L_i must contain the span W_i of the rows of L and of the row and column spaces of
M_{i+1}, …, M_l, and nothing more is needed. So let E_i be a basis of W_i (as rows), W_0 everything,
and P_i a right inverse, E_i P_i = 1: then P_i E_i leaves every row vector of W_i as it is, and

    L_i = E_i,    V_i = E_i P_{i-1},    A_{i+1} = P_iᵀ M_{i+1} P_i,    V_l = L P_{l-1}

solve the equations, W_i lying in W_{i-1}. Rows and columns of zeros fill up the widths. Orthonormal
bases make P_i = E_iᵀ, so nothing is inverted.
"""

import numpy as np
from jaxtyping import Float64

from neuromanifold.networks.virtual import VirtualWeights
from neuromanifold.networks.weights import Weights
from neuromanifold.recovery.result import Refusal

RANK_TOLERANCE = 1e-7
"""Relative singular value above which a matrix is said to exceed the requested rank or width."""

Matrix = Float64[np.ndarray, "_ _"]


def factorise(virtual: VirtualWeights) -> Weights:
    """Weights of the architecture with these virtual weights; refuses when there are none."""
    architecture = virtual.architecture
    forms = [np.asarray(M, dtype=np.float64) for M in virtual.forms]
    L = np.asarray(virtual.linear, dtype=np.float64)
    basis = np.eye(architecture.widths[0])
    layers = []
    for i, (d, d_next, a) in enumerate(
        zip(architecture.widths, architecture.widths[1:], architecture.ranks, strict=False)
    ):
        K, Q = _rank_factors(basis @ forms[i] @ basis.T, a, i + 1)
        if i + 1 < architecture.depth:
            next_basis = _seen_basis(L, forms[i + 1 :], d_next, i + 1)
            V = next_basis @ basis.T
        else:
            next_basis, V = basis, L @ basis.T
        tensors = {"query": pad(Q, (a, d)), "key": pad(K, (a, d)), "value": pad(V, (d_next, d))}
        layers.append({name: tensor[None] for name, tensor in tensors.items()})
        basis = next_basis
    return Weights.from_tensors(architecture, layers)


def pad(matrix: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The matrix in the upper left corner of zeros."""
    padded = np.zeros(shape, dtype=matrix.dtype)
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    return padded


def _seen_basis(L: Matrix, forms: list[Matrix], width: int, layer: int) -> Matrix:
    """An orthonormal basis of the row spaces of L, M_j and M_jᵀ, each matrix scaled to norm 1."""
    matrices = [L, *forms, *(M.T for M in forms)]
    norms = [float(np.linalg.norm(matrix)) or 1.0 for matrix in matrices]
    stacked = np.concatenate([matrix / norm for matrix, norm in zip(matrices, norms, strict=True)])
    _, singular, rows = np.linalg.svd(stacked, full_matrices=False)
    rank = int(np.sum(singular > RANK_TOLERANCE * singular[0]))
    if rank > width:
        raise Refusal(
            f"the function needs width {rank} or more after layer {layer}; {width} was asked for"
        )
    return rows[:rank]


def _rank_factors(A: Matrix, rank: int, layer: int) -> tuple[Matrix, Matrix]:
    """K, Q with KᵀQ = A from the singular vectors, balanced: K Kᵀ = Q Qᵀ."""
    U, singular, W = np.linalg.svd(A)
    if len(singular) > rank and singular[rank] > RANK_TOLERANCE * singular[0]:
        needed = int(np.sum(singular > RANK_TOLERANCE * singular[0]))
        raise Refusal(
            f"the form of layer {layer} has rank {needed}; rank {rank} was asked for "
            f"(singular value {singular[rank] / singular[0]:.1e} of the largest)"
        )
    root = np.sqrt(singular[:rank])
    return (U[:, :rank] * root).T, root[:, None] * W[:rank]
