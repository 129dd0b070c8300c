"""The tables of a store, and the marks by which a file is known to be one."""

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from reprlib import repr as shortened
from typing import Any

from neuromanifold.architecture import READOUTS, Architecture
from neuromanifold.atlas.record import OUTCOME, RECORD_VERSION, VERDICTS, Record
from neuromanifold.atlas.tasks import Task
from neuromanifold.errors import NeuromanifoldError
from neuromanifold.files import read_json

APPLICATION_ID = 0x6E6D6174  # "nmat"
SCHEMA_VERSION = 3

# An architecture is stored once, however many tasks it has, so that the key of a result is short.
# `done` of a sweep is written in the same transaction as the results it counts.
SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE architectures (
    id INTEGER PRIMARY KEY,
    json TEXT NOT NULL UNIQUE
);
CREATE TABLE results (
    architecture INTEGER NOT NULL REFERENCES architectures (id),
    readout TEXT NOT NULL,
    seed INTEGER NOT NULL,
    prime INTEGER NOT NULL,
    record_version INTEGER NOT NULL,
    rank INTEGER,
    upper INTEGER,
    upper_source TEXT,
    rank_proved INTEGER,
    verdict TEXT,
    formula INTEGER,
    formula_status TEXT,
    statement TEXT,
    error TEXT,
    seconds REAL NOT NULL,
    evidence TEXT NOT NULL,
    checksum TEXT NOT NULL,
    PRIMARY KEY (architecture, readout, seed, prime, record_version)
) WITHOUT ROWID;
CREATE INDEX results_by_verdict ON results (verdict);
CREATE TABLE sweeps (
    fingerprint TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    grid TEXT NOT NULL,
    tasks INTEGER NOT NULL,
    done INTEGER NOT NULL,
    computed INTEGER NOT NULL DEFAULT 0,
    busy_seconds REAL NOT NULL DEFAULT 0
);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""

_WHOLE = ("rank", "upper", "rank_proved", "formula")
_KINDS: dict[str, Any] = {name: int | None if name in _WHOLE else str | None for name in OUTCOME}
_KINDS |= {"json": str, "readout": str, "seed": int, "prime": int, "evidence": str}
_KINDS["seconds"] = float
"""What SQLite must give back for each column."""

INSERT_RESULT = f"""
INSERT INTO results VALUES (
    (SELECT id FROM architectures WHERE json = ?), {", ".join("?" * (len(OUTCOME) + 6))}
)
ON CONFLICT DO UPDATE SET
    {", ".join(f"{name} = excluded.{name}" for name in (*OUTCOME, "evidence", "checksum"))}
WHERE results.error IS NOT NULL
"""

SELECT_RESULTS = """
SELECT a.json, r.* FROM results AS r LEFT JOIN architectures AS a ON a.id = r.architecture
"""


RESULT_KEY = ("architecture", "readout", "seed", "prime", "record_version")
"""The columns that name a row of `results`."""


class DamagedRowError(ValueError):
    """A row does not say what was written."""


def result_row(record: Record) -> tuple[Any, ...]:
    """The values of `INSERT_RESULT`."""
    task = record.task
    fields = {name: getattr(record, name) for name in OUTCOME} | {"seconds": float(record.seconds)}
    values = (
        task.architecture.to_json(),
        *(task.readout, task.seed, task.prime, RECORD_VERSION),
        *(int(value) if isinstance(value, bool) else value for value in fields.values()),
        json.dumps(record.evidence),
    )
    return (*values, _checksum(values))


def _checksum(values: Sequence[Any]) -> str:
    """A hash of a row's values, by which damage is noticed (not forgery: anyone can compute it)."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]


def record_of(row: sqlite3.Row) -> Record:
    """The record in a row of `SELECT_RESULTS`; a row that was damaged raises."""
    values = tuple(row)
    try:
        intact = row["checksum"] == _checksum((*values[:1], *values[2:-1]))
    except (TypeError, UnicodeError):
        intact = False
    if not intact:
        raise DamagedRowError("its checksum does not fit its content")
    for column, kinds in _KINDS.items():
        if not isinstance(row[column], kinds):
            raise DamagedRowError(f"{column} is {shortened(row[column])}")
    if row["readout"] not in READOUTS or row["verdict"] not in VERDICTS:
        raise DamagedRowError("its readout or its verdict is an unknown word")
    try:
        architecture = Architecture.from_json(row["json"])
        evidence = read_json(row["evidence"])
    except NeuromanifoldError as error:
        raise DamagedRowError(str(error)) from None
    task = Task(architecture, row["readout"], row["seed"], row["prime"])
    found = {name: row[name] for name in OUTCOME}
    if found["rank_proved"] is not None:
        found["rank_proved"] = bool(found["rank_proved"])
    return Record(task, **found, evidence=evidence)


@cache
def tables() -> frozenset[tuple[str, str, str | None]]:
    """The tables and indices of a store, as SQLite describes them."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(SCHEMA)
        return described(connection)


def described(connection: sqlite3.Connection) -> frozenset[tuple[str, str, str | None]]:
    """What a database consists of; triggers and views would be there too."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master")
    return frozenset(tuple(row) for row in rows)
