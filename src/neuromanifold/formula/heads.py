"""One layer with several heads: proved bounds of its dimension.

A lightning layer with H heads is given by T = Σ_h V_h ⊗ A_h in (R^{d'} ⊗ R^d) ⊗ (R^d ⊗ R^d), of
which only the part symmetric in the two middle factors is seen: the layer is x ↦ Σ_h V_h C A_h x
with the symmetric C = X Xᵀ, or under the causal mask C = Σ_{j ≤ i} x_j x_jᵀ for token i. As a
d'd × d² matrix T has rank at most H, which is how heads mix. With A_h = Σ_i k_i q_iᵀ (α terms) and
V_h = Σ_j o_j v_jᵀ (ν terms) the symmetric part is Σ o_j ⊗ (v_j k_i) ⊗ q_i, in the space
R^{d'} ⊗ Sym² R^d ⊗ R^d, whose three flattenings have rank at most H ν, H α ν and H α. Each bounds
the dimension by that of the matrices of this rank (flattening-bounds); that the smallest bound is
reached is observed (head-mixing). The inner skip shows Σ_h V_h besides. Softmax heads do not mix.
"""

from dataclasses import dataclass
from math import comb

from neuromanifold.architecture import Architecture
from neuromanifold.formula.all_widths import matrices_of_rank, symmetric_forms


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


def pairs_dimension(architecture: Architecture) -> int:
    """The dimension of the pairs (A, V) of all heads of all layers (lemma-3.1)."""
    one_each = sum(head_dimension(architecture, i) for i in range(architecture.depth))
    return architecture.heads * one_each


def head_ranks(architecture: Architecture, layer: int, d: int, d_out: int) -> tuple[int, int]:
    """The largest ranks α of A and ν of V between widths d and d'."""
    nu = min(d, d_out)
    if architecture.value_ranks is not None:
        nu = min(nu, architecture.value_ranks[layer])
    return min(architecture.ranks[layer], d), nu


@dataclass(frozen=True, slots=True)
class Inputs:
    """The tokens that a layer is given.

    Attributes:
        width: d, the size of a token.
        spanned: how many dimensions they span at least.
        forms: how many dimensions of bilinear forms on R^d they tell apart at most (told-apart).
    """

    width: int
    spanned: int
    forms: int

    @classmethod
    def free(cls, width: int) -> "Inputs":
        """All tokens of a width."""
        return cls(width, width, width * width)


def layer_dimension(architecture: Architecture, layer: int, inputs: Inputs, d_out: int) -> int:
    """The smallest proved bound for the functions of one layer, counted from 0."""
    return min(layer_bounds(architecture, layer, inputs, d_out).values())


def layer_bounds(
    architecture: Architecture, layer: int, inputs: Inputs, d_out: int
) -> dict[str, int]:
    """All proved bounds for the functions of one layer, counted from 0, to width d', by name.

    The six of (flattening-bounds) for lightning; for softmax the pairs (A, V) of all heads. A
    residual skip adds the input, which changes nothing.
    """
    d, H, inner = inputs.width, architecture.heads, architecture.skip == "inner"
    alpha, nu = head_ranks(architecture, layer, d, d_out)
    if architecture.attention == "lightning" and architecture.tokens == 1:
        return _one_token_bounds(architecture, (alpha, nu), inputs, d_out)
    forms = min(matrices_of_rank(alpha, d, d), inputs.forms)
    pairs = H * (forms + matrices_of_rank(nu, d_out, d))
    if architecture.attention == "softmax":
        return {"heads apart": pairs}
    # The inner skip shows S = Σ_h V_h besides: one more column of T as a d'd × d² matrix, d more
    # columns in the span of the images of the V_h; elsewhere it is counted by itself.
    linear = matrices_of_rank(H * nu, d_out, d) if inner else 0
    symmetric, h = d * (d + 1) // 2, min(H, d)
    bounds = {
        "heads apart": pairs - (0 if inner else H),
        "head mixing": matrices_of_rank(H, d_out * d, inputs.forms + inner),
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


def _one_token_bounds(
    architecture: Architecture, ranks: tuple[int, int], inputs: Inputs, d_out: int
) -> dict[str, int]:
    """The same for one token: Σ_h V_h x (xᵀ A_h x) shows symmetric parts, and cubic forms in x."""
    d, H, inner = inputs.width, architecture.heads, architecture.skip == "inner"
    alpha, nu = ranks
    h, cubic, quadratic = min(H, d), comb(d + 2, 3), min(d * (d + 1) // 2, inputs.forms)
    apart = min(symmetric_forms(alpha, d), quadratic) + matrices_of_rank(nu, d_out, d)
    bounds = {
        "heads apart": H * apart - (0 if inner else H),
        "head mixing": matrices_of_rank(H, d_out * d, quadratic + inner),
        "output flattening": matrices_of_rank(H * nu, d_out, cubic + inner * d),
    }
    if d_out == 1:
        # Σ_h v_h q_h is a cubic form in the ideal of the span of the v_h, not one in d − h further
        # variables. Also, all h-tuples of quadratic forms give too many: those with q_1 = Σ v_j l_j
        # and q_j = −v_1 l_j for j > 1 give zero, for any linear l_j. On the inputs, an irreducible
        # set, v_1 l_j = 0 only if l_j = 0, so these are (h − 1) `spanned` dimensions.
        products = min(cubic - comb(d - h + 2, 3), h * quadratic - (h - 1) * inputs.spanned)
        bounds["ideal of the values"] = h * (d - h) + products + (h if inner else 0)
    return bounds
