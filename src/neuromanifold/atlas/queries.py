"""Questions to a store: how far it is, which records answer a question, and maps of them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from neuromanifold.atlas.expression import parse_condition
from neuromanifold.atlas.record import COLUMNS, Record
from neuromanifold.atlas.store import Store, Sweep
from neuromanifold.atlas.table import Table, cell
from neuromanifold.display import Recorded


@dataclass(frozen=True, slots=True)
class Status(Recorded):
    """What a store holds.

    Attributes:
        done: records with a result.
        exact: how many of them prove a dimension.
        failed: records with an error.
        left: tasks of the file's sweeps without a record.
        sweeps: the sweeps.
    """

    done: int
    exact: int
    failed: int
    left: int
    sweeps: tuple[Sweep, ...]


def status(store: Store | Table) -> Status:
    """How far the sweeps of a store are; quick, however many records there are."""
    verdicts, sweeps = store.verdicts(), store.sweeps()
    failed = verdicts.pop(None, 0)
    return Status(
        done=sum(verdicts.values()),
        exact=verdicts.get("exact", 0),
        failed=failed,
        left=sum(sweep.left for sweep in sweeps),
        sweeps=tuple(sweeps),
    )


def select(
    store: Store | Table,
    where: str | None = None,
    *,
    disagreements: bool = False,
    unexplained: bool = False,
) -> Iterator[Record]:
    """The records for which everything asked for holds.

    Args:
        store: the store, or a table of one.
        where: a condition on the columns of records, such as `heads > 1 and depth == 2`.
        disagreements: the formula is not the rank that was found.
        unexplained: the kernel is larger than the known symmetries.
    """
    condition = parse_condition(where, COLUMNS) if where else None
    # Here and not in SQL: every row is read, so that a damaged one cannot hide behind a condition.
    return (
        record
        for record in store.records()
        if (not disagreements or record.difference)
        and (not unexplained or (record.unexplained or 0) > 0)
        and (condition is None or condition.holds(record.values()))
    )


MapValue = Literal["dimension", "difference", "unexplained"]
MAP_VALUES: dict[MapValue, tuple[str, str]] = {
    "dimension": ("rank", "rank found"),
    "difference": ("difference", "formula minus rank found"),
    "unexplained": ("unexplained", "unexplained dimensions"),
}
"""What a map shows: the column of a record, and what it is called."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The records at one place of a map.

    Attributes:
        x: the value of the field across.
        y: the value of the field down.
        low: the least of what was found there.
        high: the largest.
        count: how many records there are.
        proved: whether all of them prove a dimension.
    """

    x: Any
    y: Any
    low: int
    high: int
    count: int
    proved: bool


def map_cells(records: Iterable[Record], x: str, y: str, value: MapValue) -> list[Cell]:
    """For every pair of values of two fields the range of what was found there.

    Values that are written alike share a cell; records without the value are left out.
    """
    here: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        fields = record.values()
        if fields[MAP_VALUES[value][0]] is not None:
            here[cell(fields[x]), cell(fields[y])].append(fields)
    cells = []
    for rows in here.values():
        found = [fields[MAP_VALUES[value][0]] for fields in rows]
        proved = all(fields["verdict"] == "exact" for fields in rows)
        place = rows[0][x], rows[0][y]
        cells.append(Cell(*place, min(found), max(found), len(found), proved))
    return cells
