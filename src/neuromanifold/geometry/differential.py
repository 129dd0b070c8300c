"""The differentials of (A, V) ↦ φ and of (Q, K, V) ↦ φ, and their ranks (lemma-a.3).

By prop-a.5 φ is the table of products A ∘ V, bilinear in A and V, so the differential sends
(Ȧ, V̇) to Ȧ ∘ V + A ∘ V̇: a matrix with a column for every entry of A and of V. That of (Q, K, V)
is its product with the matrix of (Q̇, K̇, V̇) ↦ (K̇ᵀ Q + Kᵀ Q̇, V̇). Ranks come from the singular
values, with the gap, and exactly over a prime field for the very floats that the weights hold.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import rank
from neuromanifold.errors import NotCoveredError
from neuromanifold.geometry.layer import Factors, Matrix
from neuromanifold.geometry.segre import product_table

_LARGEST = 2**26  # entries of the larger matrix, half a gigabyte


@dataclass(frozen=True, slots=True)
class ExactRanks:
    """Ranks mod p of the floats that the weights hold, each at its exact dyadic value.

    A rank mod p is at most the rank over the rational numbers.

    Attributes:
        prime: the prime p.
        attention: the rank of A.
        value: the rank of V.
        pair_differential: the rank of the differential of (A, V) ↦ φ.
        weight_differential: the rank of the differential of (Q, K, V) ↦ φ.
    """

    prime: int
    attention: int
    value: int
    pair_differential: int
    weight_differential: int


def pair_differential(A: Matrix, V: Matrix) -> Matrix:
    """The matrix of (Ȧ, V̇) ↦ Ȧ ∘ V + A ∘ V̇; columns by rows of A, then rows of V (lemma-a.3).

    For residues the entries are residues, since every entry of a basis direction is 0 or 1.
    """
    d, d_out = A.shape[0], V.shape[0]
    check_size(d, d_out)
    units_A, units_V = np.eye(d * d).reshape(-1, d, d), np.eye(d_out * d).reshape(-1, d_out, d)
    moved_A = product_table(units_A, np.broadcast_to(V, (d * d, *V.shape)))
    moved_V = product_table(np.broadcast_to(A, (d_out * d, *A.shape)), units_V)
    return np.concatenate([moved_A.reshape(d * d, -1), moved_V.reshape(d_out * d, -1)]).T


def factor_differential(factors: Factors) -> Matrix:
    """The matrix of (Q̇, K̇, V̇) ↦ (K̇ᵀ Q + Kᵀ Q̇, V̇), for factored values of (V̇, Ȯ) ↦ Ȯ V + O V̇.

    The entries are entries of the weights.
    """
    a, d = factors.query.shape
    eye = np.eye(d)
    blocks_A = [
        np.einsum("ci,mk->imck", factors.key, eye).reshape(d * d, a * d),
        np.einsum("cm,ik->imck", factors.query, eye).reshape(d * d, a * d),
    ]
    if factors.output is None:
        blocks_V = [np.eye(factors.value.size)]
    else:
        O, V = factors.output, factors.value
        d_out, v = O.shape
        blocks_V = [
            np.einsum("nc,ik->nick", O, eye).reshape(d_out * d, v * d),
            np.einsum("ci,nk->nikc", V, np.eye(d_out)).reshape(d_out * d, d_out * v),
        ]
    return block_diag(np.concatenate(blocks_A, axis=1), np.concatenate(blocks_V, axis=1))


def exact_ranks(factors: Factors, field: PrimeField) -> ExactRanks:
    """All ranks over GF(p), for matrices given in floats (lemma-a.3)."""
    modular = factors.residues(field)
    A, V = modular.pair_mod(field)
    of_pair = pair_differential(A, V)
    of_factors = field.matmul(of_pair, factor_differential(modular))
    ranks = (rank(np.ascontiguousarray(matrix), field) for matrix in (A, V, of_pair, of_factors))
    return ExactRanks(field.modulus, *ranks)


def check_size(d: int, d_out: int) -> None:
    """Raise if the differential has too many entries to be written down."""
    entries = d * d_out * d * (d + 1) // 2 * (d * d + d * d_out)
    if entries > _LARGEST:
        raise NotCoveredError(
            f"differentials are computed up to {_LARGEST} entries; "
            f"widths {d} and {d_out} need {entries}: take a smaller layer"
        )
