"""Head permutation: heads are summed, so their order does not matter (head-mixing)."""

import numpy as np

from neuromanifold.algebra.linear import LinearAlgebra
from neuromanifold.architecture import Architecture
from neuromanifold.networks.weights import Weights
from neuromanifold.symmetry.family import Element, Family, GeneratorBlock, replace_layers


class HeadPermutation(Family):
    """A permutation of the heads of every layer; head h of the result is head σ(h) of before."""

    name = "head permutation"
    statement = "head-mixing"

    def holds_for(self, architecture: Architecture) -> bool:
        """Networks with several heads."""
        return architecture.heads > 1

    def dimension(self, architecture: Architecture) -> int:
        """The group is finite."""
        return 0

    def identity(self, architecture: Architecture) -> Element:
        """The order as it is."""
        return (np.arange(architecture.heads),) * architecture.depth

    def random(
        self, architecture: Architecture, generator: np.random.Generator, condition: float = 10.0
    ) -> Element:
        """Independent random orders; `condition` has no meaning here."""
        del condition
        return tuple(generator.permutation(architecture.heads) for _ in range(architecture.depth))

    def compose(self, first: Element, second: Element) -> Element:
        """Head h of the result is head second[first[h]] of before."""
        return tuple(h[g] for g, h in zip(first, second, strict=True))

    def act(self, element: Element, weights: Weights) -> Weights:
        """Reorder the leading axis of every tensor."""
        self.check(weights.architecture)
        moved = [
            {name: np.asarray(tensor)[order] for name, tensor in layer.tensors().items()}
            for order, layer in zip(element, weights.layers, strict=True)
        ]
        return replace_layers(weights, moved)

    def generators(self, weights: Weights, linear: LinearAlgebra) -> list[GeneratorBlock]:
        """None: the group is finite."""
        return []
