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

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np

from neuromanifold.algebra.modular.formal.columns import (
    SPARE_ROWS,
    Columns,
    Source,
    columns_at,
    enough_columns,
    formal_steps,
    is_known,
    remainder,
    visible,
)
from neuromanifold.algebra.modular.formal.relations import Dependent, Relations
from neuromanifold.algebra.modular.function import ModularFunction
from neuromanifold.algebra.modular.square_roots.squares import Squares, has_roots
from neuromanifold.algebra.modular.tangents import Setting
from neuromanifold.algebra.prime_field import Residues
from neuromanifold.algebra.rank import rank_profile
from neuromanifold.errors import NotCoveredError


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
        columns, basis, _ = enough_columns(
            function, source, relations, on_samples, along_samples=True
        )
        by_hash = not relations and not has_roots(function)
        checks += _independence(columns, basis, relations, by_hash=by_hash)
        shifts = _shifts(columns, relations)
    checks += _on_weights(function, source, relations, shifts)
    checks += _error_functions(function, relations)
    checks += square_roots(function, source, relations)
    if function.maxima:
        checks.append(_maxima(function, source, relations))
    return tuple(checks)


def _independence(
    columns: Columns,
    basis: Sequence[int],
    relations: Relations,
    *,
    by_hash: bool,
) -> list[Obligation]:
    """Columns that are no known combination of others have to be independent.

    Copies of others are among them, except where equal arguments get equal elements `by_hash`.
    """
    first = columns.first
    checks: list[Obligation] = []
    names = {False: "exponentials and logarithms", True: "sines and cosines"}
    if "log" not in columns.kinds:
        names[False] = "exponentials"
    for turning, name in names.items():
        inside = {c for c in columns.seen.tolist() if (columns.kinds[c] == "turn") == turning}
        known = {c for c in inside if is_known(columns, c, relations)}
        copies = {c for c in inside - known if by_hash and first[c] != c}
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
            rest = remainder(columns.additive, place, number, dependent, columns.field)
            if np.any(rest):
                found.append((number, dependent))
    return found


def _on_weights(
    function: ModularFunction,
    source: Source,
    relations: Relations,
    shifts: Sequence[tuple[int, Dependent]],
) -> list[Obligation]:
    """What depends on weights alone: steps of their own, and the shifts of relations.

    Of constants e^k or log C there may be one, which is transcendental (Lindemann); nothing is
    known about two that are not powers of each other, nor beside floats that are taken as their
    exact value and may stand for such a number, as in 2^x = e^(x log 2), sin(x + π/2) or
    tanh(x + 1) beside the float of tanh 1. At given weights all of these are constants.
    """
    formals = formal_steps(function, samples=False)
    name = "functions of the weights"
    if not formals and not shifts:
        return []
    allowed = int(not function.dyadic_constants)
    if source.weights is not None:
        count = sum(len(visible(f)) for f in formals) + len(shifts)
        return [Obligation(name, count, int(count == allowed))]
    every = (*formals, *formal_steps(function, samples=True)) if shifts else formals
    every = tuple(sorted(every, key=lambda f: f.number))
    count = sum(len(visible(f)) for f in formals) + len(shifts)
    columns = columns_at(
        function, source, relations, every, range(count + SPARE_ROWS), along_samples=False
    )
    parts = _parts(columns, {f.number for f in formals}, relations, shifts)
    moving = [slope for slope in parts if np.any(slope)]
    constants = len(parts) - len(moving)
    rank = len(rank_profile(np.stack(moving, 1), source.field)[1]) if moving else 0
    return [Obligation(name, len(parts), rank + min(constants, allowed))]


def _parts(
    columns: Columns,
    on_weights: set[int],
    relations: Relations,
    shifts: Sequence[tuple[int, Dependent]],
) -> list[Residues]:
    """The slopes of what has to be independent among functions of the weights, each once.

    The columns of the steps `on_weights` that are written over no others, and what is left over
    where a column is: of these steps a constant, sin(w + 1) beside sin w, of the others a `shift`.
    """
    place, first = {p: c for c, p in enumerate(columns.places)}, columns.first
    parts: dict[tuple[bool, bytes], Residues] = {}
    for c in columns.seen.tolist():
        own = columns.places[c][0] in on_weights and not is_known(columns, c, relations)
        if own and first[c] == c:
            key = (columns.kinds[c] == "log", columns.values[:, c].tobytes())
            parts[key] = columns.slopes[:, c]
    own_shifts = [s for s in _shifts(columns, relations) if s[0] in on_weights]
    for number, dependent in (*own_shifts, *shifts):
        rest, slope = (
            remainder(side, place, number, dependent, columns.field)
            for side in (columns.additive, columns.slopes)
        )
        logarithm = columns.kinds[place[number, dependent.entry]] == "log"
        parts[logarithm, rest.tobytes()] = slope
    return list(parts.values())


def _error_functions(function: ModularFunction, relations: Relations) -> list[Obligation]:
    """The exponential before each error function must not be written over others."""
    steps = [f for f in function.formals if f.kind == "erf"]
    if not steps:
        return []
    count = sum(len(visible(f)) for f in steps)
    related = sum(len(relations.dependents.get(f.number - 1, ())) for f in steps)
    return [Obligation("error functions", count, count - related)]


def square_roots(
    function: ModularFunction, source: Source, relations: Relations, *, weights: bool = False
) -> tuple[Obligation, ...]:
    """The characters of the radicands of one sample at the source's own weights, and of weights.

    Of `weights` alone where samples differ in fixed arguments, for all kinds of them together.
    """
    if not has_roots(function):
        return ()
    search = Squares.weight_witnesses if weights else Squares.witnesses
    return (Obligation("square roots", *source.near_squares(search, function, 0, relations)),)


def _maxima(function: ModularFunction, source: Source, relations: Relations) -> Obligation:
    """The function must not change when its maxima do."""
    point = source.settled(function, 0, relations)
    field, program = source.field, function.values(relations)
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
