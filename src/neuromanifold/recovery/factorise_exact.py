"""From virtual weights (M, L) to weights of given widths and ranks, exactly (eq-8).

The construction of `factorise` with reduced echelon bases E_i instead of orthonormal ones: the
right inverse P_i picks the pivot columns, E_i[:, pivots] = 1, so P_iᵀ M P_i is a submatrix of M.
"""

import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.networks.weights import Weights
from neuromanifold.recovery.exact_field import ExactField
from neuromanifold.recovery.result import Refusal
from neuromanifold.recovery.virtual_exact import ExactVirtual


def factorise_exact(virtual: ExactVirtual, architecture: Architecture) -> Weights:
    """Weights of the architecture with these virtual weights; refuses when there are none."""
    field, l = virtual.field, architecture.depth
    pivots = list(range(architecture.widths[0]))
    layers = []
    for i, (form, a) in enumerate(zip(virtual.forms, architecture.ranks, strict=True)):
        d, d_next = architecture.widths[i : i + 2]
        K, Q = _rank_factors(field, form[np.ix_(pivots, pivots)], a, i + 1)
        if i + 1 < l:
            rest = [virtual.linear, *virtual.forms[i + 1 :], *(M.T for M in virtual.forms[i + 1 :])]
            E, next_pivots = field.row_basis(np.concatenate(rest))
            if len(E) > d_next:
                raise Refusal(
                    f"the function needs width {len(E)} or more after layer {i + 1}; "
                    f"{d_next} was asked for"
                )
        else:
            E, next_pivots = virtual.linear, pivots
        tensors = {"query": (Q, (a, d)), "key": (K, (a, d)), "value": (E[:, pivots], (d_next, d))}
        layers.append({name: _pad(field, *shaped)[None] for name, shaped in tensors.items()})
        pivots = next_pivots
    return Weights.from_tensors(architecture, layers)


def _rank_factors(
    field: ExactField, A: np.ndarray, rank: int, layer: int
) -> tuple[np.ndarray, np.ndarray]:
    """K, Q with KᵀQ = A: Q the echelon basis of the rows of A, Kᵀ the pivot columns of A."""
    Q, pivots = field.row_basis(A)
    if len(Q) > rank:
        raise Refusal(f"the form of layer {layer} has rank {len(Q)}; rank {rank} was asked for")
    return A[:, pivots].T, Q


def _pad(field: ExactField, matrix: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The matrix in the upper left corner of exact zeros."""
    padded = field.read(np.zeros(shape, dtype=int))
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    return padded
