"""One layer and deep networks with several heads: bounds, and the count that they lead to.

A lightning layer with H heads is given by T = Σ_h V_h ⊗ A_h in (R^{d'} ⊗ R^d) ⊗ (R^d ⊗ R^d), of
which only the part symmetric in the two middle factors is seen: the layer is x ↦ Σ_h V_h C A_h x
with the symmetric C = X Xᵀ, or under the causal mask C = Σ_{j ≤ i} x_j x_jᵀ for token i. As a
d'd × d² matrix T has rank at most H, which is how heads mix. With A_h = Σ_i k_i q_iᵀ (α terms) and
V_h = Σ_j o_j v_jᵀ (ν terms) the symmetric part is Σ o_j ⊗ (v_j k_i) ⊗ q_i, in the space
R^{d'} ⊗ Sym² R^d ⊗ R^d, whose three flattenings have rank at most H ν, H α ν and H α. Each bounds
the dimension by that of the matrices of this rank (flattening-bounds); that the smallest bound is
reached is observed (head-mixing). The inner skip shows Σ_h V_h besides. Softmax heads do not mix.
"""

from math import comb

from neuromanifold.architecture import Architecture
from neuromanifold.formula.all_widths import matrices_of_rank, symmetric_forms
from neuromanifold.statements import Facts


def layers_bound(architecture: Architecture) -> int:
    """A proved upper bound from the layers, at the widths that count (layers-bound).

    Every function of the network is one of the network with interior widths c_i (`seen_widths`):
    what the heads of a layer do not fill, and what those of the next do not see, can be cut off.

    Softmax. The pairs (A, V) of all heads have Σ_i (dimension of layer i) parameters. ∏ GL_{c_i}
    acts on them and keeps the function; it acts freely where the images of the V_{i,h} span
    R^{c_i} (C_1 V_{1,h} = V_{1,h} for all h gives C_1 = 1, then C_2 = 1, …), which is generic as
    c_i ≤ H min(c_{i-1}, v_i).

    Lightning. Let F_i be the set of functions of the first i layers. F_{i+1} is the image of F_i ×
    (layers i+1), on which GL_{c_i} acts with the same composition. The orbit of a function whose
    values span s dimensions has at least c_i s dimensions, so dim F_{i+1} ≤ dim F_i + (dimension
    of layer i+1) − c_i s_i, s_i the span of generic functions in F_i (`spanned_widths`). Without
    mask and skip F_i lies in the maps X ↦ N(X Xᵀ) X, N of degree (3^i − 1)/2, another bound.

    With the residual skip there is no such group, and the layers' dimensions are added.
    """
    c, total = Facts.of(architecture).seen_widths, 0
    s = spanned_widths(architecture, c) if architecture.attention == "lightning" else c
    for i in range(architecture.depth):
        total += layer_dimension(architecture, i, c[i], c[i + 1])
        if i and architecture.skip != "residual":
            total -= c[i] * s[i]
        if is_plain_lightning(architecture):
            total = polynomial_maps(c[0], c[i + 1], i + 1, most=total)
    return total


def spanned_widths(architecture: Architecture, c: tuple[int, ...]) -> tuple[int, ...]:
    """Dimensions that the values of the first i lightning layers at least span, at generic weights.

    It is enough to give one example. s_0 = c_0, and s_i = min(c_i, s_{i-1}): give all heads of
    layer i the same A = k qᵀ and let V = Σ_h V_h, of any rank up to min(c_{i-1}, c_i). If n
    annihilates all values V C k (qᵀ x), for all k and q, then nᵀ V C = 0, and with C = Σ x_j x_jᵀ
    and a factor Vᵀ n every nᵀ V x_j = 0: the values span V(span of the inputs). (With the inner
    skip take A = 0.)

    More for the first layer. With one token and H ≤ d_0 choose A_h = e_h e_hᵀ: on inputs x it is
    Σ_h V_h x x_h², and the monomials x_m x_h² are all different, so that the values span the sum of
    the images, c_1. With two tokens or more choose A_h = e_a e_bᵀ with different (a, b): a token y
    that sees x has Σ_h V_h x x_a y_b among its terms of degree two in x, and the monomials
    x_m x_a y_b with m ≥ a are all different. So d_0 heads each have d_0 − a of their own, at most
    ν, the rank of a V_h, of which the values span c_1 if they are so many. With the inner skip one
    more head, with A = 0, is told apart by its degree.
    """
    heads, d = architecture.heads - (architecture.skip == "inner"), c[0]
    s = [d, c[1] if heads <= d else 0]
    if architecture.tokens > 1:
        nu = head_ranks(architecture, 0, d, c[1])[1]
        own = sum(min(nu, d - h // d) for h in range(min(heads, d * d)))
        own += nu if heads < architecture.heads else 0
        s[1] = max(s[1], min(c[1], own))
    s[1] = max(s[1], min(d, c[1]))
    for size in c[2:]:
        s.append(min(size, s[-1]))
    return tuple(s)


def several_heads_dimension(architecture: Architecture) -> int:
    """The layers' dimensions, less the inter-layer symmetries at the widths that count.

    The dimension of softmax networks in the cases of (softmax-residual), (softmax-layer),
    (softmax-heads) and (softmax-heads-bottleneck); elsewhere observed (head-mixing).
    """
    c, total = Facts.of(architecture).seen_widths, 0
    for i in range(architecture.depth):
        total += layer_dimension(architecture, i, c[i], c[i + 1])
        if i and architecture.skip != "residual":
            total -= c[i] ** 2
        if is_plain_lightning(architecture):
            total = polynomial_maps(c[0], c[i + 1], i + 1, most=total)
    return total


def is_plain_lightning(architecture: Architecture) -> bool:
    """Whether the network is X ↦ N(X Xᵀ) X with a polynomial N."""
    kind = (architecture.attention, architecture.mask, architecture.skip)
    return kind == ("lightning", "none", "none")


def polynomial_maps(d: int, d_out: int, depth: int, most: int) -> int:
    """The dimension of the maps X ↦ N(X Xᵀ) X, N of degree (3^l − 1)/2 in X Xᵀ, or `most`."""
    return min(most, d_out * d * forms_of_degree((3**depth - 1) // 2, d * (d + 1) // 2, most))


def forms_of_degree(degree: int, variables: int, most: int) -> int:
    """The dimension of the forms of a degree in some variables, or `most` where it is larger.

    It is n choose k with n = degree + variables − 1 and k the smaller of degree and variables − 1.
    Each step below at least doubles the value, as k ≤ n/2: few steps, however large the degree.
    """
    n, k = degree + variables - 1, min(degree, variables - 1)
    value = 1
    for i in range(1, k + 1):
        value = value * (n - k + i) // i
        if value >= most:
            return most
    return min(value, most)


def linear_maps(architecture: Architecture) -> int:
    """One token under softmax: all weights are 1, all layers linear (softmax-one-token).

    Its map is Σ_h V_{i,h}, twice that, or 1 + Σ_h V_{i,h} for the skips none, inner, residual.
    Without residual skip the products are all matrices of rank at most r, the smallest of d_i and
    H v_i. With it they are at most as many as the layers together, and as d × d matrices; that is
    all of them if one layer has all, as the other factors are invertible.
    """
    d, H = architecture.widths, architecture.heads
    sums = [H * v for v in architecture.value_ranks or ()]
    if architecture.skip == "residual":
        layers = [matrices_of_rank(s, d[0], d[0]) for s in sums or [d[0]] * architecture.depth]
        return min(d[0] ** 2, sum(layers))
    return matrices_of_rank(min(*d, *sums), d[-1], d[0])


def head_dimension(architecture: Architecture, layer: int) -> int:
    """The dimension of the pairs (A, V) of one head of this layer, counted from 0 (lemma-3.1)."""
    d, d_out = architecture.widths[layer : layer + 2]
    alpha, nu = head_ranks(architecture, layer, d, d_out)
    return matrices_of_rank(alpha, d, d) + matrices_of_rank(nu, d_out, d)


def head_ranks(architecture: Architecture, layer: int, d: int, d_out: int) -> tuple[int, int]:
    """The largest ranks α of A and ν of V between widths d and d'."""
    nu = min(d, d_out)
    if architecture.value_ranks is not None:
        nu = min(nu, architecture.value_ranks[layer])
    return min(architecture.ranks[layer], d), nu


def layer_dimension(architecture: Architecture, layer: int, d: int, d_out: int) -> int:
    """The smallest proved bound for the functions of one layer, counted from 0, from d to d'."""
    return min(layer_bounds(architecture, layer, d, d_out).values())


def layer_bounds(architecture: Architecture, layer: int, d: int, d_out: int) -> dict[str, int]:
    """All proved bounds for the functions of one layer, counted from 0, from d to d', by name.

    The six of (flattening-bounds) for lightning; for softmax the pairs (A, V) of all heads. A
    residual skip adds the input, which changes nothing.
    """
    H, inner = architecture.heads, architecture.skip == "inner"
    alpha, nu = head_ranks(architecture, layer, d, d_out)
    forms, values = matrices_of_rank(alpha, d, d), matrices_of_rank(nu, d_out, d)
    if architecture.attention == "softmax":
        return {"heads apart": H * (forms + values)}
    # The inner skip shows S = Σ_h V_h besides: one more column of T as a d'd × d² matrix, d more
    # columns in the span of the images of the V_h; elsewhere it is counted by itself.
    linear = matrices_of_rank(H * nu, d_out, d) if inner else 0
    symmetric, h = d * (d + 1) // 2, min(H, d)
    scalings = 0 if inner else H
    if architecture.tokens == 1:
        # The layer is Σ_h V_h x (xᵀ A_h x): symmetric parts only, and cubic forms in x.
        cubic = comb(d + 2, 3)
        return {
            "heads apart": H * (symmetric_forms(alpha, d) + values) - scalings,
            "head mixing": matrices_of_rank(H, d_out * d, symmetric + inner),
            "output flattening": matrices_of_rank(H * nu, d_out, cubic + inner * d),
        }
    bounds = {
        "heads apart": H * (forms + values) - scalings,
        "head mixing": matrices_of_rank(H, d_out * d, d * d + inner),
        "output flattening": matrices_of_rank(H * nu, d_out, (symmetric + inner) * d),
        "symmetric flattening": matrices_of_rank(H * alpha * nu, symmetric, d_out * d) + linear,
        "query flattening": matrices_of_rank(H * alpha, d, d_out * symmetric) + linear,
    }
    if d_out == 1:
        # The d columns of Σ_h v_h A_h are quadratic forms in the ideal of the span of the v_h.
        # These spans have h(d − h) dimensions, the products with R^d hd − h(h−1)/2; Σ_h v_h is in
        # the span.
        ideal = h * (d - h) + d * (h * d - h * (h - 1) // 2)
        bounds["ideal of the values"] = ideal + (h if inner else 0)
    return bounds
