"""Real transformers: the parts of the gauge group of a block, each a symmetry at any weights."""

from neuromanifold.statements.statement import ours

STATEMENTS = (
    ours(
        "gauge-qk",
        "queries and keys of a group",
        "Without rotary positions and norms of queries and keys, the change of basis K_g → C K_g, "
        "Q_h → C^{-T} Q_h for all query heads h of a group, biases included, leaves every score "
        "alone: G d_k² dimensions a layer.",
    ),
    ours(
        "gauge-rope",
        "queries and keys under rotary positions",
        "With rotary positions the changes of basis that leave every score alone are those that "
        "commute with the rotations: when the frequencies are distinct and not zero, a complex "
        "number for each plane, and GL on the coordinates that do not turn.",
    ),
    ours(
        "gauge-qk-norm",
        "norms of queries and keys",
        "With an RMS norm of every query and key, γ_q → λ γ_q, γ_k → γ_k / λ is a symmetry for one "
        "λ a rotary plane, or a coordinate that does not turn, of a layer; without eps also any "
        "positive scaling of each query head and key head.",
    ),
    ours(
        "gauge-ov",
        "values and outputs of a group",
        "V_g → D V_g, b_V → D b_V, O_h → O_h D^{-1} for all query heads h of a group leaves what "
        "the heads write alone: G d_v² dimensions a layer.",
    ),
    ours(
        "dead-key-bias",
        "key biases are dead",
        "A key bias on coordinates that do not turn adds the same to all scores of a query, which "
        "softmax does not see, unless scores are capped or keys are normalised.",
    ),
    ours(
        "value-bias",
        "value biases pass through",
        "Rows of attention sum to one, so b_V → b_V + δ, b_O → b_O − Σ_h O_h δ is a symmetry.",
    ),
    ours(
        "score-table",
        "the table of score biases",
        "A constant on a head's whole column of the table of score biases is not seen by softmax; "
        "where keys after the query have buckets of their own, their bucket of distance zero is "
        "never used.",
    ),
    ours(
        "mlp-scale",
        "scales of neurons",
        "A gated neuron allows up → λ up, down → down / λ for any λ ≠ 0; a ReLU neuron the same "
        "with λ > 0 on the row that is rectified, its square with down / λ².",
    ),
    ours(
        "norm-absorption",
        "gains and shifts of norms",
        "When only linear maps W read a norm, γ → s γ, β → s β, W → W s^{-1} is a symmetry, and "
        "β → β + δ with b_W → b_W − W δ; after the sum only the shift is free, and the next bias "
        "that is added pays for it too.",
    ),
    ours(
        "layernorm-centring",
        "the direction centring removes",
        "The output y of a layer norm satisfies gᵀ(y − β) = 0 with g = 1/γ, so W → W + u gᵀ, "
        "b_W → b_W − u gᵀβ is a symmetry for each row whose constant can be absorbed.",
    ),
    ours(
        "stream-one",
        "the direction 1 of the stream",
        "Where all that reads the stream subtracts its mean, everything that is written to it may "
        "get a multiple of 1. Shared layers that first read a map's output x may read "
        "x + a 1 gᵀ(x − β) with g = 1/γ of their last norm, which is the identity on its outputs.",
    ),
    ours(
        "stream-rotation",
        "rotations of the stream",
        "With norms before the layers, none after the tables, and a head of its own, x → R x is a "
        "symmetry for every orthogonal R (that fixes 1, with layer norms): writers R W, readers "
        "W Γ Rᵀ Γ^{-1}.",
    ),
    ours(
        "tied-rotation",
        "a tied head fixes the stream",
        "When the head is the token table, a rotation of the stream is a symmetry only if it "
        "commutes with the final gain: for distinct gains only signs are left, and permutations "
        "that move the gain along.",
    ),
    ours(
        "stream-scale",
        "scales the norms divide out",
        "With eps = 0 everything a norm reads may be multiplied by λ > 0; with eps > 0 this is no "
        "symmetry.",
    ),
    ours(
        "tables",
        "tables that are added",
        "A vector may move from one table to another that is always added to it; with a tied head "
        "from the token table only when all logits may change alike, or along 1/γ of the final "
        "norm with a bias in the head. Rows before the first position are read by nothing, but the "
        "last of them: by padding, whose token has no other position, so that a vector may move "
        "between these two rows alone.",
    ),
    ours(
        "parallel-biases",
        "biases of parallel attention and MLP",
        "When attention and MLP are added to the same stream, b_O → b_O + δ, b_2 → b_2 − δ is a "
        "symmetry.",
    ),
    ours(
        "unembedding-shift",
        "what probabilities do not see of the head",
        "Probabilities do not change under W_U → W_U + 1wᵀ, b → b + c1.",
    ),
)
