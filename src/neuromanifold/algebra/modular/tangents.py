"""One step of a program, and how a derivative passes it.

Sums and rearrangements are linear, products of two arrays are linear in each. The derivative of a
linear step is the step itself, that of a product is given by the product rule, so neither needs a
second rule; all other steps bring a tangent of their own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from neuromanifold.algebra.modular.formal.elements import FormalElements
from neuromanifold.algebra.modular.formal.relations import Sides
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
        if self.degree != 1:
            raise NotCoveredError(
                "a step of the function has no derivative over a prime field, so nothing can be "
                "shown about the formal elements after it; write it with sums, products and powers"
            )
        return self.operation(setting, *filled)

    def _by_the_product_rule(
        self, setting: Setting, operands: Sequence[Residues], moved: Sequence[Residues | None]
    ) -> Residues:
        (x, y), (dx, dy) = operands, moved
        if dx is None or dy is None:
            pair = (x, dy) if dx is None else (dx, y)
            return self.operation(setting, *pair)
        first, second = self.operation(setting, dx, y), self.operation(setting, x, dy)
        return setting.field.reduce(np.asarray(first + second))
