"""Value-output symmetry: V → C V, O → O C^{-1} leaves the value map O V alone (lemma-3.1).

The same factorisation as for keys and queries, of another product.
"""

import numpy as np

from neuromanifold.algebra.linear import LinearAlgebra
from neuromanifold.architecture import Architecture
from neuromanifold.networks.weights import Weights
from neuromanifold.symmetry.family import (
    Element,
    GeneratorBlock,
    Slot,
    replace_layers,
)
from neuromanifold.symmetry.general_linear import GeneralLinear, left_products, right_products


class ValueOutput(GeneralLinear):
    """GL_v in every layer and head; an element holds C of shape (H, v, v) for each layer."""

    name = "value-output"
    statement = "lemma-3.1"

    def holds_for(self, architecture: Architecture) -> bool:
        """Networks whose value maps are factored."""
        return architecture.value_ranks is not None

    def shapes(self, architecture: Architecture) -> tuple[tuple[int, ...], ...]:
        """(H, v_i, v_i) for every layer."""
        return tuple((architecture.heads, v, v) for v in architecture.value_ranks or ())

    def act(self, element: Element, weights: Weights) -> Weights:
        """V' = C V, and O' solves O' C = O."""
        self.check(weights.architecture)
        moved = [
            {
                "value": C @ np.asarray(layer.value),
                "output": np.linalg.solve(C.mT, np.asarray(layer.output).mT).mT,
            }
            for C, layer in zip(element, weights.layers, strict=True)
        ]
        return replace_layers(weights, moved)

    def generators(self, weights: Weights, linear: LinearAlgebra) -> list[GeneratorBlock]:
        """δV = ξ V and δO = −O ξ for ξ = E_pq."""
        blocks = []
        for i, layer in enumerate(weights.layers):
            if layer.output is None:
                continue
            for h in range(weights.architecture.heads):
                moves = {
                    Slot(i, "value", h): left_products(np.asarray(layer.value[h])),
                    Slot(i, "output", h): -right_products(np.asarray(layer.output[h])),
                }
                blocks.append(GeneratorBlock(self.name, f"layer {i} head {h}", moves))
        return blocks
