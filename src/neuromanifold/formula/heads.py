"""The dimension with several heads (head-mixing).

A lightning layer with H heads is given by T = Σ_h V_h ⊗ A_h in (R^{d'} ⊗ R^d) ⊗ (R^d ⊗ R^d), of
which only the part symmetric in the two middle factors is seen: the layer is x ↦ Σ_h V_h C A_h x
with the symmetric C = X Xᵀ, or under the causal mask C = Σ_{j ≤ i} x_j x_jᵀ for token i. As a
d'd × d² matrix T has rank at most H, which is how heads mix. With A_h = Σ_i k_i q_iᵀ (α terms) and
V_h = Σ_j o_j v_jᵀ (ν terms) the symmetric part is Σ o_j ⊗ (v_j k_i) ⊗ q_i, in the space
R^{d'} ⊗ Sym² R^d ⊗ R^d, whose three flattenings have rank at most H ν, H α ν and H α. Each bounds
the dimension by that of the matrices of this rank, which is a proof; that the smallest bound is
reached is observed. The inner skip shows Σ_h V_h besides, one more column of T. Softmax heads do
not mix.
"""

from math import comb

from neuromanifold.architecture import Architecture
from neuromanifold.formula.all_widths import matrices_of_rank
from neuromanifold.statements import Facts


def several_heads_dimension(architecture: Architecture) -> int:
    """The layers' dimensions, less the inter-layer symmetries at the widths that count.

    A lightning network without mask and skip is X ↦ N(C) X, N of degree (3^l − 1)/2 in C = X Xᵀ,
    which bounds every beginning of the network. With the residual skip there is no inter-layer
    symmetry.
    """
    widths, total = Facts.of(architecture).seen_widths, 0
    kind = (architecture.attention, architecture.mask, architecture.skip)
    for i in range(architecture.depth):
        total += _layer(architecture, i, widths[i], widths[i + 1])
        if i and architecture.skip != "residual":
            total -= widths[i] ** 2
        if kind == ("lightning", "none", "none"):
            degree, symmetric = (3 ** (i + 1) - 1) // 2, widths[0] * (widths[0] + 1) // 2
            forms = widths[0] * comb(symmetric + degree - 1, degree)
            total = min(total, matrices_of_rank(widths[i + 1], widths[i + 1], forms))
    return total


def head_dimension(architecture: Architecture, layer: int) -> int:
    """The dimension of the pairs (A, V) of one head of this layer, counted from 0 (lemma-3.1)."""
    d, d_out = architecture.widths[layer : layer + 2]
    alpha, nu = _head_ranks(architecture, layer, d, d_out)
    return matrices_of_rank(alpha, d, d) + matrices_of_rank(nu, d_out, d)


def _head_ranks(architecture: Architecture, layer: int, d: int, d_out: int) -> tuple[int, int]:
    """The largest ranks α of A and ν of V between widths d and d'."""
    nu = min(d, d_out)
    if architecture.value_ranks is not None:
        nu = min(nu, architecture.value_ranks[layer])
    return min(architecture.ranks[layer], d), nu


def _layer(architecture: Architecture, layer: int, d: int, d_out: int) -> int:
    """The dimension of one layer's functions from width d to width d': the smallest bound."""
    H = architecture.heads
    alpha, nu = _head_ranks(architecture, layer, d, d_out)
    pairs = H * (matrices_of_rank(alpha, d, d) + matrices_of_rank(nu, d_out, d))
    if architecture.attention == "softmax":
        return pairs
    symmetric, h = d * (d + 1) // 2, min(H, d)
    inner = architecture.skip == "inner"
    if inner:
        bounds = [
            pairs,
            matrices_of_rank(H, d_out * d, d * d + 1),
            d_out * d * (symmetric + 1),
        ]
    else:
        bounds = [
            pairs - H,
            matrices_of_rank(H, d_out * d, d * d),
            matrices_of_rank(H * nu, d_out, symmetric * d),
            matrices_of_rank(H * alpha * nu, symmetric, d_out * d),
            matrices_of_rank(H * alpha, d, d_out * symmetric),
        ]
    if d_out == 1:
        # The d columns of Σ_h v_h A_h are quadratic forms in the ideal of the span of the v_h.
        # These spans have h(d − h) dimensions, the products with R^d hd − h(h−1)/2.
        ideal = h * (d - h) + d * (h * d - h * (h - 1) // 2)
        bounds.append(ideal + (h if inner else 0))
    return min(bounds)
