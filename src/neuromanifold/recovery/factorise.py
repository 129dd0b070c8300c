"""From virtual weights (M, L) to weights of given widths and ranks (eq-8).

Wanted are V_i and A_i with V_l ⋯ V_1 = L and M_{i+1} = L_iᵀ A_{i+1} L_i, L_i = V_i ⋯ V_1. The row
space of L_i must contain the span W_i of the rows of L and of the row and column spaces of
M_{i+1}, …, M_l, and nothing more is needed. So let E_i be a basis of W_i (as rows), W_0 everything,
and P_i a right inverse, E_i P_i = 1: then P_i E_i leaves every row vector of W_i as it is, and

    L_i = E_i,    V_i = E_i P_{i-1},    A_{i+1} = P_iᵀ M_{i+1} P_i,    V_l = L P_{l-1}

solve the equations, W_i lying in W_{i-1}. Rows and columns of zeros fill up the widths. In floats
orthonormal bases make P_i = E_iᵀ, so nothing is inverted; over Q and GF(p) the bases are reduced
echelon forms, P_i picks their pivot columns, and P_iᵀ M P_i is a submatrix of M.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from neuromanifold.algebra.exact_field import ExactField
from neuromanifold.algebra.low_rank import ROUNDED_ZERO, balanced_factors, numeric_rank, pad
from neuromanifold.architecture import Architecture
from neuromanifold.networks.weights import Weights
from neuromanifold.recovery.fit import Point
from neuromanifold.recovery.result import Contradicted, Refusal, Undecided

Matrix = Float64[np.ndarray, "_ _"]

_CLEAR = 10.0
"""From this multiple of its error bar on a singular value is clearly not zero."""


@dataclass(frozen=True, slots=True, eq=False)
class ExactVirtual:
    """Virtual weights of a lightning network in exact arrays.

    Attributes:
        forms: M_1, …, M_l, each d_0 × d_0.
        linear: L, shape d_l × d_0.
        field: where the entries live.
    """

    forms: tuple[np.ndarray, ...]
    linear: np.ndarray
    field: ExactField

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """φ(X) = L Y_l with Y_0 = X and Y_i = Y_{i-1} Y_{i-1}ᵀ M_i Y_{i-1}.

        The output tokens of layer i are L_i Y_i, and V_i L_{i-1} = L_i.
        """
        Y = X
        for M in self.forms:
            Y = self.field.product(Y, Y.T, M, Y)
        return self.field.product(self.linear, Y)


def factorise(point: Point, errors: Sequence[float]) -> Weights:
    """Weights of the architecture at this point; refuses when there are none.

    Args:
        point: virtual weights, or the forms and values of all layers.
        errors: by how much each block of the point may be wrong, in norm.

    Raises:
        Undecided: a singular value that should be zero is larger than its error, but not clearly.
    """
    architecture = point.architecture
    if point.values[0] is None or architecture.depth == 1:
        return _from_virtual(point, errors)
    layers = []
    for i, (forms, values) in enumerate(zip(point.forms, point.values, strict=True)):
        pairs = [_rank_factors(A, errors[i], architecture.ranks[i], i + 1) for A in forms]
        K, Q = (np.stack(factors) for factors in zip(*pairs, strict=True))
        layers.append({"query": Q, "key": K, "value": np.asarray(values)})
    return Weights.from_tensors(architecture, layers)


def _from_virtual(point: Point, errors: Sequence[float]) -> Weights:
    """Weights with the virtual weights of a point, or those of a single layer of any kind."""
    architecture, l = point.architecture, len(point.forms)
    basis = np.eye(architecture.widths[0])
    L = np.asarray(point.values[-1])
    layers = []
    for i, (d, d_next, a) in enumerate(
        zip(architecture.widths, architecture.widths[1:], architecture.ranks, strict=False)
    ):
        pairs = [_rank_factors(basis @ A @ basis.T, errors[i], a, i + 1) for A in point.forms[i]]
        next_basis, V = basis, L @ basis.T
        if i + 1 < l:
            later = [L[0], *(M[0] for M in point.forms[i + 1 :])]
            next_basis = _seen_basis(later, [errors[-1], *errors[i + 1 : l]], d_next, i + 1)
            V = (next_basis @ basis.T)[None]
        tensors = {
            "query": [pad(Q, (a, d)) for _, Q in pairs],
            "key": [pad(K, (a, d)) for K, _ in pairs],
            "value": [pad(head, (d_next, d)) for head in V],
        }
        layers.append({name: np.stack(heads) for name, heads in tensors.items()})
        basis = next_basis
    return Weights.from_tensors(architecture, layers)


def _seen_basis(
    matrices: Sequence[Matrix], errors: Sequence[float], width: int, layer: int
) -> Matrix:
    """An orthonormal basis of the row and column spaces, each matrix scaled to norm 1.

    Of L, the first matrix, only the row space counts.
    """
    norms = [float(np.linalg.norm(matrix)) or 1.0 for matrix in matrices]
    scaled = [matrix / norm for matrix, norm in zip(matrices, norms, strict=True)]
    stacked = np.concatenate([*scaled, *(M.T for M in scaled[1:])])
    relative = float(np.hypot.reduce([e / n for e, n in zip(errors, norms, strict=True)]))
    threshold = max(relative, ROUNDED_ZERO)
    found = numeric_rank(stacked, threshold)
    if found.rank > width:
        _refuse_excess(
            found.singular_values[width] / threshold,
            f"the function needs width {found.rank} or more after layer {layer}; "
            f"{width} was asked for",
        )
    return np.linalg.svd(stacked, full_matrices=False)[2][: min(found.rank, width)]


def _rank_factors(A: Matrix, error: float, rank: int, layer: int) -> tuple[Matrix, Matrix]:
    """K, Q with KᵀQ = A, balanced; what exceeds the rank must be within the error."""
    K, Q, left_out = balanced_factors(A, rank)
    threshold = max(error, ROUNDED_ZERO * float(np.linalg.norm(A, 2)))
    if left_out > threshold:
        needed = numeric_rank(A, threshold)
        _refuse_excess(
            left_out / threshold,
            f"the form of layer {layer} has rank {needed.rank}; rank {rank} was asked for "
            f"(singular value {left_out / needed.singular_values[0]:.1e} of the largest)",
        )
    return K, Q


def _refuse_excess(ratio: float, claim: str) -> None:
    """Refuse a rank or width that is too large, or say that the noise does not decide it."""
    if ratio > _CLEAR:
        raise Contradicted(claim)
    raise Undecided(
        f"whether {claim} is not decided at this noise: the first number beyond is {ratio:.1f} "
        f"times its error bar, and {_CLEAR:.0f} times would decide"
    )


def factorise_exact(virtual: ExactVirtual, architecture: Architecture) -> Weights:
    """Weights of the architecture with these virtual weights; refuses when there are none."""
    field, l = virtual.field, architecture.depth
    pivots = list(range(architecture.widths[0]))
    layers = []
    for i, (form, a) in enumerate(zip(virtual.forms, architecture.ranks, strict=True)):
        d, d_next = architecture.widths[i : i + 2]
        K, Q = _exact_factors(field, form[np.ix_(pivots, pivots)], a, i + 1)
        E, next_pivots = virtual.linear, pivots
        if i + 1 < l:
            rest = [virtual.linear, *virtual.forms[i + 1 :], *(M.T for M in virtual.forms[i + 1 :])]
            E, next_pivots = field.row_basis(np.concatenate(rest))
            if len(E) > d_next:
                raise Refusal(
                    f"the function needs width {len(E)} or more after layer {i + 1}; "
                    f"{d_next} was asked for"
                )
        tensors = {"query": (Q, (a, d)), "key": (K, (a, d)), "value": (E[:, pivots], (d_next, d))}
        layers.append({n: field.read(pad(*shaped))[None] for n, shaped in tensors.items()})
        pivots = next_pivots
    return Weights.from_tensors(architecture, layers)


def _exact_factors(
    field: ExactField, A: np.ndarray, rank: int, layer: int
) -> tuple[np.ndarray, np.ndarray]:
    """K, Q with KᵀQ = A: Q the echelon basis of the rows of A, Kᵀ the pivot columns of A."""
    Q, pivots = field.row_basis(A)
    if len(Q) > rank:
        raise Refusal(f"the form of layer {layer} has rank {len(Q)}; rank {rank} was asked for")
    return A[:, pivots].T, Q
