"""The rank of the symmetries' tangent vectors, which bounds the dimension from above.

Tangent vectors of symmetries lie in the kernel of the Jacobian, so dim ≤ parameters − their generic
rank, and their rank at a point mod p is at most the generic one. Each tangent vector moves few
tensors. Blocks that share no part of a tensor with an earlier block (keys, values of single heads)
are eliminated each in its own columns; the rest is reduced by them and eliminated together in the
columns that are left. What two families share is counted for the first.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.echelon import EchelonForm
from neuromanifold.algebra.linear import Modular
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.family import GeneratorBlock, Slot, Tensors
from neuromanifold.networks.network import Network
from neuromanifold.symmetry.families import families_of


@dataclass(frozen=True, slots=True)
class FamilyRank:
    """What a family of symmetries adds to the kernel.

    Attributes:
        name: the family.
        dimension: the rank of its tangent vectors modulo those of the families before it.
    """

    name: str
    dimension: int


@dataclass(frozen=True, slots=True)
class KernelVectors:
    """Random combinations of the tangent vectors of each family.

    Attributes:
        names: the family of each vector.
        vectors: the vectors, as columns.
    """

    names: tuple[str, ...]
    vectors: Float[np.ndarray, "columns checks"]


def known_generators(network: Network, weights: Tensors, field: PrimeField) -> list[GeneratorBlock]:
    """The tangent vectors of all families that are proved at these weights.

    A family whose generators solve linear conditions (head mixing) may have more solutions at
    special weights than at generic ones, or none that can be lifted; the surplus proves nothing
    about generic weights, so then the family is left out.
    """
    blocks: list[GeneratorBlock] = []
    for family in families_of(network):
        try:
            found = family.generators(weights, Modular(field))
        except ArgumentError:  # a factor of a product has not full rank: nothing can be lifted
            continue
        if sum(block.count for block in found) <= family.dimension:
            blocks.extend(found)
    return blocks


def generator_ranks(
    blocks: list[GeneratorBlock], network: Network, field: PrimeField
) -> tuple[FamilyRank, ...]:
    """The rank that each family adds, in the order of the blocks."""
    ranks: dict[str, int] = {}
    reducers: list[tuple[np.ndarray, EchelonForm]] = []
    coupled: list[GeneratorBlock] = []
    taken: set[Slot] = set()
    for block in blocks:
        ranks.setdefault(block.family, 0)
        if taken.isdisjoint(block.moves):
            here = np.concatenate([np.r_[network.places[slot]] for slot in block.moves])
            form = EchelonForm(len(here), field)
            ranks[block.family] += form.add(_beside(block))
            reducers.append((here, form))
        else:
            coupled.append(block)
        taken.update(block.moves)
    pivots = [here[form.pivots] for here, form in reducers]
    free = np.delete(np.arange(network.columns), np.concatenate([np.zeros(0, dtype=int), *pivots]))
    rest = EchelonForm(len(free), field)
    for block in coupled:
        rows = network.dense(block)
        for here, form in reducers:
            if np.any(rows[:, here]):
                rows[:, here] = form.reduce(np.ascontiguousarray(rows[:, here]))
        ranks[block.family] += rest.add(np.ascontiguousarray(rows[:, free]))
    return tuple(FamilyRank(name, dimension) for name, dimension in ranks.items())


def random_kernel_vectors(
    blocks: list[GeneratorBlock],
    network: Network,
    field: PrimeField,
    seed: int,
    per_family: int = 2,
) -> KernelVectors:
    """A few random combinations of each family's tangent vectors."""
    totals: dict[str, np.ndarray] = {}
    for number, block in enumerate(blocks):
        mix = field.random(seed, f"kernel check {number}", (per_family, block.count))
        total = totals.setdefault(block.family, np.zeros((per_family, network.columns)))
        for slot, moved in block.moves.items():
            part = field.matmul(mix, np.ascontiguousarray(moved.reshape(block.count, -1)))
            place = network.places[slot]
            total[:, place] = field.reduce(total[:, place] + part)
    vectors = np.concatenate([np.zeros((0, network.columns)), *totals.values()]).T
    return KernelVectors(tuple(name for name in totals for _ in range(per_family)), vectors)


def _beside(block: GeneratorBlock) -> Float[np.ndarray, "count moved"]:
    """A block's tangent vectors in the columns of the slots they move, slot after slot."""
    return np.concatenate([m.reshape(block.count, -1) for m in block.moves.values()], axis=1)
