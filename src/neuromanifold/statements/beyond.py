"""What goes beyond the paper: all widths, one token, masks, skips, heads, exactness, redundancy."""

from neuromanifold.statements.hypotheses import (
    ALL_SEE_ALL,
    CAUSAL_MASK,
    FULL_VALUES,
    INNER_SKIP,
    LIGHTNING,
    NO_MASK,
    NO_SKIP,
    NO_WIDENING,
    NOT_RESIDUAL,
    ONE_HEAD,
    ONE_LAYER,
    ONE_TOKEN,
    RESIDUAL_SKIP,
    SEVERAL_HEADS,
    SOFTMAX,
    tokens_at_least,
)
from neuromanifold.statements.statement import ours

STATEMENTS = (
    ours(
        id="all-widths",
        title="the dimension for every width and rank",
        claim="The dimension of a lightning network is that of the virtual weights (flags of row "
        "spaces, forms of bounded rank on them, one linear map, less what they do not see of the "
        "flags), less the l rescalings, with only the symmetric parts of the forms counted after a "
        "layer of rank one.",
        hypotheses=(LIGHTNING, ONE_HEAD, NO_SKIP, NO_MASK, tokens_at_least(2)),
        prior="The paper proves one layer (Theorem 3.2) and, with Theorem 3.7, three tokens or "
        "more and forms of rank at least 2.",
    ),
    ours(
        id="virtual-bound",
        title="the virtual weights bound the dimension",
        claim="The dimension is at most the number of dimensions of the virtual weights, less the "
        "l rescalings for lightning without skip; where every score is the value of a form on one "
        "vector, only its symmetric part counts.",
        hypotheses=(ONE_HEAD, NOT_RESIDUAL),
    ),
    ours(
        id="virtual-rank",
        title="the rank of the virtual weights at given weights",
        claim="At any weights the rank of the differential of W ↦ φ_W is at most that of the "
        "differential of the virtual weights that the function shows there to first order, less "
        "what known symmetries move of them: L alone where L = 0; no form behind a collapsing "
        "softmax layer; where a form or L of a lightning network without skip vanishes, at most "
        "that one, and nothing if the function is of higher degree in it or two vanish.",
        hypotheses=(ONE_HEAD, NOT_RESIDUAL),
    ),
    ours(
        id="factored-values",
        title="factored value maps",
        claim="A factor v_i < d_i inside the network acts as a width v_i. In the last layer it "
        "bounds the rank of L by some ρ, and the neuromanifold is that of output width ρ, "
        "followed by an injective map of which ρ(d_l − ρ) dimensions are seen.",
        hypotheses=(ONE_HEAD, NOT_RESIDUAL),
    ),
    ours(
        id="one-token",
        title="one token",
        claim="With one token lightning sees only the symmetric parts of the forms, in every "
        "layer: the dimension is that of the virtual weights with only these counted, less the l "
        "rescalings, or with the inner skip less nothing.",
        hypotheses=(LIGHTNING, ONE_HEAD, NOT_RESIDUAL, ONE_TOKEN),
    ),
    ours(
        id="causal-mask",
        title="the causal mask",
        claim="With the causal mask no lightning layer of rank one collapses the later ones, as "
        "each token sees another sum: the dimension is that of the virtual weights less the l "
        "rescalings.",
        hypotheses=(LIGHTNING, ONE_HEAD, NO_SKIP, CAUSAL_MASK, tokens_at_least(2)),
    ),
    ours(
        id="inner-skip",
        title="the inner skip",
        claim="For V(X + XP) with lightning weights the dimension is that of the virtual weights: "
        "there are no rescalings, and no layer of rank one collapses the later ones.",
        hypotheses=(LIGHTNING, ONE_HEAD, INNER_SKIP, tokens_at_least(2)),
    ),
    ours(
        id="residual-skip",
        title="the residual skip",
        claim="For X + φ(X) there is no inter-layer symmetry: the dimension of a lightning network "
        "is the sum over the layers of the dimensions of the pairs (A_i, V_i), less l.",
        status="conjecture",
        correction="The paper expects the scaling symmetry to break; (λA, V/λ) leaves every "
        "layer's function alone, so it stays.",
        hypotheses=(LIGHTNING, ONE_HEAD, RESIDUAL_SKIP, tokens_at_least(2), FULL_VALUES),
    ),
    ours(
        id="head-mixing",
        title="several heads",
        claim="Lightning heads mix continuously: a layer shows only the part of Σ V_h ⊗ A_h that "
        "is symmetric in the middle, and its dimension is the smallest of the bounds that the "
        "ranks of this tensor's flattenings prove. Softmax heads do not mix. In deep networks "
        "whose widths do not grow, and in softmax networks with three tokens or more, the layers "
        "add up, less the inter-layer symmetries.",
        status="conjecture",
        correction="The paper expects only permutations of heads.",
        hypotheses=(SEVERAL_HEADS, tokens_at_least(2), NO_WIDENING),
    ),
    ours(
        id="flattening-bounds",
        title="bounds for one layer with several heads",
        claim="A lightning layer with several heads has at most the dimension of H heads apart; of "
        "the matrices of rank H that Σ V_h ⊗ A_h makes; of the matrices that each of the three "
        "flattenings of its symmetric part makes; and with one output coordinate, of the quadratic "
        "forms in the ideal of the value vectors; with one token symmetric parts of the forms "
        "count, and cubic forms. With the inner skip the entries of Σ V_h count besides. A softmax "
        "layer has at most the dimension of the pairs (A, V) of its heads.",
        hypotheses=(ONE_LAYER,),
    ),
    ours(
        id="layers-bound",
        title="bounds for deep networks with several heads",
        claim="The dimension of a network is at most the sum of its layers' dimensions between the "
        "widths that count, each on the values of the layers before it, without residual skip less "
        "the inter-layer symmetries that act freely. One token under softmax shows a linear map "
        "only.",
    ),
    ours(
        id="told-apart",
        title="forms that the values of a layer tell apart",
        claim="The scores of a layer are linear in its forms A, and behind a layer with value maps "
        "V_g from width d they show of the blocks V_gᵀ A V_{g'}: softmax with two tokens only "
        "the matrices Σ_{g'} V_gᵀ A V_{g'} and the symmetric parts, under the causal mask of "
        "V_gᵀ (A + Aᵀ) V_{g'}; lightning with one token only the parts symmetric in both pairs of "
        "indices; lightning without mask and skip the skew parts only through the 2 × 2 minors of "
        "X Xᵀ.",
        hypotheses=(NOT_RESIDUAL,),
    ),
    ours(
        id="spanned-values",
        title="what the values of lightning layers span",
        claim="At generic weights the values of the first i layers of a lightning network with "
        "several heads span at least what those before them span, as far as the width allows, and "
        "at least what the monomials of the layer tell apart on the sequences that the values "
        "before it fill.",
        hypotheses=(LIGHTNING, SEVERAL_HEADS, NOT_RESIDUAL),
    ),
    ours(
        id="polynomial-maps",
        title="lightning networks as polynomials in X Xᵀ",
        claim="Without mask a lightning network is X ↦ N(X Xᵀ) X with a polynomial N of degree "
        "(3^l − 1)/2, homogeneous without skip. So its dimension is at most d_l d_0 times that of "
        "the polynomials of this degree in d_0(d_0+1)/2 variables; with one token and no skip "
        "also d_l times that of the forms of degree 3^l in d_0 variables.",
        hypotheses=(LIGHTNING, NOT_RESIDUAL, ALL_SEE_ALL),
    ),
    ours(
        id="redundancy",
        title="redundancy",
        claim="With all widths and ranks d there are 3d²l parameters and (l + 1)d² − l "
        "dimensions: the ratio tends to 3 as l and d grow.",
        correction="The paper prints the ratio 3/2, which is that of one layer.",
        hypotheses=(LIGHTNING, ONE_HEAD, NO_SKIP, NO_MASK, tokens_at_least(3)),
    ),
    ours(
        id="sample-complexity",
        title="dimension and samples",
        claim="The number of samples needed to learn a function grows with the dimension of the "
        "neuromanifold, not with the number of parameters.",
        status="none",
        source="sections 1 and 3.3",
    ),
    ours(
        id="field-rank",
        title="a rank over a prime field is a proof",
        claim="The rank of the Jacobian at any point of any prime field is at most the generic "
        "rank, hence a proved lower bound of the dimension.",
        hypotheses=(LIGHTNING,),
    ),
    ours(
        id="softmax-exact",
        title="exact ranks with softmax",
        claim="If no non-trivial rational combination of the exponents is constant, the "
        "exponentials are algebraically independent, so that random field elements in their place "
        "give a proved lower bound of the dimension.",
        hypotheses=(SOFTMAX,),
    ),
    ours(
        id="readouts",
        title="what an output shows",
        claim="Probabilities over the output coordinates show exactly the differences of the "
        "logits; decisions show them up to one positive constant. With one output coordinate both "
        "are constant. Without residual skip probabilities have the dimension of the network with "
        "one output less, and decisions one dimension less.",
    ),
    ours(
        id="whitney-umbrella",
        title="a slice that is Whitney's umbrella",
        claim="One layer with d = a = 2, d' = 1 is the set of pairs of binary quadratic forms "
        "with a common real factor; in the slice x² − s y², b xy + c y² it is c² = s b², singular "
        "along b = c = 0, of which s < 0 lies in the Zariski closure only.",
        hypotheses=(LIGHTNING, ONE_LAYER, tokens_at_least(2)),
    ),
)
