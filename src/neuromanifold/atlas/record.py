"""`Record`: the result of one task as it is stored, shown, mapped and exported."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, Literal, get_args

from neuromanifold.atlas.grid import NETWORK_NAMES
from neuromanifold.atlas.tasks import Task

RECORD_VERSION = 2
"""Raised when a record of the same task would say something else."""

Verdict = Literal["exact", "exact given symmetries", "probable", "bounds"]
"""As in certificates."""
VERDICTS = (*get_args(Verdict), None)
"""What a record can say; None is that of a task that failed."""

Agreement = Literal["confirmed", "rank agrees", "rank differs", "refuted", "no formula", "failed"]


@dataclass(frozen=True, slots=True)
class Record:
    """What came out of a task: bounds with their evidence, or an error.

    Attributes:
        task: the task.
        rank: the rank found; dim ≥ rank if `rank_proved`.
        upper: the smallest upper bound.
        upper_source: what proves it.
        rank_proved: whether the exponentials, if any, were shown to be independent.
        verdict: `exact` or `bounds`, as in the certificate.
        formula: the dimension in theory, or None.
        formula_status: `theorem`, `conjecture` or `none`.
        statement: the id of the statement behind the formula.
        error: why there is no result, or None.
        seconds: how long the task took.
        evidence: what else the certificate recorded, enough to compute it again.
    """

    task: Task
    rank: int | None = None
    upper: int | None = None
    upper_source: str | None = None
    rank_proved: bool | None = None
    verdict: str | None = None
    formula: int | None = None
    formula_status: str | None = None
    statement: str | None = None
    error: str | None = None
    seconds: float = 0.0
    evidence: Mapping[str, Any] = field(default_factory=dict)

    @property
    def unexplained(self) -> int | None:
        """How many kernel dimensions no known bound accounts for."""
        return None if self.upper is None or self.rank is None else self.upper - self.rank

    @property
    def difference(self) -> int | None:
        """The formula minus the rank found."""
        return None if self.formula is None or self.rank is None else self.formula - self.rank

    @property
    def agreement(self) -> Agreement:
        """How the formula stands against the certificate.

        `confirmed`: the dimension is proved and the formula gives it. `refuted`: the formula lies
        outside the proved bounds. Between the two nothing is proved, and the rank found agrees or
        differs.
        """
        if self.rank is None or self.upper is None:
            return "failed"
        if self.formula is None:
            return "no formula"
        if self.formula > self.upper or (self.formula < self.rank and self.rank_proved):
            return "refuted"
        if self.formula == self.rank:
            return "confirmed" if self.verdict == "exact" else "rank agrees"
        return "rank differs"

    def values(self) -> dict[str, Any]:
        """The columns of tables and the names of conditions: all but the evidence."""
        return dict(zip(COLUMNS, _read_columns(self), strict=True))


_PLACES = {
    "network": "task.architecture.name",
    **{name: f"task.architecture.{name}" for name in NETWORK_NAMES},
    **{name: f"task.{name}" for name in ("readout", "seed", "prime")},
    **{name: name for name in ("rank", "upper", "upper_source", "verdict", "unexplained")},
    "formula": "formula",
    "status": "formula_status",
    "statement": "statement",
    **{name: name for name in ("difference", "agreement", "error", "seconds")},
}
COLUMNS = tuple(_PLACES)
"""The names that `Record.values` gives."""
_read_columns = attrgetter(*_PLACES.values())

OUTCOME = [field.name for field in fields(Record) if field.name not in ("task", "evidence")]
"""The fields of a record that a store and a table keep as they stand."""


def failed(task: Task, error: str, seconds: float = 0.0) -> Record:
    """The record of a task without a result."""
    return Record(task, error=" ".join(error.split()), seconds=seconds)
