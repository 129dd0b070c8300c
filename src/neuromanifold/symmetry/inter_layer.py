"""Inter-layer symmetry: change the basis between two layers (eq-9, lemma-3.5).

Layer i's output is transformed by C_i and the next layer undoes it:
V_i' = C_i V_i C_{i-1}^{-1} and A_{i+1}' = C_i^{-T} A_{i+1} C_i^{-1}, with C_0 = C_l = 1. On the
weights the second is Q' = Q C_i^{-1}, K' = K C_i^{-1}. A residual skip breaks it, since X itself is
added in a fixed basis; the inner skip does not, since there X passes through V.
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


class InterLayer(GeneralLinear):
    """GL_{d_i} between layers; an element holds C_1, …, C_{l-1}."""

    name = "inter-layer"
    statement = "eq-9"

    def holds_for(self, architecture: Architecture) -> bool:
        """Networks of several layers without residual skip."""
        return architecture.skip != "residual" and architecture.depth > 1

    def shapes(self, architecture: Architecture) -> tuple[tuple[int, ...], ...]:
        """(d_i, d_i) for 0 < i < l."""
        if not self.holds_for(architecture):
            return ()
        return tuple((d, d) for d in architecture.widths[1:-1])

    def act(self, element: Element, weights: Weights) -> Weights:
        """Every C_i moves the last factor of layer i's value map and all that layer i+1 reads."""
        self.check(weights.architecture)
        layers = [
            {name: np.asarray(tensor) for name, tensor in layer.tensors().items()}
            for layer in weights.layers
        ]
        for C, before, after in zip(element, layers[:-1], layers[1:], strict=True):
            written = "output" if "output" in before else "value"
            before[written] = C @ before[written]
            for read in ("query", "key", "value"):
                after[read] = np.linalg.solve(C.T, after[read].mT).mT
        return replace_layers(weights, layers)

    def generators(self, weights: Weights, linear: LinearAlgebra) -> list[GeneratorBlock]:
        """δV_i = ξ V_i and δ(Q, K, V)_{i+1} = −(Q, K, V)_{i+1} ξ for ξ = E_pq."""
        blocks = []
        if not self.holds_for(weights.architecture):
            return blocks
        for i, (before, after) in enumerate(zip(weights.layers, weights.layers[1:], strict=False)):
            written = "value" if before.output is None else "output"
            moves: dict[Slot, np.ndarray] = {}
            for h in range(weights.architecture.heads):
                moves[Slot(i, written, h)] = left_products(np.asarray(before.tensors()[written][h]))
                for read in ("query", "key", "value"):
                    B = np.asarray(after.tensors()[read][h])
                    moves[Slot(i + 1, read, h)] = -right_products(B)
            blocks.append(GeneratorBlock(self.name, f"between layers {i} and {i + 1}", moves))
        return blocks
