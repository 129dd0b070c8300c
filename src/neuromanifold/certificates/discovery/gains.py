"""Where the reciprocals of a gain take part in symmetries, seen in the kernel at one random weight.

A centred norm with gain v leaves out the direction g = 1/v, so that a map W behind it may get u ⊗ g
while nothing but vectors of weights, biases, moves besides (layernorm-centring). At one weight any
motion of a vector is a constant one. So W reads a norm with gain v along an axis if the rows of the
Jacobian there, made free of the columns of all vectors, have solutions u ⊗ g for W. Likewise for
the shears c ⊗ g and g ⊗ c of all matrices together (stream-one), if their solutions are more than
the symmetries already found. Which vector fields come of it is for `symmetry_algebra` to solve.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import null_space, rank
from neuromanifold.certificates.discovery.symmetry_algebra import Algebra
from neuromanifold.certificates.discovery.vector_fields import (
    Field,
    Gain,
    Kind,
    Part,
    constants,
    equations,
    motions,
    numbered,
)
from neuromanifold.certificates.jacobian import SPARE_ROWS, jacobian_rows
from neuromanifold.certificates.point import Point, at_a_point
from neuromanifold.networks.network import Network

Rows = Float[np.ndarray, "rows columns"]
_SHEARS: tuple[Kind, Kind] = ("measured", "along")


def gains_of(
    network: Network, parts: Sequence[Part], field: PrimeField, seed: int
) -> tuple[Gain, ...]:
    """The axes along which a norm's direction may be added, with its gain (layernorm-centring)."""
    columns = [c for v in _vectors(parts) for c in range(v.columns.start, v.columns.stop)]

    def compute(point: Point) -> tuple[Gain, ...]:
        J = _rows(network, point)
        free = null_space(np.ascontiguousarray(J[:, columns].T), field).T
        biased = field.matmul(np.ascontiguousarray(free), J)
        found: list[Gain] = []
        for v, part, axis in _axes(parts):
            (trial,) = Gain(part, axis, v, shifted=False).fields()
            few, more = (_freedom(trial, rows, point) for rows in (J, biased))
            if more > (0 if v else few):  # what is 1 and moves alone is a constant field
                found.append(Gain(part, axis, v, more > few))
        return tuple(found)

    return at_a_point(network, field, seed, compute)


def shears_of(algebra: Algebra, parts: Sequence[Part], seed: int) -> tuple[Gain, ...]:
    """The axes on which shears by a norm's direction act that are no known symmetries (stream-one).

    As c may be g at one weight, and g constant, the gain 1 is asked only where no vector is one.
    """

    def compute(point: Point) -> tuple[Gain, ...]:
        shown = _Shown(algebra, point, _vectors(parts), _rows(algebra.network, point))
        axes = list(_axes(parts))
        gains = sorted({v for v, _, _ in axes if v}, key=lambda v: v.start)
        found = [g for v in gains for g in shown.shears(v, axes)]
        return tuple(found or shown.shears(None, axes))

    return at_a_point(algebra.network, algebra.field, seed, compute)


@dataclass(frozen=True, eq=False)
class _Shown:
    """What rows of the Jacobian at a point show of shears, while vectors move as they like."""

    algebra: Algebra
    point: Point
    vectors: Sequence[Part]
    rows: Rows

    def shears(
        self, v: Part | None, axes: Sequence[tuple[Part | None, Part, int]]
    ) -> Iterator[Gain]:
        """The fewest shears of matrices by v that show all that is new, and those of vectors."""
        trial = [
            field
            for w, part, axis in axes
            for kind in _SHEARS
            for field in Gain(part, axis, v, False, kind).fields()
            if w == v
        ]
        every, _ = self.new(trial)
        if not every:
            return
        for field in tuple(trial):
            fewer = [f for f in trial if f is not field]
            trial = fewer if self.new(fewer)[0] == every else trial
        sizes = {(f.size,) for f in trial}
        biases = [part for part in self.new(trial)[1] if part.shape in sizes]
        moved = [(f.part, f.axis, f.kind) for f in trial] + list(product(biases, [0], _SHEARS))
        for (part, axis, kind), shifted in product(moved, (True, False)):
            yield Gain(part, axis, v, shifted, kind)

    def new(self, shears: Sequence[Field]) -> tuple[int, list[Part]]:
        """How many dimensions of the kernel these show that are not known; the vectors moved."""
        field, at = self.point.field, self.point.weights
        fields = numbered([*constants(self.vectors), *shears])
        solutions = null_space(equations(fields, field, self.rows[None], at[None]), field)
        solutions = np.ascontiguousarray(solutions.T)
        known = self.algebra.tangents(at)
        both = np.concatenate([known, motions(fields, field, solutions, at)])
        moved = [
            f.part for f in fields if f.kind == "constant" and np.any(solutions[:, f.unknowns])
        ]
        return rank(both, field) - len(known), moved


def _rows(network: Network, point: Point) -> Rows:
    """Enough rows of the Jacobian at a point."""
    return np.concatenate(list(jacobian_rows(network, point, network.columns + SPARE_ROWS)))


def _vectors(parts: Sequence[Part]) -> list[Part]:
    return [part for part in parts if len(part.shape) == 1]


def _axes(parts: Sequence[Part]) -> Iterator[tuple[Part | None, Part, int]]:
    """The axes of matrices, each with the vectors of its size, and with None, which is 1."""
    for part in parts:
        for axis, n in enumerate(part.shape if len(part.shape) > 1 else ()):
            for v in (None, *(v for v in parts if v.shape == (n,))):
                yield v, part, axis


def _freedom(trial: Field, rows: Rows, point: Point) -> int:
    """The dimension of the unknowns of a field that some rows leave free."""
    equation = trial.coefficients(point.field, rows[None], point.weights[None])[0]
    return trial.size - rank(equation, point.field)
