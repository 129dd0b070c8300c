"""Tensors to which anything of some shape may be added, and the function does not see it.

Every coordinate of the last layer's output gains the same number, V_h → V_h + 1 c_hᵀ (readouts);
queries and keys behind a layer that makes all tokens equal are free (softmax-fibers).
"""

from abc import abstractmethod
from math import prod
from operator import add

import numpy as np

from neuromanifold.algebra.linear import LinearAlgebra
from neuromanifold.networks.family import Element, Family, GeneratorBlock, Slot, Tensors

Shape = tuple[int, int, int]


class Translations(Family):
    """Arrays that are added to tensors; an element holds one for each."""

    product = staticmethod(add)
    is_group = True

    @property
    @abstractmethod
    def shifts(self) -> tuple[tuple[str, Shape, Shape], ...]:
        """Each tensor with its shape (head, row, column) and that of what may be added.

        It has one row where all rows gain the same.
        """

    @property
    def dimension(self) -> int:
        """The number of entries that are free."""
        return sum(prod(shift) for _, _, shift in self.shifts)

    def moves(self, tensor: str) -> bool:
        """What something is added to."""
        return any(tensor == name for name, _, _ in self.shifts)

    def identity(self) -> Element:
        """Zeros."""
        return tuple(np.zeros(shift) for _, _, shift in self.shifts)

    def random(self, generator: np.random.Generator, condition: float = 10.0) -> Element:
        """Normal entries; translations have no condition number."""
        del condition
        return tuple(generator.standard_normal(shift) for _, _, shift in self.shifts)

    def act(self, element: Element, weights: Tensors) -> dict[str, np.ndarray]:
        """The sums."""
        moved = {name: np.asarray(tensor) for name, tensor in weights.items()}
        for (name, _, _), change in zip(self.shifts, element, strict=True):
            moved[name] = moved[name] + change
        return moved

    def generators(self, weights: Tensors, linear: LinearAlgebra) -> list[GeneratorBlock]:
        """The unit vectors."""
        del weights, linear
        blocks: list[GeneratorBlock] = []
        for name, (heads, *matrix), (_, *free) in self.shifts:
            units = np.eye(prod(free)).reshape(-1, *free)
            units = np.broadcast_to(units, (len(units), *matrix))
            blocks += [GeneratorBlock(self.name, {Slot(name, (h,)): units}) for h in range(heads)]
        return blocks
