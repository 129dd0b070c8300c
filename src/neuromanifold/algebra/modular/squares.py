"""Points at which every radicand is a square, and the proof that no root is one already.

A root y with y² = x is a formal element when x is no square in the field K built so far: then both
signs of y are homomorphisms, and any choice is right. Let x_1, …, x_r be the radicands of one step,
and suppose that the product of some of them is a square in K. The ring generated so far is regular
near a point where the earlier radicands are invertible squares (2 is invertible), hence normal, so
the square root of the product lies in it and has a value in GF(p): the product is a square at
*every* such point. So let χ be the quadratic character, written additively, and collect the rows
(χ(x_1), …, χ(x_r)) at points where all earlier radicands are squares: full column rank over GF(2)
shows that no product of radicands is a square, and the roots generate a field of degree 2^r over K.
Points that have to be passed over anyway, because some radicand is no square there, are the rows.

Half of all residues are squares, so waiting for a point with n square radicands takes 2^n tries.
But formal elements that depend on the input are arbitrary residues: the program is cut into
segments, and where a radicand is no square only the elements born in its segment are drawn again,
for that input alone. Before the first of them the input is drawn again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from neuromanifold.algebra.modular.elements import Formal, FormalElements
from neuromanifold.algebra.modular.formal_rules import NonSquareError
from neuromanifold.algebra.modular.function import ModularFunction
from neuromanifold.algebra.modular.recorder import Program
from neuromanifold.algebra.modular.roots import square_root
from neuromanifold.algebra.modular.tangents import Setting
from neuromanifold.algebra.prime_field import PrimeField, Residues
from neuromanifold.errors import NotCoveredError

ATTEMPTS = 4096
"""Draws of one segment before giving up: enough for about nine radicands with nothing between."""
PATIENCE = 128
"""Draws of a later segment before it is joined to the one before."""

Redraw = Callable[[int], tuple[Any, ...]]
"""From the number of the attempt to all arguments, those of samples drawn afresh."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A point at which every radicand is a square.

    Attributes:
        arguments: the arguments, some samples drawn again.
        elements: the formal elements, some drawn again.
        characters: for each root, by its number, the rows of χ that were met on the way.
        radicands: for each root, by its number, its radicands at the point, a row for each sample.
    """

    arguments: tuple[Any, ...]
    elements: FormalElements | None
    characters: dict[int, np.ndarray]
    radicands: dict[int, Residues]


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
        NonSquareError: a radicand that depends on the weights alone is no square: draw the weights
            again.
    """
    if elements is None or not has_roots(function):
        return Settled(arguments, elements, {}, {})
    return _Search(function, field, arguments, elements, redraw).run()


@dataclass(frozen=True, slots=True)
class _Segment:
    """Steps `start` to `stop` of a program, whose roots are settled together."""

    start: int
    stop: int
    roots: tuple[Formal, ...]
    free: tuple[Formal, ...]


def _segments(
    program: Program, roots: Sequence[Formal], others: Sequence[Formal]
) -> list[_Segment]:
    """A segment ends at each radicand, but one without free elements belongs to the one before."""
    place = {step.output: i for i, step in enumerate(program.steps)}
    segments: list[_Segment] = []
    for root in sorted(roots, key=lambda f: place.get(f.argument, -1)):
        start = segments[-1].stop if segments else 0
        stop = max(start, place.get(root.argument, -1) + 1)
        free = tuple(f for f in others if start <= place.get(f.output, -1) < stop)
        segments.append(_Segment(start, stop, (root,), free))
        if len(segments) > 1 and not free:
            segments = _merged(segments, len(segments) - 1)
    return segments


def _merged(segments: list[_Segment], k: int) -> list[_Segment]:
    """Segment k joined to the one before."""
    a, b = segments[k - 1 : k + 1]
    joined = _Segment(a.start, b.stop, a.roots + b.roots, a.free + b.free)
    return [*segments[: k - 1], joined, *segments[k + 1 :]]


class _Search:
    """The state of one search."""

    def __init__(
        self,
        function: ModularFunction,
        field: PrimeField,
        arguments: tuple[Any, ...],
        elements: FormalElements,
        redraw: Redraw,
    ) -> None:
        self.function, self.field, self.redraw = function, field, redraw
        self.leaves, self.structure = jax.tree.flatten(arguments)
        roots = [f for f in function.formals if f.kind == "root"]
        others = [f for f in function.formals if f.kind != "root" and f.samples]
        self.program = function.program([f.argument for f in roots], elements.relations)
        self.segments = _segments(self.program, roots, others)
        self.salts = {f.number: np.zeros(f.shape[0], dtype=np.int64) for f in others}
        self.elements = replace(elements, salts=self.salts)
        self.setting = Setting(field, self.elements, {}, lenient=True)
        self.slots: list[Any] = self.program.start(
            self.leaves, function.constants(self.program, field)
        )
        self.characters: dict[int, list[np.ndarray]] = {f.number: [] for f in roots}
        self.radicands: dict[int, Residues] = {}

    def run(self) -> Settled:
        k = 0
        while k < len(self.segments):
            if self._settle(k):
                k += 1
            elif k:
                self.segments = _merged(self.segments, k)
                k -= 1
            else:
                where = self.segments[0].roots[0].where
                raise NotCoveredError(
                    f"no point was found in {ATTEMPTS} tries at which the radicand of {where} and "
                    "those after it are squares; there may be too many square roots of the inputs "
                    "with nothing between them: take fewer tokens or heads"
                )
        arguments = jax.tree.unflatten(self.structure, self.leaves)
        characters = {n: np.concatenate(rows) for n, rows in self.characters.items() if rows}
        return Settled(arguments, self.elements, characters, self.radicands)

    def _settle(self, k: int) -> bool:
        """Draw what is free in segment k until its radicands are squares for every sample."""
        segment = self.segments[k]
        # What is free may not reach every radicand here; then more of the program is drawn again.
        for attempt in range(ATTEMPTS if k == 0 else PATIENCE):
            for step in self.program.steps[segment.start : segment.stop]:
                operands = [self.slots[i] for i in step.inputs]
                self.slots[step.output] = step.operation(self.setting, *operands)
            good = self._good(segment)
            if good is None or good.all():
                return True
            for formal in segment.free:
                self.salts[formal.number][~good] += 1
            if k == 0:
                self._draw_inputs(attempt, good)
            elif not segment.free:
                return False
        return False

    def _good(self, segment: _Segment) -> np.ndarray | None:
        """Which samples have squares only; None when no root here depends on the samples."""
        good: np.ndarray | None = None
        for root in segment.roots:
            x = self.slots[root.argument]
            rows = x.reshape(len(x) if root.samples else 1, -1)
            square = square_root(rows, self.field) > 0
            if not root.samples:
                if not square.all():
                    raise NonSquareError(f"a radicand of {root.where} is no square")
                continue
            good = np.ones(len(rows), dtype=bool) if good is None else good
            self.characters[root.number].append(~square[good & (rows != 0).all(axis=1)])
            self.radicands[root.number] = rows
            good = good & square.all(axis=1)
        return good

    def _draw_inputs(self, attempt: int, good: np.ndarray) -> None:
        fresh = jax.tree.leaves(self.redraw(attempt))
        for i, (slot, is_sampled) in enumerate(
            zip(self.program.inputs, self.function.samples, strict=True)
        ):
            if is_sampled:
                kept = good.reshape(-1, *[1] * (self.leaves[i].ndim - 1))
                self.leaves[i] = np.where(kept, self.leaves[i], fresh[i])
                self.slots[slot] = self.leaves[i]


def character_rank(rows: np.ndarray) -> int:
    """The rank over GF(2) of a Boolean matrix, each row as the bits of one whole number."""
    basis: dict[int, int] = {}
    for row in {int("".join("1" if x else "0" for x in row) or "0", 2) for row in rows.tolist()}:
        while row:
            top = row.bit_length()
            if top not in basis:
                basis[top] = row
                break
            row ^= basis[top]
    return len(basis)
