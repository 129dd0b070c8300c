"""Whether two weights have the same function (eq-6).

The functions themselves decide. Both are evaluated at the same random inputs: polynomial and
analytic functions that differ do so at almost every input. At each input the difference is compared
with what rounding explains, the unit roundoff of the weights' dtype times the measured effect of
relative changes of the weights. Below it everywhere: same. Above a multiple of it somewhere:
different, and that input is the witness. Between: undecided, with the two numbers.

Symmetries, virtual weights and rank-one swaps then say *why* functions are the same.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from neuromanifold.display import Displayed
from neuromanifold.errors import ArgumentError
from neuromanifold.fibers.normal_form.comparable import in_float64, unit_roundoff
from neuromanifold.fibers.reasons import Reason, difference, find_reason
from neuromanifold.fibers.transport.transport import Transport, transport
from neuromanifold.fibers.virtual_facts import facts_of
from neuromanifold.networks.probe import outputs, random_inputs, rounding_effect, well_scaled
from neuromanifold.networks.weights import Weights

Verdict = Literal["same", "different", "undecided"]

UNDECIDED_FACTOR = 8.0
"""Differences up to this multiple of the tolerance are undecided."""

_STORAGE = 4.0
_ARITHMETIC = 32.0
_ALIGNED = 1e-6


@dataclass(frozen=True, slots=True)
class Witness:
    """An input at which two functions differ.

    Attributes:
        input: X, one token a column.
        first: φ(X) of the first weights.
        second: φ(X) of the second weights.
    """

    input: Float[np.ndarray, "d t"]
    first: Float[np.ndarray, "d_l t"]
    second: Float[np.ndarray, "d_l t"]

    def to_dict(self) -> dict[str, object]:
        """The JSON form."""
        return {
            "input": self.input.tolist(),
            "outputs": [self.first.tolist(), self.second.tolist()],
        }


@dataclass(frozen=True, slots=True)
class Comparison(Displayed):
    """Whether two weights have the same function, and how that is known.

    Attributes:
        verdict: `same`, `different` or `undecided`.
        reason: why they are the same, or what differs.
        statement: the id of the statement behind the reason, or None.
        error: ‖φ − φ'‖ / max(‖φ‖, ‖φ'‖) at the input that tells most.
        tolerance: the error at that input up to which they count as the same.
        bound: the error at that input above which they count as different.
        witness: that input with both outputs, unless the functions are the same.
        transport: the symmetry that carries the first weights to the second, if one was found.
        inputs: how many random inputs were compared.
        seed: the seed that they came from.
    """

    verdict: Verdict
    reason: str
    statement: str | None
    error: float
    tolerance: float
    bound: float
    witness: Witness | None
    transport: Transport | None
    inputs: int
    seed: int

    def __str__(self) -> str:
        if self.verdict == "undecided":
            return (
                f"Undecided: the outputs differ by {self.error:.2g}, between {self.tolerance:.2g}, "
                f"which rounding explains, and {self.bound:.2g}, which it does not."
            )
        comparison = "at most" if self.verdict == "same" else "by"
        word = "Same function" if self.verdict == "same" else "Different functions"
        return (
            f"{word}: {self.reason} (outputs at {self.inputs} random inputs differ {comparison} "
            f"{self.error:.2g}, tolerance {self.tolerance:.2g})."
        )

    def to_dict(self) -> dict[str, object]:
        """The JSON form."""
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "statement": self.statement,
            "error": self.error,
            "tolerance": self.tolerance,
            "bound": self.bound,
            "witness": None if self.witness is None else self.witness.to_dict(),
            "transport": None if self.transport is None else self.transport.to_dict(),
            "inputs": self.inputs,
            "seed": self.seed,
        }


def same_function(first: Weights, second: Weights, *, inputs: int = 8, seed: int = 0) -> Comparison:
    """Whether two weights have the same function (eq-6).

    The architectures may differ in ranks, inner widths, heads and factors of values; what the
    functions take and give, and the kind of attention, must agree.

    Args:
        first: weights W.
        second: weights W'.
        inputs: the number of random inputs to compare at.
        seed: where they come from.
    """
    _check_comparable(first, second)
    unit = unit_roundoff(first, second)
    W, W_new = in_float64(first), in_float64(second)
    X = well_scaled(W, random_inputs(W.architecture, inputs, seed))
    Y, Y_new = outputs(W, X), outputs(W_new, X)
    if not (np.isfinite(Y).all() and np.isfinite(Y_new).all()):
        raise ArgumentError(
            "outputs of the networks overflow float64 at inputs of ordinary size; scale the "
            "weights down"
        )
    allowed = (_STORAGE * unit + _ARITHMETIC * np.finfo(np.float64).eps) * (
        rounding_effect(W, X, seed) + rounding_effect(W_new, X, seed)
    )
    differences = np.linalg.norm(Y - Y_new, axis=(1, 2))
    sizes = np.maximum(np.linalg.norm(Y, axis=(1, 2)), np.linalg.norm(Y_new, axis=(1, 2)))
    verdict, worst = _judge(differences, allowed)
    if verdict == "same" and (sizes > 0).any() and (sizes <= allowed).all():
        verdict = _below_rounding(W, W_new)
    size = sizes[worst] or 1.0
    tolerance = float(allowed[worst] / size)
    witness = None if verdict == "same" else Witness(X[worst], Y[worst], Y_new[worst])
    carried = (
        transport(first, second)
        if verdict == "same" and W.architecture == W_new.architecture
        else None
    )
    zero = bool((sizes <= allowed).all())
    reason = _explain(verdict, W, W_new, zero, carried, tolerance)
    return Comparison(
        verdict=verdict,
        reason=reason.text,
        statement=reason.statement,
        error=float(differences[worst] / size),
        tolerance=tolerance,
        bound=UNDECIDED_FACTOR * tolerance,
        witness=witness,
        transport=carried if carried is not None and carried.found else None,
        inputs=inputs,
        seed=seed,
    )


def _judge(
    differences: Float[np.ndarray, " n"], allowed: Float[np.ndarray, " n"]
) -> tuple[Verdict, int]:
    """The verdict, and the input that tells most; exact equality needs no tolerance."""
    tiny = np.finfo(np.float64).tiny
    ratios = np.where(differences == 0, 0.0, differences / np.maximum(allowed, tiny))
    worst = int(np.argmax(ratios))
    if ratios[worst] <= 1:
        return "same", worst
    return ("undecided" if ratios[worst] <= UNDECIDED_FACTOR else "different"), worst


def _below_rounding(W: Weights, W_new: Weights) -> Verdict:
    """The verdict when all outputs are smaller than what rounding the weights explains.

    Then only the ranks can tell: `same` when both functions are zero for a reason (a factor of rank
    zero, or a skew form that meets parallel tokens), else `undecided`.
    """
    zero = all(
        any(one.rank == 0 for one in found.spectra) or any(found.facts.skew_forms or ())
        for found in map(facts_of, (W, W_new))
    )
    return "same" if zero else "undecided"


def _explain(
    verdict: Verdict,
    W: Weights,
    W_new: Weights,
    zero: bool,
    carried: Transport | None,
    tolerance: float,
) -> Reason:
    """Why the functions are the same, or what differs."""
    if verdict == "different":
        return Reason(None, f"what differs is {difference(W, W_new)}")
    if verdict == "undecided":
        return Reason(None, "the difference is near what rounding explains")
    if zero:
        statement = "thm-3.2" if W.architecture.attention == "lightning" else "thm-3.9"
        return Reason(statement, "both functions are zero")
    if carried is not None and carried.found:
        statement = "eq-9" if W.architecture.depth > 1 else "lemma-3.1"
        return Reason(statement, "a symmetry carries one to the other")
    return find_reason(W, W_new, max(_ALIGNED, 10 * tolerance))


def _check_comparable(first: Weights, second: Weights) -> None:
    a, b = first.architecture, second.architecture
    wanted = {
        "input width": (a.widths[0], b.widths[0]),
        "output width": (a.widths[-1], b.widths[-1]),
        "tokens": (a.tokens, b.tokens),
        "attention": (a.attention, b.attention),
        "mask": (a.mask, b.mask),
    }
    for name, (one, other) in wanted.items():
        if one != other:
            raise ArgumentError(
                f"functions of the same kind were wanted; got {name} {one} and {other}: compare "
                "weights whose input width, output width, tokens, attention and mask agree"
            )
