"""Formulas that the atlas suggests for several heads, written out to be tested on its tables.

A lightning layer with H heads is given by T = Σ_h V_h ⊗ A_h in (R^{d'} ⊗ R^d) ⊗ (R^d ⊗ R^d), of
which only the part symmetric in the two middle factors is seen: the layer is x ↦ Σ_h V_h C A_h x
with the symmetric C = X Xᵀ, or under the causal mask C = Σ_{j ≤ i} x_j x_jᵀ for token i. As a
d'd × d² matrix T has rank at most H. With A_h = Σ_i k_i q_iᵀ (α terms) and V_h = Σ_j o_j v_jᵀ (ν
terms) the symmetric part is Σ o_j ⊗ (v_j k_i) ⊗ q_i, in the space R^{d'} ⊗ Sym² R^d ⊗ R^d, whose
three flattenings have rank at most H ν, H α ν and H α. Each bounds the dimension by that of the
matrices of this rank, which is a proof; that the smallest bound is reached is observed. The inner
skip shows Σ_h V_h besides, one more column of T.
"""

from math import comb

from neuromanifold.architecture import Architecture


def matrices_of_rank(rank: int, rows: int, columns: int) -> int:
    rank = min(rank, rows, columns)
    return rank * (rows + columns - rank)


def network_with_heads(architecture: Architecture) -> int:
    """The layers' dimensions, less the inter-layer symmetries at the widths that count.

    A lightning network without mask and skip is X ↦ N(C) X, N of degree (3^l − 1)/2 in C = X Xᵀ,
    which bounds every beginning of the network. With the residual skip there is no inter-layer
    symmetry.
    """
    widths, total = seen_widths(architecture), 0
    for i in range(architecture.depth):
        total += layer_with_heads(architecture, i, widths[i], widths[i + 1])
        if i and architecture.skip != "residual":
            total -= widths[i] ** 2
        if (architecture.attention, architecture.mask, architecture.skip) == (
            "lightning",
            "none",
            "none",
        ):
            degree, symmetric = (3 ** (i + 1) - 1) // 2, widths[0] * (widths[0] + 1) // 2
            forms = widths[0] * comb(symmetric + degree - 1, degree)
            total = min(total, matrices_of_rank(widths[i + 1], widths[i + 1], forms))
    return total


def layer_with_heads(architecture: Architecture, layer: int, d: int, d_out: int) -> int:
    """The dimension of one layer's functions from width d to width d', t ≥ 2."""
    H, alpha, nu = architecture.heads, min(architecture.ranks[layer], d), min(d, d_out)
    if architecture.value_ranks is not None:
        nu = min(nu, architecture.value_ranks[layer])
    pair = matrices_of_rank(alpha, d, d) + matrices_of_rank(nu, d_out, d)
    if architecture.attention == "softmax":
        return H * pair
    symmetric, h = d * (d + 1) // 2, min(H, d)
    # For d' = 1 the d columns of Σ_h v_h A_h are quadratic forms in the ideal of the span of the
    # v_h. These spans have h(d − h) dimensions, the products with R^d hd − h(h−1)/2.
    ideal = h * (d - h) + d * (h * d - h * (h - 1) // 2)
    if architecture.skip == "inner":
        bounds = [
            H * pair,
            matrices_of_rank(H, d_out * d, d * d + 1),
            d_out * d * (symmetric + 1),
        ]
        return min(*bounds, ideal + h if d_out == 1 else H * pair)
    bounds = [
        H * (pair - 1),
        matrices_of_rank(H, d_out * d, d * d),
        matrices_of_rank(H * nu, d_out, symmetric * d),
        matrices_of_rank(H * alpha * nu, symmetric, d_out * d),
        matrices_of_rank(H * alpha, d, d_out * symmetric),
    ]
    return min(*bounds, ideal if d_out == 1 else H * pair)


def seen_widths(architecture: Architecture) -> list[int]:
    """Of an interior width, what the layer before it fills and the layer after it sees."""
    H, c = architecture.heads, list(architecture.widths)
    if architecture.skip == "residual":
        return c
    values = architecture.value_ranks or architecture.widths[1:]
    for _ in range(2 * architecture.depth):
        for i in range(1, architecture.depth):
            filled = H * min(c[i - 1], values[i - 1])
            if architecture.attention == "lightning":
                space = c[i - 1] * c[i - 1] * (c[i - 1] + 1) // 2
                filled = min(filled, space + (c[i - 1] if architecture.skip == "inner" else 0))
            seen = H * (2 * min(architecture.ranks[i], c[i]) + min(c[i], c[i + 1], values[i]))
            c[i] = min(c[i], filled, seen)
    return c


def widens(architecture: Architecture) -> bool:
    """Whether an interior layer is wider than the one before it, as far as its width counts."""
    c = seen_widths(architecture)
    return any(c[i] > c[i - 1] for i in range(1, architecture.depth))
