"""Formulas that the atlas suggests for several heads, written out to be tested on its tables.

A lightning layer with H heads is given by T = Σ_h V_h ⊗ A_h in (R^{d'} ⊗ R^d) ⊗ (R^d ⊗ R^d), of
which only the part symmetric in the two middle factors is seen: the layer is X ↦ Σ_h V_h C A_h X
with the symmetric C = X Xᵀ. As a d'd × d² matrix T has rank at most H. With A_h = Σ_i k_i q_iᵀ (α
terms) and V_h = Σ_j o_j v_jᵀ (ν terms) the symmetric part is Σ o_j ⊗ (v_j k_i) ⊗ q_i, in the space
R^{d'} ⊗ Sym² R^d ⊗ R^d, whose three flattenings have rank at most H ν, H α ν and H α. Each bounds
the dimension by that of the matrices of this rank, which is a proof; that the smallest bound is
reached is observed.
"""

from math import comb

from neuromanifold.architecture import Architecture


def matrices_of_rank(rank: int, rows: int, columns: int) -> int:
    rank = min(rank, rows, columns)
    return rank * (rows + columns - rank)


def layer_with_heads(d: int, d_out: int, a: int, v: int | None, heads: int, attention: str) -> int:
    """The dimension of one layer with several heads, t ≥ 2."""
    H, alpha = heads, min(a, d)
    nu = min(d, d_out) if v is None else min(d, d_out, v)
    pair = matrices_of_rank(alpha, d, d) + matrices_of_rank(nu, d_out, d)
    if attention == "softmax":
        return H * pair
    symmetric = d * (d + 1) // 2
    bounds = [
        H * (pair - 1),
        matrices_of_rank(H, d_out * d, d * d),
        matrices_of_rank(H * nu, d_out, symmetric * d),
        matrices_of_rank(H * alpha * nu, symmetric, d_out * d),
        matrices_of_rank(H * alpha, d, d_out * symmetric),
    ]
    if d_out == 1:
        # The d columns of Σ_h v_h A_h are quadratic forms in the ideal of the span W of the v_h:
        # dim W = h, of which there are h(d − h) dimensions, and W · R^d has hd − h(h−1)/2.
        h = min(H, d)
        bounds.append(h * (d - h) + d * (h * d - h * (h - 1) // 2))
    return min(bounds)


def network_with_heads(architecture: Architecture) -> int:
    """The layers' dimensions less those of the inter-layer symmetries, at the widths that count.

    Of an interior width only as much counts as the layer before it fills and the layer after it
    sees. A lightning network is X ↦ N(C) X, N of degree (3^l − 1)/2 in C, which bounds every
    beginning of the network.
    """
    H, d, lightning = architecture.heads, architecture.widths, architecture.attention == "lightning"
    widths, values = _seen_widths(architecture), architecture.value_ranks or (None,) * len(d)
    symmetric, total = d[0] * (d[0] + 1) // 2, 0
    for i, a in enumerate(architecture.ranks):
        total += layer_with_heads(widths[i], widths[i + 1], a, values[i], H, architecture.attention)
        total -= widths[i] ** 2 if i else 0
        if lightning:
            degree = (3 ** (i + 1) - 1) // 2
            forms = d[0] * comb(symmetric + degree - 1, degree)
            total = min(total, matrices_of_rank(widths[i + 1], widths[i + 1], forms))
    return total


def _seen_widths(architecture: Architecture) -> list[int]:
    H, c = architecture.heads, list(architecture.widths)
    values = architecture.value_ranks or architecture.widths[1:]
    for _ in range(2 * architecture.depth):
        for i in range(1, architecture.depth):
            filled = H * min(c[i - 1], values[i - 1])
            if architecture.attention == "lightning":
                filled = min(filled, c[i - 1] * c[i - 1] * (c[i - 1] + 1) // 2)
            seen = H * (2 * min(architecture.ranks[i], c[i]) + min(c[i], c[i + 1], values[i]))
            c[i] = min(c[i], filled, seen)
    return c


def widens(architecture: Architecture) -> bool:
    """Whether an interior layer is wider than the one before it, as far as its width counts."""
    c = _seen_widths(architecture)
    return any(c[i] > c[i - 1] for i in range(1, architecture.depth))
