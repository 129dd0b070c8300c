"""The dimension of the virtual weights, for every width and rank, and the bound that it proves.

Notation. Layer i has the value map V_i (or O_i V_i, when factored) and the attention matrix A_i of
rank at most a_i. L_i = V_i ⋯ V_1, L = L_l, M_i = L_{i-1}ᵀ A_i L_{i-1} are the virtual weights
(eq-8). r_i is the largest possible rank of L_i and α_i = min(a_i, r_{i-1}) that of M_i.

The set of all (M, L). The row spaces U_i of the L_i are a flag R^{d_0} = U_0 ⊇ U_1 ⊇ … ⊇ U_{l-1}
with dim U_i = r_i at generic weights, and every such flag occurs. Given the flag, M_i is any form
of rank at most α_i on U_{i-1}, and L any map of rank at most r_l on U_{l-1}, independently of each
other:

    flags                                       Σ_{i<l} r_i (r_{i-1} − r_i)
    forms of rank ≤ α_i on U_{i-1}              c_i = 2 α_i r_{i-1} − α_i²
    maps of rank ≤ r_l from U_{l-1} to R^{d_l}  r_l (d_l + r_{l-1} − r_l)

(M, L) does not show all of the flag. It shows of U_i the span S_i of the rows of L and of the rows
and columns of M_{i+1}, …, M_l, and the flags that fit a given (M, L) are those with S_i ⊆ U_i for
all i. S_i is S_{i+1} together with a generic space of dimension min(2 α_{i+1}, r_i) inside U_i, so
dim S_i = w_i with w_l = r_l, w_i = min(r_i, w_{i+1} + 2 α_{i+1}). The spaces U_i with S_i ⊆ U_i ⊆
U_{i-1} have (r_i − w_i)(r_{i-1} − r_i) dimensions; subtracting them leaves w_i in place of r_i in
the first line. So the count is the exact dimension of the set of (M, L).

Symmetric parts. Where the function shows only N = M_i + M_iᵀ, c_i is replaced by the dimension
σ r_{i-1} − σ(σ−1)/2 of the symmetric forms of rank at most σ = min(2 α_i, r_{i-1}) on U_{i-1}. The
rows of N span what rows and columns of M_i span, so the w_i stay.

Factored value maps (factored-values) change nothing but the r_i. Inside the network O_i enters
only as O_iᵀ A_{i+1} O_i and V_{i+1} O_i; with v_i < d_i and an injective O_i these are again any
form of rank at most a_{i+1} and any map on R^{v_i}: a width v_i. With v_i ≥ d_i the product O_i
V_i is any matrix. In the last layer the rank of L is at most r_l = min(r_{l-1}, d_l, v_l), the
third line above. (Also as sets of functions: each is a function f of output width r_l followed by
an injective map, whose image is the span of the values; f has independent coordinates, as its
value at equal tokens, or at one non-zero token, is a multiple of L x. So r_l(d_l − r_l) dimensions
are added, whatever the dimension for output width r_l is.)
"""

from neuromanifold.architecture import Architecture
from neuromanifold.statements import Facts, applies, get


def virtual_dimension(facts: Facts, symmetric_from: int | None = None) -> int:
    """The dimension of the set of virtual weights (M, L) (all-widths, factored-values).

    Args:
        facts: the sizes of a network with one head.
        symmetric_from: the first layer, 1-based, of whose form only the symmetric part counts; None
            when all forms count in full.
    """
    r, alpha, depth = facts.reach, facts.generic_form_ranks, facts.depth
    w = [0] * depth + [r[depth]]
    for i in range(depth - 1, 0, -1):
        w[i] = min(r[i], w[i + 1] + 2 * alpha[i])
    flags = sum(w[i] * (r[i - 1] - r[i]) for i in range(1, depth))
    forms = sum(
        matrices_of_rank(alpha[i - 1], r[i - 1], r[i - 1])
        if symmetric_from is None or i < symmetric_from
        else symmetric_forms(alpha[i - 1], r[i - 1])
        for i in range(1, depth + 1)
    )
    return flags + forms + matrices_of_rank(r[depth], facts.widths[-1], r[depth - 1])


def matrices_of_rank(rank: int, rows: int, columns: int) -> int:
    """The dimension r(m + n − r) of the m × n matrices of rank at most r (lemma-3.1)."""
    rank = min(rank, rows, columns)
    return rank * (rows + columns - rank)


def symmetric_forms(alpha: int, r: int) -> int:
    """The dimension of the symmetric parts of the forms of rank at most α on R^r (all-widths)."""
    sigma = min(2 * alpha, r)
    return sigma * r - sigma * (sigma - 1) // 2


def virtual_upper_bound(architecture: Architecture) -> int | None:
    """A proved upper bound of the dimension from the virtual weights (virtual-bound).

    None for several heads and for the residual skip, whose functions do not factor through (M, L).

    Proof. By induction the output of layer i is L_i X G_i, where the t × t matrix G_i depends on
    X, M_1, …, M_i only: the scores of layer i are (L_{i-1} X G_{i-1})ᵀ A_i (L_{i-1} X G_{i-1}) =
    G_{i-1}ᵀ Xᵀ M_i X G_{i-1}; the weights P_i are made from them entry by entry (mask), column by
    column (softmax) or not at all; and G_i = G_{i-1} P_i, or G_{i-1} (1 + P_i) with the inner
    skip. So the function factors through (M, L), of which there are `virtual_dimension` many. Less
    is seen:
    - one token and softmax: every P_i is 1, the function is a multiple of L, of rank at most r_l;
    - the symmetric parts only, where every score is vᵀ M_i v (see `first_symmetric`);
    - lightning without skip: G_i is homogeneous in every M_j, so the l-dimensional torus of
      rescalings (eq-13) acts on (M, L) with the same function, mask or not; it acts freely where
      neither L nor any M_i (or symmetric part) vanishes, so l dimensions are lost.
    """
    facts = Facts.of(architecture)
    if not applies(get("virtual-bound"), facts):
        return None
    if facts.attention == "softmax" and facts.tokens == 1:
        return matrices_of_rank(facts.reach[-1], facts.widths[-1], facts.widths[0])
    return virtual_dimension(facts, first_symmetric(facts)) - rescalings(facts)


def rescalings(facts: Facts) -> int:
    """The dimension of the rescalings of virtual weights that keep the function (eq-13)."""
    return facts.depth if facts.attention == "lightning" and facts.skip == "none" else 0


def first_symmetric(facts: Facts) -> int | None:
    """The first layer whose scores see only the symmetric part of its form; None if there is none.

    A single token has the one score xᵀ M x in every layer. With more tokens, take a lightning
    layer j without mask and skip whose form has rank one, M_j = k qᵀ. Its weights Gᵀ Xᵀ k qᵀ X G
    have rank one, hence its output too: all its tokens are multiples of one vector, v yᵀ. The next
    layer makes V v (yᵀ y)(vᵀ A v) yᵀ of it, again such a matrix, so from then on a form is seen
    only through its values vᵀ A v. Softmax, a mask or a skip breaks the rank-one weights, so there
    the forms count in full.
    """
    if facts.attention == "softmax":
        return None
    if facts.tokens == 1:
        return 1
    if facts.skip == "none" and facts.mask == "none" and 1 in facts.generic_form_ranks:
        return facts.generic_form_ranks.index(1) + 2
    return None
