"""Two lightning layers from real float64 evaluations (thm-3.7).

Every lightning network is φ(X)_k = B(S) x_k with S = X Xᵀ, as a layer is V S A x_k. In virtual
weights two layers are, with the output tokens W = S M_1 X of the first layer in place of X,

    B(S) x_k = L F M_2 w_k,    F = W Wᵀ = S M_1 S M_1ᵀ S,    w_k = S M_1 x_k.

1. At S = x xᵀ the matrix B is g(x) (L x)(M_1ᵀ x)ᵀ: its row space is the line of M_1ᵀ x. So M_1 is,
   up to scale, the solution of linear equations when its rank is at least 2.
2. With M_1 known φ is linear in the table T_ab = L_a ⊗ M_2,b + L_b ⊗ M_2,a (F is symmetric), the
   table of a single layer with V = L and A = M_2: least squares, then `factor_table`.
3. Levenberg–Marquardt on (M_1, M_2, L) against all of those values.
"""

from functools import partial

import numpy as np
from jaxtyping import Float64

from neuromanifold.architecture import Architecture
from neuromanifold.networks.virtual import VirtualWeights
from neuromanifold.recovery.bilinear import Table, factor_table
from neuromanifold.recovery.limit import value_at_zero
from neuromanifold.recovery.oracle import BlackBox
from neuromanifold.recovery.polish import balance, polish
from neuromanifold.recovery.result import Refusal, Solution, condition_number

_KERNEL_GAP = 1e-6
"""Smallest relative second singular value of the equations for M_1 that counts as not 0."""

_DEGREE = 4
"""The degree of B(S) in S, (3^l − 1)/2."""

_REACH = 0.25
"""Largest u = ε² used to reach the limit u → 0."""


def recover_two_lightning(
    box: BlackBox, architecture: Architecture, generator: np.random.Generator
) -> Solution:
    """(M_1, M_2, L) up to rescaling (thm-3.7)."""
    if architecture.tokens < 2:
        raise Refusal(
            "one token shows only the symmetric parts of the forms; at least 2 are needed"
        )
    M_1, first_condition = _first_form(box, architecture, generator)
    inputs, outputs = _samples(box, architecture, generator)
    table, table_condition = _second_table(M_1, inputs, outputs)
    pairs, pair_condition = factor_table(table, generator)
    points = [VirtualWeights((M_1, M_2), L, architecture) for L, M_2 in pairs]
    return Solution(
        tuple(polish(balance(point), inputs, outputs) for point in points),
        {
            "equations for the first form": first_condition,
            "equations for the table": table_condition,
            "equations for the maps": pair_condition,
        },
    )


def _first_form(
    box: BlackBox, architecture: Architecture, generator: np.random.Generator
) -> tuple[Float64[np.ndarray, "d d"], float]:
    """M_1 up to scale, from σ (1 − ρρᵀ) M_1ᵀ x = 0, where B(x xᵀ) ≈ σ λ ρᵀ.

    The weight σ keeps a point where g(x) is small from spoiling the others.
    """
    d = architecture.widths[0]
    equations = []
    for _ in range(3 * d + 2):
        x = generator.standard_normal(d)
        x /= np.linalg.norm(x)
        _, singular, rows = np.linalg.svd(_rank_one_matrix(box, architecture, x))
        across = np.eye(d) - np.outer(rows[0], rows[0])
        equations.append(singular[0] * np.kron(x, across))
    system = np.concatenate(equations)
    _, singular, rows = np.linalg.svd(system)
    if d > 1 and not singular[-2] > _KERNEL_GAP * singular[0]:
        raise Refusal(
            "the equations for the first form have several solutions: the form has rank one (or "
            "the function is no deep lightning network), which lies outside thm-3.7"
        )
    return rows[-1].reshape(d, d), condition_number(system, kernel=1)


def _rank_one_matrix(
    box: BlackBox, architecture: Architecture, x: np.ndarray
) -> Float64[np.ndarray, "d_l d0"]:
    """B(x xᵀ): the tokens x, ε y_1, ε y_2, … give B(x xᵀ + ε² Σ y yᵀ) y_m = φ_m / ε.

    That is a polynomial in u = ε² of known degree, so its value at u = 0 is exact. Dividing by ε
    costs nothing, as token m is computed from ε y_m.
    """
    d, t = architecture.widths[0], architecture.tokens

    def quotients(u: float, start: int) -> np.ndarray:
        Y = np.eye(d)[:, start : start + t - 1]
        X = np.zeros((d, t))
        X[:, 0], X[:, 1 : 1 + Y.shape[1]] = x, np.sqrt(u) * Y
        return box(X)[:, 1 : 1 + Y.shape[1]] / np.sqrt(u)

    columns = [
        value_at_zero(partial(quotients, start=start), reach=_REACH, nodes=_DEGREE + 1)
        for start in range(0, d, t - 1)
    ]
    return np.concatenate(columns, axis=1)


def _samples(
    box: BlackBox, architecture: Architecture, generator: np.random.Generator
) -> tuple[Float64[np.ndarray, "sample d0 t"], Float64[np.ndarray, "sample d_l t"]]:
    """Random inputs, enough to fit the table three times over, with their outputs."""
    d, t = architecture.widths[0], architecture.tokens
    unknowns = d * d * (d + 1) // 2
    inputs = generator.standard_normal((-(-3 * unknowns // t), d, t))
    return inputs, np.stack([box(X) for X in inputs])


def _second_table(
    M_1: Float64[np.ndarray, "d d"],
    inputs: Float64[np.ndarray, "sample d t"],
    outputs: Float64[np.ndarray, "sample d_l t"],
) -> tuple[Table, float]:
    """T by least squares: φ_k = Σ_{a≤b} F_ab T_ab w_k, the diagonal counted half."""
    d = len(M_1)
    W = inputs @ (inputs.swapaxes(1, 2) @ M_1 @ inputs)
    F = W @ W.swapaxes(1, 2)
    a, b = np.triu_indices(d)
    products = F[:, a, b] * np.where(a == b, 0.5, 1.0)
    design = np.einsum("sp,sck->skpc", products, W).reshape(-1, len(a) * d)
    target = outputs.swapaxes(1, 2).reshape(len(design), -1)
    sizes = np.repeat(np.linalg.norm(outputs, axis=(1, 2)), inputs.shape[2])[:, None]
    sizes[sizes == 0] = 1.0
    design, target = design / sizes, target / sizes
    scales = np.linalg.norm(design, axis=0)
    solution = np.linalg.lstsq(design / scales, target, rcond=None)[0] / scales[:, None]
    table = np.empty((d, d, target.shape[1], d))
    table[a, b] = table[b, a] = solution.reshape(len(a), d, -1).swapaxes(1, 2)
    return table, condition_number(design / scales)
