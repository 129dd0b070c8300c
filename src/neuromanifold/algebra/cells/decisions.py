"""Who decides: a point where the function is evaluated, or branches that were read off before.

A decision is made of *branches*, whole numbers that stay what they are on the cell, and of a *gap*,
a real number whose sign, or whose distance from zero, holds them in place. Both kinds of deciders
meet the decisions of a function in the same order.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from neuromanifold.algebra.cells.range_ends import LARGEST, LEAST, ends, sum_of_sizes, unknown

_STEP = 2.399963229728653  # π (3 − √5), the golden angle
_OF_SIZES = 1e-6


class Decision(NamedTuple):
    """The branches in floats, and the gap."""

    branches: Any
    gap: Any


class AtAPoint:
    """Decides by the values at a point, and remembers branches and gaps.

    Every step of arithmetic is made wrong by relative errors of up to `error`, other ones for every
    phase: a gap that these move by much of itself decides nothing. `is_real` tells whether anything
    was decided by real numbers, and not by whole ones that were given.
    """

    def __init__(self, phase: Any, error: Any) -> None:
        self.branches: list[Any] = []
        self.gaps: list[Any] = []
        self.is_real = False
        self._phase, self._error, self._steps = phase, error, 0

    def decide(self, compute: Callable[[], Decision]) -> Any:
        """The branches of the next decision."""
        branches, gap = compute()
        self.is_real |= not isinstance(gap, float)
        self.branches.append(jax.lax.stop_gradient(jnp.asarray(branches, jnp.float64)))
        self.gaps.append(jnp.asarray(gap, jnp.float64))
        return self.branches[-1]

    def outcome(self, compute: Callable[[], Decision]) -> Any:
        """A whole number or truth value, whose branches are asked for where it meets real ones."""
        outcome, gap = compute()
        self.is_real = True
        self.gaps.append(jnp.asarray(gap, jnp.float64))
        return outcome

    def discrete(self, compute: Callable[[], Any]) -> Any:
        """A value that is made of outcomes alone."""
        return compute()

    def assume_value(self, x: Any) -> None:
        """A point where x is no number has no cell."""
        self.gaps.append(x * 0.0)

    def mixed(self, branches: Any, cases: Sequence[Any]) -> Any:
        """The case that was chosen; what was not chosen may be no number here."""
        cases = [jnp.asarray(case) for case in cases]
        which = jnp.broadcast_to(branches.astype(jnp.int32), jnp.shape(cases[0]))
        return jax.lax.select_n(which, *cases)

    def assume(self, compute: Callable[[], Any]) -> None:
        """A point where this is not true has no cell."""
        self.gaps.append(jnp.where(compute(), 0.0, jnp.nan))

    def blurred(self, equation: Any, operands: Sequence[Any], x: Any) -> Any:
        """The result x of a step of arithmetic, with errors.

        Of a sum the error is also relative to the sizes of all terms, a millionth as large.
        A number too small is 0 here, and as it is not 0 it is the least float, of another sign for
        every phase: then neither its sign nor its order among others like it decides anything.
        One too large is infinite here, and about the largest float in every other phase: what is
        decided alike by both ends of the numbers that it may be is decided. What else is made of
        such numbers has no value, and decides nothing.
        """
        if isinstance(self._error, float) and self._error == 0.0:  # nothing to make wrong
            return x
        self._steps += 1
        vanished, overflown = ends(equation, operands, x)
        # Cosines of an arithmetic progression with an irrational step are as good as random here.
        angles = _STEP * jnp.arange(x.size, dtype=jnp.float64) + self._phase * self._steps
        noise = jnp.cos(angles).reshape(x.shape)
        of_sizes = _OF_SIZES * self._error * noise * sum_of_sizes(equation, operands)
        blurred = x * (1.0 + self._error * noise) + of_sizes
        blurred = jnp.where(overflown, jnp.sign(x) * LARGEST, blurred)
        blurred = jnp.where(vanished, LEAST * jnp.sign(noise), blurred)
        blurred = jnp.where(unknown(equation, operands, x), jnp.nan, blurred)
        return jnp.where(self._error > 0, blurred, x)


class AsBefore:
    """Takes the branches that were read off before, in their order."""

    def __init__(self, branches: Sequence[Any]) -> None:
        self._branches: Iterator[Any] = iter(branches)

    def decide(self, compute: Callable[[], Decision]) -> Any:
        """The branches of the next decision."""
        del compute
        return next(self._branches)

    def outcome(self, compute: Callable[[], Decision]) -> Any:
        """A whole number or truth value: only its branches are needed."""
        del compute

    def discrete(self, compute: Callable[[], Any]) -> Any:
        """A value that is made of outcomes alone: only its branches are needed."""
        del compute

    def assume_value(self, x: Any) -> None:
        """Points where x has no value were not taken."""

    def mixed(self, branches: Any, cases: Sequence[Any]) -> Any:
        """The case that was chosen, a polynomial in its number.

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

    def assume(self, compute: Callable[[], Any]) -> None:
        """Points where this is not true were not taken."""

    def blurred(self, equation: Any, operands: Sequence[Any], x: Any) -> Any:
        """The result of a step of arithmetic."""
        del equation, operands
        return x


Decider = AtAPoint | AsBefore
