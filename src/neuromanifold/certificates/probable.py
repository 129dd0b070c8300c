"""Ranks that are all but certain, where no upper bound is proved (field-rank).

The rank at a random point is the generic one unless the point is a zero of every larger minor that
is no zero everywhere. Such a minor is a polynomial in all that is drawn, of a degree that the
program bounds, and a random point over GF(p) is a zero of it with probability at most degree / p.
Three points over two primes that agree leave the product of these.

In the cells of a piecewise network, or at whole numbers, further points have one row more for each
cell: if these lie in the span of the others, then so do all rows of these cells.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from neuromanifold.algebra.modular.degrees import Degrees
from neuromanifold.algebra.modular.formal.basis import SECOND_PRIMES
from neuromanifold.algebra.modular.square_roots.groups import most_draws
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.certificates.cells import cells_for, pieces, real_inputs
from neuromanifold.certificates.jacobian import (
    BATCH,
    SPARE_ROWS,
    batches,
    rank_of_rows,
)
from neuromanifold.certificates.point import ATTEMPTS, Point, at_a_point
from neuromanifold.certificates.program import rows_program
from neuromanifold.networks.network import Network

FURTHER = 1000
"""The number of the first further point, beyond all those that a certificate passes over."""


@dataclass(frozen=True, slots=True)
class Probable:
    """The same rank at several independent points.

    Attributes:
        points: how many points.
        primes: over how many primes.
        error: a bound for the probability that the generic rank is larger, if the primes are good;
            None where it is none (many square roots, large degrees, dependent elements).
    """

    points: int
    primes: int
    error: float | None

    def __str__(self) -> str:
        said = f"probable: {self.points} points, {self.primes} primes"
        if self.error is None:
            return said
        exponent = int(np.ceil(np.log10(self.error))) if self.error else -300
        return f"{said}, error below 1e{exponent}"


def probable(net: Network, point: Point, rank: int, inputs: int) -> Probable | None:
    """Whether two further points, one over another prime, have the same rank as this one.

    Args:
        net: the network.
        point: where the rank was found.
        rank: that rank, of all columns.
        inputs: how many inputs it was found from; in other cells than theirs it may be another.
    """
    count, cells = rank + SPARE_ROWS, None
    if pieces(net) is not None:
        cells = point.cells or cells_for(net, inputs)
        count = inputs + cells
    other = PrimeField(next(p for p in SECOND_PRIMES if p != point.field.modulus))
    fields = (point.field, point.field, other)
    for number, field in enumerate(fields[1:]):
        start = FURTHER * (1 + number)

        def compute(there: Point) -> int:
            return rank_of_rows(net, replace(there, cells=cells), count)

        attempts = range(start, start + ATTEMPTS)
        if at_a_point(net, field, point.seed, compute, point.given, attempts) != rank:
            return None
    return Probable(len(fields), 2, _error(net, point, rank, count, [f.modulus for f in fields]))


_degrees = lru_cache(maxsize=8)(Degrees)
"""The degrees of a program, which no seed changes."""


def _error(net: Network, point: Point, rank: int, count: int, primes: list[int]) -> float | None:
    """The product over the points of degree / p, for a minor one larger than the rank.

    A point is the first of several draws at which all radicands are squares: it is a zero only if
    one of those draws is one.
    """
    batch = batches(rank + SPARE_ROWS)[1]
    program = rows_program(net, batch)
    if program.formals and point.relations(net, batch):
        return None
    weights = len(net.tensors)
    constants = set() if point.given is None else set(range(weights))
    if (found := pieces(net)) is not None:
        first = weights + len(real_inputs(net))
        constants |= set(range(first, first + len(found.branch_shapes)))
    degrees = _degrees(program, batch, frozenset(constants))
    roots = degrees.roots
    rows = min(BATCH, max(count, batch))
    draws = max(most_draws(roots.weights, 1), most_draws(roots.samples + roots.mixed, rows))
    draws *= roots.conjugates(rank + 1)
    top, below = (draws * (rank + 1) * degree for degree in degrees.row())
    if not top + below < min(primes) - 1:
        return None
    # Points where a denominator vanishes are passed over; formal exponentials are never zero.
    return float(np.prod([top / (p - 1 - below) for p in primes]))
