"""Scores behind a layer that makes all tokens equal: what no function sees at these weights.

One softmax head without skip and mask. If M_i = 0, or if there are two tokens and M_i is
skew-symmetric, layer i makes all tokens equal, and every later layer leaves them so, whatever its
scores are: its queries and keys are free (softmax-fibers). Generic forms do not collapse. Whether
given ones do is decided for the floats as they are, in rational arithmetic.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from neuromanifold.algebra.dyadic import Dyadic
from neuromanifold.algebra.linear import LinearAlgebra
from neuromanifold.architecture import Architecture
from neuromanifold.networks.family import Element, Family, GeneratorBlock, Slot, Tensors


@dataclass(frozen=True)
class BehindCollapse(Family):
    """Translations of all queries and keys from layer `first` on, counted from 0.

    An element holds one array for each of these tensors.
    """

    architecture: Architecture
    first: int
    name = "scores behind a collapse"
    statement = "softmax-fibers"
    is_group = True

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors that are free, by name."""
        layers = range(self.first, self.architecture.depth)
        return {
            f"layers.{i}.{name}": self.architecture.shapes[i][name]
            for i in layers
            for name in ("query", "key")
        }

    @property
    def dimension(self) -> int:
        """The number of their entries."""
        return sum(map(prod, self.shapes.values()))

    def moves(self, tensor: str) -> bool:
        """Queries and keys behind the collapse."""
        return tensor in self.shapes

    def identity(self) -> Element:
        """Zeros."""
        return tuple(map(np.zeros, self.shapes.values()))

    def random(self, generator: np.random.Generator, condition: float = 10.0) -> Element:
        """Normal entries; translations have no condition number."""
        del condition
        return tuple(map(generator.standard_normal, self.shapes.values()))

    def compose(self, first: Element, second: Element) -> Element:
        """The sums."""
        return tuple(g + h for g, h in zip(first, second, strict=True))

    def act(self, element: Element, weights: Tensors) -> dict[str, np.ndarray]:
        """Q' = Q + δQ, K' = K + δK."""
        moved = {name: np.asarray(tensor) for name, tensor in weights.items()}
        for name, change in zip(self.shapes, element, strict=True):
            moved[name] = moved[name] + change
        return moved

    def generators(self, weights: Tensors, linear: LinearAlgebra) -> list[GeneratorBlock]:
        """The unit vectors."""
        del weights, linear
        return [
            GeneratorBlock(
                self.name, name, {Slot(name, (0,)): np.eye(prod(shape)).reshape(-1, *shape[1:])}
            )
            for name, shape in self.shapes.items()
        ]


def behind_collapse(architecture: Architecture, forms: Sequence[Dyadic]) -> tuple[Family, ...]:
    """What is free at weights with these forms: nothing unless a layer but the last collapses."""
    first = first_collapsing(architecture, forms) + 1
    return () if first >= len(forms) else (BehindCollapse(architecture, first),)


def first_collapsing(architecture: Architecture, forms: Sequence[Dyadic]) -> int:
    """The first layer, counted from 0, that makes all tokens equal; their number without one."""
    if architecture.averages_tokens and architecture.has_one_head and architecture.is_plain:
        for i, M in enumerate(forms):
            if M.is_zero or (architecture.tokens == 2 and M.is_skew):
                return i
    return len(forms)
