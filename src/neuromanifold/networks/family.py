"""What a family of symmetries of a network is, and the tangent vectors of its orbits."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import matmul
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from neuromanifold.algebra.linear import LinearAlgebra

Element = tuple[Shaped[np.ndarray, "..."], ...]
"""A group element: one array for each place it acts at."""

Tensors = Mapping[str, Shaped[np.ndarray, "..."]]
"""Weights by name, floats or residues."""


class Slot(NamedTuple):
    """The part of a tensor that one copy of its spaces can move: one head's matrix."""

    tensor: str
    index: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GeneratorBlock:
    """Tangent vectors of the orbits of one family that move the same parts of tensors.

    Attributes:
        family: the family's name.
        moves: for each part of a tensor that is moved, its part of every tangent vector, shape
            (count, …); all other entries of the tangent vectors are zero.
    """

    family: str
    moves: Mapping[Slot, Float[np.ndarray, "count ..."]]

    @property
    def count(self) -> int:
        """The number of tangent vectors."""
        return next(iter(self.moves.values())).shape[0]


class Family(ABC):
    """A family of symmetries of one network: a group that acts on weights and keep the function.

    Attributes:
        product: how the arrays of two elements are multiplied; matrices, unless told otherwise.
    """

    product: Callable[[Any, Any], Any] = staticmethod(matmul)

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in ledgers and certificates."""

    @property
    @abstractmethod
    def statement(self) -> str | None:
        """The id of the statement that makes it a symmetry; None for a user's own."""

    @property
    @abstractmethod
    def is_group(self) -> bool:
        """Whether elements act: a family may be known by its tangent vectors alone."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """The dimension of the group, 0 for a finite one."""

    @abstractmethod
    def moves(self, tensor: str) -> bool:
        """Whether it may move a tensor."""

    @abstractmethod
    def identity(self) -> Element:
        """The neutral element."""

    @abstractmethod
    def random(self, generator: np.random.Generator, condition: float = 10.0) -> Element:
        """A random element whose matrices have condition number at most `condition`."""

    def compose(self, first: Element, second: Element) -> Element:
        """The element that acts like `second` and then `first`: the products, place by place."""
        pairs = zip(first, second, strict=True)
        return tuple(np.asarray(self.product(g, h)) for g, h in pairs)

    @abstractmethod
    def act(self, element: Element, weights: Tensors) -> dict[str, np.ndarray]:
        """The weights moved by a group element."""

    @abstractmethod
    def generators(self, weights: Tensors, linear: LinearAlgebra) -> list[GeneratorBlock]:
        """Tangent vectors spanning the tangent space of the orbit at `weights`.

        The weights may be floats or residues: `linear` does the arithmetic.
        """
