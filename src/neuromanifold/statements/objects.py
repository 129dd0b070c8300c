"""The objects: layers, networks, the neuromanifold and its fibers."""

from neuromanifold.statements.hypotheses import LIGHTNING, NO_SKIP, SOFTMAX
from neuromanifold.statements.statement import numbered, ours

STATEMENTS = (
    numbered(
        id="def-1",
        title="the lightning layer",
        claim="A lightning self-attention layer with weights Q, K, V is attention without "
        "normalisation. It is linear in each of Q, K and V and cubic in the input, and it can be "
        "computed in time linear in the number of tokens.",
        hypotheses=(LIGHTNING,),
    ),
    numbered(
        id="eq-1",
        title="the layer, token by token",
        claim="Token i of the output is Σ_j (x_jᵀ A x_i) V x_j.",
        status="none",
        hypotheses=(LIGHTNING,),
    ),
    numbered(
        id="eq-2",
        title="the layer in matrices",
        claim="With tokens as columns the layer is X ↦ V X Xᵀ Kᵀ Q X.",
        hypotheses=(LIGHTNING,),
    ),
    numbered(
        id="eq-3",
        title="the attention matrix",
        claim="A = Kᵀ Q, a bilinear form of rank at most a.",
        status="none",
    ),
    numbered(
        id="def-2",
        title="the deep network",
        claim="A deep attention network is the composition of l layers; with lightning layers it "
        "is homogeneous of degree 3^l in its input.",
    ),
    numbered(
        id="eq-4",
        title="composition of layers",
        claim="φ_W = φ_{W_l} ∘ … ∘ φ_{W_1}.",
        status="none",
    ),
    numbered(
        id="def-3",
        title="the neuromanifold",
        claim="The neuromanifold is the set of all functions that the network computes as its "
        "Σ_i d_{i-1}(2 a_i + d_i) parameters vary.",
        correction="The number of parameters is printed with shifted indices, d_i(2 a_i + "
        "d_{i-1}); queries and keys act on the input width d_{i-1}.",
    ),
    numbered(
        id="eq-5",
        title="the neuromanifold inside the polynomial maps",
        claim="The neuromanifold of a lightning network is the image of W ↦ φ_W inside the "
        "homogeneous polynomial maps of degree 3^l.",
        status="none",
        hypotheses=(LIGHTNING, NO_SKIP),
    ),
    ours(
        id="ambient",
        title="the ambient dimension",
        claim="The homogeneous polynomial maps of degree 3^l from d_0 × t to d_l × t matrices "
        "form a space of dimension t·d_l·C(t·d_0 + 3^l − 1, 3^l); for widths 2, 1 and two tokens "
        "it is 40.",
        source="section 3.1",
        hypotheses=(LIGHTNING, NO_SKIP),
    ),
    numbered(
        id="eq-6",
        title="fibers",
        claim="The fiber of φ_W is the set of all weights with the same function; a generic fiber "
        "is one of almost all weights.",
        status="none",
    ),
    numbered(
        id="eq-15",
        title="the normalised layer",
        claim="A traditional layer weighs value V x_j in token i by S(x_jᵀ A x_i), divided by the "
        "sum over j, with S positive, injective and S(0) = 1; softmax is S(x) = exp(x/τ), τ the "
        "temperature.",
        status="none",
        correction="The printed weight is x_iᵀ A x_j, which swaps query and key against "
        "Definition 1.",
        hypotheses=(SOFTMAX,),
    ),
)
