"""What the invariants of two weights say about their functions, and the reasons in words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import flint
import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.fibers.agreement import LARGEST_TOLERANCE, Agreement, agreements
from neuromanifold.fibers.determined import (
    Determined,
    determined,
    is_scale_free,
    is_zero,
    together,
)
from neuromanifold.fibers.invariants import (
    ExactInvariant,
    Invariant,
    exact_invariants,
    invariants,
    kind_of,
    weight_facts,
)
from neuromanifold.fibers.outputs import common_units, output_difference, outputs, random_inputs
from neuromanifold.fibers.units import InUnits
from neuromanifold.networks.weights import Weights

FACTOR = "the size"
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


def comparable_invariants(first: Architecture, second: Architecture) -> bool:
    """Whether both networks have invariants, and those of one kind."""
    kind = kind_of(first)
    alike = first.adds_alike(second) and (kind, first.depth) == (kind_of(second), second.depth)
    return kind is not None and alike


def gather(first: Weights, second: Weights, units: tuple[InUnits, InUnits]) -> Evidence:
    """The evidence of the invariants of two weights, each given in units too."""
    architecture = first.architecture
    if not comparable_invariants(architecture, second.architecture):
        return Evidence()
    found = [invariants(scaled) for scaled in units]
    facts = [weight_facts(w, own) for w, own in zip((first, second), found, strict=True)]
    shared = together(*(determined(architecture, own) for own in facts))
    if all(is_zero(architecture, own) for own in facts):
        return Evidence(equal=_zero_reason(architecture))
    every = agreements(*found, scale_free=is_scale_free(architecture))
    compared = tuple(one for one in every if one.name not in shared.unseen)
    equal = None
    if all(one.agree for one in compared):
        equal = equal_reason(first, second, shared)
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


def exactly_equal(first: Weights, second: Weights) -> Reason | None:
    """The reason when the floats as they are have equal invariants; None when they have not."""
    if first.architecture == second.architecture and all(
        np.array_equal(T, T_new)
        for (_, T), (_, T_new) in zip(first.named_tensors(), second.named_tensors(), strict=True)
    ):
        return Reason("eq-6", "the weights are equal")
    architecture = first.architecture
    if not comparable_invariants(architecture, second.architecture):
        return None
    pair = exact_pair(first, second)
    facts = [[one.facts for one in own] for own in pair]
    if all(is_zero(architecture, own) for own in facts):
        return _zero_reason(architecture)
    shared = together(*(determined(architecture, own) for own in facts))
    if equal_invariants(*pair, shared.unseen, scale_free=is_scale_free(architecture)):
        return equal_reason(first, second, shared)
    return None


def exact_pair(
    first: Weights, second: Weights
) -> tuple[tuple[ExactInvariant, ...], tuple[ExactInvariant, ...]]:
    """The exact invariants of both, forms times the temperature of the other."""
    one, other = (Fraction(w.architecture.temperature) for w in (first, second))
    return exact_invariants(first, other), exact_invariants(second, one)


def equal_invariants(
    first: Sequence[ExactInvariant],
    second: Sequence[ExactInvariant],
    unseen: frozenset[str],
    *,
    scale_free: bool,
) -> bool:
    """Whether all invariants that count are equal, up to rescaling with `scale_free` (eq-13)."""
    pairs = [
        (one.value, other.value)
        for one, other in zip(first, second, strict=True)
        if one.name not in unseen
    ]
    if not scale_free:
        return all(one.equals(other) for one, other in pairs)
    factors = [one.factor_to(other) for one, other in pairs]
    found = [factor for factor in factors if factor is not None]
    if len(found) < len(factors):
        return False
    return _rescale_each_other(found)


def _rescale_each_other(factors: Sequence[Fraction]) -> bool:
    """Whether ρ ∏ λ_i^{3^{l-i}} = 1, without writing the product down (eq-13).

    It is ρ P_l with P_i = λ_i P_{i-1}³ and P_1 = λ_1: so P_l = 1/ρ, and from P_i follows P_{i-1},
    the only real cube root of P_i/λ_i, if that is rational.
    """
    *rescalings, rho = factors
    product = 1 / rho
    for factor in reversed(rescalings[1:]):
        root = _cube_root(product / factor)
        if root is None:
            return False
        product = root
    return product == rescalings[0]


def _cube_root(value: Fraction) -> Fraction | None:
    """The rational cube root, if there is one."""
    parts = [int(flint.fmpz(abs(n)).root(3)) for n in (value.numerator, value.denominator)]
    root = Fraction(*parts) * (1 if value > 0 else -1)
    return root if root**3 == value else None


def equal_reason(first: Weights, second: Weights, shared: Determined) -> Reason:
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
    kind = "direction of " if is_scale_free(architecture) and one.name != FACTOR else ""
    return (
        f"what differs is the {kind}{one.name}, by {one.distance:.2g} relative to its size".replace(
            "the the", "the"
        )
    )


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
        ranks = [[one.value.rank for one in own[:-1]] for own in exact_pair(first, second)]
        thin = [i for i, pair in enumerate(zip(*ranks, strict=True), start=1) if max(pair) <= 1]
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
    return replace(one, matrix=(one.matrix + one.matrix.T) / 2)


def _table_reason(first: Weights, second: Weights) -> Reason:
    """Why tables agree: mixed heads, swapped factors of rank one, or a rescaled pair (A, V)."""
    architecture = first.architecture
    if not (architecture.has_one_head and second.architecture.has_one_head):
        return Reason("head-mixing", "the heads mix: their sums of products agree")
    pairs = []
    for weights in (first, second):
        layer = weights.layers[0]
        A = np.asarray(layer.attention_matrices()[0], dtype=np.float64)
        V = np.asarray(layer.value_maps()[0], dtype=np.float64)
        pairs.append((A, V))
    (A, V), (A_new, V_new) = pairs
    if _parallel(A, A_new) and _parallel(V, V_new):
        return Reason("eq-13", "the virtual weights (M, L) agree up to rescaling")
    if architecture.tokens == 1:
        return Reason("one-token", "the symmetric parts of the forms agree up to rescaling")
    return Reason("thm-3.2", "A and V have rank one, and their factors k and v are swapped")


def _parallel(B: np.ndarray, C: np.ndarray) -> bool:
    """Whether two matrices have one direction: this explains an answer and does not give it."""
    B, C = (M / (np.abs(M).max() or 1.0) for M in (B, C))
    B, C = (M / (np.linalg.norm(M) or 1.0) for M in (B, C))
    return bool(min(np.linalg.norm(B - C), np.linalg.norm(B + C)) < 1e-3)


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
