"""The rank of the symmetries' tangent vectors, which bounds the dimension from above.

Tangent vectors of symmetries lie in the kernel of the Jacobian, so dim ≤ parameters − their generic
rank, and their rank at a point mod p is at most the generic one. Each tangent vector moves few
tensors. Blocks that share no tensor with an earlier block (key-query and value-output symmetries)
are eliminated each in its own columns; the rest is reduced by them and eliminated together in the
columns that are left. What two families share is counted for the first.
"""

from dataclasses import dataclass
from math import prod

import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.echelon import EchelonForm
from neuromanifold.algebra.linear import Modular
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.architecture import Architecture, Readout
from neuromanifold.networks.weights import Weights
from neuromanifold.symmetry.families import families_of
from neuromanifold.symmetry.family import GeneratorBlock, Slot
from neuromanifold.symmetry.readouts import CONSTANT, readout_generators


@dataclass(frozen=True, slots=True)
class FamilyRank:
    """What a family of symmetries adds to the kernel.

    Attributes:
        name: the family.
        dimension: the rank of its tangent vectors modulo those of the families before it.
    """

    name: str
    dimension: int


def known_generators(weights: Weights, field: PrimeField, readout: Readout) -> list[GeneratorBlock]:
    """The tangent vectors of all built-in symmetries that are proved at these weights.

    A family whose generators solve linear conditions (head mixing) may have more solutions at
    special weights than at generic ones; the surplus proves nothing about generic weights, so then
    the family is left out.
    """
    blocks: list[GeneratorBlock] = []
    for family in families_of(weights.architecture):
        found = family.generators(weights, Modular(field))
        if sum(block.count for block in found) <= family.dimension(weights.architecture):
            blocks.extend(found)
    return [*blocks, *readout_generators(weights, readout)]


def slot_columns(architecture: Architecture) -> dict[Slot, slice]:
    """Where each head's matrix stands in the flattened weights; the constant comes last."""
    places: dict[Slot, slice] = {}
    start = 0
    for i, shapes in enumerate(architecture.shapes):
        for name, (heads, *matrix) in shapes.items():
            size = prod(matrix)
            for h in range(heads):
                places[Slot(i, name, h)] = slice(start, start + size)
                start += size
    places[CONSTANT] = slice(start, start + 1)
    return places


def generator_ranks(
    blocks: list[GeneratorBlock], architecture: Architecture, columns: int, field: PrimeField
) -> tuple[FamilyRank, ...]:
    """The rank that each family adds, in the order of the blocks."""
    places = slot_columns(architecture)
    ranks: dict[str, int] = {}
    reducers: list[tuple[np.ndarray, EchelonForm]] = []
    coupled: list[GeneratorBlock] = []
    taken: set[Slot] = set()
    for block in blocks:
        ranks.setdefault(block.family, 0)
        if taken.isdisjoint(block.moves):
            here = np.concatenate([np.r_[places[slot]] for slot in block.moves])
            form = EchelonForm(len(here), field)
            ranks[block.family] += form.add(_beside(block))
            reducers.append((here, form))
        else:
            coupled.append(block)
        taken.update(block.moves)
    pivots = [here[form.pivots] for here, form in reducers]
    free = np.delete(np.arange(columns), np.concatenate([np.zeros(0, dtype=int), *pivots]))
    rest = EchelonForm(len(free), field)
    for block in coupled:
        rows = dense(block, places, columns)
        for here, form in reducers:
            if np.any(rows[:, here]):
                rows[:, here] = form.reduce(np.ascontiguousarray(rows[:, here]))
        ranks[block.family] += rest.add(np.ascontiguousarray(rows[:, free]))
    return tuple(FamilyRank(name, dimension) for name, dimension in ranks.items())


def dense(
    block: GeneratorBlock, places: dict[Slot, slice], columns: int
) -> Float[np.ndarray, "count columns"]:
    """A block's tangent vectors as rows over all weights."""
    rows = np.zeros((block.count, columns))
    for slot, moved in block.moves.items():
        rows[:, places[slot]] = moved.reshape(block.count, -1)
    return rows


def random_kernel_vectors(
    blocks: list[GeneratorBlock],
    architecture: Architecture,
    columns: int,
    field: PrimeField,
    seed: int,
    per_family: int = 2,
) -> Float[np.ndarray, "columns checks"]:
    """A few random combinations of each family's tangent vectors, as columns."""
    places = slot_columns(architecture)
    totals: dict[str, np.ndarray] = {}
    for number, block in enumerate(blocks):
        mix = field.random(seed, f"kernel check {number}", (per_family, block.count))
        total = totals.setdefault(block.family, np.zeros((per_family, columns)))
        for slot, moved in block.moves.items():
            part = field.matmul(mix, moved.reshape(block.count, -1))
            total[:, places[slot]] = field.reduce(total[:, places[slot]] + part)
    return np.concatenate([np.zeros((0, columns)), *totals.values()]).T


def _beside(block: GeneratorBlock) -> Float[np.ndarray, "count moved"]:
    """A block's tangent vectors in the columns of the slots they move, slot after slot."""
    return np.concatenate([m.reshape(block.count, -1) for m in block.moves.values()], axis=1)
