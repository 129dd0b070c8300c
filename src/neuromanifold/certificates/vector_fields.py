"""Vector fields on weights that are affine in them: where `discover` looks for symmetries.

    δT = Σ_k X_k acting on axis k of T + C + Σ_S (S contracted with c along one axis)

with constant matrices X_k, a constant tensor C, and constant vectors c for the tensors S that have
the shape of T and one axis more. Changes of basis, scalings, dead parameters, shifts between tables
and biases absorbed by the next one are of this form. Such a field is a symmetry if it lies in the
kernel of the Jacobian at all weights; for a row r = uᵀJ that is one linear equation in (X, C, c):

    Σ ⟨r_T Tᵀ, X⟩ + ⟨r_T, C⟩ + ⟨r_T · S, c⟩ = 0,

the products taken along the axis concerned. An array whose first axes number copies of something,
or that has three axes or more, is a stack of matrices, each with fields of its own: heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Literal

import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.prime_field import PrimeField, Residues
from neuromanifold.networks.network import Network

Kind = Literal["axis", "constant", "contraction"]


@dataclass(frozen=True, slots=True)
class Part:
    """A tensor, or one matrix of a stack.

    Attributes:
        name: the tensor and the place in its stack: `layers.0.key[1]`.
        start: its first column.
        shape: its shape; a number has one axis of size 1.
    """

    name: str
    start: int
    shape: tuple[int, ...]

    @property
    def columns(self) -> slice:
        """Its columns of the Jacobian."""
        return slice(self.start, self.start + prod(self.shape))


@dataclass(frozen=True, slots=True)
class Field:
    """One of the unknowns X, C or c, a stretch of the vector of unknowns.

    Attributes:
        kind: which of them.
        part: what is moved.
        axis: the axis acted on, or contracted.
        source: the tensor that is contracted.
        start: its first place among the unknowns.
        size: how many unknowns it has.
    """

    kind: Kind
    part: Part
    axis: int
    source: Part | None
    start: int
    size: int

    @property
    def unknowns(self) -> slice:
        """Its places among the unknowns."""
        return slice(self.start, self.start + self.size)

    def coefficients(
        self, field: PrimeField, rows: Residues, weights: Residues
    ) -> Float[np.ndarray, "rows unknowns"]:
        """The equation that each row of the Jacobian gives, in these unknowns."""
        mine = rows[:, self.part.columns]
        if self.kind == "constant":
            return mine
        cotangent = mine.reshape(-1, *self.part.shape)
        if self.source is not None:
            stacked = np.moveaxis(
                weights[self.source.columns].reshape(self.source.shape), self.axis, 0
            )
            return field.matmul(mine, np.ascontiguousarray(stacked.reshape(len(stacked), -1).T))
        n = self.part.shape[self.axis]
        left = np.moveaxis(cotangent, self.axis + 1, 1).reshape(len(rows), n, -1)
        tensor = weights[self.part.columns].reshape(self.part.shape)
        right = np.moveaxis(tensor, self.axis, 0).reshape(n, -1)
        return field.matmul(left, np.ascontiguousarray(right.T)).reshape(len(rows), -1)

    def motion(
        self, field: PrimeField, values: Residues, weights: Residues
    ) -> Float[np.ndarray, "count entries"]:
        """What given values of these unknowns do to the part, one row for each."""
        count = len(values)
        if self.kind == "constant":
            return values
        if self.source is not None:
            stacked = np.moveaxis(
                weights[self.source.columns].reshape(self.source.shape), self.axis, 0
            )
            return field.matmul(values, np.ascontiguousarray(stacked.reshape(len(stacked), -1)))
        n = self.part.shape[self.axis]
        tensor = weights[self.part.columns].reshape(self.part.shape)
        right = np.moveaxis(tensor, self.axis, 0)
        moved = field.matmul(values.reshape(count, n, n), right.reshape(n, -1))
        moved = moved.reshape(count, *right.shape)
        return np.moveaxis(moved, 1, self.axis + 1).reshape(count, -1)


def parts_of(network: Network) -> tuple[Part, ...]:
    """The matrices and vectors that the weights consist of."""
    found: list[Part] = []
    start = 0
    for tensor in network.tensors:
        if tensor.name in network.constants:
            continue
        stacked = max(len(network.leading(tensor)), len(tensor.shape) - 2)
        leading = tensor.shape[:stacked]
        shape = tensor.shape[stacked:] or (1,)
        for index in product(*map(range, leading)):
            name = f"{tensor.name}[{','.join(map(str, index))}]" if index else tensor.name
            found.append(Part(name, start, shape))
            start += prod(shape)
    return tuple(found)


def ansatz(parts: Sequence[Part], dead: frozenset[Part] = frozenset()) -> tuple[Field, ...]:
    """All unknowns of the module's docstring; of parts that are dead only the constants."""
    fields: list[Field] = []
    start = 0

    def add(kind: Kind, part: Part, axis: int, source: Part | None, size: int) -> None:
        nonlocal start
        fields.append(Field(kind, part, axis, source, start, size))
        start += size

    for part in parts:
        for axis, n in enumerate(part.shape if part not in dead else ()):
            add("axis", part, axis, None, n * n)
        add("constant", part, 0, None, prod(part.shape))
    for part, source in product(parts, parts):
        if part in dead or source in dead or len(source.shape) != len(part.shape) + 1:
            continue
        for axis in range(len(source.shape)):
            if source.shape[:axis] + source.shape[axis + 1 :] == part.shape:
                add("contraction", part, axis, source, source.shape[axis])
    return tuple(fields)


def equations(
    fields: tuple[Field, ...], field: PrimeField, rows: Residues, weights: Residues
) -> Float[np.ndarray, "rows unknowns"]:
    """The linear equations that rows of the Jacobian at these weights put on the unknowns."""
    return np.concatenate([f.coefficients(field, rows, weights) for f in fields], axis=1)


def motions(
    fields: tuple[Field, ...], field: PrimeField, values: Residues, weights: Residues
) -> Float[np.ndarray, "count columns"]:
    """The tangent vectors at these weights of some values of the unknowns, one row each."""
    moved = np.zeros((len(values), len(weights)))
    for f in fields:
        here = np.ascontiguousarray(values[:, f.unknowns])
        if np.any(here):
            columns = f.part.columns
            moved[:, columns] = field.reduce(moved[:, columns] + f.motion(field, here, weights))
    return moved
