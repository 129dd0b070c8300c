"""Softmax networks: their fibers and dimensions, proved on the page about deep softmax networks.

D is the dimension of the virtual weights of one head (all-widths), H the sum over layers and heads
of the dimensions of the pairs (A, V) between the widths that count, less the squares of the
interior ones (head-mixing).
"""

from neuromanifold.statements.hypotheses import (
    ALL_WIDTHS_TWO,
    BOTTLENECK,
    CAUSAL_MASK,
    FORMS_APART_WITH_TWO_TOKENS,
    FULL_VALUES,
    INNER_SKIP,
    LINEAR_NOT_ZERO,
    NO_MASK,
    NO_SKEW_FORM_OF_TWO_TOKENS,
    NO_SKIP,
    NOT_RESIDUAL,
    ONE_HEAD,
    ONE_LAYER,
    ONE_TOKEN,
    ONE_TOKEN_SHOWS_ALL,
    RESIDUAL_SKIP,
    SEVERAL_HEADS,
    SEVERAL_LAYERS,
    SOFTMAX,
    tokens_at_least,
)
from neuromanifold.statements.statement import ours

_CONJECTURED = "Henry, Marchetti and Kohn (2025) prove one layer and conjecture the generic fibers."
_KONDA = (
    "Konda (2026) proves generic fibers for all real-analytic injective normalisers, and finds all "
    "softmax fibers for two tokens or two layers."
)
_ONE_LAYER = (
    "For one layer Tran et al. (2025), Kim et al. (2026) and Henry (2026) have overlapping results."
)

STATEMENTS = (
    ours(
        id="consensus",
        title="softmax near consensus",
        claim="If the tokens are c + ε z_k with Σ z_k = 0, one layer makes them c + ε² C M c + "
        "O(ε³), C the covariance of the z_k, and they differ by O(ε³). So after i layers the "
        "spread is of order 3^i, and layer i is seen in the output at order 2·3^{i−1}: 2, 6, 18, "
        "54, relative to the spread 1, 5, 17, 53.",
        kind="theorem",
        prior="Dong, Cordonnier and Loukas (2021) show the cubic contraction; Konda (2026) has the "
        "orders.",
        hypotheses=(SOFTMAX, ONE_HEAD, NO_SKIP, NO_MASK, tokens_at_least(2)),
    ),
    ours(
        id="softmax-fibers",
        title="all fibers of deep softmax networks",
        claim="Call M_j collapsing if it is zero or, with two tokens, skew-symmetric. Two "
        "networks (M, L) and (M', L') with L ≠ 0 have the same function if and only if L = L' and "
        "M_i = M_i' for all i up to the first collapsing one. The kernel of the differential "
        "consists of the directions that move only later forms.",
        kind="theorem",
        prior=f"{_CONJECTURED} {_KONDA}",
        hypotheses=(SOFTMAX, ONE_HEAD, NO_SKIP, NO_MASK, tokens_at_least(2), LINEAR_NOT_ZERO),
    ),
    ours(
        id="softmax-causal-fibers",
        title="fibers under the causal mask",
        claim="With the causal mask the fiber of (M, L), L ≠ 0, is one point: always for three "
        "tokens or more, and for two if no M_i with i < l is skew-symmetric.",
        kind="theorem",
        hypotheses=(
            SOFTMAX,
            ONE_HEAD,
            NO_SKIP,
            CAUSAL_MASK,
            tokens_at_least(2),
            NO_SKEW_FORM_OF_TWO_TOKENS,
            LINEAR_NOT_ZERO,
        ),
    ),
    ours(
        id="softmax-inner-fibers",
        title="fibers with the inner skip",
        claim="For V(X + XP) the fiber of (M, L), L ≠ 0, is one point; with two tokens that is "
        "so when no 2^{k-1} M_k is zero or plus or minus another one.",
        kind="theorem",
        hypotheses=(
            SOFTMAX,
            ONE_HEAD,
            INNER_SKIP,
            NO_MASK,
            tokens_at_least(2),
            FORMS_APART_WITH_TWO_TOKENS,
            LINEAR_NOT_ZERO,
        ),
    ),
    ours(
        id="softmax-dimension",
        title="the dimension of softmax networks with one head",
        claim="The dimension is that of the virtual weights, for every depth, width and rank, with "
        "or without causal mask and inner skip.",
        kind="theorem",
        prior=f"{_CONJECTURED} {_KONDA}",
        hypotheses=(SOFTMAX, ONE_HEAD, NOT_RESIDUAL, tokens_at_least(2)),
    ),
    ours(
        id="normalisers",
        title="other normalisers",
        claim="With weights S(x_jᵀ A x_i)/Σ_k S(x_kᵀ A x_i) for any positive, injective and "
        "real-analytic S in place of the exponential, generic fibers in (M, L) are points, and the "
        "dimension is that of the virtual weights, as for softmax.",
        kind="theorem",
        prior="The fibers are Konda's (2026); the dimension follows.",
        hypotheses=(SOFTMAX, ONE_HEAD, NO_SKIP, NO_MASK, tokens_at_least(2)),
    ),
    ours(
        id="softmax-one-token",
        title="one token under softmax",
        claim="With one token every attention weight is 1, and the network is the product of the "
        "maps Σ_h V_{i,h}, with the residual skip of 1 + Σ_h V_{i,h}: all matrices of the largest "
        "rank r that the widths and value ranks allow, r(d_0 + d_l − r) dimensions.",
        hypotheses=(SOFTMAX, ONE_TOKEN, ONE_TOKEN_SHOWS_ALL),
    ),
    ours(
        id="softmax-residual",
        title="softmax with the residual skip",
        claim="For X + φ(X) with any number of heads, with or without causal mask, the dimension "
        "is the sum over layers and heads of the dimensions of the pairs (A, V). Without mask "
        "generic fibers are the permutations of heads inside the layers.",
        kind="theorem",
        hypotheses=(SOFTMAX, RESIDUAL_SKIP, tokens_at_least(2)),
    ),
    ours(
        id="softmax-layer",
        title="one softmax layer with several heads",
        claim="Generic fibers of one layer are the permutations of its heads, with or without "
        "inner skip and mask, so that the dimension is the sum over the heads. Without both, heads "
        "have the same function if and only if the measures Σ V_h δ(A_h) agree; with two tokens, "
        "if and only if Σ V_h and the odd parts of the measures agree.",
        kind="theorem",
        prior=_ONE_LAYER,
        hypotheses=(SOFTMAX, ONE_LAYER, SEVERAL_HEADS, NOT_RESIDUAL, tokens_at_least(2)),
    ),
    ours(
        id="softmax-heads-bottleneck",
        title="softmax bottlenecks with several heads",
        claim="With a bottleneck and value maps of full rank, with or without causal mask and "
        "inner skip, the dimension is the sum over layers and heads of the dimensions of the pairs "
        "(A, V), less δ² for every interior width.",
        kind="theorem",
        hypotheses=(
            SOFTMAX,
            SEVERAL_HEADS,
            SEVERAL_LAYERS,
            NOT_RESIDUAL,
            tokens_at_least(2),
            BOTTLENECK,
            FULL_VALUES,
        ),
    ),
    ours(
        id="softmax-heads",
        title="deep softmax networks with several heads",
        claim="For almost all weights another network has the same function if and only if, after "
        "relabelling heads, it has the same forms M_{i,h} and the same L. The dimension is the sum "
        "over layers and heads of the dimensions of the pairs (A, V) between the widths that "
        "count, less the squares of the interior ones.",
        kind="theorem",
        hypotheses=(
            SOFTMAX,
            SEVERAL_HEADS,
            SEVERAL_LAYERS,
            NO_SKIP,
            NO_MASK,
            tokens_at_least(3),
            ALL_WIDTHS_TWO,
        ),
    ),
)
