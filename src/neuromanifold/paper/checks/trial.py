"""`Trial`: a check while it runs, and the decorator by which a check is known to its statement."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from neuromanifold.paper.checks.evidence import (
    Check,
    Counterexample,
    Finding,
    apart,
    close,
    equal,
)

T = TypeVar("T")
CHECKS: dict[str, Check] = {}
"""Filled as the modules of checks are imported; `run.CHECKS` has them all."""


@dataclass(slots=True, kw_only=True)
class Trial(Finding):
    """A finding while it is made, and what the check is told.

    Attributes:
        quick: whether the smaller grids are wanted.
        seed: of everything drawn.
    """

    quick: bool
    seed: int

    def some(self, grid: Sequence[T], few: int, first: int = 0) -> Sequence[T]:
        """The whole grid, or a few of it when that is enough."""
        return grid[first : first + few] if self.quick else grid

    def equal(self, subject: str, expected: object, found: object) -> None:
        """The two values must be the same: for integers, ranks and exact arrays."""
        self.cases.append(equal(subject, expected, found))

    def close(self, subject: str, error: float, tolerance: float) -> None:
        """A floating-point error must be at most the tolerance."""
        self.cases.append(close(subject, error, tolerance))

    def apart(self, subject: str, distance: float, least: float) -> None:
        """Two things that differ must differ clearly."""
        self.cases.append(apart(subject, distance, least))

    def refute(self, text: str, refutes: bool, numbers: Mapping[str, Any]) -> None:
        """Give the counterexample to the printed version."""
        self.counterexample = Counterexample(text, refutes, numbers)


def check(statement_id: str) -> Callable[[Callable[[Trial], str]], Callable[[Trial], str]]:
    """Make a function the check of a statement: it compares, and says what was compared."""

    def known(function: Callable[[Trial], str]) -> Callable[[Trial], str]:
        def finding(quick: bool, seed: int) -> Finding:
            trial = Trial(quick=quick, seed=seed)
            trial.checked = function(trial)
            return trial

        CHECKS[statement_id] = finding
        return function

    return known
