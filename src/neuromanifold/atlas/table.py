"""Tables of records, read like a store: those of the package, and what `atlas export` wrote."""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from neuromanifold.architecture import READOUTS, Architecture
from neuromanifold.atlas.record import Record
from neuromanifold.atlas.schema import VERDICTS
from neuromanifold.atlas.shipped import named_file, no_file
from neuromanifold.atlas.store import Store, Sweep, open_for_reading
from neuromanifold.atlas.tasks import Task, largest_primes
from neuromanifold.errors import FileFormatError, NeuromanifoldError

_LISTS = ("widths", "ranks", "value_ranks")
_NUMBERS = ("tokens", "heads")
_WORDS = ("attention", "skip", "mask")
_NEEDED = ("widths", "ranks", "tokens", "rank", "upper", "verdict")


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
    if not path.is_file():
        raise no_file(name, "tables", "an atlas made by `atlas run`")
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
    fields = {
        **{name: _sizes(row[name]) for name in _LISTS if row.get(name)},
        **{name: int(row[name]) for name in _NUMBERS if row.get(name)},
        **{name: row[name] for name in _WORDS if row.get(name)},
        "temperature": float(row.get("temperature") or 1),
    }
    readout = row.get("readout") or "logits"
    verdict, rank, upper = row["verdict"] or None, _whole(row["rank"]), _whole(row["upper"])
    if readout not in READOUTS or verdict not in VERDICTS:
        raise ValueError("its readout or its verdict is an unknown word")
    if any((verdict is None) != (bound is None) for bound in (rank, upper)):
        raise ValueError("its verdict and its bounds do not go together")
    if verdict == "exact" and rank != upper:
        raise ValueError("it is called exact, and its bounds differ")
    return Record(
        Task(
            Architecture.from_dict(fields),
            readout,
            int(row.get("seed") or 0),
            int(row.get("prime") or largest_primes(1)[0]),
        ),
        rank=rank,
        upper=upper,
        upper_source=row.get("upper_source") or None,
        rank_proved=True if verdict == "exact" else None,
        verdict=verdict,
        formula=_whole(row.get("formula")),
        formula_status=row.get("status") or None,
        statement=row.get("statement") or None,
        error=row.get("error") or None,
        seconds=float(row.get("seconds") or 0),
    )


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("-"))


def _whole(text: str | None) -> int | None:
    return int(text) if text else None
