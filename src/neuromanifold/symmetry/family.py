"""What a family of symmetries is."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from neuromanifold.algebra.linear import LinearAlgebra
from neuromanifold.architecture import Architecture
from neuromanifold.errors import NotCoveredError
from neuromanifold.networks.weights import Layer, Weights

Element = tuple[Shaped[np.ndarray, "..."], ...]
"""A group element: one array for each place (layer, or interface between layers) it acts at."""


class Slot(NamedTuple):
    """One head's matrix inside the weights: what a generator can move."""

    layer: int
    tensor: str
    head: int


@dataclass(frozen=True, slots=True)
class GeneratorBlock:
    """Tangent vectors of the orbits of one family at one place.

    Attributes:
        family: the family's name.
        place: where it acts, for a reader: "layer 1 head 0".
        moves: for each matrix that is moved, its part of every tangent vector, shape
            (count, rows, columns); all other entries of the tangent vectors are zero.
    """

    family: str
    place: str
    moves: Mapping[Slot, Float[np.ndarray, "count _ _"]]

    @property
    def count(self) -> int:
        """The number of tangent vectors."""
        return next(iter(self.moves.values())).shape[0]


class Family(ABC):
    """A family of symmetries: a group that acts on weights and leaves the function alone.

    Attributes:
        name: its name in ledgers and certificates.
        statement: the id of the statement that makes it a symmetry.
    """

    name: ClassVar[str]
    statement: ClassVar[str]

    @abstractmethod
    def holds_for(self, architecture: Architecture) -> bool:
        """Whether this family is a symmetry of the network, and not the trivial group."""

    @abstractmethod
    def dimension(self, architecture: Architecture) -> int:
        """The dimension of the group, 0 for a discrete one and where the family does not hold."""

    @abstractmethod
    def identity(self, architecture: Architecture) -> Element:
        """The neutral element."""

    @abstractmethod
    def random(
        self, architecture: Architecture, generator: np.random.Generator, condition: float = 10.0
    ) -> Element:
        """A random element whose matrices have condition number at most `condition`."""

    @abstractmethod
    def compose(self, first: Element, second: Element) -> Element:
        """The element that acts like `second` and then `first`."""

    @abstractmethod
    def act(self, element: Element, weights: Weights) -> Weights:
        """The weights moved by a group element."""

    @abstractmethod
    def generators(self, weights: Weights, linear: LinearAlgebra) -> list[GeneratorBlock]:
        """Tangent vectors spanning the tangent space of the orbit at `weights`.

        The weights may be floats or residues: `linear` does the arithmetic.
        """

    def check(self, architecture: Architecture) -> None:
        """Raise unless the family holds for the network."""
        if not self.holds_for(architecture):
            raise NotCoveredError(f"{self.name} is no symmetry of {architecture.name}")


def replace_layers(weights: Weights, layers: list[dict[str, np.ndarray]]) -> Weights:
    """The weights with each layer's named tensors replaced."""
    changed = [
        {**layer.tensors(), **new} for layer, new in zip(weights.layers, layers, strict=True)
    ]
    return Weights(tuple(Layer(**tensors) for tensors in changed), weights.architecture)
