"""Deep networks: virtual weights, their fibers and dimensions; and the figures."""

from neuromanifold.statements.hypotheses import (
    BOTTLENECK,
    FORMS_NOT_SKEW,
    FORMS_OF_RANK_TWO,
    FULL_VALUES,
    LIGHTNING,
    LINEAR_NOT_ZERO,
    LINEAR_OF_FULL_RANK,
    NO_MASK,
    NO_SKIP,
    ONE_HEAD,
    RANKS_AT_LEAST_TWO,
    SEVERAL_LAYERS,
    SOFTMAX,
    WIDE_BOTTLENECK,
    tokens_at_least,
)
from neuromanifold.statements.statement import numbered

_PLAIN = (ONE_HEAD, NO_SKIP, NO_MASK)
_BOTTLENECK_LIGHTNING = (
    LIGHTNING,
    *_PLAIN,
    SEVERAL_LAYERS,
    tokens_at_least(3),
    RANKS_AT_LEAST_TWO,
    BOTTLENECK,
    WIDE_BOTTLENECK,
    FULL_VALUES,
)
_BOTTLENECK_SOFTMAX = (
    SOFTMAX,
    *_PLAIN,
    SEVERAL_LAYERS,
    tokens_at_least(2),
    BOTTLENECK,
    FULL_VALUES,
)

STATEMENTS = (
    numbered(
        id="eq-8",
        title="virtual weights",
        claim="With L_i = V_i ⋯ V_1 the network depends on its weights only through L = L_l and "
        "the forms M_i = L_{i-1}ᵀ A_i L_{i-1}, M_1 = A_1.",
        hypotheses=(ONE_HEAD, NO_SKIP),
    ),
    numbered(
        id="eq-9",
        title="inter-layer symmetry",
        claim="V_i' = C_i V_i C_{i-1}^{-1} and A_{i+1}' = C_i^{-T} A_{i+1} C_i^{-1}, with C_0 = "
        "C_l = 1 and invertible C_i between, leave the virtual weights and so the function "
        "unchanged.",
    ),
    numbered(
        id="lemma-3.5",
        title="weights with the same virtual weights",
        claim="With a bottleneck δ and L of rank δ, weights with equal virtual weights are "
        "related by exactly one inter-layer symmetry.",
        hypotheses=(*_PLAIN, BOTTLENECK, LINEAR_OF_FULL_RANK),
    ),
    numbered(
        id="lemma-3.6",
        title="the network from its virtual weights",
        claim="A lightning network without mask is L X times a product of t × t matrices made of "
        "Xᵀ M_i X by a recursion.",
        hypotheses=(LIGHTNING, *_PLAIN),
    ),
    numbered(
        id="eq-10",
        title="the recursion",
        claim="D_0 = 1 and D_i = D_{i-1} Xᵀ M_i X D_{i-1} Xᵀ M_iᵀ X D_{i-1}.",
        status="none",
        hypotheses=(LIGHTNING, *_PLAIN),
    ),
    numbered(
        id="eq-11",
        title="the network as a product",
        claim="φ(X) = L X ∏_{i=1..l} (D_{l-i} Xᵀ M_{l-i+1} X).",
        hypotheses=(LIGHTNING, *_PLAIN),
    ),
    numbered(
        id="eq-12",
        title="the unrolled network",
        claim="Token k of the output is a sum over chains of (3^l − 1)/2 tokens of products of the "
        "forms M_i and M_iᵀ between neighbours; which form stands at place j is read off the first "
        "non-zero base-3 digit of j, from the right.",
        hypotheses=(LIGHTNING, *_PLAIN),
    ),
    numbered(
        id="eq-13",
        title="rescaling of virtual weights",
        claim="M_i' = λ_i M_i and L' = ρ L keep a non-zero function if and only if "
        "∏_i λ_i^(3^(l−i)) = 1/ρ.",
        hypotheses=(LIGHTNING, ONE_HEAD, NO_SKIP),
    ),
    numbered(
        id="thm-3.7",
        title="fibers of deep lightning networks",
        claim="In the coordinates (M, L) the fiber of a deep lightning network consists of the "
        "rescalings.",
        correction="The hypothesis L ≠ 0 is needed and not printed.",
        hypotheses=(
            LIGHTNING,
            *_PLAIN,
            tokens_at_least(3),
            FORMS_OF_RANK_TWO,
            FORMS_NOT_SKEW,
            LINEAR_NOT_ZERO,
        ),
    ),
    numbered(
        id="cor-3.8",
        title="dimension of a lightning bottleneck",
        claim="With a bottleneck δ ≥ 2 and ranks at least 2, the dimension of a deep lightning "
        "network is that of its virtual weights less the l rescalings.",
        hypotheses=_BOTTLENECK_LIGHTNING,
    ),
    numbered(
        id="eq-14",
        title="dimension of a lightning bottleneck",
        claim="dim = 2α_1 d_0 − α_1² + δ(d_0 + d_l) − δ² − l + Σ_{1<i≤l} (2α_i δ − α_i²) with "
        "α_i = min(a_i, d_{i-1}).",
        hypotheses=_BOTTLENECK_LIGHTNING,
    ),
    numbered(
        id="conj-3.10",
        title="fibers of deep normalised networks",
        claim="In the coordinates (M, L) the generic fibers of a deep softmax network are points, "
        "so with a bottleneck the dimension is that of its virtual weights.",
        hypotheses=_BOTTLENECK_SOFTMAX,
        prior="Conjectured in the paper; Konda (2026) proves the generic fibers for all "
        "real-analytic injective normalisers; here it is part of softmax-fibers.",
    ),
    numbered(
        id="eq-16",
        title="dimension of a softmax bottleneck",
        claim="The dimension of a softmax bottleneck is that of the lightning bottleneck plus l.",
        hypotheses=_BOTTLENECK_SOFTMAX,
    ),
    numbered(
        id="fig-1",
        title="a slice of the neuromanifold",
        claim="In a three-dimensional slice, one layer with d = a = 2, d' = 1 and two tokens "
        "(dimension 5) is a surface with a singular line, part of which lies in the Zariski "
        "closure only.",
    ),
    numbered(
        id="fig-2",
        title="the unrolled network as a tree",
        claim="A drawing of the order of the forms in the unrolled network.",
    ),
    numbered(
        id="fig-3",
        title="estimated and expected dimensions",
        claim="For two softmax layers with a = 2, three tokens and widths δ = 3, …, 10 the rank "
        "of the Jacobian equals the expected dimension.",
    ),
    numbered(
        id="fig-4",
        title="the reflection behind the cancellation",
        claim="A drawing of the reflection of chains of tokens that makes two monomials cancel.",
    ),
)
