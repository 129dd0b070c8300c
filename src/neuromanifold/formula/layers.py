"""Deep networks with several heads: an upper bound, layer by layer (layers-bound).

Every function of a network is one of the network with interior widths c_i (`Facts.seen_widths`):
what the heads of a layer do not fill, and what those of the next do not see, can be cut off. Let
F_i be the functions of the first i layers at these widths. Those of one layer more are g ∘ f with f
in F_i and g a layer, and for each f the g ∘ f are as many as layers on the values of f can be told
apart. GL_{c_i} acts on the pairs (f, g ∘ f) by f ↦ C f and keeps g ∘ f, a layer of C f too. So

    dim F_{i+1} ≤ dim F_i + (dimension of layer i + 1 on the values of F_i) − (dimension of orbits).

The same holds with several layers in place of one.

Lightning. Orbits of functions whose values span s dimensions have at least c_i s: C f = f only if C
is the identity on the span. s is `spanned_widths`. Several layers from one width to another lie in
a space of polynomial maps (polynomial-maps).

Softmax. Count parameters in place of functions: the pairs (A, V) of all heads, A up to the forms
that its inputs do not tell from zero. ∏ GL_{c_i} acts freely where the images of the V_{i,h} span
R^{c_i} (C_1 V_{1,h} = V_{1,h} for all h gives C_1 = 1, then C_2 = 1, …), which is generic as
c_i ≤ H min(c_{i-1}, v_i): orbits have c_i² dimensions for each i.

With the residual skip there is no such group, and the layers' dimensions are added.
"""

from math import comb

from neuromanifold.architecture import Architecture
from neuromanifold.formula.ambient import polynomial_maps
from neuromanifold.formula.heads import Inputs, head_ranks, layer_dimension
from neuromanifold.statements import Facts

LONGEST_SEGMENT = 40
"""Layers taken together at most. Polynomials of degree 3^40 bound nothing but widths of one, and a
network of thousands of layers has millions of longer segments; leaving them out is no mistake."""


def layers_bound(architecture: Architecture) -> int:
    """A proved upper bound from the layers, at the widths that count (layers-bound).

    It is the dimension of softmax networks in the cases of (softmax-residual), (softmax-layer),
    (softmax-heads) and (softmax-heads-bottleneck); elsewhere that is observed (head-mixing).
    """
    architecture = Facts.of(architecture)  # once: a network may have a thousand layers
    c = architecture.seen_widths
    s = spanned_widths(architecture, c) if architecture.attention == "lightning" else c
    orbits = [0, *(c[i] * s[i] * (architecture.skip != "residual") for i in range(1, len(c)))]
    forms, totals = c[0] ** 2, [0]
    for i in range(architecture.depth):
        layer = layer_dimension(architecture, i, Inputs(c[i], s[i], forms), c[i + 1])
        total = totals[i] + layer - orbits[i]
        for j in range(max(0, i + 1 - LONGEST_SEGMENT), i + 1):
            before = totals[j] - orbits[j]
            total = before + polynomial_maps(
                architecture, c[j], c[i + 1], i + 1 - j, total - before
            )
        totals.append(total)
        forms = forms_told_apart(architecture, *c[i : i + 2])
    return totals[-1]


def forms_told_apart(architecture: Architecture, d: int, c: int) -> int:
    """How many dimensions of forms on R^c the values of a layer from width d see (told-apart).

    A layer sees its forms A only in scores of its inputs, which the layer before has made of tokens
    x by value maps V_g. The scores are linear in A, so what they can be bounds what they show. Let
    B_{gg'} = V_gᵀ A V_{g'}; its symmetric part has σ = d(d+1)/2 dimensions, its skew part d(d−1)/2.
    """
    seen = c * c
    if architecture.skip == "residual":
        return seen
    if architecture.attention == "lightning":
        if architecture.tokens == 1:
            seen = min(c * (c + 1) // 2, _one_token_scores(architecture, d))
        elif architecture.mask == architecture.skip == "none":
            seen = min(seen, _lightning_scores(architecture.heads, d))
    elif architecture.tokens == 2:
        seen = min(seen, _two_token_scores(architecture, d))
    return seen


def _two_token_scores(architecture: Architecture, d: int) -> int:
    """Softmax, two tokens.

    With S = Σ V_g and u = x_1 − x_2 every token is S x_2 or 2 S x_2 plus a combination of the
    V_g u, and differences of tokens are such combinations. Differences of scores in a column are
    combinations of uᵀ B_{gg'} u and of uᵀ V_gᵀ A S x_2: they show the H matrices V_gᵀ A S =
    Σ_{g'} B_{gg'} and, besides these, the symmetric parts of H(H−1) blocks.

    Under the causal mask token 1 is a multiple of S x_1, and with u = x_2 − x_1 the one difference
    that counts is Σ s_g V_g u, with the same numbers s_g as in token 2: Σ s_g s_{g'} uᵀ B_{gg'} u
    shows the symmetric parts of the B_{gg'} + B_{g'g}, whose sum is known from the V_gᵀ A S.
    """
    H = architecture.heads
    blocks = H * (H + 1) // 2 - 1 if architecture.mask == "causal" else H * (H - 1)
    return H * d * d + blocks * (d * (d + 1) // 2)


def _one_token_scores(architecture: Architecture, d: int) -> int:
    """Lightning, one token: quadratic forms in Σ λ_g V_g x, with λ_g = xᵀ A_g x.

    They are Σ λ_g λ_{g'} xᵀ B_{gg'} x, the part symmetric in both pairs of indices. As polynomials
    in x they have degree 6; with the inner skip λ_g = 1 + xᵀ A_g x, and they have degrees 2, 4, 6.
    """
    H, degrees = architecture.heads, (2, 4, 6) if architecture.skip == "inner" else (6,)
    blocks = d * (d + 1) * H * (H + 1) // 4
    return min(blocks, sum(comb(d + degree - 1, degree) for degree in degrees))


def _lightning_scores(H: int, d: int) -> int:
    """Lightning, no mask, no skip: Xᵀ R X with R = Σ A_gᵀ C B_{gg'} C A_{g'}, C = X Xᵀ.

    R has d² entries that are quadratic forms in C. For skew B the entries of C B C are combinations
    of 2 × 2 minors of C, which span τ = d²(d²−1)/12 dimensions. If B_{gg'} = B_{g'g} is skew for
    all g, g', R is skew as well: as many numbers as τ skew matrices have. If B_{gg'} = −B_{g'g}, it
    is symmetric. So the symmetric parts show H² σ dimensions, and the skew ones what is left of
    those of the B_{gg'} in these two spaces.
    """
    symmetric, skew, minors = d * (d + 1) // 2, d * (d - 1) // 2, d * d * (d * d - 1) // 12
    alike = skew * min(H * (H + 1) // 2, minors)
    opposite = min(skew * H * (H - 1) // 2, symmetric * minors)
    quadratic = symmetric * (symmetric + 1) // 2
    return min(H * H * symmetric + alike + opposite, d * d * quadratic)


def spanned_widths(architecture: Architecture, c: tuple[int, ...]) -> tuple[int, ...]:
    """Dimensions that values of the first i lightning layers at least span (spanned-values).

    That is, at generic weights; it is enough to give one example. Several heads, no residual skip.

    *Span of the inputs.* Give all heads of layer i the same A = k qᵀ and let V = Σ_h V_h, of any
    rank up to min(c_{i-1}, c_i): the values are V C k (qᵀ y). For generic k the C k span what the
    tokens y do, of which two that are not zero are enough. For let w(k) be a polynomial and
    wᵀ C k = 0. One token, or the first under a mask, has (wᵀ y)(kᵀ y) = 0, so wᵀ y = 0, and then
    so has the second. Without mask (wᵀ y)(kᵀ y) + (wᵀ z)(kᵀ z) = 0. Let y = φ ỹ and z = χ z̃ with
    coprime coordinates of ỹ. kᵀ ỹ is irreducible, as it is linear in k. If it divides kᵀ z̃,
    then z̃ = γ ỹ and (φ² + γ² χ²)(wᵀ ỹ)(kᵀ ỹ) = 0. Else wᵀ z̃ = r kᵀ ỹ with r = r(k), as degrees
    agree; with tokens exchanged wᵀ ỹ = r kᵀ z̃, and r (φ² + χ²)(kᵀ ỹ)(kᵀ z̃) = 0. In both cases w
    annihilates y and z. (With the inner skip take A = 0.)

    *Monomials.* Let the inputs contain a dense set of R^m, or of pairs of tokens in it (`_filled`).
    With one token choose A_h = e_h e_hᵀ for m of the heads: the values are Σ_h V_h x x_h², and the
    monomials x_n x_h² are all different, so that the values span the sum of the images. With two
    tokens or more choose A_h = e_a e_bᵀ with different (a, b): a token y that sees x has
    Σ_h V_h x x_a y_b among its terms of degree two in x, and the monomials x_n x_a y_b with n ≥ a
    are all different. So m heads each, for a = 0, …, m − 1, have min(ν, m − a) dimensions of their
    own, ν the rank of a V_h. With the inner skip one more head, with A = 0, is told apart by its
    degree.
    """
    inner = architecture.skip == "inner"
    s, m = [c[0]], c[0]
    for i, size in enumerate(c[1:]):
        nu = head_ranks(architecture, i, m, size)[1]
        own, heads = nu * inner, architecture.heads - inner
        for a in range(1 if architecture.tokens == 1 else m):
            if own >= size or heads <= 0:
                break
            own += min(heads, m) * min(nu, m - a)
            heads -= m
        s.append(min(size, max(own, s[-1])))
        m = _filled(architecture, i, m, size)
    return tuple(s)


def _filled(architecture: Architecture, i: int, m: int, c: int) -> int:
    """An m' such that values of layer i contain, for some weights, a dense set of R^{m'}.

    Of pairs of tokens in R^{m'} if there are two tokens, the others zero; the inputs do so for R^m.
    Let V be a projection to n = min(m, c) coordinates, n ≤ H v_i. Heads with A_h = A for all h and
    Σ V_h = V give
    - with the inner skip and A = 0: X ↦ V X;
    - with one token, or the causal mask, and A = e_1 e_1ᵀ: V applied to x ↦ x_1² x and, for a
      second token, y ↦ y_1² y + x_1 y_1 x, whose part of highest degree in y is dominant;
    - without mask and with A = e_1 e_1ᵀ + e_2 e_2ᵀ of rank α = 2: V applied to X X_0ᵀ X_0, X_0 the
      first two rows. X_0 ↦ X_0 X_0ᵀ X_0 cubes singular values, and X_0ᵀ X_0 is invertible, so this
      is dominant.
    For α = 1 and n ≤ v_i let V_h = V for all h and A_1 = e_1 e_1ᵀ, A_2 = e_2 e_2ᵀ (or one of them
    for m = 1), others zero: the same. For α = 1 and v_i = 1 let V_h = e_h e_1ᵀ, A_h = e_1 e_hᵀ for
    h ≤ n ≤ H: row h is |X_1|² X_h. Else take v_i in place of n.
    """
    n = min(m, c)
    alpha, nu = head_ranks(architecture, i, m, c)
    one_form_is_enough = (
        architecture.skip == "inner" or architecture.mask == "causal" or architecture.tokens == 1
    )
    return n if one_form_is_enough or alpha > 1 or nu in (1, n) else nu
