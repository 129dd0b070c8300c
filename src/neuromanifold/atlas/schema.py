"""The tables of a store, and the marks by which a file is known to be one."""

import json
import sqlite3
from typing import Any

from neuromanifold.architecture import Architecture
from neuromanifold.atlas.record import RECORD_VERSION, Record
from neuromanifold.atlas.tasks import Task

APPLICATION_ID = 0x6E6D6174  # "nmat"
SCHEMA_VERSION = 1

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
    lower INTEGER,
    upper INTEGER,
    upper_source TEXT,
    lower_proved INTEGER,
    verdict TEXT,
    formula INTEGER,
    formula_status TEXT,
    statement TEXT,
    error TEXT,
    seconds REAL NOT NULL,
    evidence TEXT NOT NULL,
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

INSERT_RESULT = """
INSERT INTO results VALUES (
    (SELECT id FROM architectures WHERE json = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
)
ON CONFLICT DO UPDATE SET
    lower = excluded.lower, upper = excluded.upper, upper_source = excluded.upper_source,
    lower_proved = excluded.lower_proved, verdict = excluded.verdict, formula = excluded.formula,
    formula_status = excluded.formula_status, statement = excluded.statement,
    error = excluded.error, seconds = excluded.seconds, evidence = excluded.evidence
WHERE results.error IS NOT NULL
"""

SELECT_RESULTS = """
SELECT a.json, r.* FROM results AS r JOIN architectures AS a ON a.id = r.architecture
"""


def result_row(record: Record) -> tuple[Any, ...]:
    """The values of `INSERT_RESULT`."""
    task = record.task
    return (
        task.architecture.to_json(),
        task.readout,
        task.seed,
        task.prime,
        RECORD_VERSION,
        record.lower,
        record.upper,
        record.upper_source,
        record.lower_proved,
        record.verdict,
        record.formula,
        record.formula_status,
        record.statement,
        record.error,
        record.seconds,
        json.dumps(record.evidence),
    )


def record_of(row: sqlite3.Row) -> Record:
    """The record in a row of `SELECT_RESULTS`."""
    architecture = Architecture.from_json(row["json"])
    proved = row["lower_proved"]
    return Record(
        task=Task(architecture, row["readout"], row["seed"], row["prime"]),
        lower=row["lower"],
        upper=row["upper"],
        upper_source=row["upper_source"],
        lower_proved=None if proved is None else bool(proved),
        verdict=row["verdict"],
        formula=row["formula"],
        formula_status=row["formula_status"],
        statement=row["statement"],
        error=row["error"],
        seconds=row["seconds"],
        evidence=json.loads(row["evidence"]),
    )
