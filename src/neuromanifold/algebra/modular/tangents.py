"""One step of a program, and how a derivative passes it.

Nearly every step is a homogeneous polynomial of small degree in its operands taken together: sums
and rearrangements are linear, products of two arrays are linear in each. The derivative of a linear
step is the step itself, that of a product is given by the product rule. Along a line x + t dx any
other polynomial of degree n is one of degree n in t, so its values at t = 0, 1, …, n give its
derivative at t = 0 exactly. So no step needs a second rule; those that are no polynomials bring a
tangent of their own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import Literal

import numpy as np

from neuromanifold.algebra.modular.elements import FormalElements
from neuromanifold.algebra.modular.relations import Sides
from neuromanifold.algebra.prime_field import PrimeField, Residues
from neuromanifold.errors import NotCoveredError


@dataclass(frozen=True, slots=True)
class Setting:
    """What a run computes with.

    Attributes:
        field: the prime field.
        elements: what stands for formal functions; None when there are none.
        memory: what the run keeps of its formal elements, by their number.
        lenient: whether a radicand that is no square passes, with an arbitrary root.
    """

    field: PrimeField
    elements: FormalElements | None
    memory: dict[int, Sides]
    lenient: bool = False


Operation = Callable[..., Residues]
"""From a `Setting` and residue arrays to a residue array."""

Tangent = Callable[[Setting, Residues, Sequence[Residues], Sequence[Residues]], Residues]
"""From output, operands and the derivatives of the operands to the derivative of the output."""


@dataclass(frozen=True, slots=True)
class Division:
    """What a step that is no polynomial divides by, for bounds of degrees (`degrees`).

    Attributes:
        by: the entries or the determinants of its first operand, nothing where those are 1, or all
            leading minors, as elimination does.
        order: of the matrices; 1 for entries.
        count: how many of them there are.
    """

    by: Literal["determinants", "nothing", "leading minors"]
    order: int
    count: int


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of a program.

    Attributes:
        operation: what it does.
        inputs: the slots it reads.
        output: the slot it fills.
        finished: the slots that no later step reads.
        degree: of the output as a homogeneous polynomial in the inputs, linear in each of two when
            it is 2; None when it is none.
        tangent: how a derivative passes a step that is no polynomial.
        division: what a rational step divides by.
    """

    operation: Operation
    inputs: tuple[int, ...]
    output: int
    finished: tuple[int, ...] = ()
    degree: int | None = None
    tangent: Tangent | None = None
    division: Division | None = None

    def finishing(self, finished: tuple[int, ...]) -> "Step":
        """The same step with the slots that no later one reads."""
        return replace(self, finished=finished)

    def slope(
        self,
        setting: Setting,
        value: Residues,
        operands: Sequence[Residues],
        moved: Sequence[Residues | None],
    ) -> Residues | None:
        """The derivative of the output, from those of the operands; None stands for zero."""
        if all(tangent is None for tangent in moved):
            return None
        if self.degree == 2 and len(operands) == 2 and self.tangent is None:
            return self._by_the_product_rule(setting, operands, moved)
        filled = [
            np.zeros(operand.shape) if tangent is None else tangent
            for operand, tangent in zip(operands, moved, strict=True)
        ]
        if self.tangent is not None:
            return self.tangent(setting, value, operands, filled)
        if self.degree is None:
            raise NotCoveredError(
                "a step of the function has no derivative over a prime field, so nothing can be "
                "shown about the formal elements after it; write it with sums, products and powers"
            )
        if self.degree == 1:
            return self.operation(setting, *filled)
        return self._along_a_line(setting, value, operands, filled)

    def _by_the_product_rule(
        self, setting: Setting, operands: Sequence[Residues], moved: Sequence[Residues | None]
    ) -> Residues:
        (x, y), (dx, dy) = operands, moved
        if dx is None or dy is None:
            pair = (x, dy) if dx is None else (dx, y)
            return self.operation(setting, *pair)
        first, second = self.operation(setting, dx, y), self.operation(setting, x, dy)
        return setting.field.reduce(np.asarray(first + second))

    def _along_a_line(
        self,
        setting: Setting,
        value: Residues,
        operands: Sequence[Residues],
        moved: Sequence[Residues],
    ) -> Residues:
        """Σ_t w_t · step(x + t dx); each term is a residue, and 2^30 of them sum exactly."""
        field = setting.field
        weights = [field.from_fraction(w) for w in _derivative_weights(self.degree or 0)]
        total = field.multiply(np.asarray(weights[0]), value)
        for t, weight in enumerate(weights[1:], start=1):
            there = [
                field.reduce(np.asarray(x + field.multiply(np.asarray(float(t)), dx)))
                for x, dx in zip(operands, moved, strict=True)
            ]
            total = total + field.multiply(np.asarray(weight), self.operation(setting, *there))
        return field.reduce(np.asarray(total))


@lru_cache(maxsize=64)
def _derivative_weights(degree: int) -> tuple[Fraction, ...]:
    """The weights w_t with q'(0) = Σ_t w_t q(t), t = 0 … degree, for q up to that degree.

    The derivatives at 0 of Lagrange's polynomials: for t ≠ 0 only the term without the factor
    (0 − 0) survives, ∏_{s ≠ 0, t} (−s)/(t − s) / t; those at 0 make constants vanish.
    """
    nodes = range(degree + 1)
    weights = [
        Fraction(prod(-s for s in nodes if s not in (0, t)), t)
        / prod(t - s for s in nodes if s not in (0, t))
        for t in nodes[1:]
    ]
    return (-sum(weights, Fraction()), *weights)
