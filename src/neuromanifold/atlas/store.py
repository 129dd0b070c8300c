"""The store: one SQLite file of records, written by one command and read by any number.

Durability. All of a batch's records and the sweep's counters go in one transaction, so after
`kill -9` at any moment, or a full disk, the file holds whole batches; what was running is found
missing and done again. With the write-ahead log and `synchronous = FULL` that also holds when the
machine goes down. The schema is created in one transaction together with the marks that make the
file an atlas, so no half-made atlas exists either.
"""

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from neuromanifold.atlas.grid import Grid
from neuromanifold.atlas.lock import writing
from neuromanifold.atlas.record import RECORD_VERSION, VERDICTS, Record
from neuromanifold.atlas.schema import (
    APPLICATION_ID,
    INSERT_RESULT,
    RESULT_KEY,
    SCHEMA,
    SCHEMA_VERSION,
    SELECT_RESULTS,
    DamagedRowError,
    described,
    record_of,
    result_row,
    tables,
)
from neuromanifold.atlas.tasks import Task
from neuromanifold.display import Recorded
from neuromanifold.errors import FileFormatError, NeuromanifoldError

_LOOKS, _MOMENT = 20, 0.05
"""How often, after how many seconds, a store is looked at that somebody begins to write."""
_LOOKUP = 400
"""Tasks looked up with one query: below SQLite's smallest limit for parameters of a query, 999."""


@dataclass(frozen=True, slots=True)
class Sweep(Recorded):
    """How far a sweep in a store has come.

    Attributes:
        name: the grid's name.
        tasks: how many tasks it has.
        done: how many of them have a record; overlapping sweeps of the same file count what
            another one has computed when they are run again.
        computed: how many records its runs have computed.
        busy_seconds: how long those runs took.
    """

    name: str
    tasks: int
    done: int
    computed: int
    busy_seconds: float
    _json = "name tasks done computed busy_seconds left speed"

    @property
    def left(self) -> int:
        """How many tasks have no record yet."""
        return self.tasks - self.done

    @property
    def speed(self) -> float | None:
        """Records a second."""
        return self.computed / self.busy_seconds if self.busy_seconds else None


class Store:
    """An open store. Only `open_for_writing` gives one that can be written."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    def begin_sweep(self, grid: Grid, tasks: int, done: int) -> None:
        """Note that a grid is run, and how many of its tasks are done already."""
        with self._transaction():
            self._connection.execute(
                "INSERT INTO sweeps (fingerprint, name, grid, tasks, done) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET name = excluded.name, done = excluded.done",
                (grid.fingerprint, grid.name, grid.source, tasks, done),
            )

    def add(self, records: Sequence[Record], grid: Grid, busy_seconds: float) -> None:
        """Write the records of a sweep, all or none; a finished one is never replaced."""
        with self._transaction():
            self._connection.executemany(
                "INSERT INTO architectures (json) VALUES (?) ON CONFLICT DO NOTHING",
                [(record.task.architecture.to_json(),) for record in records],
            )
            self._connection.executemany(INSERT_RESULT, map(result_row, records))
            self._connection.execute(
                "UPDATE sweeps SET done = done + ?1, computed = computed + ?1, "
                "busy_seconds = busy_seconds + ?2 WHERE fingerprint = ?3",
                (len(records), busy_seconds, grid.fingerprint),
            )

    def missing(self, tasks: Iterable[Task], *, retry: bool = False) -> Iterator[Task]:
        """Those of the tasks that have no record; with `retry`, or one with an error."""
        condition = "AND r.error IS NULL" if retry else ""
        stream = iter(tasks)
        while chunk := list(islice(stream, _LOOKUP)):
            names = {task: task.architecture.to_json() for task in chunk}
            distinct = list(dict.fromkeys(names.values()))
            found = self._connection.execute(
                "SELECT a.json, r.readout, r.seed, r.prime FROM architectures AS a "
                "JOIN results AS r ON r.architecture = a.id "
                f"WHERE a.json IN ({', '.join('?' * len(distinct))}) "
                f"AND r.record_version = ? {condition}",
                (*distinct, RECORD_VERSION),
            )
            present = {tuple(row) for row in found}
            for task, name in names.items():
                if (name, task.readout, task.seed, task.prime) not in present:
                    yield task

    def sweeps(self) -> list[Sweep]:
        """All sweeps that were run on this file."""
        rows = self._connection.execute(
            "SELECT name, tasks, done, computed, busy_seconds FROM sweeps ORDER BY rowid"
        )
        found = [Sweep(**dict(row)) for row in rows]
        for sweep in found:
            counts = (sweep.tasks, sweep.done, sweep.computed)
            if not (
                isinstance(sweep.name, str)
                and all(isinstance(count, int) and count >= 0 for count in counts)
                and isinstance(sweep.busy_seconds, float)
            ):
                raise self._damaged("the list of its sweeps")
        return found

    def verdicts(self) -> dict[str | None, int]:
        """How many records have each verdict; None counts the failed ones."""
        rows = self._connection.execute(
            "SELECT verdict, count(*) AS records FROM results GROUP BY verdict"
        )
        found = {row["verdict"]: row["records"] for row in rows}
        if not found.keys() <= set(VERDICTS):
            raise self._damaged("a verdict")
        return found

    def records(self) -> Iterator[Record]:
        """All records, in an order that does not depend on the run; a damaged one is refused."""
        rows = self._connection.execute(
            f"{SELECT_RESULTS} ORDER BY a.json, r.readout, r.prime, r.seed"
        )
        for row in rows:
            try:
                yield record_of(row)
            except DamagedRowError as error:
                raise self._damaged(f"a row: {error}") from None

    def discard_damaged(self) -> int:
        """Take damaged rows away, so that their tasks are found missing; how many there were."""
        damaged = []
        for row in self._connection.execute(SELECT_RESULTS):
            try:
                record_of(row)
            except DamagedRowError:
                damaged.append(tuple(row[column] for column in RESULT_KEY))
        if damaged:
            # As bytes, since a damaged key need not be a text.
            named = " AND ".join(f"CAST({key} AS BLOB) IS CAST(? AS BLOB)" for key in RESULT_KEY)
            with self._transaction():
                self._connection.executemany(f"DELETE FROM results WHERE {named}", damaged)
        return len(damaged)

    def _damaged(self, what: str) -> FileFormatError:
        return FileFormatError(
            f"{self.path} is damaged in {what}; `atlas run` with its grid computes damaged rows "
            "again, or go back to a copy"
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """A transaction; what SQLite cannot write is one sentence, and nothing is lost."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise NeuromanifoldError(
                f"{self.path} cannot be written: {error}; everything finished before is in it: "
                "make room and run the same command again"
            ) from None


@contextmanager
def open_for_writing(path: str | Path) -> Iterator[Store]:
    """Open a store, or create it; for as long as it is open no other command can write it.

    The write-ahead log is for the time of writing: at rest the file is complete in itself, so that
    it can be read where nothing can be written.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileFormatError(f"the folder {path.parent} does not exist; make it first")
    with writing(path), closing(_connect(path, "mode=rw")) as connection, _readable(path):
        if _is_empty(connection, path):
            connection.executescript(SCHEMA)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        try:
            yield Store(path, connection)
        finally:
            # While somebody reads, the log stays: the last writer or `atlas run` takes it away.
            with suppress(sqlite3.OperationalError):
                connection.execute("PRAGMA busy_timeout = 0")
                connection.execute("PRAGMA journal_mode = DELETE")


@contextmanager
def open_for_reading(path: str | Path) -> Iterator[Store]:
    """Open a store that exists, without changing it; a command may be writing it."""
    path = Path(path)
    if not path.is_file():
        raise FileFormatError(f"{path} is not a file; give an atlas made by `atlas run`")
    with _readable(path), closing(_connect_for_reading(path)) as connection:
        if _is_empty(connection, path):
            raise FileFormatError(f"{path} is empty; give an atlas made by `atlas run`")
        yield Store(path, connection)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """What SQLite cannot read is one sentence."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite quotes a damaged schema
        raise FileFormatError(
            f"{path} cannot be read: {error}; if a command that wrote it was killed, run that "
            "again, otherwise go back to a copy"
        ) from None


def _connect_for_reading(path: Path) -> sqlite3.Connection:
    """A connection that writes nothing, not even beside the file where that is not possible."""
    for _ in range(_LOOKS):
        connection = _connect(path, "mode=ro")
        try:
            connection.execute("PRAGMA page_count").fetchone()
        except sqlite3.OperationalError:
            connection.close()
            log = path.with_name(path.name + "-wal")
            if log.exists() and log.stat().st_size:
                raise
            if not os.access(path.parent, os.W_OK):
                break
            time.sleep(_MOMENT)  # somebody may be about to begin the log
        except sqlite3.DatabaseError:
            return connection  # it is no database, which the look at its marks says better
        else:
            return connection
    # With a log that is empty, in a folder that cannot be written: nobody writes it now.
    return _connect(path, "mode=ro&immutable=1")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?{mode}", uri=True, isolation_level=None, timeout=30
        )
    except sqlite3.Error as error:
        raise FileFormatError(f"{path} cannot be opened: {error}") from None
    connection.row_factory = sqlite3.Row
    connection.text_factory = _text
    # A file from somebody else: no functions from its schema, and no value larger than any of ours.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2**24)
    return connection


def _text(stored: bytes) -> str | bytes:
    """A text of the file; bytes that are none are left as they are, for the row is damaged."""
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored


def _is_empty(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether nothing was ever written; a file that is no atlas of this version is refused."""
    try:
        # In this order: reading the first mark rolls back what a killed command left behind.
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
    except sqlite3.Error as error:
        raise FileFormatError(f"{path} is not an atlas: {error}; give another file") from None
    if pages == 0:
        return True
    if application != APPLICATION_ID:
        raise FileFormatError(f"{path} is not an atlas but another database; give another file")
    if version != SCHEMA_VERSION:
        age, remedy = (
            ("a newer", "update neuromanifold")
            if version > SCHEMA_VERSION
            else ("an older", "run its grid again")
        )
        raise FileFormatError(
            f"{path} was made by {age} version of neuromanifold (format {version}; this one "
            f"writes {SCHEMA_VERSION}): {remedy}, or use another file"
        )
    if described(connection) != tables():
        raise FileFormatError(f"{path} does not have the tables of an atlas; give another file")
    return False
