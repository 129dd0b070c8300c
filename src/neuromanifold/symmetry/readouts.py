"""What a readout adds to the symmetries: changes of the last layer that it does not see (readouts).

Probabilities see the differences of output coordinates, so the last value maps may be shifted by
V_h → V_h + 1 cᵀ: every output coordinate of a token gains the same number. Decisions see those
differences up to one positive constant, so without residual skip the last value maps may also be
scaled together. To speak of "up to a constant" the constant is made a parameter: the map is
(W, μ) ↦ μ f_W, and scaling moves V by V and μ by −1.
"""

from dataclasses import dataclass
from operator import mul

import numpy as np

from neuromanifold.algebra.linear import LinearAlgebra
from neuromanifold.networks.family import Element, Family, GeneratorBlock, Slot, Tensors
from neuromanifold.symmetry.translations import Shape, Translations

CONSTANT = "constant"
"""The name of μ."""


@dataclass(frozen=True)
class OutputShift(Translations):
    """V_h → V_h + 1 c_hᵀ in the last layer, where the tensor `written` has the shape `shape`."""

    written: str
    shape: Shape
    name = "output shift"
    statement = "readouts"

    @property
    def shifts(self) -> tuple[tuple[str, Shape, Shape], ...]:
        """One vector for each head."""
        heads, _, columns = self.shape
        return ((self.written, self.shape, (heads, 1, columns)),)


@dataclass(frozen=True)
class OutputScaling(Family):
    """V_h → s V_h for all heads of the last layer, μ → μ/s; an element holds s > 0.

    Attributes:
        written: the tensor that writes the output.
        heads: the number of heads.
    """

    written: str
    heads: int
    product = staticmethod(mul)
    name = "output scaling"
    statement = "readouts"
    is_group = True

    @property
    def dimension(self) -> int:
        """One number."""
        return 1

    def moves(self, tensor: str) -> bool:
        """What writes the output, and the constant."""
        return tensor in (self.written, CONSTANT)

    def identity(self) -> Element:
        """One."""
        return (np.ones(()),)

    def random(self, generator: np.random.Generator, condition: float = 10.0) -> Element:
        """A positive number."""
        return (np.asarray(condition ** generator.uniform(-0.5, 0.5)),)

    def act(self, element: Element, weights: Tensors) -> dict[str, np.ndarray]:
        """The maps times s, the constant over s."""
        constant = np.asarray(weights.get(CONSTANT, np.ones(())))
        scaled = np.asarray(weights[self.written]) * element[0]
        return {**weights, self.written: scaled, CONSTANT: np.asarray(constant / element[0])}

    def generators(self, weights: Tensors, linear: LinearAlgebra) -> list[GeneratorBlock]:
        """δV = V, δμ = −μ, at μ = 1."""
        written = np.asarray(weights[self.written])
        moves = {Slot(self.written, (h,)): written[h : h + 1] for h in range(self.heads)}
        moves[Slot(CONSTANT)] = -np.ones((1,))
        return [GeneratorBlock(self.name, moves)]
