"""`Case`, `Finding` and `Evidence`: what a check compares, and what it answers."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from neuromanifold.errors import FileFormatError
from neuromanifold.files import plain
from neuromanifold.statements import Statement

Verdict = Literal["holds", "corrected", "fails", "conjecture"]


@dataclass(frozen=True, slots=True)
class Case:
    """One comparison.

    Attributes:
        subject: what was compared, in words.
        failure: how it came out wrong, or None when it is as claimed.
    """

    subject: str
    failure: str | None = None


def equal(subject: str, expected: object, found: object) -> Case:
    """The two values must be the same: for integers, ranks and exact arrays."""
    same = bool(np.array_equal(np.asarray(expected), np.asarray(found)))
    return Case(subject, None if same else f"expected {expected}, found {found}")


def close(subject: str, error: float, tolerance: float) -> Case:
    """A floating-point error must be at most the tolerance."""
    holds = bool(error <= tolerance)
    return Case(subject, None if holds else f"error {error:.2g}, tolerance {tolerance:.0e}")


def apart(subject: str, distance: float, least: float) -> Case:
    """Two things that differ must differ clearly."""
    holds = bool(distance >= least)
    return Case(subject, None if holds else f"distance {distance:.2g}, at least {least:.0e} wanted")


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Where the printed version of a statement fails.

    Attributes:
        text: the example in words, with its numbers.
        refutes: whether the computation bears it out.
        numbers: the numbers by name.
    """

    text: str
    refutes: bool
    numbers: Mapping[str, Any]


@dataclass(slots=True)
class Finding:
    """What a check found, or has found so far.

    Attributes:
        checked: how many of what were compared, exactly or numerically, with which seeds.
        cases: the comparisons.
        numbers: the numbers worth showing, by name.
        counterexample: to the printed version, where the registry has a correction.
    """

    checked: str = ""
    cases: list[Case] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)
    counterexample: Counterexample | None = None

    @property
    def failures(self) -> tuple[str, ...]:
        """The comparisons that came out wrong; a check without comparisons has failed too."""
        if not self.cases:
            return ("nothing was compared",)
        failures = [f"{case.subject}: {case.failure}" for case in self.cases if case.failure]
        if self.counterexample is not None and not self.counterexample.refutes:
            failures.append(f"no counterexample: {self.counterexample.text}")
        return tuple(failures)


Check = Callable[[bool, int], Finding]
"""From `quick` and a seed to what was found."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The outcome for one statement.

    Attributes:
        id: the statement's id.
        verdict: `holds`; `corrected` (our version holds, and the printed one has the counterexample
            in the evidence); `conjecture` (all comparisons agree, and no proof is known); `fails`.
        checked: how many of what were compared, exactly or numerically, with which seeds.
        evidence: the numbers: `cases` (how many), `failures`, `counterexample`, and the check's
            own.
        seconds: how long it took.
    """

    id: str
    verdict: Verdict
    checked: str
    evidence: dict[str, Any]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The JSON form in the results, which lists the seconds elsewhere."""
        return {key: value for key, value in asdict(self).items() if key != "seconds"}

    @classmethod
    def from_dict(cls, data: object) -> "Evidence":
        """The evidence with this JSON form; anything else is refused."""
        try:
            evidence = cls(**data)  # type: ignore[bad-unpacking]
        except TypeError as error:
            raise FileFormatError(f"this is no evidence of a check: {error}") from None
        if evidence.verdict not in get_args(Verdict):
            raise FileFormatError(f"this is no verdict of a check: {evidence.verdict!r}")
        return evidence


def evidence_of(statement: Statement, finding: Finding, seconds: float) -> Evidence:
    """The evidence that a finding is for a statement."""
    failures = finding.failures
    if failures:
        verdict: Verdict = "fails"
    elif finding.counterexample is not None:
        verdict = "corrected"
    else:
        verdict = "conjecture" if statement.status == "conjecture" else "holds"
    evidence: dict[str, Any] = {"cases": len(finding.cases), "failures": list(failures)}
    if finding.counterexample is not None:
        evidence["counterexample"] = {
            "text": finding.counterexample.text,
            **plain(finding.counterexample.numbers),
        }
    evidence |= plain(finding.numbers)
    return Evidence(statement.id, verdict, finding.checked, evidence, seconds)
