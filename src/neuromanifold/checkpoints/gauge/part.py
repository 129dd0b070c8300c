"""`GaugePart`: one part of the gauge group, with coordinates and action."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import jax
import jax.numpy as jnp

from neuromanifold.checkpoints.block import Block, Shapes

Readout = Literal["logits", "probabilities"]
Tensors = dict[str, Any]
Action = Callable[[Block, Mapping[str, Any], Tensors], Tensors]


@dataclass(frozen=True, slots=True)
class GaugePart:
    """A family of moves that leave the function alone.

    Attributes:
        name: how the audit calls it.
        statement: the id of the statement that makes it a symmetry.
        formula: its dimension in letters.
        shapes: the shapes of its parameters, empty where it is trivial.
        act: from the block, parameters and tensors to the moved tensors; the identity at zero.
        without_eps: whether it is a symmetry only when the norms' eps is zero.
    """

    name: str
    statement: str
    formula: str
    shapes: Callable[[Block, Readout], Shapes]
    act: Action
    without_eps: bool = False

    def dimension(self, block: Block, readout: Readout = "logits") -> int:
        """The number of parameters, which are independent at generic weights."""
        return sum(map(prod, self.shapes(block, readout).values()))

    def tangents(self, block: Block, weights: Tensors, readout: Readout = "logits") -> Tensors:
        """Tangent vectors of the orbit: every tensor's move, one more leading axis for all."""
        zero = {name: jnp.zeros(s) for name, s in self.shapes(block, readout).items()}

        def moved(parameters: Tensors) -> Tensors:
            return self.act(block, parameters, weights)

        tree = jax.jacfwd(moved)(zero)
        moves = {}
        for name, value in weights.items():
            columns = [
                jnp.moveaxis(tree[name][key].reshape(*jnp.shape(value), -1), -1, 0) for key in zero
            ]
            moves[name] = jnp.concatenate(columns)
        return moves


def layer_names(block: Block) -> list[str]:
    """The prefixes of the stored layers."""
    return [f"layers.{layer}." for layer in range(block.stored_layers)]


def gain(block: Block, weights: Tensors, name: str) -> Any:
    """The gain of a norm, which is not always what is stored."""
    return weights[name] + (0.0 if block.norm is None else block.norm.offset)


def stored_gain(block: Block, value: Any) -> Any:
    """What is stored for a gain."""
    return value - (0.0 if block.norm is None else block.norm.offset)


def off_diagonal(block: Block) -> int:
    """The coordinates of the stream that are no multiple of 1 where that direction is lost."""
    return block.width - (1 if block.centred else 0)
