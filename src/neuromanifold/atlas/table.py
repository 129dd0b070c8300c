"""Tables of records, read like a store: those of the package, and what `atlas export` wrote."""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

from neuromanifold.architecture import READOUTS, Architecture
from neuromanifold.atlas.export import value_of
from neuromanifold.atlas.record import Record
from neuromanifold.atlas.schema import VERDICTS
from neuromanifold.atlas.shipped import named_file, no_file
from neuromanifold.atlas.store import Store, Sweep, open_for_reading
from neuromanifold.atlas.tasks import Task, largest_primes
from neuromanifold.errors import FileFormatError, NeuromanifoldError

_NEEDED = ("widths", "ranks", "tokens", "rank", "upper", "verdict")
_NETWORK = [field.name for field in fields(Architecture)]
_FOUND = ("rank", "upper", "upper_source", "verdict", "formula", "statement", "error")


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
    values = {name: value_of(name, text) for name, text in row.items()}
    given = {name: value for name, value in values.items() if value is not None}
    readout, verdict = given.get("readout", "logits"), given.get("verdict")
    rank, upper = given.get("rank"), given.get("upper")
    if readout not in READOUTS or verdict not in VERDICTS:
        raise ValueError("its readout or its verdict is an unknown word")
    if any((verdict is None) != (bound is None) for bound in (rank, upper)):
        raise ValueError("its verdict and its bounds do not go together")
    if verdict == "exact" and rank != upper:
        raise ValueError("it is called exact, and its bounds differ")
    network = Architecture.from_dict({name: given[name] for name in _NETWORK if name in given})
    prime = given.get("prime") or largest_primes(1)[0]
    return Record(
        Task(network, readout, given.get("seed", 0), prime),
        rank_proved=True if verdict == "exact" else None,
        formula_status=given.get("status"),
        seconds=given.get("seconds", 0.0),
        **{name: given[name] for name in _FOUND if name in given},
    )
