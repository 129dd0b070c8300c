"""`PartFamily`: a part of the gauge group as a family of symmetries of a network."""

from dataclasses import dataclass
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from neuromanifold.algebra.linear import LinearAlgebra, Modular
from neuromanifold.algebra.modular import over_prime_field
from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.gauge.part import GaugePart, Readout
from neuromanifold.errors import NotCoveredError
from neuromanifold.networks.family import Element, Family, GeneratorBlock, Slot, Tensors
from neuromanifold.networks.network import Network


def _unknown(first: Any, second: Any) -> NoReturn:
    """The coordinates of a part have no group law."""
    raise NotCoveredError("elements of a part of the gauge group are applied one after another")


@dataclass(frozen=True, eq=False)
class PartFamily(Family):
    """One part, known to a network by its action and tangent vectors; parts are no groups alone.

    Attributes:
        part: the part.
        block: what the tensors mean.
        readout: what is looked at of the output.
        tensors: the network's tensors, for where their parts stand.
    """

    part: GaugePart
    block: Block
    readout: Readout
    tensors: Network
    product = staticmethod(_unknown)
    is_group = False

    @property
    def name(self) -> str:
        """How the audit calls it."""
        return self.part.name

    @property
    def statement(self) -> str:
        """The statement that makes it a symmetry."""
        return self.part.statement

    @property
    def dimension(self) -> int:
        """The number of its parameters."""
        return self.part.dimension(self.block, self.readout)

    def moves(self, tensor: str) -> bool:
        """It may be any."""
        return True

    def identity(self) -> Element:
        """Zero for every parameter."""
        shapes = self.part.shapes(self.block, self.readout)
        return tuple(np.zeros(shape) for shape in shapes.values())

    def random(self, generator: np.random.Generator, condition: float = 10.0) -> Element:
        """Parameters so small that changes of basis have at most this condition number."""
        size = 0.1 * min(1.0, float(np.log(condition)))
        return tuple(size * generator.normal(size=zero.shape) for zero in self.identity())

    def act(self, element: Element, weights: Tensors) -> dict[str, np.ndarray]:
        """The weights moved by a choice of parameters."""
        named = dict(zip(self.part.shapes(self.block, self.readout), element, strict=True))
        with jax.enable_x64(True):
            at = {name: jnp.asarray(value) for name, value in weights.items()}
            moved = self.part.act(self.block, named, at)
            return {name: np.asarray(value) for name, value in moved.items()}

    def generators(self, weights: Tensors, linear: LinearAlgebra) -> list[GeneratorBlock]:
        """The derivatives of the action at zero, of floats or of residues."""
        named = {name: np.asarray(weights[name]) for name in self.block.shapes}

        def tangents(at: dict[str, Any]) -> dict[str, Any]:
            return self.part.tangents(self.block, at, self.readout)

        if isinstance(linear, Modular):
            moved = over_prime_field(tangents, named)(linear.field, named)
        else:
            with jax.enable_x64(True):
                moved = tangents(named)
        moves = {}
        for slot in self.tensors.places:
            part = np.asarray(moved[slot.tensor])[(slice(None), *slot.index)]
            if np.any(part):
                moves[Slot(slot.tensor, slot.index)] = part
        return [GeneratorBlock(self.name, moves)]
