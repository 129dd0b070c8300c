"""Points at which every radicand is a square, and the proof that no root is one already.

A root y with y² = x is a formal element when x is no square in the field K built so far: then both
signs of y are homomorphisms, and any choice is right. Let x_1, …, x_r be the radicands of one step,
and suppose that the product of some of them is a square in K. The ring generated so far is regular
near a point where the earlier radicands are invertible squares (2 is invertible), hence normal, so
the square root of the product lies in it and has a value in GF(p): the product is a square at
*every* such point. So let χ be the quadratic character, written additively, and collect the rows
(χ(x_1), …, χ(x_r)) at points where all earlier radicands are squares: full column rank over GF(2)
shows that no product of radicands is a square, and the roots generate a field of degree 2^r over K.

Radicands of weights alone are elements of one field for all samples. Where samples differ in what
is not drawn (branches, whole numbers), each such *kind* of samples has radicands of weights of its
own, and all kinds are shown together: √w in one sample and √(4w) in another have one sign between
them. What depends on the sample is shown for one kind at a time, at fixed weights. There radicands
of weights are constants, so a product of radicands of the sample that is a square at the settled
point and none at another is no square in the larger field either.

That a radicand is one of weights alone is part of the proof (√(w c²) is no new root for each input
c, though other weights witness it), and it is read off the program: in one run every entry drawn
for a sample is NaN, and so is all that is made of NaN, x − x and 0 x too. What is a number then is
computed without them. A radicand that stays the same for all samples and is not read to do so
(x − x + w) is settled with those of weights, and never shown: its root stays unproved.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from neuromanifold.algebra.modular.formal.elements import FormalElements
from neuromanifold.algebra.modular.function import ModularFunction
from neuromanifold.algebra.modular.square_roots.groups import Search
from neuromanifold.algebra.modular.square_roots.radicands import Free, Radicands, Redraw
from neuromanifold.algebra.prime_field import PrimeField, Residues

_TURNS = 16
"""Samples of several kinds in which an atom is tried."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A point at which every radicand is a square.

    Attributes:
        arguments: the arguments, some entries drawn again.
        elements: the formal elements, some drawn again.
        moved: whether weights were drawn again too.
    """

    arguments: tuple[Any, ...]
    elements: FormalElements | None
    moved: bool = False


def has_roots(function: ModularFunction) -> bool:
    """Whether the program of a function takes square roots."""
    return any(formal.kind == "root" for formal in function.formals)


def settled(
    function: ModularFunction,
    field: PrimeField,
    arguments: tuple[Any, ...],
    elements: FormalElements | None,
    redraw: Redraw,
) -> Settled:
    """The point, changed until every radicand of the function is a square there.

    Raises:
        NonSquareError: a radicand that depends on the weights alone is no square, and they cannot
            be drawn again.
    """
    if elements is None or not has_roots(function):
        return Settled(arguments, elements)
    return Squares(function, field, arguments, elements, redraw).settled()


class Squares:
    """The squares around one point.

    Args:
        function: the program.
        field: the prime field.
        arguments: those of the program, where the search begins.
        elements: what stands for formal functions there.
        redraw: what is taken in place of a leaf of the arguments.
    """

    def __init__(
        self,
        function: ModularFunction,
        field: PrimeField,
        arguments: tuple[Any, ...],
        elements: FormalElements,
        redraw: Redraw,
    ) -> None:
        leaves, self.structure = jax.tree.flatten(arguments)
        self.radicands = Radicands(function, field, leaves, elements)
        self.samples = Free(self.radicands, redraw, samples=True)
        self.weights = Free(self.radicands, redraw, samples=False)
        self.columns = np.arange(self.radicands.ends[-1])
        self.drawn, self.kinds, self.same = self._of_weights_alone()

    def _of_weights_alone(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The entries that are drawn, one sample of each kind, its radicands that stay the same.

        Samples of a kind agree in all entries that do not change when every atom is drawn again;
        what stays the same then may do so by chance.
        """
        free, before = self.samples, self.radicands.at(self.columns)
        again = free.fresh(np.ones((len(free.state), free.atoms), bool))
        drawn = np.any(again != free.state, axis=0)
        kinds = np.zeros(1, int)
        if len(before) == len(free.state):  # else nothing before a radicand runs over samples
            rows = np.concatenate([np.zeros((len(before), 1)), free.state[:, ~drawn]], axis=1)
            kinds = np.unique(rows, axis=0, return_index=True)[1]
        return drawn, kinds, self._at(again)[kinds] == before[kinds]

    @cached_property
    def read(self) -> np.ndarray:
        """The radicands of each kind that are read off the program to be of weights alone."""
        unknown = np.where(self.drawn, np.nan, self.samples.state)
        return ~np.isnan(self._at(unknown)[self.kinds])

    def _at(self, state: Residues) -> Residues:
        """All radicands at another state of the samples."""
        with self.samples.tried():
            self.samples.put(state)
            return self.radicands.at(self.columns)

    def settled(self) -> Settled:
        """The point once it is settled, weights first."""
        before = self.weights.state
        self._on_weights(self.same).settle()
        self._on_samples().settle()
        arguments = jax.tree.unflatten(self.structure, self.radicands.leaves)
        moved = not np.array_equal(before, self.weights.state)
        return Settled(arguments, self.radicands.elements, moved)

    def witnesses(self) -> tuple[int, int]:
        """How many distinct radicands there are, and the rank of their characters near the point.

        The samples are of one kind.
        """
        self.settled()
        counts = self._on_samples().witnesses(), self._of_weights()
        return sum(count for count, _ in counts), sum(rank for _, rank in counts)

    def weight_witnesses(self) -> tuple[int, int]:
        """The same for those of weights alone, in samples of all kinds together."""
        self._on_weights(self.same).settle()
        return self._of_weights()

    def _of_weights(self) -> tuple[int, int]:
        """Witnesses of the radicands read off to be of weights; the others have none."""
        count, rank = self._on_weights(self.read).witnesses()
        return count + int(np.count_nonzero(self.same & ~self.read)), rank

    def _on_samples(self) -> Search:
        turns = 1 if len(self.kinds) == 1 else _TURNS
        return Search(self.samples, np.flatnonzero(~self.same.all(axis=0)), turns=turns)

    def _on_weights(self, alone: np.ndarray) -> Search:
        kind, columns = np.nonzero(alone)
        return Search(self.weights, columns, self.kinds[kind])
