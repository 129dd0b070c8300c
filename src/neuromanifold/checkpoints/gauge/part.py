"""`GaugePart`: one part of the gauge group, with coordinates and action."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import jax
import jax.numpy as jnp

from neuromanifold.checkpoints.block.block import Block, Shapes

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
        change: from the block, parameters and tensors to the tensors that are changed; at zero all
            stay what they are.
        without_eps: whether it is a symmetry only when the norms' eps is zero.
    """

    name: str
    statement: str
    formula: str
    shapes: Callable[[Block, Readout], Shapes]
    change: Action
    without_eps: bool = False

    def act(self, block: Block, parameters: Mapping[str, Any], weights: Tensors) -> Tensors:
        """All tensors, moved by a choice of the parameters."""
        return weights | self.change(block, parameters, weights)

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


def in_layers(
    name: str,
    statement: str,
    formula: str,
    shapes: Callable[[Block], Shapes],
    change: Action,
    *,
    without_eps: bool = False,
) -> GaugePart:
    """The part of all layers that is given for one, with tensors by their names inside a layer."""

    def all_shapes(block: Block, readout: Readout) -> Shapes:
        return {key: (block.stored_layers, *shape) for key, shape in shapes(block).items()}

    def change_all(block: Block, parameters: Mapping[str, Any], weights: Tensors) -> Tensors:
        moved: Tensors = {}
        for layer, at in enumerate(layer_names(block)):
            own = {key: value[layer] for key, value in parameters.items()}
            tensors = {key: weights[at + key] for key in block.layer_shapes}
            moved |= {at + key: value for key, value in change(block, own, tensors).items()}
        return moved

    return GaugePart(name, statement, formula, all_shapes, change_all, without_eps)


def layer_names(block: Block) -> list[str]:
    """The prefixes of the stored layers."""
    return [f"layers.{layer}." for layer in range(block.stored_layers)]


def gain(block: Block, weights: Tensors, name: str) -> Any:
    """The gain of a norm, which is not always what is stored."""
    return weights[name] + (0.0 if block.norm is None else block.norm.offset)


def stored_gain(block: Block, value: Any) -> Any:
    """What is stored for a gain."""
    return value - (0.0 if block.norm is None else block.norm.offset)


def off_diagonal(block: Block, width: int) -> int:
    """The coordinates of a stream that are no multiple of 1 where that direction is lost."""
    return width - (1 if block.centred else 0)


def padded(vector: Any, width: int) -> Any:
    """A vector with zeros behind it."""
    return jnp.concatenate([vector, jnp.zeros(width - vector.shape[0])])
