"""The whole fiber at given weights, as far as theorems know it.

(thm-3.2, thm-3.7, thm-3.9, softmax-fibers, softmax-causal-fibers, softmax-inner-fibers)
"""

from dataclasses import dataclass

import numpy as np

from neuromanifold.display import Displayed
from neuromanifold.fibers.normal_form.comparable import in_float64
from neuromanifold.fibers.pairs import Spectrum, rank_tolerance, swapped
from neuromanifold.fibers.size import FiberDimension, fiber_dimension
from neuromanifold.fibers.virtual_facts import WeightFacts, facts_of
from neuromanifold.networks.weights import Weights
from neuromanifold.statements import Facts, get, unmet


@dataclass(frozen=True, slots=True)
class FiberDescription(Displayed):
    """What is known about the fiber at given weights.

    Attributes:
        statement: the id of the statement about fibers of this kind of network.
        unmet: the hypotheses of that statement that these weights do not meet.
        case: what the fiber is in the coordinates (A, V) or (M, L), in words; with unmet
            hypotheses, what is known nevertheless.
        points: how many points the fiber has in those coordinates, up to rescaling for lightning;
            None where it is not known or not finite.
        swapped: the other point, when A and V have rank one (thm-3.2).
        dimension: the dimension of the fiber in the weights themselves.
        spectra: the ranks that decided, with their singular values.
    """

    statement: str
    unmet: tuple[str, ...]
    case: str
    points: int | None
    swapped: Weights | None
    dimension: FiberDimension
    spectra: tuple[Spectrum, ...]

    def __str__(self) -> str:
        how = f"by {self.statement}"
        if get(self.statement).status == "conjecture":
            how = f"if {self.statement} holds here"
        if self.unmet:
            how = f"{self.statement} does not apply: {'; '.join(self.unmet)}"
        return f"The fiber: {self.case} ({how}); {self.dimension}."

    def to_dict(self) -> dict[str, object]:
        """The JSON form, without the swapped weights: they go to a file of their own."""
        return {
            "statement": self.statement,
            "unmet": list(self.unmet),
            "case": self.case,
            "points": self.points,
            "has_swapped_point": self.swapped is not None,
            "dimension": self.dimension.to_dict(),
            "ranks": [one.to_dict() for one in self.spectra],
        }


def describe_fiber(weights: Weights) -> FiberDescription:
    """The fiber at `weights` (thm-3.2, thm-3.7, thm-3.9)."""
    W = in_float64(weights)
    found = facts_of(weights)
    statement = _statement(found.facts)
    missing = unmet(get(statement), found.facts)
    other: Weights | None = None
    if is_zero(found):
        case, points = _zero_case(found.facts), None
    elif missing:
        case, points = _without_theorem(found.facts), None
    elif statement == "thm-3.2" and (found.spectra[0].rank, found.spectra[1].rank) == (1, 1):
        other, points = _swap(W)
        case = f"A and V have rank one, {points} point{'s' * (points > 1)} up to rescaling"
    else:
        case = _one_point(found.facts)
        points = None if case.startswith("all") else 1
    dimension = fiber_dimension(W)
    return FiberDescription(statement, missing, case, points, other, dimension, found.spectra)


def is_zero(found: WeightFacts) -> bool:
    """Whether the ranks show the function to be zero.

    Lightning without skip is zero when L = 0 or some M_i = 0 (a factor of every term); softmax when
    L = 0; with the inner skip L = 0 is needed too, and with a residual skip it is never zero.
    """
    facts = found.facts
    if facts.linear_rank is None:
        return False
    forms = facts.form_ranks or ()
    return facts.linear_rank == 0 or (
        facts.attention == "lightning" and facts.skip == "none" and 0 in forms
    )


def _statement(facts: Facts) -> str:
    """The statement about the fibers of this kind of network."""
    if facts.attention == "lightning":
        return "thm-3.2" if facts.depth == 1 else "thm-3.7"
    if facts.depth == 1:
        return "thm-3.9"
    if facts.skip == "inner":
        return "softmax-inner-fibers"
    return "softmax-causal-fibers" if facts.mask == "causal" else "softmax-fibers"


def _zero_case(facts: Facts) -> str:
    if facts.depth > 1:
        return "the zero function"
    if facts.attention == "softmax" or facts.skip == "inner":
        return "the zero function: V = 0 and A arbitrary"
    return "the zero function: all (A, V) with A = 0 or V = 0"


def _one_point(facts: Facts) -> str:
    coordinates = "(A, V)" if facts.depth == 1 else "(M, L)"
    first = facts.first_collapsing or facts.depth
    if facts.attention == "softmax" and facts.skip == facts.mask == "none" and first < facts.depth:
        return f"all (M, L) with the same L and M_1, …, M_{first}: layer {first} makes tokens equal"
    if facts.attention == "lightning":
        return f"the rescalings of one point {coordinates}"
    return f"one point {coordinates}"


def _without_theorem(facts: Facts) -> str:
    """What is known when a hypothesis fails: the symmetries, and what tokens that are parallel see.

    Behind a lightning layer of rank one all tokens are parallel, so later forms count through their
    symmetric parts only (all-widths).
    """
    known = "it contains the orbit of the symmetries"
    if facts.heads == 1 and facts.skip != "residual":
        known += " and depends on the virtual weights (M, L) only"
    plain = facts.attention == "lightning" and facts.skip == "none" and facts.mask == "none"
    ranks = facts.form_ranks or ()
    first = next((i for i, rank in enumerate(ranks, start=1) if rank == 1), facts.depth)
    if plain and first < facts.depth:
        known += f"; behind layer {first}, of rank one, only symmetric parts of forms are seen"
    return known


def _swap(W: Weights) -> tuple[Weights | None, int]:
    """The swapped point and the number of points: one when k ∥ v, else two (thm-3.2)."""
    layer = W.layers[0]
    k = np.linalg.svd(np.asarray(layer.attention_matrices()[0]))[0][:, 0]
    v = np.linalg.svd(np.asarray(layer.value_maps()[0]))[2][0]
    sine = np.linalg.norm(v - k * (k @ v))
    if sine <= rank_tolerance(W):
        return None, 1
    return swapped(W), 2
