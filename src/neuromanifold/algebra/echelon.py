"""The echelon form of rows that arrive in batches, held in memory of rank × columns.

The form is a chain of groups of at most `panel_rows` pivot rows. A group is reduced in itself and
zero in the pivot columns of the groups before it, which are left out of it; it is not reduced by
the groups after it. So a new row is reduced by one group after the other, with as many operations
as in ordinary elimination, and each group is one exact matrix product. Reducing the groups by those
after them, which costs about as much again, is done when the reduced basis is asked for.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from neuromanifold.algebra.elimination import (
    DEFAULT_SIZES,
    BlockSizes,
    Elimination,
    Indices,
    Matrix,
    eliminate,
    subtract_product,
)
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.workers import workers
from neuromanifold.errors import ArgumentError

_THREADED = 2**17  # from so many entries of form and rows on, starting threads pays


@dataclass(frozen=True, slots=True)
class _Group:
    """Pivot rows with the identity in the pivot columns, which are not stored.

    Attributes:
        pivots: the pivot columns, counted among the columns that are free before this group.
        free: the other ones, in order (a slice when they are contiguous: a view costs nothing).
        rows: the pivot rows in the free columns.
    """

    pivots: Indices
    free: Indices | slice
    rows: Matrix


class EchelonForm:
    """The reduced row echelon form of all rows added so far.

    Attributes:
        columns: the length of the rows.
        field: the prime field.
    """

    def __init__(
        self, columns: int, field: PrimeField, *, sizes: BlockSizes = DEFAULT_SIZES
    ) -> None:
        """Start with no rows; `sizes` changes the speed and nothing else."""
        if columns < 0:
            raise ArgumentError(f"the number of columns must not be negative; got {columns}")
        self.columns = columns
        self.field = field
        self._elimination = Elimination(field, sizes)
        self._groups: list[_Group] = []
        self._free = np.arange(columns)
        self._pivots: list[int] = []  # in the order of the groups' rows
        self._sources: list[int] = []
        self._added = 0

    @property
    def rank(self) -> int:
        """The dimension of the row space."""
        return len(self._pivots)

    @property
    def pivots(self) -> Indices:
        """The lexicographically first independent columns, ascending."""
        return np.array(sorted(self._pivots), dtype=np.int64)

    @property
    def independent_rows(self) -> Indices:
        """The lexicographically first independent rows, ascending, counted over all batches."""
        return np.array(self._sources, dtype=np.int64)

    def add(self, rows: Matrix) -> int:
        """Add rows of balanced residues; they are left as they are.

        Returns:
            By how much the rank grew.
        """
        self._check(rows)
        before, height = self.rank, self._elimination.panel_rows
        with self._threads(len(rows)) as how:
            for start in range(0, len(rows), height):
                if self._free.size:
                    self._add_panel(rows[start : start + height], start, how)
        self._added += len(rows)
        return self.rank - before

    def reduce(self, rows: Matrix) -> Matrix:
        """The representatives of rows modulo the row space that vanish in the pivot columns.

        They are `rows − rows[:, pivots] @ basis`, balanced; a row is in the row space if and only
        if its representative is zero.
        """
        self._check(rows)
        reduced = np.zeros_like(rows)
        with self._threads(len(rows)) as how:
            reduced[:, self._free] = _reduce_by(self._groups, rows, how)
        return self.field.reduce(reduced)

    @property
    def basis(self) -> Matrix:
        """The reduced row echelon basis, rank × columns, with the identity in the pivot columns."""
        basis = np.zeros((self.rank, self.columns))
        stop = self.rank
        with self._threads(0) as how:
            for index in reversed(range(len(self._groups))):
                rows = self._groups[index].rows
                start = stop - len(rows)
                later = self._groups[index + 1 :]
                basis[start:stop, self._free] = _reduce_by(later, rows, how)
                stop = start
        basis[np.arange(self.rank), self._pivots] = 1.0
        return self.field.reduce(basis[np.argsort(self._pivots)])

    @property
    def null_space(self) -> Matrix:
        """A basis of what all rows annihilate as columns, with the identity in the free places.

        With the basis [I | F] up to the order of columns, the solutions are (−F y, y).
        """
        pivots, free = self.pivots, np.sort(self._free)
        solutions = np.zeros((self.columns, free.size))
        solutions[pivots] = -self.basis[:, free]
        solutions[free, np.arange(free.size)] = 1.0
        return solutions

    def _check(self, rows: Matrix) -> None:
        if rows.ndim != 2 or rows.shape[1] != self.columns or rows.dtype != np.float64:
            raise ArgumentError(
                f"float64 rows of length {self.columns} were wanted; "
                f"got {rows.dtype} of shape {rows.shape}"
            )
        half = self.field.modulus // 2
        if rows.size and not (rows.max() <= half and rows.min() >= -half):
            raise ArgumentError(
                f"residues in [−{half}, {half}] were wanted; "
                f"got numbers from {rows.min()} to {rows.max()}: reduce them first"
            )

    @contextmanager
    def _threads(self, height: int) -> Iterator[Elimination]:
        """The elimination of so many rows, with threads when there is enough to do."""
        if (height + self.rank) * self.columns < _THREADED:
            yield self._elimination
        else:
            with workers() as threads:
                yield replace(self._elimination, workers=threads)

    def _add_panel(self, panel: Matrix, offset: int, how: Elimination) -> None:
        rest = _reduce_by(self._groups, panel, how)
        if rest is panel:
            rest = panel.copy()
        found = eliminate(rest, how)
        if not len(found):
            return
        new, free = rest[: len(found)], _others(found.columns, self._free.size)
        if self._groups and len(self._groups[-1].rows) + len(new) <= how.panel_rows:
            self._groups[-1] = _merged(self._groups[-1], found.columns, new, how)
        else:
            self._groups.append(_Group(found.columns, free, _select(new, free).copy()))
        self._sources.extend((found.rows + (self._added + offset)).tolist())
        self._pivots.extend(self._free[found.columns].tolist())
        self._free = self._free[free]


def _reduce_by(groups: Sequence[_Group], rows: Matrix, how: Elimination) -> Matrix:
    """The rows modulo the groups, in the columns that are free after them, reduced once."""
    for group in groups:
        rest = np.empty((len(rows), group.rows.shape[1]))
        source = _select(rows, group.free)
        subtract_product(rest, source, rows[:, group.pivots], group.rows, how)
        rows = rest
    return rows


def _merged(group: _Group, pivots: Indices, rows: Matrix, how: Elimination) -> _Group:
    """One group from a group and further pivot rows in its free columns, already reduced by it."""
    old = np.empty_like(group.rows)
    subtract_product(old, group.rows, group.rows[:, pivots], rows, how)
    kept = _others(pivots, old.shape[1])
    width = len(old) + old.shape[1]
    joined = np.concatenate([group.pivots, np.arange(width)[group.free][pivots]])
    both = np.concatenate([_select(old, kept), _select(rows, kept)])
    return _Group(joined, _others(joined, width), both)


def _others(chosen: Indices, size: int) -> Indices | slice:
    """The indices below `size` that are not chosen, as a slice when they are contiguous."""
    rest = np.delete(np.arange(size), chosen)
    if rest.size and rest[-1] - rest[0] + 1 == rest.size:
        return slice(int(rest[0]), int(rest[-1]) + 1)
    return rest


def _select(rows: Matrix, columns: Indices | slice) -> Matrix:
    """The columns of the rows, contiguous along rows as `rows[:, columns]` would not be."""
    return rows[:, columns] if isinstance(columns, slice) else np.take(rows, columns, axis=1)
