"""Redundancy: parameters against dimension, and where the difference goes (redundancy).

Weights become a function in three steps, and each step forgets something:

    (Q, K, V, O)  →  (A, V)   the factors of A = KᵀQ and of a factored value map O V;
    (A, V)        →  (M, L)   the bases of the layers between, and what wide layers hide;
    (M, L)        →  φ        the scale of the layers, and what no score sees.

The dimensions of the four sets are known, so the shares below add up exactly. A share names a
symmetry only where its orbits are known to have that dimension. The inter-layer group, the product
of the GL_{d_i}, acts freely on (A, V) when every C_i is pinned to 1 from one side: C_i V_i = V_i
C_{i-1} with C_{i-1} = 1 and V_i surjective, or V_{i+1} = V_{i+1} C_i with C_{i+1} = 1 and V_{i+1}
injective. Then it takes Σ d_i² dimensions. Otherwise its orbits may be smaller, which is a matter
of ranks, and it shares one line with what the virtual weights do not see.
"""

from dataclasses import dataclass
from itertools import pairwise

from neuromanifold.architecture import Architecture
from neuromanifold.display import Displayed, Recorded
from neuromanifold.formula.all_widths import (
    matrices_of_rank,
    rescalings,
    virtual_dimension,
)
from neuromanifold.formula.formula import DimensionFormula, dimension_formula
from neuromanifold.formula.heads import pairs_dimension
from neuromanifold.statements import Facts


@dataclass(frozen=True, slots=True)
class Share:
    """A part of the parameters that the function does not show.

    Attributes:
        name: the symmetry, or what is not seen.
        dimension: how many dimensions it takes.
        meaning: what is counted, in words.
    """

    name: str
    dimension: int
    meaning: str


@dataclass(frozen=True, slots=True)
class Redundancy(Displayed, Recorded):
    """Parameters, dimension, and the shares of their difference.

    Attributes:
        architecture: the network.
        parameters: its number of parameters.
        formula: its dimension, with status and statement.
        shares: the parts of parameters − dimension, which add up to it, the empty ones left out;
            none when no dimension is known.
    """

    architecture: Architecture
    parameters: int
    formula: DimensionFormula
    shares: tuple[Share, ...]
    _json = (
        "architecture parameters dimension=formula.dimension status=formula.status "
        "statement=formula.statement ratio shares"
    )

    @property
    def ratio(self) -> float | None:
        """Parameters per dimension; None when no dimension is known."""
        return self.parameters / self.formula.dimension if self.formula.dimension else None

    def _parts(self) -> list[tuple[str, int]]:
        shares = [(share.name, share.dimension) for share in self.shares]
        return [("dimension", self.formula.dimension), *shares] if self.formula.dimension else []

    def __str__(self) -> str:
        if self.ratio is None:
            return f"{self.parameters} parameters. {self.formula}"
        parts = " + ".join(f"{share.dimension} {share.name}" for share in self.shares)
        lost = f" The other {self.parameters - (self.formula.dimension or 0)}: {parts}."
        return (
            f"{self.parameters} parameters, {self.ratio:.3g} per dimension. {self.formula}"
            f"{lost if self.shares else ''}"
        )


def redundancy(architecture: Architecture) -> Redundancy:
    """How many of the parameters the function does not show, and why (redundancy).

    >>> print(redundancy(Architecture(widths=(4, 2, 3), ranks=(2, 2), tokens=3)))
    38 parameters, 1.58 per dimension. The dimension is 24 (theorem, cor-3.8). The other 14: \
8 key-query + 4 inter-layer + 2 scaling.
    """
    formula = dimension_formula(architecture)
    shares: tuple[Share, ...] = ()
    if formula.dimension is not None:
        shares = (*_factors(architecture), *_rest(architecture, formula.dimension))
    return Redundancy(
        architecture=architecture,
        parameters=architecture.parameters,
        formula=formula,
        shares=tuple(share for share in shares if share.dimension > 0),
    )


def _factors(architecture: Architecture) -> tuple[Share, ...]:
    """The first step: factors with the same product (lemma-3.1)."""
    H, d = architecture.heads, architecture.widths
    key_query = sum(
        H * (2 * a * d[i] - matrices_of_rank(min(a, d[i]), d[i], d[i]))
        for i, a in enumerate(architecture.ranks)
    )
    return (
        Share("key-query", key_query, "queries and keys with the same KᵀQ: orbits of GL_a"),
        Share(
            "value-output",
            architecture.parameters - pairs_dimension(architecture) - key_query,
            "factors with the same product O V: orbits of GL_v when v is at most both widths",
        ),
    )


def _rest(architecture: Architecture, dimension: int) -> tuple[Share, ...]:
    linear = architecture.attention == "softmax" and architecture.tokens == 1
    if linear and (architecture.heads > 1 or architecture.skip == "residual"):
        unseen = pairs_dimension(architecture) - dimension
        meaning = "all scores, and factors of one linear map (softmax-one-token)"
        return (Share("not seen by the function", unseen, meaning),)
    if architecture.heads > 1:
        return _with_heads(architecture, dimension)
    if architecture.skip == "residual":
        return (_scaling(architecture),)
    return _through_virtual_weights(architecture, dimension)


def _scaling(architecture: Architecture) -> Share:
    scaled = architecture.heads * architecture.depth * architecture.trades_scale
    return Share("scaling", scaled, "(λA, V/λ) in every layer and head")


def _with_heads(architecture: Architecture, dimension: int) -> tuple[Share, ...]:
    inner = Facts.of(architecture).seen_widths[1:-1]
    inter_layer = 0 if architecture.skip == "residual" else sum(c * c for c in inner)
    scaling = _scaling(architecture)
    return (
        Share("inter-layer", inter_layer, "bases of the layers between, as far as they are seen"),
        scaling,
        Share(
            "head mixing",
            pairs_dimension(architecture) - inter_layer - scaling.dimension - dimension,
            "heads with the same sum, beyond their scaling, and widths not seen (head-mixing)",
        ),
    )


def _through_virtual_weights(architecture: Architecture, dimension: int) -> tuple[Share, ...]:
    facts = Facts.of(architecture)
    pairs, virtual = pairs_dimension(architecture), virtual_dimension(facts)
    unseen_by_function = Share(
        "not seen by the function",
        virtual - rescalings(facts) - dimension,
        "parts of the virtual weights that no score shows, such as skew-symmetric parts",
    )
    if not _acts_freely(facts):
        return (
            Share(
                "inter-layer and not seen by the virtual weights",
                pairs - virtual,
                "(A, V) with the same virtual weights",
            ),
            _scaling(architecture),
            unseen_by_function,
        )
    inter_layer = sum(d * d for d in facts.widths[1:-1])
    return (
        Share("inter-layer", inter_layer, "bases of the layers between: orbits of the GL_{d_i}"),
        _scaling(architecture),
        Share(
            "not seen by the virtual weights",
            pairs - virtual - inter_layer,
            "(A, V) with the same virtual weights, beyond the inter-layer symmetry",
        ),
        unseen_by_function,
    )


def _acts_freely(facts: Facts) -> bool:
    """Whether every C_i is pinned to 1 from the input's or from the output's side."""
    d, depth = facts.widths, facts.depth
    v = facts.value_ranks or tuple(map(max, pairwise(d)))
    pinned = set()
    for i in range(1, depth):
        if min(d[i - 1], v[i - 1]) < d[i]:
            break
        pinned.add(i)
    for i in range(depth - 1, 0, -1):
        if min(d[i + 1], v[i]) < d[i]:
            break
        pinned.add(i)
    return len(pinned) == depth - 1
