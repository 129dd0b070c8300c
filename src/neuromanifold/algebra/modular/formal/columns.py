"""Columns: the exponents and logarithms of a program at many points, with their derivatives."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import TypeVar

import jax
import numpy as np

from neuromanifold.algebra.modular.formal.elements import Formal, FormalElements
from neuromanifold.algebra.modular.formal.relations import Dependent, Place, Relations
from neuromanifold.algebra.modular.function import ModularFunction
from neuromanifold.algebra.modular.square_roots.squares import Settled, Squares, has_roots
from neuromanifold.algebra.modular.tangents import Setting
from neuromanifold.algebra.prime_field import PrimeField, Residues, ZeroResidueError
from neuromanifold.algebra.rank import null_space, rank_profile
from neuromanifold.errors import NotCoveredError

SPARE_ROWS = 8
TURNS = 2
"""Weights drawn for the first matrix; twice as many while the last ones add to its rank."""

T = TypeVar("T")

WeightsOver = Callable[[PrimeField], tuple[Residues, ...]]
"""The leaves of given weights over a field."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where random points come from.

    Attributes:
        field: the prime field.
        seed: the seed.
        label: what distinguishes draws of one seed.
        weights: the leaves of given weights; None when they are drawn.
        fixed: arguments that are what they are, by the number of their leaf.
    """

    field: PrimeField
    seed: int
    label: str
    weights: tuple[Residues, ...] | None = None
    fixed: Mapping[int, Residues] = dataclass_field(default_factory=dict)

    def arguments(self, function: ModularFunction, turn: int) -> list[Residues]:
        """The leaves of all arguments."""
        return [self._leaf(function, k, str(turn)) for k in range(len(function.shapes))]

    def _leaf(self, function: ModularFunction, k: int, turn: str) -> Residues:
        """One leaf of the arguments, drawn unless it is given."""
        if k in self.fixed:
            return self.fixed[k]
        if not function.samples[k] and self.weights is not None:
            return self.weights[k]  # the weights are the first argument
        text = f"obligations {turn} argument {k} {self.label}"
        return self.field.random(self.seed, text, function.shapes[k])

    def directions(
        self, function: ModularFunction, turn: int, *, samples: bool
    ) -> dict[int, Residues]:
        """Random directions for the arguments that run over samples, or for the others."""
        return {
            slot: self.field.random(
                self.seed, f"obligations {turn} direction {k} {self.label}", shape
            )
            for k, (slot, shape, flag) in enumerate(
                zip(function.slots, function.shapes, function.samples, strict=True)
            )
            if flag == samples and k not in self.fixed
        }

    def elements(self, turn: int, relations: Relations) -> FormalElements:
        """The formal elements of one point."""
        return FormalElements(self.field, self.seed, f"obligations {turn} {self.label}", relations)

    def settled(self, function: ModularFunction, turn: int, relations: Relations) -> Settled:
        """One point at which all radicands are squares."""
        if not has_roots(function):
            arguments = function.assembled(self.arguments(function, turn))
            return Settled(arguments, self.elements(turn, relations))
        return self.near_squares(Squares.settled, function, turn, relations)

    def near_squares(
        self,
        search: Callable[[Squares], T],
        function: ModularFunction,
        turn: int,
        relations: Relations,
    ) -> T:
        """A search at the first of a few points at which no denominator is zero."""
        for start in range(turn, turn + 64_000, 1000):
            leaves = self.arguments(function, start)

            def redraw(leaf: int, draw: int, start: int = start) -> Residues:
                return self._leaf(function, leaf, f"{start} draw {draw}")

            arguments, elements = function.assembled(leaves), self.elements(turn, relations)
            try:
                return search(Squares(function, self.field, arguments, elements, redraw))
            except ZeroResidueError:
                if self.weights is not None:
                    raise
        raise NotCoveredError(
            f"no weights were found at which {function.formals[0].where} and others like it have "
            "square radicands; take fewer square roots of weights"
        )


@dataclass(frozen=True, eq=False, slots=True)
class Columns:
    """Additive sides of formal elements at many points, with their derivatives.

    Attributes:
        places: which formal step and entry each column is.
        kinds: the kind of each column.
        values: the argument of each, a row for each point.
        slopes: the derivative of u, or dx/x, along the direction of each row.
        additive: u, or the element that stands for log x.
        field: the prime field.
    """

    places: tuple[Place, ...]
    kinds: tuple[str, ...]
    values: Residues
    slopes: Residues
    additive: Residues
    field: PrimeField

    @property
    def seen(self) -> np.ndarray:
        """The columns that are not exp 0 or log 1 everywhere."""
        trivial = np.array([1.0 if kind == "log" else 0.0 for kind in self.kinds])
        return np.flatnonzero(np.any(self.values != trivial, axis=0))

    @property
    def first(self) -> dict[int, int]:
        """For each column the first one of its kind that has the same values."""
        met: dict[tuple[str, bytes], int] = {}
        return {
            c: met.setdefault((kind, self.values[:, c].tobytes()), c)
            for c, kind in enumerate(self.kinds)
        }

    def without_last(self, turns: int) -> "Columns":
        """Without the rows of the last of so many turns."""
        kept = slice(0, len(self.values) * (turns - 1) // turns)
        parts = (self.values[kept], self.slopes[kept], self.additive[kept])
        return Columns(self.places, self.kinds, *parts, self.field)

    def dependencies(self) -> tuple[list[int], dict[int, dict[int, float]]]:
        """The basis, and every other column that is seen as a combination of it, mod p.

        A column depends on earlier ones only. Turns are apart from the others.
        """
        basis: list[int] = []
        others: dict[int, dict[int, float]] = {}
        for turning in (False, True):
            block = [c for c in self.seen.tolist() if (self.kinds[c] == "turn") == turning]
            if not block:
                continue
            slopes = np.ascontiguousarray(self.slopes[:, block])
            pivots = rank_profile(slopes, self.field)[1].tolist()
            basis += [block[k] for k in pivots]
            if len(pivots) == len(block):
                continue
            kernel = null_space(slopes, self.field)
            free = [k for k in range(len(block)) if k not in set(pivots)]
            for number, k in enumerate(free):
                others[block[k]] = {
                    block[b]: -kernel[b, number] for b in pivots if kernel[b, number]
                }
        return sorted(basis), others


def columns_at(
    function: ModularFunction,
    source: Source,
    relations: Relations,
    formals: Sequence[Formal],
    turns: Sequence[int],
    *,
    along_samples: bool,
) -> Columns:
    """The columns of formal steps, their derivatives along inputs, or else along weights."""
    slots = [slot for f in formals for slot in (f.argument, f.output)]
    program, field = function.program(slots, relations), source.field
    parts: list[list[Residues]] = []
    for turn in turns:
        point = source.settled(function, turn, relations)
        setting = Setting(field, point.elements, {})
        found = program.run_with_tangents(
            setting,
            jax.tree.leaves(point.arguments),
            function.constants(program, field),
            source.directions(function, turn, samples=along_samples),
        )
        sides = [
            _sides(f, *found[2 * k], found[2 * k + 1][0], field) for k, f in enumerate(formals)
        ]
        height = max(len(side[0]) for side in sides) if along_samples else 1
        parts.append(
            [
                np.concatenate([np.broadcast_to(x[:height], (height, x.shape[1])) for x in part], 1)
                for part in zip(*sides, strict=True)
            ]
        )
    values, slopes, additive = (np.concatenate(part) for part in zip(*parts, strict=True))
    places = tuple((f.number, int(e)) for f in formals for e in visible(f))
    kinds = tuple(f.kind for f in formals for _ in visible(f))
    return Columns(places, kinds, values, slopes, additive, field)


def _sides(
    formal: Formal, x: Residues, dx: Residues | None, output: Residues, field: PrimeField
) -> tuple[Residues, Residues, Residues]:
    """Argument, slope and additive side of the entries that are seen, a row for each sample."""
    rows = x.reshape(len(x) if formal.samples else 1, -1)
    moved = np.zeros_like(rows) if dx is None else np.asarray(dx).reshape(rows.shape)
    additive = rows
    if formal.kind == "log":
        moved, additive = field.multiply(field.inverse(rows), moved), output.reshape(rows.shape)
    seen = visible(formal)
    return rows[:, seen], moved[:, seen], additive[:, seen]


def visible(formal: Formal) -> np.ndarray:
    """The entries of one sample that no mask hides."""
    shape = formal.shape[1:] if formal.samples else formal.shape
    if formal.hidden is None:
        return np.arange(int(np.prod(shape)))
    hidden = formal.hidden[0] if formal.samples else formal.hidden
    return np.flatnonzero(~np.asarray(hidden).reshape(-1))


def enough_columns(
    function: ModularFunction,
    source: Source,
    relations: Relations,
    formals: Sequence[Formal],
    *,
    along_samples: bool,
) -> tuple[Columns, list[int], dict[int, dict[int, float]]]:
    """Columns at so many points that further ones find no further independence.

    Where columns come out dependent and the last weights drawn added nothing to the rank, further
    ones will not either: the rows at generic weights lie in the span of the others.
    """
    count = sum(len(visible(f)) for f in formals)
    batch = formals[0].shape[0] if along_samples else 1
    turns = max(2, -(-(count + SPARE_ROWS) // batch))
    if along_samples and source.weights is None:
        turns = max(turns, TURNS)
    while True:
        columns = columns_at(
            function, source, relations, formals, range(turns), along_samples=along_samples
        )
        basis, others = columns.dependencies()
        first = columns.first
        if all(first[c] != c or is_known(columns, c, relations) for c in others):
            break
        if not along_samples or source.weights is not None:
            break
        if len(columns.without_last(turns).dependencies()[0]) == len(basis):
            break
        turns *= 2
    return columns, basis, others


def is_known(columns: Columns, c: int, relations: Relations) -> bool:
    """Whether a column is written over others."""
    number, entry = columns.places[c]
    return any(d.entry == entry for d in relations.dependents.get(number, ()))


def remainder(
    sides: Residues,
    place: dict[Place, int],
    number: int,
    dependent: Dependent,
    field: PrimeField,
) -> Residues:
    """a_c − Σ λ_b a_b for each row, of additive sides or of their derivatives."""
    rest = sides[:, place[number, dependent.entry]]
    for other, factor in dependent.terms:
        multiple = np.asarray(field.from_fraction(factor))
        rest = field.reduce(rest - field.multiply(multiple, sides[:, place[other]]))
    return rest


def formal_steps(function: ModularFunction, *, samples: bool) -> tuple[Formal, ...]:
    """The exponentials, logarithms and turns of a program that depend on samples, or do not."""
    return tuple(
        f for f in function.formals if f.kind in ("exp", "log", "turn") and f.samples == samples
    )
