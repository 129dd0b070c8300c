"""Gauss–Jordan elimination of a panel of rows over a prime field, by matrix products.

Order of pivots. Rows are taken strictly in order, and the pivot of a row is its leftmost nonzero
entry after all earlier pivots were eliminated from it. Hence a row gets a pivot if and only if it
does not depend on the rows before it. The pivot rows have different leading columns, and keep them
while later pivots are eliminated from earlier rows: eliminating the leading column c of a later row
changes only columns from c on, and a row led by a column right of c is zero in c already. Sorted by
their leading columns the pivot rows are therefore the reduced row echelon form, which is unique. So
the pivots are the lexicographically first independent rows and columns, whatever the block sizes.

Zero tests. A residue within s = (p+3)/2 < p is 0 mod p only if it is 0. For p = 3, where s = p, all
sums here (at most 512 terms, unless `BlockSizes` asks for more) stay far below 2^51, so that every
residue is balanced.

Speed. A panel is halved recursively; each half is eliminated from the other by one matrix product.
At the bottom a strip of few rows is brought to echelon form on a window of few columns only, with
the identity beside it to record the transform, which one product applies to the whole strip.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.workers import CALLER, Workers
from neuromanifold.errors import ArgumentError

Matrix = Float64[np.ndarray, "_ _"]
Indices = Int64[np.ndarray, "_"]

_SHARED = 2**23  # products with fewer multiplications are over before a second thread has begun


@dataclass(frozen=True, slots=True)
class BlockSizes:
    """How the elimination is cut into blocks; the result is the same for all.

    Attributes:
        panel: most rows in a panel, and most terms in a dot product (fewer if the prime asks so).
        strip: most rows that are eliminated without recursion.
        window: columns of a strip on which its transform is first looked for.
        direct: panels with at most so many entries are eliminated row by row.
        tile_rows: most rows of a product computed and reduced at a time.
        tile_columns: most columns of it.
    """

    panel: int = 512
    strip: int = 32
    window: int = 48
    direct: int = 4096
    tile_rows: int = 128
    tile_columns: int = 4096

    def __post_init__(self) -> None:
        if min(self.panel, self.strip, self.window, self.tile_rows, self.tile_columns) < 1:
            raise ArgumentError(f"block sizes must be at least 1; got {self}")


DEFAULT_SIZES = BlockSizes()


@dataclass(frozen=True, slots=True)
class Elimination:
    """The field, block sizes and threads of one elimination."""

    field: PrimeField
    sizes: BlockSizes = DEFAULT_SIZES
    workers: Workers = CALLER

    @property
    def panel_rows(self) -> int:
        """Rows in a panel: each is one term in the products that eliminate the panel's pivots."""
        return min(self.sizes.panel, self.field.exact_terms)


@dataclass(frozen=True, slots=True)
class Pivots:
    """The pivots of a panel in the order of its rows: each row, and its leading column."""

    rows: Indices
    columns: Indices

    def __len__(self) -> int:
        return len(self.rows)


def eliminate(panel: Matrix, how: Elimination) -> Pivots:
    """Bring a panel of at most `how.panel_rows` rows to reduced form, in place.

    Args:
        panel: residues within the field's slack bound. On return its first rows are the pivot rows,
            in the order of the rows they came from, with the identity in the pivot columns; the
            others are unspecified.
        how: field, block sizes and threads.

    Returns:
        The pivots; `rows` counts the rows of the panel as it was given.
    """
    height = len(panel)
    if panel.size <= how.sizes.direct:
        return _compact(panel, row_echelon(panel, panel.shape[1], how.field))
    if height <= how.sizes.strip:
        return _eliminate_strip(panel, how)
    half = height // 2
    first = eliminate(panel[:half], how)
    top, bottom = panel[: len(first)], panel[half:]
    subtract_product(bottom, bottom, bottom[:, first.columns], top, how)
    second = eliminate(bottom, how)
    rest = bottom[: len(second)]
    subtract_product(top, top, top[:, second.columns], rest, how)
    if len(first) < half:
        panel[len(first) : len(first) + len(second)] = rest
    return Pivots(
        np.concatenate([first.rows, second.rows + half]),
        np.concatenate([first.columns, second.columns]),
    )


def row_echelon(matrix: Matrix, width: int, field: PrimeField) -> Pivots:
    """Gauss–Jordan elimination row by row, in place, with pivots in the first `width` columns.

    Every pivot row ends with the identity in the pivot columns, every other row with zeros in the
    first `width` columns. Between reductions entries are at most s + s² < 2^51, so one pass
    balances them.
    """
    scratch = np.empty_like(matrix)
    rows: list[int] = []
    columns: list[int] = []
    for i, row in enumerate(matrix):
        nonzero = row[:width].nonzero()[0]
        if nonzero.size == 0:
            continue
        c = int(nonzero[0])
        row *= pow(int(row[c]), -1, field.modulus)
        field.reduce_once(row, scratch[i])
        column = matrix[:, c].copy()
        column[i] = 0.0
        np.multiply(column[:, None], row, out=scratch)
        np.subtract(matrix, scratch, out=matrix)
        field.reduce_once(matrix, scratch)
        rows.append(i)
        columns.append(c)
    return Pivots(np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64))


def _eliminate_strip(strip: Matrix, how: Elimination) -> Pivots:
    """`eliminate` for few rows: echelon form on a window, its transform applied to the whole strip.

    The window is the first columns in which the strip is nonzero, so the leftmost nonzero entry of
    a row in the window is its leftmost of all. A row that vanishes in the window may be nonzero
    elsewhere; then its pivot was passed over, and a wider window is taken, in the end all columns.
    """
    columns = np.flatnonzero(np.any(strip, axis=0))
    width = how.sizes.window
    while True:
        window = columns[:width]
        joined = np.concatenate([strip[:, window], np.eye(len(strip))], axis=1)
        found = row_echelon(joined, window.size, how.field)
        pivots = Pivots(found.rows, window[found.columns])
        transform = np.ascontiguousarray(joined[:, window.size :])
        whole = transform @ strip
        how.field.reduce_once(whole, np.empty_like(whole))
        dependent = np.delete(whole, pivots.rows, axis=0)
        if width >= columns.size or not dependent.any():
            strip[:] = whole
            return _compact(strip, pivots)
        width *= 8


def _compact(panel: Matrix, pivots: Pivots) -> Pivots:
    """Move the pivot rows to the front."""
    if len(pivots) < len(panel):
        panel[: len(pivots)] = panel[pivots.rows]
    return pivots


def subtract_product(
    target: Matrix, source: Matrix, left: Matrix, right: Matrix, how: Elimination
) -> None:
    """Set target = source − left @ right, reduced once; `target` may be `source`.

    At most `exact_terms` products and one residue are summed, so the sum is exact before the
    reduction (`PrimeField.exact_terms`).
    """
    if right.size == 0 or target.size == 0:
        if target is not source:
            target[:] = source
        return

    def task(tile: tuple[slice, slice]) -> None:
        rows, columns = tile
        product = left[rows] @ right[:, columns]
        part = target[rows, columns]
        np.subtract(source[rows, columns], product, out=part)
        how.field.reduce_once(part, product)

    shared = target.shape[0] * right.size >= _SHARED
    team = how.workers if shared else CALLER
    team.run(task, _tiles(target.shape, team.count, how.sizes))


def _tiles(shape: tuple[int, ...], team: int, sizes: BlockSizes) -> Iterator[tuple[slice, slice]]:
    """Tiles of a matrix, small enough to stay in cache and at least one for each of the team."""
    height, width = shape
    columns = min(sizes.tile_columns, -(-width // team))
    for i in range(0, height, sizes.tile_rows):
        for j in range(0, width, columns):
            yield slice(i, i + sizes.tile_rows), slice(j, j + columns)
