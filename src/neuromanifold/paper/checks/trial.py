"""`Trial`: a check while it runs, and the decorator by which a check is known to its statement."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


@dataclass(slots=True)
class Trial:
    """What a check is told, and what it has found so far.

    Attributes:
        quick: whether the smaller grids are wanted.
        seed: of everything drawn.
        cases: how many comparisons were made.
        failures: those that came out wrong, in words.
        numbers: the numbers worth showing, by name.
        counterexample: to the printed version of a statement: its text and its numbers.
    """

    quick: bool
    seed: int = 0
    cases: int = 0
    failures: list[str] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)
    counterexample: dict[str, Any] | None = None

    def some(self, grid: Sequence[T], few: int, first: int = 0) -> Sequence[T]:
        """The whole grid, or a few of it when that is enough."""
        return grid[first : first + few] if self.quick else grid

    def case(self, subject: str, failure: str | None = None) -> None:
        """One comparison: what was compared, and how it came out wrong if it did."""
        self.cases += 1
        if failure is not None:
            self.failures.append(f"{subject}: {failure}")

    def equal(self, subject: str, expected: object, found: object) -> None:
        """The two values must be the same: for integers, ranks and exact arrays."""
        same = np.array_equal(np.asarray(expected), np.asarray(found))
        self.case(subject, None if same else f"expected {expected}, found {found}")

    def at_most(self, subject: str, found: int, bound: int) -> None:
        """A number must not exceed its bound."""
        self.case(subject, None if found <= bound else f"{found} > {bound}")

    def close(self, subject: str, error: float, tolerance: float) -> None:
        """A floating-point error must be at most the tolerance."""
        wrong = f"error {error:.2g}, tolerance {tolerance:.0e}"
        self.case(subject, None if error <= tolerance else wrong)

    def apart(self, subject: str, distance: float, least: float) -> None:
        """Two things that differ must differ clearly."""
        wrong = f"distance {distance:.2g}, at least {least:.0e} wanted"
        self.case(subject, None if distance >= least else wrong)

    def refute(self, text: str, refutes: bool, numbers: Mapping[str, Any]) -> None:
        """Give the counterexample to the printed version, and whether it is borne out."""
        self.counterexample = {"text": text, **numbers}
        if not refutes:
            self.failures.append(f"no counterexample: {text}")


Check = Callable[[Trial], str]
"""A check compares, and says how many of what it has compared, with which seeds."""
CHECKS: dict[str, Check] = {}
"""Filled as the modules of checks are imported; `run.CHECKS` has them all."""


def check(statement_id: str) -> Callable[[Check], Check]:
    """Make a function the check of a statement."""

    def known(function: Check) -> Check:
        CHECKS[statement_id] = function
        return function

    return known
