"""From products of two linear maps back to the maps (thm-3.2, prop-a.5).

A lightning layer is seen through the table T_jk = V_j ⊗ A_k + V_k ⊗ A_j, where V_j is column j of V
and A_k row k of A: the polarisation of x ↦ (V x)(Aᵀ x)ᵀ, whose entries are products of linear
forms. Take x_0 with (V x_0)(Aᵀ x_0)ᵀ = s v αᵀ ≠ 0, |v| = |α| = 1, and fix the scale of A by
Aᵀ x_0 = α, V x_0 = s v. For every y

    T(x_0, y) = s v (Aᵀ y)ᵀ + (V y) αᵀ,

which shows V y up to multiples of v and Aᵀ y up to multiples of α, and of the two multiples
b(y) = vᵀ V y and a(y) = αᵀ Aᵀ y the sum c = s a + b. Write V' and A' for the parts across v and α.
Then T has the parts

    across v, along α:   V'_j a_k + V'_k a_j
    along v, across α:   b_j A'_k + b_k A'_j
    along both:          b_j a_k + b_k a_j.

When V' or A' is not 0 (rank V or rank A at least 2) the first two are linear equations that
determine a. When both are 0 the last is a product of two linear forms, which can be exchanged:
these are the two points of thm-3.2.
"""

import numpy as np
from jaxtyping import Float64

from neuromanifold.recovery.result import Refusal

Table = Float64[np.ndarray, "d d n m"]
Maps = tuple[Float64[np.ndarray, "n d"], Float64[np.ndarray, "d m"]]

RANK_TOLERANCE = 1e-9
"""Relative size below which a part of the table counts as 0: far above its rounding errors."""
_STARTS = 32


def factor_table(table: Table, generator: np.random.Generator) -> tuple[tuple[Maps, ...], float]:
    """The pairs (V, A) with this table, up to (V/λ, λA): one, or two of rank one (thm-3.2).

    Returns:
        The pairs, and by how much a relative error of the table grows in a (1 for rank one): it is
        large when both maps are almost of rank one.
    """
    starts = generator.standard_normal((_STARTS, table.shape[0]))
    starts /= np.linalg.norm(starts, axis=1, keepdims=True)
    products = np.einsum("ij,ik,jknm->inm", starts, starts, table) / 2
    best = int(np.argmax(np.linalg.norm(products, axis=(1, 2))))
    U, singular, W = np.linalg.svd(products[best])
    v, alpha, s = U[:, 0], W[0], float(singular[0])
    if s == 0:
        raise Refusal("the terms linear in one token and quadratic in another vanish")
    seen = np.einsum("j,jknm->knm", starts[best], table)
    V_rest = _across(v, seen @ alpha)
    A_rest = _across(alpha, v @ seen) / s
    rest = np.concatenate([V_rest, s * A_rest], axis=1)
    if np.linalg.norm(rest) <= RANK_TOLERANCE * np.linalg.norm(seen):
        form = np.einsum("n,jknm,m->jk", v, table, alpha)
        return tuple((np.outer(v, b), np.outer(a, alpha)) for a, b in _two_forms(form)), 1.0
    c = v @ seen @ alpha
    along_alpha = _across(v, table @ alpha)
    along_v = _across(alpha, np.einsum("n,jknm->jkm", v, table))
    target = np.concatenate([along_alpha, _symmetric_product(c, A_rest) - along_v], axis=2)
    a, amplification = _solve_symmetric_product(rest, target)
    pair = (V_rest.T + np.outer(v, c - s * a), A_rest + np.outer(a, alpha))
    return (pair,), amplification * float(np.linalg.norm(seen))


def _across(unit: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """The parts of vectors (last axis) orthogonal to a unit vector."""
    return vectors - np.expand_dims(vectors @ unit, -1) * unit


def _symmetric_product(a: np.ndarray, R: np.ndarray) -> Float64[np.ndarray, "d d r"]:
    """a_j R_k + a_k R_j."""
    product = a[:, None, None] * R[None, :, :]
    return product + product.swapaxes(0, 1)


def _solve_symmetric_product(
    R: Float64[np.ndarray, "d r"], target: Float64[np.ndarray, "d d r"]
) -> tuple[Float64[np.ndarray, " d"], float]:
    """The a with a_j R_k + a_k R_j = target by least squares; it is unique when R ≠ 0.

    Returns:
        a, and by how much it amplifies an error of the target.
    """
    units = np.eye(len(R))
    design = np.stack([_symmetric_product(unit, R).ravel() for unit in units], axis=1)
    a, _, _, singular = np.linalg.lstsq(design, target.ravel(), rcond=None)
    return a, float(1 / singular[-1])


def _two_forms(Q: Float64[np.ndarray, "d d"]) -> list[tuple[np.ndarray, np.ndarray]]:
    """All (a, b) with Q = a bᵀ + b aᵀ up to scale: with p = a + b and r = a − b, 2Q = p pᵀ − r rᵀ.

    So Q has one positive and one negative eigenvalue, or, when a ∥ b, one eigenvalue other than 0.
    """
    eigenvalues, vectors = np.linalg.eigh(Q)
    order = np.argsort(-np.abs(eigenvalues))
    first, second = order[0], order[1] if len(order) > 1 else order[0]
    sign = np.sign(eigenvalues[first])
    p = np.sqrt(2 * abs(eigenvalues[first])) * vectors[:, first]
    if abs(eigenvalues[second]) <= RANK_TOLERANCE * abs(eigenvalues[first]) or len(order) == 1:
        return [(sign * p / 2, p / 2)]
    if eigenvalues[second] * sign > 0:
        raise Refusal("the product of two linear forms in it has no real factors")
    r = np.sqrt(2 * abs(eigenvalues[second])) * vectors[:, second]
    a, b = sign * (p + r) / 2, (p - r) / 2
    return [(a, b), (b, a)]
