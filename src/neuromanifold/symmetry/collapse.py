"""Scores behind a layer that makes all tokens equal: what no function sees at these weights.

One softmax head without skip and mask. If M_i = 0, or if there are two tokens and M_i is
skew-symmetric, layer i makes all tokens equal, and every later layer leaves them so, whatever its
scores are: its queries and keys are free (softmax-fibers). Generic forms do not collapse. Whether
given ones do is decided for the floats as they are, in rational arithmetic.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from neuromanifold.algebra.dyadic import Dyadic
from neuromanifold.algebra.linear import LinearAlgebra
from neuromanifold.architecture import Architecture
from neuromanifold.networks.exact_virtual import exact_forms
from neuromanifold.networks.family import Element, Family, GeneratorBlock, Slot, Tensors
from neuromanifold.networks.network import Network


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


def at_weights(network: Network, weights: Any) -> Network:
    """The network with the symmetries that it has at given weights and not at generic ones.

    None, the generic weights, add nothing; nor do weights where no layer before the last collapses.
    """
    architecture = network.architecture
    if weights is None or architecture is None or not network.is_built_in:
        return network
    if not (architecture.averages_tokens and architecture.has_one_head and architecture.is_plain):
        return network
    forms, _ = exact_forms(network.rebuilt(network.values(weights)))
    collapsing = (i for i, M in enumerate(forms) if _collapses(M, architecture.tokens))
    first = next(collapsing, len(forms)) + 1
    return network if first >= len(forms) else _with(network, BehindCollapse(architecture, first))


@lru_cache(maxsize=16)
def _with(network: Network, family: Family) -> Network:
    """The network with one more family, the same object each time: programs are kept by network."""
    if family in network.families:
        return network
    return replace(network, families=(*network.families, family))


def _collapses(M: Dyadic, tokens: int) -> bool:
    """Whether a layer with this form makes all tokens equal."""
    return M.is_zero or (tokens == 2 and M.is_skew)
