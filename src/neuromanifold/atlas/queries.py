"""Questions to a store: how far it is, and which records answer a question."""

from collections.abc import Iterator
from dataclasses import dataclass

from neuromanifold.atlas.expression import parse_condition
from neuromanifold.atlas.record import COLUMNS, Record
from neuromanifold.atlas.store import Store, Sweep
from neuromanifold.atlas.table import Table


@dataclass(frozen=True, slots=True)
class Status:
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
