"""Scaling: (A, V) → (λ A, V/λ) in every layer and head of a lightning network (thm-3.2, eq-13).

It leaves each layer's function alone, hence holds with a residual skip too (residual-skip). The
inner skip breaks it, since V also acts on X by itself (inner-skip); softmax breaks it (thm-3.9).
"""

from dataclasses import dataclass

import numpy as np

from neuromanifold.algebra.linear import LinearAlgebra
from neuromanifold.networks.family import Element, Family, GeneratorBlock, Slot, Tensors


@dataclass(frozen=True)
class Scaling(Family):
    """A non-zero number for every layer and head; an element holds λ of shape (H,) a layer."""

    depth: int
    heads: int
    name = "scaling"
    statement = "eq-13"
    is_group = True

    @property
    def dimension(self) -> int:
        """The number of layers and heads, H l."""
        return self.depth * self.heads

    def moves(self, tensor: str) -> bool:
        """Queries and values."""
        return tensor.endswith((".query", ".value"))

    def identity(self) -> Element:
        """Ones."""
        return (np.ones(self.heads),) * self.depth

    def random(self, generator: np.random.Generator, condition: float = 10.0) -> Element:
        """Factors of either sign, their sizes between the root of `condition` and its inverse."""
        size = self.heads
        return tuple(
            generator.choice([-1.0, 1.0], size) * condition ** generator.uniform(-0.5, 0.5, size)
            for _ in range(self.depth)
        )

    def compose(self, first: Element, second: Element) -> Element:
        """The products."""
        return tuple(g * h for g, h in zip(first, second, strict=True))

    def act(self, element: Element, weights: Tensors) -> dict[str, np.ndarray]:
        """Q' = λ Q, V' = V/λ."""
        moved = dict(weights)
        for i, factor in enumerate(element):
            query, value = f"layers.{i}.query", f"layers.{i}.value"
            moved[query] = np.asarray(weights[query]) * factor[:, None, None]
            moved[value] = np.asarray(weights[value]) / factor[:, None, None]
        return moved

    def generators(self, weights: Tensors, linear: LinearAlgebra) -> list[GeneratorBlock]:
        """δQ = Q, δV = −V."""
        blocks = []
        for i in range(self.depth):
            query, value = f"layers.{i}.query", f"layers.{i}.value"
            for h in range(self.heads):
                moves = {
                    Slot(query, (h,)): np.asarray(weights[query])[h : h + 1],
                    Slot(value, (h,)): -np.asarray(weights[value])[h : h + 1],
                }
                blocks.append(GeneratorBlock(self.name, f"layer {i} head {h}", moves))
        return blocks
