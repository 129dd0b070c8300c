"""One layer: its symmetry, fibers, dimension, singular and boundary points."""

from neuromanifold.statements.hypotheses import (
    ATTENTION_OF_FULL_RANK,
    FULL_VALUES,
    LIGHTNING,
    NO_MASK,
    NO_SKIP,
    NOT_TOO_SMALL,
    ONE_HEAD,
    ONE_LAYER,
    SOFTMAX,
    VALUE_MAP_NOT_ZERO,
    tokens_at_least,
)
from neuromanifold.statements.statement import numbered, ours

_ONE_LIGHTNING_LAYER = (
    LIGHTNING,
    ONE_LAYER,
    ONE_HEAD,
    NO_SKIP,
    NO_MASK,
    tokens_at_least(2),
)
_GEOMETRY = (*_ONE_LIGHTNING_LAYER, FULL_VALUES, NOT_TOO_SMALL)

STATEMENTS = (
    numbered(
        id="lemma-3.1",
        title="factors of the attention matrix",
        claim="If KᵀQ = K'ᵀQ' has rank a, exactly one invertible C has K' = C K and Q' = C^{-T} Q. "
        "Hence the d × d matrices of rank at most a ≤ d form a set of dimension 2ad − a².",
        hypotheses=(ATTENTION_OF_FULL_RANK,),
    ),
    numbered(
        id="thm-3.2",
        title="fibers of one lightning layer",
        claim="In the coordinates (A, V) the fiber consists of the rescalings (λA, V/λ), except "
        "that for A = k⊗q, V = h⊗v of rank one the swapped pair (v⊗q, h⊗k) has the same function "
        "too, and that the zero function has the fiber A = 0 or V = 0.",
        hypotheses=_ONE_LIGHTNING_LAYER,
    ),
    numbered(
        id="cor-3.3",
        title="dimension of one lightning layer",
        claim="The neuromanifold of one lightning layer has the dimension of the pairs (A, V) less "
        "one, for the rescaling.",
        correction="The paper assumes d, d' ≥ 2 or d, a ≥ 2; the formula holds without.",
        hypotheses=_GEOMETRY,
    ),
    numbered(
        id="eq-7",
        title="dimension of one lightning layer",
        claim="dim = 2ad + dd' − a² − 1 if a ≤ d, and d² + dd' − 1 otherwise.",
        hypotheses=_GEOMETRY,
    ),
    numbered(
        id="thm-3.4",
        title="geometry of one lightning layer",
        claim="The neuromanifold of one lightning layer is closed in the Euclidean topology; its "
        "singular points and its relative boundary are given by ranks of A and V.",
        correction="The list of singular points is incomplete when a < d, see low-rank-singular.",
        hypotheses=_GEOMETRY,
    ),
    numbered(
        id="cor-a.1",
        title="closedness",
        claim="The neuromanifold of one lightning layer contains the limits of its sequences.",
        hypotheses=_GEOMETRY,
    ),
    numbered(
        id="cor-a.2",
        title="birational parametrisation",
        claim="On projective spaces (A, V) ↦ φ is birational onto its image, and its special "
        "fibers have two points.",
        hypotheses=_GEOMETRY,
    ),
    numbered(
        id="lemma-a.3",
        title="critical points",
        claim="(A, V) is critical for (A, V) ↦ φ if and only if A = k⊗q and V = h⊗k for some "
        "vectors q, k, h, or A = 0, or V = 0.",
        correction="The printed list leaves out A = 0 with V of higher rank and V = 0 with A of "
        "higher rank.",
        hypotheses=_GEOMETRY,
    ),
    numbered(
        id="cor-a.4",
        title="singular points",
        claim="A function with rank A · rank V ≤ 1 is a singular point of the neuromanifold.",
        correction="The converse, also claimed, fails when a < d: points with rank A < a are "
        "singular too, see low-rank-singular.",
        hypotheses=_GEOMETRY,
    ),
    numbered(
        id="prop-a.5",
        title="a Segre variety on linear forms",
        claim="The neuromanifold is linearly isomorphic to the tables of products α_m · ν_n of "
        "linear forms, α_m the columns of A, spanning at most a dimensions, and ν_n the rows of V.",
        hypotheses=_ONE_LIGHTNING_LAYER,
    ),
    numbered(
        id="cor-a.6",
        title="boundary points",
        claim="The relative boundary of the neuromanifold consists of the functions of critical "
        "points (A, V).",
        hypotheses=_GEOMETRY,
    ),
    ours(
        id="low-rank-singular",
        title="all singular points of one layer",
        claim="A function is a singular point if and only if rank A · rank V ≤ 1 or rank A < a < "
        "d: where rank A · rank V ≥ 2 the map (A, V) ↦ φ is a local embedding up to scale, so the "
        "singularities of the matrices of rank at most a stay.",
        hypotheses=_GEOMETRY,
    ),
    numbered(
        id="thm-3.9",
        title="fibers of one normalised layer",
        claim="With softmax φ = 0 if and only if V = 0; otherwise the fiber in the coordinates "
        "(A, V) is a single point, so the dimension is that of the pairs (A, V).",
        hypotheses=(
            SOFTMAX,
            ONE_LAYER,
            ONE_HEAD,
            NO_SKIP,
            NO_MASK,
            tokens_at_least(2),
            VALUE_MAP_NOT_ZERO,
        ),
    ),
)
