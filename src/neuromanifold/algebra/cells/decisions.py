"""Who decides: a point where the function is evaluated, or branches that were read off before.

A decision is made of *branches*, whole numbers that stay what they are on the cell, and of real
numbers that hold them in place (`Holds`). All kinds of deciders meet the decisions of a function in
the same order.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class Holds(NamedTuple):
    """What has to be so around a point for a decision to stay as it is.

    Attributes:
        positive: real numbers that are positive.
        ties: real numbers that are positive, or zero for all arguments: then two constants of the
            cell are equal, such as two neurons that are off, and either branch is right.
    """

    positive: Any = 1.0
    ties: Any = 0.0


class Decision(NamedTuple):
    """A decision of real numbers.

    Attributes:
        branches: computes them from the values at a point.
        holds: what holds such branches in place; None if real numbers do not.
    """

    branches: Callable[[], Any]
    holds: Callable[[Any], Holds] | None = None


class Decider(ABC):
    """What decides while a function is read."""

    @abstractmethod
    def decide(self, decision: Decision) -> Any:
        """The branches of the next decision."""

    @abstractmethod
    def outcome(self, decision: Decision) -> Any:
        """A whole number or truth value, whose branches are asked for where it meets real ones."""

    @abstractmethod
    def discrete(self, compute: Callable[[], Any]) -> Any:
        """A value that is made of outcomes alone."""

    @abstractmethod
    def assume(self, is_so: Callable[[], Any]) -> None:
        """A point where this is not true has no cell."""

    @abstractmethod
    def assume_value(self, x: Any) -> None:
        """A point where x is no number has no cell."""

    @abstractmethod
    def mixed(self, branches: Any, cases: Sequence[Any]) -> Any:
        """The case with the number that the branches say, entry by entry."""

    @abstractmethod
    def taken(self, matrix: Any, entries: Any) -> Any:
        """The entries of a line where the rows of a matrix are 1; 0 for a row of zeros.

        Lines lie along the last axis. For each there is one row, or a further axis of them.
        """

    @abstractmethod
    def outside(self, sign: int) -> float:
        """An entry that is never the largest one, or never the smallest one."""


class _AtNumbers(Decider):
    """Decides at numbers: what was not chosen may be no number there."""

    def outside(self, sign: int) -> float:
        return -sign * float("inf")

    def discrete(self, compute: Callable[[], Any]) -> Any:
        return compute()

    def mixed(self, branches: Any, cases: Sequence[Any]) -> Any:
        cases = [jnp.asarray(case) for case in cases]
        which = jnp.broadcast_to(branches.astype(jnp.int32), jnp.shape(cases[0]))
        return jax.lax.select_n(which, *cases)

    def taken(self, matrix: Any, entries: Any) -> Any:
        one, places = jnp.ndim(matrix) == jnp.ndim(entries), jnp.argmax(matrix, axis=-1)
        found = jnp.take_along_axis(
            entries, places[..., None] if one else places, axis=-1, mode="clip"
        )
        return jnp.where(jnp.any(matrix > 0, axis=-1), found[..., 0] if one else found, 0.0)


class Reads(_AtNumbers):
    """Reads branches and outcomes off the values at a point, in floats.

    Attributes:
        branches: the branches, in floats.
        outcomes: the outcomes.
        is_taken: truth values, false where whole numbers have left their range.
        is_real: whether real numbers decided anything, and not only whole ones that were given.
    """

    def __init__(self) -> None:
        self.branches: list[Any] = []
        self.outcomes: list[Any] = []
        self.is_taken: list[Any] = []
        self.is_real = False

    def decide(self, decision: Decision) -> Any:
        """The branches, made of the values."""
        branches = jax.lax.stop_gradient(jnp.asarray(decision.branches(), jnp.float64))
        self.is_real |= decision.holds is not None
        self.is_taken.append(jnp.all(jnp.abs(branches) < 2.0**53))
        self.branches.append(branches)
        return branches

    def outcome(self, decision: Decision) -> Any:
        """The outcome, made of the values."""
        self.is_real = True
        self.outcomes.append(decision.branches())
        return self.outcomes[-1]

    def assume(self, is_so: Callable[[], Any]) -> None:
        """A point where this is not true is not taken."""
        self.is_taken.append(jnp.all(is_so()))

    def assume_value(self, x: Any) -> None:
        """Left to what checks the branches."""


class Checks(_AtNumbers):
    """Collects what holds given branches and outcomes in place.

    Attributes:
        holds: what has to be so.
    """

    def __init__(self, branches: Sequence[Any], outcomes: Sequence[Any]) -> None:
        self._branches, self._outcomes = iter(branches), iter(outcomes)
        self.holds: list[Holds] = []

    def decide(self, decision: Decision) -> Any:
        """The next branches."""
        return self._checked(next(self._branches), decision)

    def outcome(self, decision: Decision) -> Any:
        """The next outcome."""
        return self._checked(next(self._outcomes), decision)

    def _checked(self, branches: Any, decision: Decision) -> Any:
        if decision.holds is not None:
            self.holds.append(decision.holds(branches))
        return branches

    def assume(self, is_so: Callable[[], Any]) -> None:
        """Points where this is not true were not taken."""

    def assume_value(self, x: Any) -> None:
        """There is a value x where 0 x is 0."""
        self.holds.append(Holds(ties=x * 0.0))


class Follows(Decider):
    """Takes the branches that were read off before: a function of real numbers is left."""

    def __init__(self, branches: Sequence[Any]) -> None:
        self._branches = iter(branches)

    def decide(self, decision: Decision) -> Any:
        """The next branches."""
        return next(self._branches)

    def outcome(self, decision: Decision) -> Any:
        """Only its branches are needed, where it meets real numbers."""

    def discrete(self, compute: Callable[[], Any]) -> Any:
        """Only its branches are needed, where it meets real numbers."""

    def assume(self, is_so: Callable[[], Any]) -> None:
        """Points where this is not true were not taken."""

    def assume_value(self, x: Any) -> None:
        """Points where x has no value were not taken."""

    def mixed(self, branches: Any, cases: Sequence[Any]) -> Any:
        """A polynomial in the number of the case.

        With b in {0, 1} it is x_0 + b (x_1 − x_0). With more cases it is Σ_k [b = k] x_k. A
        constant NaN warns of a case that does not occur: points where it does are not taken.
        """
        cases = [
            x if isinstance(x, jax.core.Tracer) else jnp.where(jnp.isnan(x), 0.0, x) for x in cases
        ]
        if len(cases) == 2:
            return cases[0] + branches * (cases[1] - cases[0])
        numbers = range(len(cases))
        total = 0.0
        for k, case in enumerate(cases):
            # The polynomial that is 1 at k and 0 at the other numbers.
            weight = 1.0
            for j in numbers:
                if j != k:
                    weight = weight * (branches - j) / (k - j)
            total = total + weight * case
        return total

    def taken(self, matrix: Any, entries: Any) -> Any:
        """Σ b x."""
        if jnp.ndim(matrix) == jnp.ndim(entries):
            return jnp.sum(matrix * entries, axis=-1)
        return jnp.einsum("...kn,...n->...k", matrix, entries)

    def outside(self, sign: int) -> float:
        """Any number, since it is not chosen."""
        return 0.0
