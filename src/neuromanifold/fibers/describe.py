"""The whole fiber at given weights, as far as theorems know it.

(thm-3.2, thm-3.7, thm-3.9, softmax-fibers, softmax-causal-fibers, softmax-inner-fibers)

For one softmax head without skip and mask all fibers are known (softmax-fibers): one point (M, L)
if no form but the last collapses, else the forms behind the first collapsing one are arbitrary.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from neuromanifold.algebra.low_rank import balanced_factors
from neuromanifold.architecture import Architecture
from neuromanifold.display import Displayed, Recorded
from neuromanifold.errors import HypothesisError
from neuromanifold.fibers.determined import Determined, determined, fiber_statement, is_zero
from neuromanifold.fibers.facts import Spectrum, WeightFacts, facts_of
from neuromanifold.fibers.size import FiberDimension, fiber_dimension, zero_layer_dimension
from neuromanifold.fibers.units import in_units
from neuromanifold.networks.weights import Weights, scale_output
from neuromanifold.statements import Facts, get, unmet

Verdict = Literal["exact", "numerical", "undecided"]


@dataclass(frozen=True, slots=True)
class FiberDescription(Displayed, Recorded):
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
        verdict: `exact` when the ranks of the floats as they are decided, and rounding leaves no
            doubt about them; `numerical` when the weights stand for a special point up to rounding;
            `undecided` when singular values lie near the noise: then the case is that of the floats
            as they are, and rounding them otherwise may change it.
    """

    statement: str
    unmet: tuple[str, ...]
    case: str
    points: int | None
    swapped: Weights | None
    dimension: FiberDimension
    spectra: tuple[Spectrum, ...]
    verdict: Verdict
    _json = "verdict statement unmet case points has_swapped_point dimension ranks=spectra"

    @property
    def has_swapped_point(self) -> bool:
        """Whether there is another point; its weights go to a file of their own."""
        return self.swapped is not None

    def __str__(self) -> str:
        how = f"by {self.statement}"
        if get(self.statement).status == "conjecture":
            how = f"if {self.statement} holds here"
        if self.unmet:
            how = f"{self.statement} does not apply: {'; '.join(self.unmet)}"
        doubts = [str(one) for one in self.spectra if not one.decided or one.rank != one.exact]
        known = {
            "exact": "",
            "numerical": f" Up to rounding: {'; '.join(doubts)}.",
            "undecided": f" For the floats as they are; undecided up to rounding: "
            f"{'; '.join(doubts)}.",
        }[self.verdict]
        return f"The fiber: {self.case} ({how}); {self.dimension}.{known}"


def describe_fiber(weights: Weights) -> FiberDescription:
    """The fiber at `weights` (thm-3.2, thm-3.7, thm-3.9)."""
    architecture, found = weights.architecture, facts_of(weights)
    seen = _softmax_fibers(architecture, found)
    statement = fiber_statement(architecture)
    missing = () if seen is not None else unmet(get(statement), found.facts)
    other: Weights | None = None
    if is_zero(architecture, found.shown):
        case, points = _zero_case(architecture), None
        missing = unmet(get(statement), found.facts)
    elif seen is not None:
        case, points = _softmax_case(seen)
    elif missing:
        case, points = _without_theorem(architecture, found.facts), None
    elif statement == "thm-3.2" and (found.spectra[0].rank, found.spectra[1].rank) == (1, 1):
        other, points = _swap(weights, found)
        case = f"A and V have rank one, {points} point{'s' * (points > 1)} up to rescaling"
    else:
        case, points = _one_point(architecture), 1
    verdict: Verdict = "exact"
    if not found.decided:
        verdict = "undecided"
    elif found.special_up_to_rounding:
        verdict = "numerical"
    dimension = _dimension(weights, found, seen)
    return FiberDescription(
        statement, missing, case, points, other, dimension, found.spectra, verdict
    )


def _softmax_fibers(architecture: Architecture, found: WeightFacts) -> Determined | None:
    """What a deep softmax network shows, where its fibers are known: one head, nothing else."""
    known = architecture.averages_tokens and architecture.is_plain and architecture.has_one_head
    if not known or architecture.depth == 1 or architecture.tokens == 1:
        return None
    return determined(architecture, found.shown)


def _softmax_case(seen: Determined) -> tuple[str, int | None]:
    """One point (M, L), or a collapsing layer that hides the forms behind it."""
    if not seen.unseen:
        return "one point (M, L)", 1
    last = len(seen.seen) - 1
    hidden = ", ".join(f"M_{i}" for i in range(last + 1, last + 1 + len(seen.unseen)))
    case = f"layer {last} makes tokens equal: {hidden} arbitrary, the rest of (M, L) one point"
    return case, None


def _dimension(weights: Weights, found: WeightFacts, seen: Determined | None) -> FiberDimension:
    """The dimension with what the theorems add to the ranks."""
    architecture, settled = weights.architecture, None
    one_layer = architecture.depth == 1 and architecture.has_one_head and architecture.tokens >= 2
    is_null = is_zero(architecture, found.shown)
    if one_layer and architecture.is_linear_in_scores and architecture.is_plain and is_null:
        settled = zero_layer_dimension(weights, found.spectra[0].rank, found.spectra[1].rank)
    if seen is None or is_null:
        return fiber_dimension(
            weights, up_to_rounding=found.special_up_to_rounding, settled=settled
        )
    forms = len(seen.seen) - 1
    return fiber_dimension(
        weights,
        free_from=forms if seen.unseen else None,
        seen_forms=forms,
        up_to_rounding=found.special_up_to_rounding,
    )


def _zero_case(architecture: Architecture) -> str:
    if architecture.depth > 1:
        return "the zero function"
    if architecture.trades_scale:
        return "the zero function: all (A, V) with A = 0 or V = 0"
    return "the zero function: V = 0 and A arbitrary"


def _one_point(architecture: Architecture) -> str:
    coordinates = "(A, V)" if architecture.depth == 1 else "(M, L)"
    if architecture.is_linear_in_scores:
        return f"the rescalings of one point {coordinates}"
    return f"one point {coordinates}"


def _without_theorem(architecture: Architecture, facts: Facts) -> str:
    """What is known when a hypothesis fails: the symmetries, and what tokens that are parallel see.

    Behind a lightning layer of rank one all tokens are parallel, so later forms count through their
    symmetric parts only (all-widths).
    """
    known = "it contains the orbit of the symmetries"
    if architecture.has_virtual_weights:
        known += " and depends on the virtual weights (M, L) only"
    plain = architecture.is_linear_in_scores and architecture.is_plain
    ranks = facts.form_ranks or ()
    first = next((i for i, rank in enumerate(ranks, start=1) if rank == 1), facts.depth)
    if plain and first < facts.depth:
        known += f"; behind layer {first}, of rank one, only symmetric parts of forms are seen"
    return known


def _swap(weights: Weights, found: WeightFacts) -> tuple[Weights | None, int]:
    """The swapped point and the number of points: one when k ∥ v, else two (thm-3.2).

    Rounding turns k and v by no more than the tolerances of A and V.
    """
    layer = in_units(weights).weights.layers[0]
    k = np.linalg.svd(np.asarray(layer.attention_matrices()[0]))[0][:, 0]
    v = np.linalg.svd(np.asarray(layer.value_maps()[0]))[2][0]
    sine = np.linalg.norm(v - k * (k @ v))
    if sine <= found.spectra[0].tolerance + found.spectra[1].tolerance:
        return None, 1
    return swapped(weights), 2


def swapped(weights: Weights) -> Weights:
    """The other point of the fiber when A and V have rank one: (v ⊗ q, h ⊗ k) (thm-3.2).

    For A = k qᵀ and V = h vᵀ token i of the output is h Σ_j (vᵀ x_j)(kᵀ x_j) (qᵀ x_i), in which k
    and v can change places.

    Keys, queries and factors of values beyond the first are set to zero.
    """
    if weights.architecture.depth > 1 or not weights.architecture.has_one_head:
        raise HypothesisError(
            f"the swap is for one layer with one head; got {weights.architecture.name}"
        )
    A_spectrum, V_spectrum = facts_of(weights).spectra[:2]
    if (A_spectrum.rank, V_spectrum.rank) != (1, 1):
        raise HypothesisError(
            f"the swap needs A and V of rank one; got ranks {A_spectrum.rank} and {V_spectrum.rank}"
        )
    scaled = in_units(weights)
    layer = scaled.weights.layers[0]
    (k,), (q,), _ = balanced_factors(np.asarray(layer.attention_matrices()[0]), 1)
    (h,), (v,), _ = balanced_factors(np.asarray(layer.value_maps()[0]), 1)
    tensors = {name: np.zeros(T.shape) for name, T in layer.tensors().items()}
    tensors["key"][0, 0], tensors["query"][0, 0] = v, q
    if layer.output is None:
        tensors["value"][0] = np.outer(h, k)
    else:
        tensors["output"][0, :, 0], tensors["value"][0, 0] = h, k
    return scale_output(Weights.from_tensors(weights.architecture, [tensors]), scaled.output)
