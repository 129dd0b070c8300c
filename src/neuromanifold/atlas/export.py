"""Tables of records: CSV, and Parquet with the extra `parquet`."""

import csv
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from neuromanifold.atlas.record import COLUMNS, Record
from neuromanifold.errors import ArgumentError
from neuromanifold.files import write_whole

_ROWS = 10_000
"""Rows held at a time, so that memory does not grow with the table."""


def check_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """The columns, if there are such."""
    unknown = [column for column in columns if column not in COLUMNS]
    if unknown:
        raise ArgumentError(f"unknown column {unknown[0]!r}; the columns are {', '.join(COLUMNS)}")
    return tuple(columns)


def write_csv(records: Iterable[Record], path: str | Path, columns: Sequence[str] = COLUMNS) -> int:
    """Write a CSV table and return its number of rows; lists are written like `3-2-3`."""
    columns = check_columns(columns)

    def write(part: Path) -> int:
        count = 0
        with part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            for record in records:
                values = record.values()
                writer.writerow([cell(values[column]) for column in columns])
                count += 1
        return count

    return write_whole(path, write, force=True)


def write_parquet(
    records: Iterable[Record], path: str | Path, columns: Sequence[str] = COLUMNS
) -> int:
    """Write a Parquet table and return its number of rows."""
    if find_spec("pyarrow") is None:
        raise ArgumentError(
            "Parquet needs the package pyarrow: install neuromanifold[parquet], or export --csv"
        )
    import pyarrow as pa
    from pyarrow import parquet

    columns = check_columns(columns)
    schema = pa.schema([(column, _parquet_type(pa, column)) for column in columns])

    def write(part: Path) -> int:
        count, stream = 0, iter(records)
        with parquet.ParquetWriter(part, schema) as writer:
            while rows := [record.values() for record in islice(stream, _ROWS)]:
                data = [{column: row[column] for column in columns} for row in rows]
                writer.write_table(pa.Table.from_pylist(data, schema))
                count += len(rows)
        return count

    return write_whole(path, write, force=True)


def cell(value: object) -> str:
    """A value as text: lists with dashes between the numbers, nothing for None."""
    if isinstance(value, tuple):
        return "-".join(map(str, value))
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value)


_LISTS = ("widths", "ranks", "value_ranks")
_INTEGERS = (
    *("depth", "tokens", "heads", "parameters", "seed", "prime"),
    *("rank", "upper", "unexplained", "formula", "difference"),
)
_REALS = ("temperature", "seconds")


def value_of(column: str, text: str) -> Any:
    """The value that a cell of this column stands for; the inverse of `cell`."""
    if not text:
        return None
    if column in _LISTS:
        return tuple(int(part) for part in text.split("-"))
    if column in _INTEGERS:
        return int(text)
    return float(text) if column in _REALS else text


def _parquet_type(pa: Any, column: str) -> Any:
    if column in _LISTS:
        return pa.list_(pa.int64())
    if column in _INTEGERS:
        return pa.int64()
    return pa.float64() if column in _REALS else pa.string()
