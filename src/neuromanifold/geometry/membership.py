"""From a table of quadratic forms back to weights, or the reason why there are none (prop-a.5).

Write T_mn for the table. If T_mn = α_m ν_n, the vectors (T_m1, …, T_md') span as many dimensions as
the α_m do, so the ranks of A and V are ranks of T unfolded; `algebra.products` finds the forms.
When both ranks are one and the one form is definite of rank two, it is a product of two conjugate
complex forms: a point of the Zariski closure only.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.low_rank import balanced_factors, numeric_rank
from neuromanifold.algebra.products import factor_products
from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError
from neuromanifold.geometry.layer import Matrix, check_layer
from neuromanifold.geometry.segre import product_table, symmetric_matrices, table_norm
from neuromanifold.networks.weights import Weights

DEFAULT_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Membership:
    """Whether a table is in the neuromanifold, with the weights or the reason.

    Attributes:
        form: A, or None when the table is not in the neuromanifold.
        value: V, or None; scaled so that A and V have the same norm.
        form_rank: the rank that A must have.
        value_rank: the rank that V must have.
        residual: the distance from the table to the products that were found, relative to its norm.
        tolerance: the relative distance that counts as none.
        in_closure: whether the table is in the Zariski closure of the neuromanifold.
        reason: one sentence.
    """

    form: Matrix | None
    value: Matrix | None
    form_rank: int
    value_rank: int
    residual: float
    tolerance: float
    in_closure: bool
    reason: str

    @property
    def member(self) -> bool:
        """Whether the table is in the neuromanifold."""
        return self.form is not None

    def __str__(self) -> str:
        return self.reason


def factor_table(
    table: Float[np.ndarray, "d d_out forms"],
    rank: int,
    *,
    tolerance: float = DEFAULT_TOLERANCE,
) -> Membership:
    """A and V with the given table of products, rank A at most `rank` (prop-a.5).

    In the case of rank one two pairs (A, V) have the table; one of them is returned (cor-a.2).

    Args:
        table: d × d' quadratic forms by their coefficients.
        rank: the query/key rank a of the layer.
        tolerance: relative to the norm of the table, what counts as zero.
    """
    norm = table_norm(table)
    if not np.isfinite(norm):
        raise ArgumentError("a table of finite numbers was wanted; it has infinite or NaN entries")
    d, d_out = table.shape[:2]
    if norm == 0:
        zeros = (np.zeros((d, d)), np.zeros((d_out, d)))
        return Membership(*zeros, 0, 0, 0.0, tolerance, True, "the table is zero: A = 0 and V = 0")
    S = symmetric_matrices(table / norm)
    unfolded = S.reshape(d, -1), np.swapaxes(S, 0, 1).reshape(d_out, -1)
    rank_A, rank_V = (numeric_rank(matrix, tolerance).rank for matrix in unfolded)
    products = 2 * S.transpose(2, 3, 1, 0)
    found = factor_products(products, np.random.default_rng(0), tolerance=tolerance)
    V, A = found.pairs[0]
    residual = table_norm(table / norm - product_table(A, V))
    reason, in_closure = _verdict(residual, tolerance, rank_A, rank, found.definite)
    if reason is not None:
        return Membership(None, None, rank_A, rank_V, residual, tolerance, in_closure, reason)
    scale = np.sqrt(norm * np.linalg.norm(A) * np.linalg.norm(V))
    A, V = A * (scale / np.linalg.norm(A)), V * (scale / np.linalg.norm(V))
    text = f"products of linear forms with rank A = {rank_A}, rank V = {rank_V}"
    return Membership(A, V, rank_A, rank_V, residual, tolerance, True, text)


def weights_of_pair(A: Matrix, V: Matrix, architecture: Architecture) -> Weights:
    """Balanced weights with Kᵀ Q = A and value map V, from singular values (lemma-3.1).

    K Kᵀ = Q Qᵀ, the smallest norm that factors of A can have; rank A must not exceed a.
    """
    check_layer(architecture, "prop-a.5")
    K, Q = _factors(A, architecture.ranks[0], "A")
    layer = {"query": Q[None], "key": K[None], "value": V[None]}
    if architecture.value_ranks is not None:
        outer, inner = _factors(V, architecture.value_ranks[0], "V")
        layer |= {"value": inner[None], "output": outer.T[None]}
    return Weights.from_tensors(architecture, [layer])


def _factors(matrix: Matrix, size: int, name: str) -> tuple[Matrix, Matrix]:
    """Balanced factors of a matrix whose rank is at most `size`."""
    K, Q, left_out = balanced_factors(matrix, size)
    if left_out > DEFAULT_TOLERANCE * np.linalg.norm(matrix, 2):
        raise ArgumentError(
            f"{name} of rank at most {size} was wanted; singular value {size + 1} of it is "
            f"{left_out:.2g}: take a larger rank"
        )
    return K, Q


def _verdict(
    residual: float, tolerance: float, rank_A: int, rank: int, definite: bool
) -> tuple[str | None, bool]:
    """Why the table is not in the neuromanifold, or None, and whether the closure has it."""
    if definite:
        return (
            "the table has rank one and its form is definite of rank two, a product of two "
            "conjugate complex linear forms: in the Zariski closure, not in the neuromanifold",
            True,
        )
    # The rounding of a factorisation enters the residual once for every singular value kept.
    if residual > 2 * tolerance:
        return f"no products of linear forms: the nearest found are {residual:.2g} away", False
    if rank_A > rank:
        return f"products of linear forms, but with rank A = {rank_A} > a = {rank}", False
    return None, True
