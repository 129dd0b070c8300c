"""What has to be shown for the formal elements of a program, and the ranks that show it.

**Exponentials, logarithms, turns.** By Ax's theorem the formal elements are algebraically
independent when no non-trivial rational combination of the exponents u_k and logarithms log x_j of
all samples is constant. Samples share their weights and nothing else, so it is enough that no
combination for one sample is a function of the weights alone, and that those which depend on
weights alone are independent among themselves. A combination that is free of the input has
derivative zero along the input: the matrix of the derivatives du_k and dx_j/x_j along random
directions of the inputs, at random points with fresh weights, has full column rank mod p only if
there is none. Turns, exp(iv), are checked apart: u and v are real, so a relation Σ n u + i Σ m v
falls into two.

**Relations.** Columns that are dependent are written over a basis (`relations`): the relation has
small rational coefficients and holds at all points mod two primes, and the rank of the basis shows
that there are no others.

**Error functions.** erf u is a new element when the exponents −u² are independent (Ostrowski); they
are among the columns, and none of them may depend on others.

**Square roots** are shown by quadratic characters (`squares`).

**Maxima** are replaced by another entry; the function must not depend on them, that is, its
derivative along them must vanish.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from fractions import Fraction

import jax
import numpy as np

from neuromanifold.algebra.modular.elements import Formal, FormalElements
from neuromanifold.algebra.modular.function import ModularFunction
from neuromanifold.algebra.modular.relations import (
    NO_RELATIONS,
    Dependent,
    Place,
    Relations,
    rational,
)
from neuromanifold.algebra.modular.roots import square_root
from neuromanifold.algebra.modular.squares import Settled, character_rank, settled
from neuromanifold.algebra.modular.tangents import Setting
from neuromanifold.algebra.prime_field import PrimeField, Residues, ZeroResidueError
from neuromanifold.algebra.rank import null_space, rank_profile
from neuromanifold.errors import NotCoveredError

SPARE_ROWS = 8
TURNS = 2
"""Weights drawn for the first matrix; twice as many while the last ones add to its rank."""
SECOND_PRIMES = (8388449, 8388593)
"""Both leave 1 when divided by 4; relations are confirmed with one that is not the first."""


@dataclass(frozen=True, slots=True)
class Obligation:
    """One thing that has to be shown, with the rank that shows it.

    Attributes:
        name: what it is about.
        columns: how many elements have to be independent.
        rank: how many were found to be; equal to `columns` it is the proof.
        relations: how many further elements were written as combinations of these.
    """

    name: str
    columns: int
    rank: int
    relations: int = 0

    @property
    def met(self) -> bool:
        """Whether it is shown."""
        return self.columns == self.rank


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

    def arguments(self, function: ModularFunction, turn: int, attempt: int = -1) -> list[Residues]:
        """The leaves of all arguments; another attempt gives other samples."""
        given = iter(self.weights or ())
        leaves = []
        for k, (shape, samples) in enumerate(zip(function.shapes, function.samples, strict=True)):
            again = f" attempt {attempt}" if samples and attempt >= 0 else ""
            if k in self.fixed:
                leaves.append(self.fixed[k])
            elif not samples and self.weights is not None:
                leaves.append(next(given))
            else:
                text = f"obligations {turn} argument {k}{again} {self.label}"
                leaves.append(self.field.random(self.seed, text, shape))
        return leaves

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
        for k in range(64):
            try:
                return settled(
                    function,
                    self.field,
                    function.assembled(self.arguments(function, turn + 1000 * k)),
                    self.elements(turn, relations),
                    lambda attempt, t=turn + 1000 * k: function.assembled(
                        self.arguments(function, t, attempt)
                    ),
                )
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


def _columns(
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
    program, field = function.program(slots), source.field
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


def _enough(
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
        columns = _columns(
            function, source, relations, formals, range(turns), along_samples=along_samples
        )
        basis, others = columns.dependencies()
        first = columns.first
        if all(first[c] != c or _is_known(columns, c, relations) for c in others):
            break
        if not along_samples or source.weights is not None:
            break
        if len(columns.without_last(turns).dependencies()[0]) == len(basis):
            break
        turns *= 2
    return columns, basis, others


def _is_known(columns: Columns, c: int, relations: Relations) -> bool:
    number, entry = columns.places[c]
    return any(d.entry == entry for d in relations.dependents.get(number, ()))


def _found(
    function: ModularFunction,
    source: Source,
    relations: Relations,
    formals: Sequence[Formal],
    *,
    along_samples: bool,
) -> tuple[Relations, Columns]:
    """The relations between these formal steps, one step at a time, and the columns at the end.

    The argument of a step contains the elements of earlier ones, so its relations can be seen only
    once those of the earlier steps are respected. A relation whose coefficients are no small
    rational numbers is left out, and the obligation then stays unmet.
    """
    while True:
        columns, _, others = _enough(
            function, source, relations, formals, along_samples=along_samples
        )
        first = columns.first
        fresh = [c for c in others if not _is_known(columns, c, relations)]
        if not fresh or (not relations and all(first[c] != c for c in fresh)):
            return relations, columns
        number = min(columns.places[c][0] for c in fresh)
        dependents = [
            _dependent(columns, c, others[c]) for c in fresh if columns.places[c][0] == number
        ]
        if any(dependent is None for dependent in dependents):
            return relations, columns
        relations = relations.extended(number, tuple(d for d in dependents if d is not None))


def _dependent(columns: Columns, c: int, coefficients: dict[int, float]) -> Dependent | None:
    terms: list[tuple[Place, Fraction]] = []
    for b, residue in coefficients.items():
        factor = rational(residue, columns.field)
        if factor is None:
            return None
        if columns.kinds[c] == "exp" and columns.kinds[b] == "log" and factor.denominator != 1:
            return None  # a root of the logarithm's argument, which is no element of the field
        terms.append((columns.places[b], factor))
    return Dependent(columns.places[c][1], tuple(terms))


def formal_steps(function: ModularFunction, *, samples: bool) -> tuple[Formal, ...]:
    """The exponentials, logarithms and turns of a program that depend on samples, or do not."""
    return tuple(
        f for f in function.formals if f.kind in ("exp", "log", "turn") and f.samples == samples
    )


def relations_of(
    function: ModularFunction, field: PrimeField, weights: WeightsOver | None = None
) -> Relations:
    """The relations between a function's formal elements, at generic or at given weights.

    Two functions that agree mod p at every point drawn, or are proportional there, may differ by a
    multiple of p. So what was found has to hold mod a second prime as well.

    Args:
        function: the function.
        field: the prime field.
        weights: the leaves of given weights over a field; None for generic ones.
    """
    source = Source(field, 0, "relations", None if weights is None else weights(field))
    relations = NO_RELATIONS
    on_weights, on_samples = (formal_steps(function, samples=flag) for flag in (False, True))
    if weights is None and on_weights:
        relations, _ = _found(function, source, relations, on_weights, along_samples=False)
    if not on_samples:
        return relations
    relations, columns = _found(function, source, relations, on_samples, along_samples=True)
    other = PrimeField(next(p for p in SECOND_PRIMES if p != field.modulus))
    second = Source(other, 0, "relations", None if weights is None else weights(other))
    again = _columns(function, second, relations, on_samples, range(1), along_samples=True)
    return replace(relations, confirmed=_pattern(columns, relations) == _pattern(again, relations))


def _pattern(columns: Columns, relations: Relations) -> tuple[object, ...]:
    """Which columns are trivial, which agree, and which relations hold, with or without a shift."""
    place = {p: c for c, p in enumerate(columns.places)}
    held = [
        (
            number,
            dependent.entry,
            bool(np.any(_rest(columns.slopes, place, number, dependent, columns.field))),
            bool(np.any(_rest(columns.additive, place, number, dependent, columns.field))),
        )
        for number, dependents in relations.dependents.items()
        for dependent in dependents
        if (number, dependent.entry) in place
    ]
    return (columns.seen.tolist(), list(columns.first.values()), held)


def obligations(
    function: ModularFunction, source: Source, relations: Relations
) -> tuple[Obligation, ...]:
    """Everything that has to be shown for the formal elements of a function, at fresh points."""
    checks: list[Obligation] = []
    if not relations.confirmed:
        checks.append(Obligation("relations that hold mod two primes", relations.count or 1, 0))
    on_samples = formal_steps(function, samples=True)
    shifts: list[tuple[int, Dependent]] = []
    if on_samples:
        columns, basis, _ = _enough(function, source, relations, on_samples, along_samples=True)
        checks += _independence(columns, basis, relations)
        shifts = _shifts(columns, relations)
    checks += _on_weights(function, source, relations, shifts)
    checks += _error_functions(function, relations)
    checks += _square_roots(function, source, relations)
    if function.maxima:
        checks.append(_maxima(function, source, relations))
    return tuple(checks)


def _independence(
    columns: Columns,
    basis: Sequence[int],
    relations: Relations,
) -> list[Obligation]:
    """Columns that are no known combination of others have to be independent."""
    first = columns.first
    checks: list[Obligation] = []
    names = {False: "exponentials and logarithms", True: "sines and cosines"}
    if "log" not in columns.kinds:
        names[False] = "exponentials"
    for turning, name in names.items():
        inside = {c for c in columns.seen.tolist() if (columns.kinds[c] == "turn") == turning}
        known = {c for c in inside if _is_known(columns, c, relations)}
        copies = {c for c in inside - known if first[c] != c and not relations}
        rank = sum(c in inside and c not in known for c in basis)
        # A column that was written over others must really depend on them here too.
        broken = sum(c in known for c in basis)
        if inside:
            count = len(inside) - len(known) - len(copies) + broken
            checks.append(Obligation(name, count, rank, len(known)))
    return checks


def _shifts(columns: Columns, relations: Relations) -> list[tuple[int, Dependent]]:
    """The relations with a part that is free of the input, k or log C, and not zero."""
    place = {p: c for c, p in enumerate(columns.places)}
    found = []
    for number, dependents in relations.dependents.items():
        for dependent in dependents:
            if (number, dependent.entry) not in place:
                continue
            rest = _rest(columns.additive, place, number, dependent, columns.field)
            if np.any(rest):
                found.append((number, dependent))
    return found


def _rest(
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


def _on_weights(
    function: ModularFunction,
    source: Source,
    relations: Relations,
    shifts: Sequence[tuple[int, Dependent]],
) -> list[Obligation]:
    """What depends on weights alone: steps of their own, and the shifts of relations.

    Of constants e^k or log C there may be one, which is transcendental (Lindemann); nothing is
    known about two that are not powers of each other. At given weights all of these are constants.
    """
    formals = formal_steps(function, samples=False)
    name = "functions of the weights"
    if not formals and not shifts:
        return []
    if source.weights is not None:
        count = sum(len(visible(f)) for f in formals) + len(shifts)
        return [Obligation(name, count, int(count == 1))]
    every = (*formals, *formal_steps(function, samples=True)) if shifts else formals
    every = tuple(sorted(every, key=lambda f: f.number))
    count = sum(len(visible(f)) for f in formals) + len(shifts)
    columns = _columns(
        function, source, relations, every, range(count + SPARE_ROWS), along_samples=False
    )
    place = {p: c for c, p in enumerate(columns.places)}
    kept = {c for c in columns.seen.tolist() if columns.places[c][0] in {f.number for f in formals}}
    kept = {c for c in kept if columns.first[c] == c and not _is_known(columns, c, relations)}
    parts = [(columns.values[:, c], columns.slopes[:, c]) for c in sorted(kept)]
    for number, dependent in shifts:
        parts.append(
            (
                _rest(columns.additive, place, number, dependent, source.field),
                _rest(columns.slopes, place, number, dependent, source.field),
            )
        )
    slopes = {value.tobytes(): slope for value, slope in parts}
    moving = [slope for slope in slopes.values() if np.any(slope)]
    constants = len(slopes) - len(moving)
    rank = len(rank_profile(np.stack(moving, 1), source.field)[1]) if moving else 0
    return [Obligation(name, len(slopes), rank + min(constants, 1))]


def _error_functions(function: ModularFunction, relations: Relations) -> list[Obligation]:
    """The exponential before each error function must not be written over others."""
    steps = [f for f in function.formals if f.kind == "erf"]
    if not steps:
        return []
    count = sum(len(visible(f)) for f in steps)
    related = sum(len(relations.dependents.get(f.number - 1, ())) for f in steps)
    return [Obligation("error functions", count, count - related)]


def _square_roots(
    function: ModularFunction, source: Source, relations: Relations
) -> list[Obligation]:
    """The characters of the radicands of one sample, at the source's own weights."""
    roots = [f for f in function.formals if f.kind == "root"]
    if not roots:
        return []
    columns = rank = 0
    point = source.settled(function, 0, relations)
    met: set[bytes] = set()
    for root in roots:
        if not root.samples:
            continue
        values, rows = point.radicands[root.number], point.characters[root.number]
        new = []
        for entry in range(values.shape[1]):
            key = values[:, entry].tobytes()
            if key not in met:
                new.append(entry)
            met.add(key)
        columns += len(new)
        rank += character_rank(rows[:, new])
    on_weights = [f for f in roots if not f.samples]
    if on_weights:
        count, found = _roots_of_weights(function, source, relations, on_weights)
        columns, rank = columns + count, rank + found
    return [Obligation("square roots", columns, rank)]


def _roots_of_weights(
    function: ModularFunction,
    source: Source,
    relations: Relations,
    roots: Sequence[Formal],
) -> tuple[int, int]:
    """The same for radicands of weights alone, at ever new weights."""
    count = sum(int(np.prod(root.shape)) for root in roots)
    if source.weights is not None:
        return count, 0
    program, field = function.program([root.argument for root in roots]), source.field
    rows: dict[int, list[np.ndarray]] = {root.number: [] for root in roots}
    values: list[list[Residues]] = [[] for _ in roots]
    for turn in range(64 + 8 * count):
        setting = Setting(field, source.elements(turn, relations), {}, lenient=True)
        leaves = source.arguments(function, turn)
        good = True
        found = program.run(setting, leaves, function.constants(program, field))
        for k, (root, x) in enumerate(zip(roots, found, strict=True)):
            squares = square_root(x.reshape(-1), field) > 0
            values[k].append(x.reshape(-1))
            if good:
                rows[root.number].append(~squares)
            good = good and bool(squares.all())
    met: set[bytes] = set()
    columns = rank = 0
    for k, root in enumerate(roots):
        points = np.stack(values[k])
        new = [e for e in range(points.shape[1]) if points[:, e].tobytes() not in met]
        met.update(points[:, e].tobytes() for e in new)
        columns += len(new)
        rank += character_rank(np.stack(rows[root.number])[:, new])
    return columns, rank


def _maxima(function: ModularFunction, source: Source, relations: Relations) -> Obligation:
    """The function must not change when its maxima do."""
    point = source.settled(function, 0, relations)
    field, program = source.field, function.values
    directions = {
        slot: field.random(source.seed, f"maxima {slot} {source.label}", shape)
        for slot, shape, _ in function.maxima
    }
    found = program.run_with_tangents(
        Setting(field, point.elements, {}),
        jax.tree.leaves(point.arguments),
        function.constants(program, field),
        directions,
    )
    if any(moved is not None and np.any(moved) for _, moved in found):
        raise NotCoveredError(
            f"the function depends on the value of {function.maxima[0][2]}, which is no rational "
            "function; over a prime field a maximum may only be subtracted from what is "
            "exponentiated and normalised, as softmax does"
        )
    return Obligation("maxima", len(directions), len(directions))
