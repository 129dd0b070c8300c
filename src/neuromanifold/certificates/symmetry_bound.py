"""The kernel that known symmetries span: its rank bounds the dimension from above.

Tangent vectors of symmetries lie in the kernel of the Jacobian, so dim ≤ parameters − their generic
rank, and their rank at a point mod p is at most the generic one. Each tangent vector moves few
tensors, so blocks are eliminated one after the other, each in the columns it moves and those of the
earlier blocks that it meets there. What two families share is counted for the first.

With k independent kernel vectors in echelon form, J v = 0 writes the column of J at each of the k
pivots over the other columns: those of the pivots can be left out, and the rank stays.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.echelon import EchelonForm
from neuromanifold.algebra.elimination import Indices
from neuromanifold.algebra.linear import Modular
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.family import Family, GeneratorBlock, Tensors
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
class KnownKernel:
    """The kernel directions that the known symmetries span at a point.

    Attributes:
        families: what each family adds.
        checks: a few random vectors of each family as columns, to be multiplied with the Jacobian.
        checked: the family of each of these.
        pivots: as many columns as there are directions, each a combination of the others.
    """

    families: tuple[FamilyRank, ...]
    checks: Float[np.ndarray, "columns checks"]
    checked: tuple[str, ...]
    pivots: Indices


_CHECKS = 2
"""Random vectors of each family."""


def known_kernel(network: Network, weights: Tensors, field: PrimeField, seed: int) -> KnownKernel:
    """The known kernel at some weights; a family's tangent vectors are held only while it counts.

    The random vectors are combinations of a family's tangent vectors with coefficients that the
    seed and the number of the block fix.
    """
    span = _Span(network, field)
    ranks: dict[str, int] = {}
    checks: dict[str, np.ndarray] = {}
    for number, block in enumerate(known_generators(network, weights, field)):
        ranks[block.family] = ranks.get(block.family, 0) + span.add(block)
        mix = field.random(seed, f"kernel check {number}", (_CHECKS, block.count))
        total = checks.setdefault(block.family, np.zeros((_CHECKS, network.columns)))
        for slot, moved in block.moves.items():
            part = field.matmul(mix, np.ascontiguousarray(moved.reshape(block.count, -1)))
            place = network.places[slot]
            total[:, place] = field.reduce(total[:, place] + part)
    vectors = np.concatenate([np.zeros((0, network.columns)), *checks.values()]).T
    return KnownKernel(
        tuple(FamilyRank(name, dimension) for name, dimension in ranks.items()),
        vectors,
        tuple(name for name in checks for _ in range(_CHECKS)),
        span.pivots,
    )


def known_generators(
    network: Network, weights: Tensors, field: PrimeField
) -> Iterator[GeneratorBlock]:
    """The tangent vectors of all families that are proved at these weights, family by family.

    A block is let go when the next one is asked for: together they may be larger than the Jacobian.
    """
    for family in families_of(network):
        blocks = _proved(family, weights, field)[::-1]
        while blocks:
            yield blocks.pop()


def _proved(family: Family, weights: Tensors, field: PrimeField) -> list[GeneratorBlock]:
    """The tangent vectors of a family, or none where its solutions prove nothing.

    A family whose generators solve linear conditions (head mixing) may have more solutions at
    special weights than at generic ones, or none that can be lifted; the surplus proves nothing
    about generic weights, so then the family is left out.
    """
    try:
        found = family.generators(weights, Modular(field))
    except ArgumentError:  # a factor of a product has not full rank: nothing can be lifted
        return []
    return found if sum(block.count for block in found) <= family.dimension else []


_SLAB = 512
"""Tangent vectors that are written out over the columns of all that they meet."""


class _Span:
    """An echelon form of tangent vectors, in parts that share few columns.

    A part is zero in the pivots of the parts before it. So rows that were reduced by one part after
    the other vanish in the pivots of all of them.
    """

    def __init__(self, network: Network, field: PrimeField) -> None:
        self._network = network
        self._field = field
        self._parts: list[tuple[np.ndarray, EchelonForm]] = []

    @property
    def pivots(self) -> Indices:
        """The pivots of all parts, ascending."""
        found = [here[form.pivots] for here, form in self._parts]
        return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *found]))

    def add(self, block: GeneratorBlock) -> int:
        """By how much a block's tangent vectors raise the rank, which are dense in slabs only."""
        places = sorted((self._network.places[slot].start, slot) for slot in block.moves)
        own = np.concatenate([np.r_[self._network.places[slot]] for _, slot in places])
        met, here = self._met(own)
        if not self._parts or not np.isin(here, self._parts[-1][0]).all():
            self._parts.append((here, EchelonForm(len(here), self._field)))
        here, form = self._parts[-1]
        before = form.rank
        for start in range(0, block.count, _SLAB):
            slab = slice(start, min(start + _SLAB, block.count))
            moved = [block.moves[slot][slab].reshape(slab.stop - start, -1) for _, slot in places]
            rows = np.zeros((slab.stop - start, len(here)))
            rows[:, np.searchsorted(here, own)] = np.concatenate(moved, axis=1)
            for columns, earlier in met:
                at = np.searchsorted(here, columns)
                rows[:, at] = earlier.reduce(np.ascontiguousarray(rows[:, at]))
            form.add(rows)
        return form.rank - before

    def _met(self, here: np.ndarray) -> tuple[list[tuple[np.ndarray, EchelonForm]], np.ndarray]:
        """The parts that rows in some columns have to be reduced by, and the columns they fill."""
        met = []
        for columns, form in self._parts:
            if np.isin(columns[form.pivots], here).any():
                met.append((columns, form))
                here = np.union1d(here, columns)
        return met, here
