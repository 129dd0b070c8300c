"""Key-query symmetry: K → C K, Q → C^{-T} Q leaves A = Kᵀ Q alone (lemma-3.1)."""

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
from neuromanifold.symmetry.general_linear import GeneralLinear, left_products


class KeyQuery(GeneralLinear):
    """GL_a in every layer and head; an element holds C of shape (H, a, a) for each layer."""

    name = "key-query"
    statement = "lemma-3.1"

    def holds_for(self, architecture: Architecture) -> bool:
        """Every attention network has it: only A = Kᵀ Q enters the scores."""
        return True

    def shapes(self, architecture: Architecture) -> tuple[tuple[int, ...], ...]:
        """(H, a_i, a_i) for every layer."""
        return tuple((architecture.heads, a, a) for a in architecture.ranks)

    def act(self, element: Element, weights: Weights) -> Weights:
        """K' = C K, and Q' solves Cᵀ Q' = Q."""
        moved = [
            {
                "key": C @ np.asarray(layer.key),
                "query": np.linalg.solve(C.mT, np.asarray(layer.query)),
            }
            for C, layer in zip(element, weights.layers, strict=True)
        ]
        return replace_layers(weights, moved)

    def generators(self, weights: Weights, linear: LinearAlgebra) -> list[GeneratorBlock]:
        """δK = ξ K and δQ = −ξᵀ Q for ξ = E_pq: entries of the weights, no arithmetic."""
        blocks = []
        for i, layer in enumerate(weights.layers):
            for h in range(weights.architecture.heads):
                K, Q = np.asarray(layer.key[h]), np.asarray(layer.query[h])
                moves = {
                    Slot(i, "key", h): left_products(K),
                    Slot(i, "query", h): -left_products(Q, transposed=True),
                }
                blocks.append(GeneratorBlock(self.name, f"layer {i} head {h}", moves))
        return blocks
