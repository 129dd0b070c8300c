"""From a table of quadratic forms back to weights, or the reason why there are none (prop-a.5).

Write T_mn for the table. If T_mn = α_m ν_n, the vectors (T_m1, …, T_md') span as many dimensions as
the α_m do, so the ranks of A and V are ranks of T unfolded. Three cases.

- T = 0: A = 0 and V = 0.
- Both ranks are one: T_mn = q_m h_n f for one form f, which must be a product of two real linear
  forms: its symmetric matrix has rank one, or rank two and eigenvalues of both signs. A definite f
  of rank two is a product of two conjugate complex forms: a point of the Zariski closure only.
- Otherwise one of the ranks, say of A, is at least two. In a basis where α_0, α_1, … are
  independent, α'_0 T_mn = α'_m T_0n for all m, n is a linear system for α'; dividing by ν_n it says
  α'_0 α_m = α'_m α_0, and since α_0 and α_m have no common factor, α' = c α (unique factorisation).
  Given α, ν solves a linear least squares problem.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError
from neuromanifold.geometry.layer import Matrix, check_layer
from neuromanifold.geometry.segre import product_table, symmetric_matrices, table_norm
from neuromanifold.networks.weights import Weights

Forms = Float64[np.ndarray, "_ d"]
Stack = Float[np.ndarray, "first second d d"]

DEFAULT_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Membership:
    """Whether a table is in the neuromanifold, with the weights or the reason.

    Attributes:
        attention: A, or None when the table is not in the neuromanifold.
        value: V, or None; scaled so that A and V have the same norm.
        attention_rank: the rank that A must have.
        value_rank: the rank that V must have.
        residual: the distance from the table to the products that were found, relative to its norm.
        tolerance: the relative distance that counts as none.
        in_closure: whether the table is in the Zariski closure of the neuromanifold.
        reason: one sentence.
    """

    attention: Matrix | None
    value: Matrix | None
    attention_rank: int
    value_rank: int
    residual: float
    tolerance: float
    in_closure: bool
    reason: str

    @property
    def member(self) -> bool:
        """Whether the table is in the neuromanifold."""
        return self.attention is not None

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
    left, values_A, _ = np.linalg.svd(S.reshape(d, -1), full_matrices=False)
    right, values_V, _ = np.linalg.svd(np.swapaxes(S, 0, 1).reshape(d_out, -1), full_matrices=False)
    rank_A, rank_V = (int(np.sum(values > tolerance)) for values in (values_A, values_V))
    core = np.einsum("mr,ns,mnij->rsij", left[:, :rank_A], right[:, :rank_V], S)
    if rank_A == rank_V == 1:
        forms_A, forms_V, closure = _factor_form(core[0, 0], tolerance)
    else:
        forms_A, forms_V = _factor_core(core)
        closure = "products"
    A = (left[:, :rank_A] @ forms_A).T
    V = right[:, :rank_V] @ forms_V
    residual = table_norm(table / norm - product_table(A, V))
    reason, in_closure = _verdict(residual, tolerance, rank_A, rank, closure)
    if reason is not None:
        return Membership(None, None, rank_A, rank_V, residual, tolerance, in_closure, reason)
    scale = np.sqrt(norm * np.linalg.norm(A) * np.linalg.norm(V))
    A, V = A * (scale / np.linalg.norm(A)), V * (scale / np.linalg.norm(V))
    found = f"products of linear forms with rank A = {rank_A}, rank V = {rank_V}"
    return Membership(A, V, rank_A, rank_V, residual, tolerance, True, found)


def weights_of_pair(A: Matrix, V: Matrix, architecture: Architecture) -> Weights:
    """Balanced weights with Kᵀ Q = A and value map V, from singular values (lemma-3.1).

    K Kᵀ = Q Qᵀ, the smallest norm that factors of A can have; rank A must not exceed a.
    """
    check_layer(architecture, "prop-a.5")
    K, Q = _balanced_factors(A, architecture.ranks[0], "A")
    layer = {"query": Q[None], "key": K[None], "value": V[None]}
    if architecture.value_ranks is not None:
        outer, inner = _balanced_factors(V, architecture.value_ranks[0], "V")
        layer |= {"value": inner[None], "output": outer.T[None]}
    return Weights.from_tensors(architecture, [layer])


def _balanced_factors(matrix: Matrix, size: int, name: str) -> tuple[Matrix, Matrix]:
    """L and R with `size` rows each, Lᵀ R the matrix and L Lᵀ = R Rᵀ diagonal."""
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    kept = min(size, values.size)
    if values[kept:].size and values[kept] > DEFAULT_TOLERANCE * values[0]:
        raise ArgumentError(
            f"{name} of rank at most {size} was wanted; singular value {kept + 1} of it is "
            f"{values[kept]:.2g}: take a larger rank"
        )
    roots = np.sqrt(values[:kept])[:, None]
    factors = []
    for vectors in (left.T[:kept], right[:kept]):
        factor = np.zeros((size, vectors.shape[1]))
        factor[:kept] = roots * vectors
        factors.append(factor)
    return factors[0], factors[1]


def _verdict(
    residual: float, tolerance: float, rank_A: int, rank: int, closure: str
) -> tuple[str | None, bool]:
    """Why the table is not in the neuromanifold, or None, and whether the closure has it."""
    if closure == "definite":
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


def _factor_form(form: Matrix, tolerance: float) -> tuple[Forms, Forms, str]:
    """The k and v with k · v nearest to the form, and whether the form is a real product.

    Of the form Σ λ_i (u_i · x)² the products keep the largest λ > 0 and the smallest λ' < 0:
    λ u² − |λ'| w² = (√λ u + √|λ'| w)(√λ u − √|λ'| w).
    """
    values, vectors = np.linalg.eigh(form)
    low, high = min(values[0], 0.0), max(values[-1], 0.0)
    plus, minus = np.sqrt(high) * vectors[:, -1], np.sqrt(-low) * vectors[:, 0]
    by_size = np.sort(np.abs(values))
    rank_two = by_size.size < 3 or by_size[-3] <= tolerance
    definite = rank_two and by_size[-2] > tolerance and min(-low, high) <= tolerance
    return (plus + minus)[None], (plus - minus)[None], "definite" if definite else "products"


def _factor_core(core: Stack) -> tuple[Forms, Forms]:
    """Independent forms α and ν whose products are nearest to `core`, one rank being at least 2."""
    if core.shape[0] >= 2:
        alpha = _common_factor(core)
        return alpha, _cofactor(core, alpha)
    flipped = np.swapaxes(core, 0, 1)
    nu = _common_factor(flipped)
    return _cofactor(flipped, nu), nu


def _common_factor(core: Stack) -> Forms:
    """The solution of α_0 T_mn = α_m T_0n for m ≥ 1 and all n: the last singular vector."""
    rank, others, d = core.shape[:3]
    multiply = _multiplication(core)
    cubics = multiply.shape[-2]
    system = np.zeros((rank - 1, others, cubics, rank, d))
    for m in range(1, rank):
        system[m - 1, :, :, 0] = multiply[m]
        system[m - 1, :, :, m] = -multiply[0]
    _, _, right = np.linalg.svd(system.reshape(-1, rank * d), full_matrices=False)
    return right[-1].reshape(rank, d)


def _multiplication(core: Stack) -> Float[np.ndarray, "first second cubics d"]:
    """For every form of the stack the matrix of ℓ ↦ ℓ · form, linear forms to cubic forms."""
    d = core.shape[-1]
    triples = np.sort(np.indices((d, d, d)).reshape(3, -1), axis=0)
    cubics, places = np.unique(triples, axis=1, return_inverse=True)
    unit = np.eye(cubics.shape[1])[places.ravel()].reshape(d, d, d, -1)
    return np.swapaxes(np.tensordot(core, unit, axes=2), -1, -2)


def _cofactor(core: Stack, alpha: Forms) -> Forms:
    """ν with α_m ν_n nearest to T_mn: one least squares problem with a right side for every n.

    ν_n = Σ_i c_i x_i gives the matrices (α_m e_iᵀ + e_i α_mᵀ)/2, the columns of the problem.
    """
    rank, d = alpha.shape
    halves = np.einsum("mj,ik->mjki", alpha, np.eye(d)) / 2
    columns = (halves + np.swapaxes(halves, 1, 2)).reshape(rank * d * d, d)
    right_sides = np.swapaxes(core, 0, 1).reshape(core.shape[1], -1).T
    return np.linalg.lstsq(columns, right_sides)[0].T
