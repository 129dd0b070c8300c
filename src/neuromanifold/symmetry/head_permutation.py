"""Head permutation: heads are summed, so their order does not matter (head-mixing)."""

from dataclasses import dataclass

import numpy as np

from neuromanifold.algebra.linear import LinearAlgebra
from neuromanifold.networks.family import Element, Family, GeneratorBlock, Tensors


@dataclass(frozen=True)
class HeadPermutation(Family):
    """A permutation of the heads of every layer; head h of the result is head σ(h) of before."""

    depth: int
    heads: int
    name = "head permutation"
    statement = "head-mixing"
    is_group = True

    @property
    def dimension(self) -> int:
        """The group is finite."""
        return 0

    def moves(self, tensor: str) -> bool:
        """Everything of a layer."""
        return tensor.startswith("layers.")

    def identity(self) -> Element:
        """The order as it is."""
        return (np.arange(self.heads),) * self.depth

    def random(self, generator: np.random.Generator, condition: float = 10.0) -> Element:
        """Independent random orders; `condition` has no meaning here."""
        del condition
        return tuple(generator.permutation(self.heads) for _ in range(self.depth))

    def compose(self, first: Element, second: Element) -> Element:
        """Head h of the result is head second[first[h]] of before."""
        return tuple(h[g] for g, h in zip(first, second, strict=True))

    def act(self, element: Element, weights: Tensors) -> dict[str, np.ndarray]:
        """Reorder the leading axis of every tensor of a layer."""
        return {
            name: np.asarray(tensor)[element[int(name.split(".")[1])]]
            if name.startswith("layers.")
            else tensor
            for name, tensor in weights.items()
        }

    def generators(self, weights: Tensors, linear: LinearAlgebra) -> list[GeneratorBlock]:
        """None: the group is finite."""
        return []
