"""One and two lightning layers from float evaluations (thm-3.2, thm-3.7).

*One layer.* Output token 2 at (x_1, x_2, 0, …) is V (x_1 x_1ᵀ + x_2 x_2ᵀ) A x_2, with or without
the causal mask. Its value less that at x_1 = 0 is the term quadratic in x_1 and linear in x_2,
(V x_1)(Aᵀ x_1)ᵀ x_2: an exact difference, with no step size. Polarising in x_1 gives the table
that `factor_products` factors. A residual skip is subtracted first.

*Two layers.* Token k sees the tokens j ≤ k under the causal mask, or all of them: let S_k be the
sum of x_j x_jᵀ over them. In virtual weights a layer is w_k = S_k M_1 x_k, and two layers are

    φ(X)_k = L F_k M_2 w_k,    F_k the sum of w_j w_jᵀ over the tokens that k sees.

1. At tokens x, ε y_1, ε y_2, … this is, divided by ε, B y_k + O(ε²), B = g(x) (L x)(M_1ᵀ x)ᵀ: its
   row space is the line of M_1ᵀ x. So M_1 is, up to scale, the solution of linear equations when
   its rank is at least 2.
2. With M_1 known φ is linear in the table T_ab = L_a ⊗ M_2,b + L_b ⊗ M_2,a (F is symmetric), the
   table of a single layer with V = L and A = M_2: least squares, then `factor_products`.
"""

from functools import partial

import numpy as np
from jaxtyping import Float64

from neuromanifold.algebra.products import Table, factor_products, product_terms
from neuromanifold.architecture import Architecture
from neuromanifold.networks.virtual import degrees
from neuromanifold.recovery.fit import Inputs, Outputs, Point
from neuromanifold.recovery.oracle import value_at_zero
from neuromanifold.recovery.result import Refusal, condition_number
from neuromanifold.recovery.units import Asked, Probe

_ROUNDING = 1e-9
"""Relative size below which a part of a table counts as 0: far above its rounding errors."""

_KERNEL_GAP = 1e-6
"""Smallest relative second singular value of the equations for M_1 that counts as not 0."""

_DEGREE = 4
"""The degree of B(S) in S, (3^l − 1)/2."""

_REACH = 0.25
"""Largest u = ε² used to reach the limit u → 0."""


def recover_single_lightning(
    probe: Probe,
) -> tuple[list[Point], dict[str, float]]:
    """(A, V) up to rescaling, and both points when rank A = rank V = 1 (thm-3.2)."""
    ask, generator = probe.ask, probe.generator
    if ask.architecture.tokens < 2:
        raise Refusal("one token shows only the symmetric part of A; at least 2 are needed")
    pairs, condition = _factored(_quadratic_terms(ask), ask, generator)
    points = [Point.virtual([A], V, ask.architecture) for V, A in pairs]
    return points, {"equations for the maps": condition}


def recover_two_lightning(
    probe: Probe,
) -> tuple[list[Point], dict[str, float]]:
    """(M_1, M_2, L) up to rescaling (thm-3.7)."""
    ask, generator = probe.ask, probe.generator
    if ask.architecture.tokens < 2:
        raise Refusal(
            "one token shows only the symmetric parts of the forms; at least 2 are needed"
        )
    M_1, first_condition = _first_form(ask, generator)
    table, table_condition = _second_table(M_1, probe.inputs, probe.outputs, ask.architecture)
    pairs, pair_condition = _factored(table, ask, generator)
    points = [_balanced(Point.virtual([M_1, M_2], L, ask.architecture)) for L, M_2 in pairs]
    return points, {
        "equations for the first form": first_condition,
        "equations for the table": table_condition,
        "equations for the maps": pair_condition,
    }


def _factored(
    table: Table, ask: Asked, generator: np.random.Generator
) -> tuple[list[tuple[np.ndarray, np.ndarray]], float]:
    """The pairs of maps with a table, and the condition of their equations."""
    if not table.any():
        raise Refusal("the terms linear in one token and quadratic in another vanish")
    tolerance = max(_ROUNDING, 100 * ask.box.noise)
    found = factor_products(table, generator, tolerance=tolerance)
    if found.definite:
        raise Refusal("the product of two linear forms in it has no real factors")
    return list(found.pairs), found.amplification


def _quadratic_terms(ask: Asked) -> Table:
    """T_jk = V_j ⊗ A_k + V_k ⊗ A_j from token 2 of the outputs at (x_1, x_2, 0, …)."""
    d, t = ask.architecture.widths[0], ask.architecture.tokens

    def second_output(x_1: np.ndarray, x_2: np.ndarray) -> np.ndarray:
        X = np.zeros((d, t))
        X[:, 0], X[:, 1] = x_1, x_2
        return ask.update(X)[:, 1]

    return product_terms(second_output, d)


def _balanced(point: Point) -> Point:
    """The rescaling of virtual weights in which all M_i and L have one norm (eq-13).

    The function scales with c = ‖L‖ ∏ ‖M_i‖^{3^{l-i}}, whose exponents sum to n = (3^l + 1)/2, so
    that norm is c^{1/n}.
    """
    tensors, exponents = point.blocks, degrees(len(point.forms))
    norms = [float(np.linalg.norm(M)) for M in tensors]
    if min(norms) == 0:
        return point
    logarithm = sum(e * np.log(norm) for e, norm in zip(exponents, norms, strict=True))
    norm = np.exp(logarithm / sum(exponents))
    scaled = [(M * (norm / old)).ravel() for M, old in zip(tensors, norms, strict=True)]
    return point.replaced(np.concatenate(scaled))


def _first_form(
    ask: Asked, generator: np.random.Generator
) -> tuple[Float64[np.ndarray, "d d"], float]:
    """M_1 up to scale, from σ (1 − ρρᵀ) M_1ᵀ x = 0, where B(x xᵀ) ≈ σ λ ρᵀ.

    The weight σ keeps a point where g(x) is small from spoiling the others.
    """
    d = ask.architecture.widths[0]
    equations = []
    for _ in range(3 * d + 2):
        x = generator.standard_normal(d)
        x /= np.linalg.norm(x)
        _, singular, rows = np.linalg.svd(_rank_one_matrix(ask, x))
        across = np.eye(d) - np.outer(rows[0], rows[0])
        equations.append(singular[0] * np.kron(x, across))
    system = np.concatenate(equations)
    _, singular, rows = np.linalg.svd(system)
    if d > 1 and not singular[-2] > max(_KERNEL_GAP, ask.box.noise) * singular[0]:
        raise Refusal(
            "the equations for the first form have several solutions: the form cannot be told from "
            "one of rank one (or the function is no deep lightning network), outside thm-3.7"
        )
    return rows[-1].reshape(d, d), condition_number(system, kernel=1)


def _rank_one_matrix(ask: Asked, x: np.ndarray) -> Float64[np.ndarray, "d_l d0"]:
    """B from φ_k/ε at the tokens x, ε y_1, ε y_2, ….

    That is a polynomial in u = ε² of known degree, so its value at u = 0 is exact. Dividing by ε
    costs nothing, as token m is computed from ε y_m.
    """
    d, t = ask.architecture.widths[0], ask.architecture.tokens

    def quotients(u: float, start: int) -> np.ndarray:
        Y = np.eye(d)[:, start : start + t - 1]
        X = np.zeros((d, t))
        X[:, 0], X[:, 1 : 1 + Y.shape[1]] = x, np.sqrt(u) * Y
        return ask(X)[:, 1 : 1 + Y.shape[1]] / np.sqrt(u)

    columns = [
        value_at_zero(partial(quotients, start=start), reach=_REACH, nodes=_DEGREE + 1)
        for start in range(0, d, t - 1)
    ]
    return np.concatenate(columns, axis=1)


def _second_table(
    M_1: Float64[np.ndarray, "d d"], inputs: Inputs, outputs: Outputs, architecture: Architecture
) -> tuple[Table, float]:
    """T by least squares: φ_k = Σ_{a≤b} (F_k)_ab T_ab w_k, the diagonal counted half."""
    d = len(M_1)
    W = Point.virtual([M_1], np.eye(d), architecture)(inputs)
    each = np.einsum("sak,sbk->skab", W, W)
    if architecture.mask == "causal":
        F = np.cumsum(each, axis=1)
    else:
        F = np.broadcast_to(each.sum(axis=1, keepdims=True), each.shape)
    a, b = np.triu_indices(d)
    products = F[:, :, a, b] * np.where(a == b, 0.5, 1.0)
    design = np.einsum("skp,sck->skpc", products, W).reshape(-1, len(a) * d)
    target = outputs.swapaxes(1, 2).reshape(len(design), -1)
    sizes = np.repeat(np.linalg.norm(outputs, axis=(1, 2)), inputs.shape[2])[:, None]
    sizes[sizes == 0] = 1.0
    design, target = design / sizes, target / sizes
    scales = np.linalg.norm(design, axis=0)
    solution = np.linalg.lstsq(design / scales, target, rcond=None)[0] / scales[:, None]
    table = np.empty((d, d, target.shape[1], d))
    table[a, b] = table[b, a] = solution.reshape(len(a), d, -1).swapaxes(1, 2)
    return table, condition_number(design / scales)
