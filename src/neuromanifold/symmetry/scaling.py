"""Scaling: (A, V) → (λ A, V/λ) in every layer and head of a lightning network (thm-3.2, eq-13).

It leaves each layer's function alone, hence holds with a residual skip too (residual-skip). The
inner skip breaks it, since V also acts on X by itself (inner-skip); softmax breaks it (thm-3.9).
"""

import numpy as np

from neuromanifold.algebra.linear import LinearAlgebra
from neuromanifold.architecture import Architecture
from neuromanifold.networks.weights import Weights
from neuromanifold.symmetry.family import Element, Family, GeneratorBlock, Slot, replace_layers


class Scaling(Family):
    """A non-zero number for every layer and head; an element holds λ of shape (H,) a layer."""

    name = "scaling"
    statement = "eq-13"

    def holds_for(self, architecture: Architecture) -> bool:
        """Lightning networks without inner skip."""
        return architecture.attention == "lightning" and architecture.skip != "inner"

    def dimension(self, architecture: Architecture) -> int:
        """The number of layers and heads, H l."""
        return architecture.depth * architecture.heads if self.holds_for(architecture) else 0

    def identity(self, architecture: Architecture) -> Element:
        """Ones."""
        return (np.ones(architecture.heads),) * architecture.depth

    def random(
        self, architecture: Architecture, generator: np.random.Generator, condition: float = 10.0
    ) -> Element:
        """Factors of either sign, their sizes between the root of `condition` and its inverse."""
        size = architecture.heads
        return tuple(
            generator.choice([-1.0, 1.0], size) * condition ** generator.uniform(-0.5, 0.5, size)
            for _ in range(architecture.depth)
        )

    def compose(self, first: Element, second: Element) -> Element:
        """The products."""
        return tuple(g * h for g, h in zip(first, second, strict=True))

    def act(self, element: Element, weights: Weights) -> Weights:
        """Q' = λ Q, V' = V/λ."""
        self.check(weights.architecture)
        moved = [
            {
                "query": np.asarray(layer.query) * factor[:, None, None],
                "value": np.asarray(layer.value) / factor[:, None, None],
            }
            for factor, layer in zip(element, weights.layers, strict=True)
        ]
        return replace_layers(weights, moved)

    def generators(self, weights: Weights, linear: LinearAlgebra) -> list[GeneratorBlock]:
        """δQ = Q, δV = −V."""
        if not self.holds_for(weights.architecture):
            return []
        return [
            GeneratorBlock(
                self.name,
                f"layer {i} head {h}",
                {
                    Slot(i, "query", h): np.asarray(layer.query[h : h + 1]),
                    Slot(i, "value", h): -np.asarray(layer.value[h : h + 1]),
                },
            )
            for i, layer in enumerate(weights.layers)
            for h in range(weights.architecture.heads)
        ]
