"""The relations between the formal elements of a program, found one step at a time."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from neuromanifold.algebra.modular.formal.columns import (
    Columns,
    Source,
    WeightsOver,
    columns_at,
    enough_columns,
    formal_steps,
    is_known,
    remainder,
)
from neuromanifold.algebra.modular.formal.elements import Formal
from neuromanifold.algebra.modular.formal.relations import (
    NO_RELATIONS,
    Dependent,
    Place,
    Relations,
    rational,
)
from neuromanifold.algebra.modular.function import ModularFunction
from neuromanifold.algebra.modular.square_roots.squares import has_roots
from neuromanifold.algebra.prime_field import PrimeField

SECOND_PRIMES = (8388449, 8388593)
"""Both leave 1 when divided by 4; relations are confirmed with one that is not the first."""


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
    other = PrimeField(next(p for p in SECOND_PRIMES if p != field.modulus))
    source, second = (
        Source(f, 0, "relations", None if weights is None else weights(f)) for f in (field, other)
    )
    relations, confirmed = NO_RELATIONS, True
    for along_samples in (False, True):
        formals = formal_steps(function, samples=along_samples)
        if not formals or not (along_samples or weights is None):
            continue
        relations, columns = _found(
            function, source, relations, formals, along_samples=along_samples
        )
        again = columns_at(
            function, second, relations, formals, range(1), along_samples=along_samples
        )
        confirmed &= _pattern(columns, relations) == _pattern(again, relations)
    return replace(relations, confirmed=confirmed)


def _pattern(columns: Columns, relations: Relations) -> tuple[object, ...]:
    """Which columns are trivial, which agree, and which relations hold, with or without a shift."""
    place = {p: c for c, p in enumerate(columns.places)}
    held = [
        (
            number,
            dependent.entry,
            bool(np.any(remainder(columns.slopes, place, number, dependent, columns.field))),
            bool(np.any(remainder(columns.additive, place, number, dependent, columns.field))),
        )
        for number, dependents in relations.dependents.items()
        for dependent in dependents
        if (number, dependent.entry) in place
    ]
    return (columns.seen.tolist(), list(columns.first.values()), held)


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
    rational numbers is left out, and the obligation then stays unmet. Equal arguments get equal
    elements by themselves, and are no relations, unless elements are drawn again for roots.
    """
    hashed = not has_roots(function)
    while True:
        columns, _, others = enough_columns(
            function, source, relations, formals, along_samples=along_samples
        )
        first = columns.first
        fresh = [c for c in others if not is_known(columns, c, relations)]
        if not fresh or (hashed and not relations and all(first[c] != c for c in fresh)):
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
