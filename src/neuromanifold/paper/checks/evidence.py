"""`Evidence`: what the trial of a statement amounts to, which is all that reports show."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from neuromanifold.display import Recorded
from neuromanifold.errors import FileFormatError
from neuromanifold.files import as_json
from neuromanifold.paper.checks.trial import Trial
from neuromanifold.statements import Statement

Verdict = Literal["holds", "corrected", "conjecture", "fails"]


@dataclass(frozen=True, slots=True)
class Evidence(Recorded):
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
    _json = "id verdict checked evidence"  # the results list the seconds elsewhere

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


def evidence_of(statement: Statement, checked: str, trial: Trial, seconds: float) -> Evidence:
    """The evidence that a trial gives for a statement; one that compared nothing has failed."""
    failures = trial.failures if trial.cases else ["nothing was compared"]
    if failures:
        verdict: Verdict = "fails"
    elif trial.counterexample is not None:
        verdict = "corrected"
    else:
        verdict = "conjecture" if statement.status == "conjecture" else "holds"
    evidence: dict[str, Any] = {"cases": trial.cases, "failures": failures}
    if trial.counterexample is not None:
        evidence["counterexample"] = trial.counterexample
    return Evidence(statement.id, verdict, checked, as_json(evidence | trial.numbers), seconds)
