"""Tables of records: those of the package, and those that are written, CSV and Parquet.

A CSV table is read like a store.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any

from neuromanifold.architecture import READOUTS, Architecture
from neuromanifold.atlas.record import COLUMNS, OUTCOME, VERDICTS, Record
from neuromanifold.atlas.shipped import named_file
from neuromanifold.atlas.store import Store, Sweep, open_for_reading
from neuromanifold.atlas.tasks import Task, largest_primes
from neuromanifold.errors import ArgumentError, FileFormatError, NeuromanifoldError
from neuromanifold.files import write_whole

_ROWS = 10_000
"""Rows held at a time, so that memory does not grow with the table."""
_NEEDED = ("widths", "ranks", "tokens", "rank", "upper", "verdict")
_LISTS = ("widths", "ranks", "value_ranks")
_INTEGERS = (
    *("depth", "tokens", "heads", "parameters", "seed", "prime"),
    *("rank", "upper", "unexplained", "formula", "difference"),
)
_REALS = ("temperature", "seconds")


class Table:
    """A CSV table as `atlas export` writes it.

    Columns that are left out have the value that most records have: seed 0, the usual prime, the
    logits, one head. Whether the rank is a proved lower bound is known of exact records only.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def records(self) -> Iterator[Record]:
        """All records, in the order of the rows; a row that is none is refused."""
        line = 1
        try:
            with self.path.open(encoding="utf-8", newline="") as file:
                for line, row in enumerate(csv.DictReader(file, strict=True), 2):  # noqa: B007
                    yield _record(row)
        except (ValueError, TypeError, KeyError, csv.Error, NeuromanifoldError) as error:
            raise FileFormatError(
                f"{self.path} is no table of an atlas: line {line}: {error}; "
                "make it with `atlas export`"
            ) from None

    def verdicts(self) -> dict[str | None, int]:
        """How many records have each verdict; None counts the failed ones."""
        return Counter(record.verdict for record in self.records())

    def sweeps(self) -> list[Sweep]:
        """A table does not know the sweeps that it came from."""
        return []


@contextmanager
def open_atlas(name: str | Path) -> Iterator[Store | Table]:
    """Open a store or a table for reading, by its path or by the name of one of the package."""
    path = named_file(name, "tables")
    if path.suffix == ".csv":
        yield Table(path)
    else:
        with open_for_reading(path) as store:
            yield store


def _record(row: Mapping[str, str]) -> Record:
    """The record in a row; what it cannot mean raises."""
    missing = [column for column in _NEEDED if column not in row]
    if missing:
        raise ValueError(f"the column {missing[0]} is missing")
    if None in row.values() or len(row) != len(set(row) - {None}):
        raise ValueError("it has not as many cells as there are columns")
    given = {name: _value(name, text) for name, text in row.items() if text}
    readout, verdict = given.get("readout", "logits"), given.get("verdict")
    rank, upper = given.get("rank"), given.get("upper")
    if readout not in READOUTS or verdict not in VERDICTS:
        raise ValueError("its readout or its verdict is an unknown word")
    if any((verdict is None) != (bound is None) for bound in (rank, upper)):
        raise ValueError("its verdict and its bounds do not go together")
    if verdict == "exact" and rank != upper:
        raise ValueError("it is called exact, and its bounds differ")
    names = {field.name for field in fields(Architecture)}
    network = Architecture.from_dict({name: given[name] for name in given if name in names})
    prime = given.get("prime") or largest_primes(1)[0]
    found = {name: given[name] for name in given if name in OUTCOME}
    found |= {"rank_proved": verdict == "exact" or None, "formula_status": given.get("status")}
    return Record(Task(network, readout, given.get("seed", 0), prime), **found)


def _value(column: str, text: str) -> Any:
    """The value that a cell of this column stands for; the inverse of `cell`."""
    if column in _LISTS:
        return tuple(int(part) for part in text.split("-"))
    if column in _INTEGERS:
        return int(text)
    return float(text) if column in _REALS else text


def cell(value: object) -> str:
    """A value as text: lists with dashes between the numbers, nothing for None."""
    if isinstance(value, tuple):
        return "-".join(map(str, value))
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value)


def check_columns(columns: Sequence[str], what: str = "column") -> tuple[str, ...]:
    """The columns, if there are such."""
    unknown = [column for column in columns if column not in COLUMNS]
    if unknown:
        raise ArgumentError(f"unknown {what} {unknown[0]!r}; the {what}s are {', '.join(COLUMNS)}")
    return tuple(columns)


def write_csv(
    records: Iterable[Record],
    path: str | Path,
    columns: Sequence[str] = COLUMNS,
    *,
    force: bool = False,
) -> int:
    """Write a CSV table and return its number of rows; lists are written like `3-2-3`."""
    columns = check_columns(columns)

    def write(part: Path) -> int:
        count = 0
        with part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            for count, record in enumerate(records, 1):  # noqa: B007
                values = record.values()
                writer.writerow([cell(values[column]) for column in columns])
        return count

    return write_whole(path, write, force=force)


def write_parquet(
    records: Iterable[Record],
    path: str | Path,
    columns: Sequence[str] = COLUMNS,
    *,
    force: bool = False,
) -> int:
    """Write a Parquet table and return its number of rows."""
    import pyarrow as pa
    from pyarrow import parquet

    kinds = dict.fromkeys(_LISTS, pa.list_(pa.int64())) | dict.fromkeys(_INTEGERS, pa.int64())
    kinds |= dict.fromkeys(_REALS, pa.float64())
    schema = pa.schema(
        [(column, kinds.get(column, pa.string())) for column in check_columns(columns)]
    )

    def write(part: Path) -> int:
        count, stream = 0, iter(records)
        with parquet.ParquetWriter(part, schema) as writer:
            while rows := [record.values() for record in islice(stream, _ROWS)]:
                writer.write_table(pa.Table.from_pylist(rows, schema))
                count += len(rows)
        return count

    return write_whole(path, write, force=force)
