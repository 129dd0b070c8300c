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
these are the two points of thm-3.2. It may also be a sum of two squares, the product of two
conjugate complex forms: then the nearest real product is returned, and said to be none.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

Table = Float64[np.ndarray, "d d n m"]
Maps = tuple[Float64[np.ndarray, "n d"], Float64[np.ndarray, "d m"]]

_STARTS = 32


@dataclass(frozen=True, slots=True, eq=False)
class ProductFactors:
    """The pairs of maps with a given table of products, or the nearest that were found.

    Attributes:
        pairs: (V, A) up to (V/λ, λA): one, or both of the rank-one case (thm-3.2).
        amplification: by how much a relative error of the table grows in a (1 for rank one): it is
            large when both maps are almost of rank one.
        definite: whether the table is a form of rank two with no real factors.
    """

    pairs: tuple[Maps, ...]
    amplification: float
    definite: bool = False


def product_terms(value: Callable[[np.ndarray, np.ndarray], np.ndarray], d: int) -> Table:
    """The table from the values (V x)(Aᵀ x)ᵀ y + f(y), at x = 0, e_j and e_j + e_k, y = e_m."""
    units = np.eye(d)
    columns = []
    for y in units:
        alone = value(np.zeros(d), y)
        squares = [value(x, y) - alone for x in units]
        column = np.empty((d, d, len(alone)))
        for j in range(d):
            column[j, j] = 2 * squares[j]
            for k in range(j):
                both = value(units[j] + units[k], y) - alone
                column[j, k] = column[k, j] = both - squares[j] - squares[k]
        columns.append(column)
    return np.stack(columns, axis=-1)


def factor_products(
    table: Table, generator: np.random.Generator, *, tolerance: float
) -> ProductFactors:
    """The pairs (V, A) whose table this is (thm-3.2, prop-a.5).

    Args:
        table: T, not zero.
        generator: draws x_0.
        tolerance: the relative size below which a part of the table counts as zero.
    """
    starts = generator.standard_normal((_STARTS, table.shape[0]))
    starts /= np.linalg.norm(starts, axis=1, keepdims=True)
    products = np.einsum("ij,ik,jknm->inm", starts, starts, table) / 2
    best = int(np.argmax(np.linalg.norm(products, axis=(1, 2))))
    U, singular, W = np.linalg.svd(products[best])
    v, alpha, s = U[:, 0], W[0], float(singular[0])
    seen = np.einsum("j,jknm->knm", starts[best], table)
    V_rest = _across(v, seen @ alpha)
    A_rest = _across(alpha, v @ seen) / s
    rest = np.concatenate([V_rest, s * A_rest], axis=1)
    if np.linalg.norm(rest) <= tolerance * np.linalg.norm(seen):
        forms, definite = _two_forms(np.einsum("n,jknm,m->jk", v, table, alpha), tolerance)
        pairs = tuple((np.outer(v, b), np.outer(a, alpha)) for a, b in forms)
        return ProductFactors(pairs, 1.0, definite)
    c = v @ seen @ alpha
    along_alpha = _across(v, table @ alpha)
    along_v = _across(alpha, np.einsum("n,jknm->jkm", v, table))
    target = np.concatenate([along_alpha, _symmetric_product(c, A_rest) - along_v], axis=2)
    a, amplification = _solve_symmetric_product(rest, target)
    pair = (V_rest.T + np.outer(v, c - s * a), A_rest + np.outer(a, alpha))
    return ProductFactors((pair,), amplification * float(np.linalg.norm(seen)))


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


def _two_forms(
    Q: Float64[np.ndarray, "d d"], tolerance: float
) -> tuple[list[tuple[np.ndarray, np.ndarray]], bool]:
    """All (a, b) with Q = a bᵀ + b aᵀ up to scale, and whether Q is definite of rank two.

    With p = a + b and r = a − b, 2Q = p pᵀ − r rᵀ: one positive and one negative eigenvalue, or,
    when a ∥ b, one eigenvalue other than 0.
    """
    values, vectors = np.linalg.eigh(Q)
    low, high = min(values[0], 0.0), max(values[-1], 0.0)
    p, r = np.sqrt(2 * high) * vectors[:, -1], np.sqrt(-2 * low) * vectors[:, 0]
    sizes = np.sort(np.abs(values))[::-1] > tolerance * max(high, -low)
    if min(high, -low) <= tolerance * max(high, -low):
        return [(p / 2, p / 2) if high > -low else (r / 2, -r / 2)], int(np.sum(sizes)) == 2
    a, b = (p + r) / 2, (p - r) / 2
    return [(a, b), (b, a)], False
