"""What the invariants of two weights say about their functions, and the reasons in words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.fibers.agreement import FACTOR, LARGEST_TOLERANCE, Agreement, agreements
from neuromanifold.fibers.determined import (
    Determined,
    determined,
    is_scale_free,
    is_zero,
    together,
    weight_facts,
)
from neuromanifold.fibers.invariants import (
    Invariant,
    invariants,
    kind_of,
    rounded_layers,
    virtual_invariants,
)
from neuromanifold.fibers.outputs import common_units, output_difference, outputs, random_inputs
from neuromanifold.fibers.side_by_side import equal_side_by_side
from neuromanifold.fibers.units import InUnits, in_units
from neuromanifold.networks.exact_virtual import exact_layers
from neuromanifold.networks.weights import Weights

_PARALLEL = 1e-3
"""Directions nearer than this are one: this explains an answer and does not give it."""
_INPUTS = 8
"""Inputs at which outputs are compared where a network has no invariants."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why two functions are the same.

    Attributes:
        statement: the id of the statement that makes them so.
        text: the reason in words.
    """

    statement: str
    text: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the invariants say.

    Attributes:
        compared: the distances of the invariants that count; none where a network has none.
        differ: what the function determines and rounding cannot explain, in words.
        statement: the id of the statement that says that it is determined.
        equal: why the functions are the same, if the invariants say so.
        near: whether no direction is further off than is well below its size.
        largest: which invariant differs most, in words; None where there are none.
        doubt: why nothing follows, in words.
    """

    compared: tuple[Agreement, ...] = ()
    differ: str | None = None
    statement: str | None = None
    equal: Reason | None = None
    near: bool = True
    largest: str | None = None
    doubt: str = (
        "the outputs agree up to rounding, and nothing known here makes the functions equal"
    )


def gather(
    first: Weights, second: Weights, units: tuple[InUnits, InUnits] | None = None
) -> Evidence:
    """The evidence of the invariants of two weights, given in units too.

    Without units the floats are taken as they are: what agrees is equal then.
    """
    architecture, other = first.architecture, second.architecture
    if units is None and architecture == other:
        pairs = zip(first.named_tensors(), second.named_tensors(), strict=True)
        if all(np.array_equal(T, T_new) for (_, T), (_, T_new) in pairs):
            return Evidence(equal=Reason("eq-6", "the weights are equal"))
    if units is not None and not all(one.is_finite for one in units):
        return Evidence(doubt="sizes of the layers lie further apart than float64 reaches")
    kind = kind_of(architecture)
    alike = (kind, architecture.depth) == (kind_of(other), other.depth)
    if kind is None or not alike or not architecture.adds_alike(other):
        return Evidence()
    layers = map(exact_layers, (first, second)) if units is None else map(rounded_layers, units)
    temperatures = (other.temperature, architecture.temperature)
    found = [invariants(own, architecture, t) for own, t in zip(layers, temperatures, strict=True)]
    facts = [weight_facts(w, own) for w, own in zip((first, second), found, strict=True)]
    shared = together(*(determined(architecture, own) for own in facts))
    if all(is_zero(architecture, own) for own in facts):
        return Evidence(equal=_zero_reason(architecture))
    every = agreements(*found, scale_free=is_scale_free(architecture))
    compared = tuple(one for one in every if one.name not in shared.unseen)
    equal = None
    if all(one.agree for one in compared):
        equal = _equal_reason(first, second, shared)
    else:
        equal = _symmetric_parts(first, second, found)
    worst = max(compared, key=lambda one: one.ratio)
    return Evidence(
        compared=compared,
        differ=_difference(architecture, compared, shared),
        statement=shared.statement,
        equal=equal,
        near=all(one.distance <= LARGEST_TOLERANCE for one in compared if one.name != FACTOR),
        largest=_described(architecture, worst),
        doubt=_doubt(compared),
    )


def side_by_side(first: Weights, second: Weights) -> Reason | None:
    """Why the functions are equal, if running both networks side by side proves it."""
    if not equal_side_by_side(first, second):
        return None
    return Reason("eq-8", "run side by side, their layers do the same to what both networks hold")


def _equal_reason(first: Weights, second: Weights, shared: Determined) -> Reason:
    """Why functions with equal invariants are equal, in the words of the statement."""
    architecture = first.architecture
    if kind_of(architecture) == "table of products":
        return _table_reason(first, second)
    if shared.unseen and shared.statement is not None:
        behind = f"{', '.join(sorted(shared.unseen))} cannot be seen, and the rest of (M, L) agrees"
        return Reason(shared.statement, behind)
    if is_scale_free(architecture):
        return Reason("eq-13", "the virtual weights (M, L) agree up to rescaling")
    return Reason("eq-8", "the virtual weights (M, L) agree")


def _zero_reason(architecture: Architecture) -> Reason:
    statement = "thm-3.2" if architecture.is_linear_in_scores else "thm-3.9"
    if architecture.adds_input:
        return Reason(statement, "both networks leave their input as it is")
    return Reason(statement, "both functions are zero")


def _difference(
    architecture: Architecture, compared: Sequence[Agreement], shared: Determined
) -> str | None:
    """What is determined and differs by most, in words; the factor counts when all forms do."""
    whole = all(one.name in shared.seen for one in compared if one.name != FACTOR)
    telling = [
        one
        for one in compared
        if one.differ and (one.name in shared.seen or (one.name == FACTOR and whole))
    ]
    if not telling:
        return None
    return _described(architecture, max(telling, key=lambda one: one.ratio))


def _described(architecture: Architecture, one: Agreement) -> str:
    kind = "the direction of " if is_scale_free(architecture) and one.name != FACTOR else ""
    amount = f", by {one.distance:.2g} relative to its size" if one.tolerance else ""
    return f"what differs is {kind}{one.name}{amount}"


def _doubt(compared: Sequence[Agreement]) -> str:
    """Why the invariants decide nothing."""
    worst = max(compared, key=lambda one: one.tolerance)
    if worst.tolerance > LARGEST_TOLERANCE:
        return (
            f"rounding the weights explains a distance of {worst.tolerance:.2g} in {worst.name}, "
            "which is not well below its size"
        )
    unclear = [one for one in compared if not one.agree]
    if unclear and all(not one.differ for one in unclear):
        return f"the distance in {unclear[0].name} is near what rounding explains"
    return "the invariants differ, and no theorem says that the function determines them here"


def _symmetric_parts(
    first: Weights, second: Weights, found: Sequence[Sequence[Invariant]]
) -> Reason | None:
    """Where tokens are parallel, forms count through their symmetric parts only (all-widths).

    After a layer whose form has rank one all tokens are parallel; one token is parallel to itself.
    """
    architecture = first.architecture
    if not (is_scale_free(architecture) and architecture.attends_to_all):
        return None
    start = 0
    if architecture.tokens > 1:
        wide = [
            [form.facts.rank_two for form in invariants(exact_layers(w), architecture)[:-1]]
            for w in (first, second)
        ]
        thin = [i for i, pair in enumerate(zip(*wide, strict=True), start=1) if not any(pair)]
        if not thin:
            return None
        start = thin[0]
    parts = [
        [_symmetric(one) if start <= i < len(own) - 1 else one for i, one in enumerate(own)]
        for own in found
    ]
    if not all(one.agree for one in agreements(*parts, scale_free=True)):
        return None
    if architecture.tokens == 1:
        return Reason("one-token", "the symmetric parts of the forms agree up to rescaling")
    return Reason(
        "all-widths", "behind a layer of rank one only symmetric parts of forms count: they agree"
    )


def _symmetric(one: Invariant) -> Invariant:
    twice = one.array + one.array.T
    return replace(one, array=twice, noise=2 * one.noise, exponent=one.exponent - 1)


def _table_reason(first: Weights, second: Weights) -> Reason:
    """Why tables agree: mixed heads, swapped factors of rank one, or a rescaled pair (A, V)."""
    architecture = first.architecture
    if not (architecture.has_one_head and second.architecture.has_one_head):
        return Reason("head-mixing", "the heads mix: their sums of products agree")
    pairs = [virtual_invariants(rounded_layers(in_units(w))) for w in (first, second)]
    directions = agreements(*pairs, scale_free=True)[:2]
    if all(one.distance < _PARALLEL for one in directions):
        return Reason("eq-13", "the virtual weights (M, L) agree up to rescaling")
    if architecture.tokens == 1:
        return Reason("one-token", "the symmetric parts of the forms agree up to rescaling")
    return Reason("thm-3.2", "A and V have rank one, and their factors k and v are swapped")


def deviation(first: Weights, second: Weights) -> Agreement:
    """The distance of two functions in what distinguishes them best (eq-6).

    In the invariants, where a network has them: they show what outputs may hide. Else at random
    inputs, at the one where the distance is largest compared with what rounding does there.
    """
    units = common_units(first, second)
    evidence = gather(first, second, units)
    if evidence.compared:
        return max(evidence.compared, key=lambda one: (not one.explained, one.distance))
    if evidence.equal is not None:
        return Agreement("the zero function", 0.0, 0.0)
    X = random_inputs((first.architecture, second.architecture), _INPUTS, 0)
    return output_difference(*(outputs(scaled, X, 0) for scaled in units)).agreement
