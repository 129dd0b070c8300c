"""Which invariants a function determines at given weights, and which it does not see at all.

One softmax head without skip and mask (softmax-fibers). A form M is *collapsing* if M = 0, or if
there are two tokens and M is skew-symmetric: its layer makes all tokens equal, and later layers
leave them as they are. If L ≠ 0, two networks have the same function if and only if L and the forms
up to and including the first collapsing one agree; the forms behind it are not seen. With the
causal mask or the inner skip and at least three tokens all forms are seen; with two tokens, if no
form but the last is skew under the mask, and if with the inner skip no 2^{k-1} M_k is zero or plus
or minus another one (softmax-causal-fibers, softmax-inner-fibers).

One lightning head: thm-3.7 with its hypotheses, up to rescaling. One lightning layer: the table,
always (prop-a.5).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from neuromanifold.architecture import Architecture
from neuromanifold.fibers.agreement import UNDECIDED_FACTOR, paired
from neuromanifold.fibers.invariants import (
    FormFacts,
    Invariant,
    invariants,
    kind_of,
)
from neuromanifold.networks.exact_virtual import exact_layers
from neuromanifold.networks.weights import Weights
from neuromanifold.statements import Facts, applies, get


@dataclass(frozen=True, slots=True)
class Determined:
    """What equal functions share.

    Attributes:
        seen: the names of the invariants that functions equal to this one must have in common.
        unseen: the names of those that do not enter the function.
        statement: the id of the statement that says so.
    """

    seen: frozenset[str]
    unseen: frozenset[str]
    statement: str | None


def weight_facts(weights: Weights, found: Sequence[Invariant]) -> list[FormFacts]:
    """Facts that noise leaves no doubt about, and zeros and skew forms that are exact."""
    together = {m for _, m in paired(found[:-1], UNDECIDED_FACTOR)}
    facts = [
        replace(one.facts, apart=number not in together)
        for number, one in enumerate(found, start=1)
    ]
    if any(fact.zero is None or fact.skew is None for fact in facts):
        exact = [one.facts for one in invariants(exact_layers(weights), weights.architecture)]
        facts = [
            replace(
                fact,
                zero=True if one.zero else fact.zero,
                skew=True if fact.skew is None and one.skew else fact.skew,
            )
            for fact, one in zip(facts, exact, strict=True)
        ]
    return facts


def determined(architecture: Architecture, facts: Sequence[FormFacts]) -> Determined:
    """What the function determines at weights with these facts, by the theorems above."""
    names, linear = frozenset(fact.name for fact in facts), facts[-1]
    if kind_of(architecture) == "table of products":
        return Determined(names, frozenset(), "prop-a.5")
    only_linear, statement = frozenset((linear.name,)), fiber_statement(architecture)
    if not architecture.averages_tokens:
        if is_zero(architecture, facts):
            return Determined(frozenset(), names, "thm-3.2")
        only_linear = frozenset()
    elif architecture.tokens == 1:
        return Determined(only_linear, names - only_linear, "softmax-one-token")
    elif linear.zero:
        return Determined(only_linear, names - only_linear, "thm-3.9")
    elif linear.zero is None:
        return Determined(only_linear, frozenset(), None)
    elif architecture.depth == 1:
        return Determined(names, frozenset(), statement)
    elif architecture.is_plain:
        return _until_collapse(architecture, list(facts[:-1]), only_linear)
    everything = applies(get(statement), _least(architecture, facts))
    return Determined(names if everything else only_linear, frozenset(), statement)


def fiber_statement(architecture: Architecture) -> str:
    """The statement about the fibers of this kind of network."""
    if architecture.is_linear_in_scores:
        return "thm-3.2" if architecture.depth == 1 else "thm-3.7"
    if architecture.depth == 1:
        return "thm-3.9"
    if architecture.adds_values:
        return "softmax-inner-fibers"
    return "softmax-causal-fibers" if architecture.attends_to_past else "softmax-fibers"


def _least(architecture: Architecture, facts: Sequence[FormFacts]) -> Facts:
    """What is sure: where floats cannot tell, a form is zero, skew and paired with another."""
    *forms, linear = facts
    return replace(
        Facts.of(architecture),
        form_ranks=tuple(2 if one.rank_two else int(one.zero is False) for one in forms),
        skew_forms=tuple(one.skew is not False for one in forms),
        paired_forms=tuple((1, m) for m, one in enumerate(forms, start=1) if not one.apart),
        linear_rank=int(linear.zero is False),
    )


def _until_collapse(
    architecture: Architecture, forms: list[FormFacts], only_linear: frozenset[str]
) -> Determined:
    """The forms up to the first collapsing one; behind one that may collapse nothing is said."""
    for i, form in enumerate(forms):
        collapsing = form.zero
        if architecture.tokens == 2:
            collapsing = form.skew
        if collapsing is False:
            continue
        seen = only_linear | {one.name for one in forms[: i + 1]}
        behind = frozenset(one.name for one in forms[i + 1 :])
        return Determined(seen, behind if collapsing else frozenset(), "softmax-fibers")
    return Determined(only_linear | {form.name for form in forms}, frozenset(), "softmax-fibers")


def together(first: Determined, second: Determined) -> Determined:
    """What two functions must share to be equal, and what neither of them sees.

    A statement about one of the two is enough for a difference.
    """
    unseen = first.unseen & second.unseen
    statement = first.statement if first.seen else second.statement
    return Determined((first.seen | second.seen) - unseen, unseen, statement)


def is_zero(architecture: Architecture, facts: Sequence[FormFacts]) -> bool:
    """Whether the function (for a residual skip the update) is exactly zero (thm-3.2, thm-3.9).

    Lightning without skip is zero when L = 0 or some M_i = 0, a factor of every term; a table when
    it is; the others when L = 0, or V = 0. Without facts nothing is said.
    """
    if any(fact.name == "T" for fact in facts):
        return all(fact.zero for fact in facts)
    if architecture.is_homogeneous:
        return any(fact.zero for fact in facts)
    return bool(facts and facts[-1].zero)


def is_scale_free(architecture: Architecture) -> bool:
    """Whether virtual weights count up to rescaling only (eq-13)."""
    return kind_of(architecture) == "virtual weights" and architecture.is_homogeneous
