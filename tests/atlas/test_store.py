"""A store keeps every finished record once, and refuses what is not its own."""

import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.atlas import store as store_module
from neuromanifold.atlas.grid import Grid
from neuromanifold.atlas.queries import select, status
from neuromanifold.atlas.record import Record, failed
from neuromanifold.atlas.schema import SCHEMA_VERSION
from neuromanifold.atlas.store import open_for_reading, open_for_writing
from neuromanifold.atlas.tasks import Task, survey
from neuromanifold.errors import FileFormatError, NeuromanifoldError

GRID = Grid.from_dict(
    {
        "architecture": {"widths": {"each": "1..3"}, "ranks": [1], "tokens": [1, 2]},
        "tasks": {"seeds": 3, "readouts": ["logits", "decisions"]},
    }
)
TASKS = tuple(survey(GRID))


def record(task, **fields):
    given = {
        "rank": 3,
        "upper": 3,
        "upper_source": "symmetries",
        "rank_proved": True,
        "verdict": "exact",
        "formula": 3,
        "formula_status": "conjecture",
        "statement": "all-widths",
        "seconds": 0.25,
        "evidence": {"inputs": 11, "symmetries": {"scaling": 1}},
    }
    return Record(task, **{**given, **fields})


def filled(path, records, grid=GRID):
    with open_for_writing(path) as store:
        store.begin_sweep(grid, len(TASKS), 0)
        store.add(records, grid, 2.0)
    return path


def test_records_come_back_as_they_were(tmp_path):
    task = TASKS[0]
    softmax = Task(Architecture((2, 2), (1,), 2, "softmax", temperature=0.5), "logits", 0, 7)
    records = [
        record(task),
        record(softmax, rank=2, rank_proved=False, verdict="bounds", formula=None),
        failed(TASKS[1], "Trouble:\n two lines", 1.5),
    ]
    with open_for_reading(filled(tmp_path / "a.sqlite", records)) as store:
        assert sorted(store.records(), key=repr) == sorted(records, key=repr)
    assert records[2].error == "Trouble: two lines"


def test_missing_is_what_has_no_record(tmp_path):
    done = TASKS[::2]
    with open_for_reading(filled(tmp_path / "a.sqlite", map_records(done))) as store:
        assert list(store.missing(iter(TASKS))) == list(TASKS[1::2])


def map_records(tasks):
    return [record(task) for task in tasks]


def test_only_failed_records_are_done_again_and_replaced(tmp_path):
    path = filled(tmp_path / "a.sqlite", [record(TASKS[0]), failed(TASKS[1], "no")])
    with open_for_writing(path) as store:
        assert list(store.missing(TASKS[:2])) == []
        assert list(store.missing(TASKS[:2], retry=True)) == [TASKS[1]]
        store.add([record(TASKS[0], rank=1), record(TASKS[1], rank=1)], GRID, 1.0)
        assert {r.task: r.rank for r in store.records()} == {TASKS[0]: 3, TASKS[1]: 1}


def test_status_counts(tmp_path):
    records = [
        record(TASKS[0]),
        record(TASKS[1], rank=2, verdict="bounds"),
        failed(TASKS[2], "no"),
    ]
    with open_for_reading(filled(tmp_path / "a.sqlite", records)) as store:
        found = status(store)
    assert (found.done, found.exact, found.failed) == (2, 1, 1)
    assert found.left == len(TASKS) - 3
    assert found.sweeps[0].speed == 1.5


def test_selections_are_what_their_names_say(tmp_path):
    cases = {
        "confirmed": {},
        "refuted": {"formula": 4},
        "rank agrees": {"upper": 5, "verdict": "bounds"},
        "rank differs": {"upper": 5, "verdict": "bounds", "formula": 4},
        "no formula": {"formula": None, "formula_status": "none"},
    }
    records = [record(task, **fields) for task, fields in zip(TASKS, cases.values(), strict=False)]
    records.append(failed(TASKS[len(cases)], "no"))
    unproved = record(TASKS[9], rank=5, upper=6, rank_proved=False, verdict="bounds", formula=4)
    assert unproved.agreement == "rank differs"
    with open_for_reading(filled(tmp_path / "a.sqlite", records)) as store:

        def agreements(*arguments, **options):
            return sorted(r.agreement for r in select(store, *arguments, **options))

        assert agreements() == sorted([*cases, "failed"])
        assert agreements(disagreements=True) == ["rank differs", "refuted"]
        assert agreements(unexplained=True) == ["rank agrees", "rank differs"]
        assert agreements("difference == 1", unexplained=True) == ["rank differs"]


def test_a_second_writer_is_refused_while_readers_are_not(tmp_path):
    path = tmp_path / "a.sqlite"
    with open_for_writing(path) as store:
        store.begin_sweep(GRID, len(TASKS), 0)
        with pytest.raises(FileFormatError, match="another command is writing"):
            open_for_writing(path).__enter__()
        with open_for_reading(path) as reader:
            store.add([record(TASKS[0])], GRID, 1.0)
            assert status(reader).done == 1
    with open_for_writing(path):
        pass
    assert [p.name for p in tmp_path.iterdir()] == ["a.sqlite"]


def test_a_lock_dies_with_its_holder(tmp_path):
    path = tmp_path / "a.sqlite"
    code = (
        "import os, sys; from neuromanifold.atlas.store import open_for_writing\n"
        "open_for_writing(sys.argv[1]).__enter__(); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, path]).returncode == -9
    with open_for_writing(path) as store:
        assert status(store).done == 0


def test_a_full_disk_loses_nothing(tmp_path):
    path = filled(tmp_path / "a.sqlite", map_records(TASKS[:5]))
    with open_for_writing(path) as store:
        (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        many = [record(task, evidence={"text": "x" * 4000}) for task in TASKS[5:]]
        with pytest.raises(NeuromanifoldError, match=r"cannot be written: .*disk is full; every"):
            store.add(many, GRID, 1.0)
        assert status(store).done == 5
        assert store.sweeps()[0].done == 5
    with open_for_writing(path) as store:
        assert list(store.missing(TASKS)) == list(TASKS[5:])
        store.add(many, GRID, 1.0)
        assert status(store).done == len(TASKS)


def text(path):
    path.write_text("this is my diary, and long enough to be a page of it\n" * 200)


def database(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()


def changed(path, statement, *values):
    """A filled store after somebody's statement."""
    filled(path, map_records(TASKS[:9]))
    execute(path, statement, *values)


def execute(path, statement, *values):
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA ignore_check_constraints = 1")
        connection.execute(statement, values)
    connection.close()


def of_version(version):
    return lambda path: changed(path, f"PRAGMA user_version = {version}")


def with_a_trigger(path):
    changed(path, "CREATE TRIGGER t AFTER INSERT ON results BEGIN DELETE FROM results; END")


def with_a_view(path):
    changed(path, "ALTER TABLE results RENAME TO mine")
    execute(path, "CREATE VIEW results AS SELECT * FROM mine")


@pytest.mark.parametrize("opening", [open_for_writing, open_for_reading])
@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (text, "is not an atlas: file is not a database"),
        (database, "is not an atlas but another database"),
        (of_version(SCHEMA_VERSION + 1), "was made by a newer version"),
        (of_version(SCHEMA_VERSION - 1), "was made by an older version"),
        (of_version(0), "was made by an older version"),
        (of_version(-1), "was made by an older version"),
        (with_a_trigger, "does not have the tables of an atlas"),
        (with_a_view, "does not have the tables of an atlas"),
        (lambda path: path.mkdir(), ""),
    ],
)
def test_a_file_that_is_not_ours_is_refused_and_left_alone(make, sentence, opening, tmp_path):
    path = tmp_path / "a.sqlite"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(FileFormatError) as caught:
        opening(path).__enter__()
    assert sentence in str(caught.value)
    assert (path.read_bytes() if path.is_file() else b"") == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.sqlite"]


def test_an_empty_file_becomes_a_store_and_is_none_before(tmp_path):
    path = tmp_path / "a.sqlite"
    with pytest.raises(FileFormatError, match="is not a file"):
        open_for_reading(path).__enter__()
    path.touch()
    with pytest.raises(FileFormatError, match="is empty"):
        open_for_reading(path).__enter__()
    with open_for_writing(path) as store:
        assert status(store).done == 0
    with pytest.raises(FileFormatError, match="does not exist"):
        open_for_writing(tmp_path / "no" / "a.sqlite").__enter__()


DAMAGE = {
    "rank": ["UPDATE results SET rank = 4", "UPDATE results SET rank = NULL"],
    "text for a number": ["UPDATE results SET upper = 'three'", "UPDATE results SET seed = 'x'"],
    "blobs": ["UPDATE results SET error = x'00ff'", "UPDATE results SET verdict = x'ff'"],
    "words": ["UPDATE results SET verdict = 'exact!'", "UPDATE results SET readout = 'loss'"],
    "evidence": ["UPDATE results SET evidence = '{'", "UPDATE results SET evidence = NULL"],
    "architecture": [
        "UPDATE architectures SET json = '{}' || id",
        "UPDATE architectures SET json = replace(json, '[1]', '[2]')",
        "DELETE FROM architectures",
        "UPDATE results SET architecture = 99 WHERE seed = 0",
    ],
    "time": ["UPDATE results SET seconds = 'long'", "UPDATE results SET seconds = 9e999"],
    "checksum": ["UPDATE results SET checksum = 'x'"],
    "no UTF-8": [
        "UPDATE results SET evidence = CAST(x'7bff' AS TEXT)",
        "UPDATE results SET readout = CAST(x'6cff' AS TEXT)",
        "UPDATE architectures SET json = CAST(x'7bff' AS TEXT) || id",
    ],
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_reported_never_shown_and_mended_by_the_next_run(kind, tmp_path):
    for number, statement in enumerate(DAMAGE[kind]):
        path = tmp_path / f"{number}.sqlite"
        filled(path, map_records(TASKS[:9]))
        try:
            execute(path, statement)
        except sqlite3.IntegrityError:
            continue  # SQLite itself refuses it
        with (
            pytest.raises(FileFormatError, match="is damaged in a row"),
            open_for_reading(path) as store,
        ):
            list(select(store, disagreements=True))
        with open_for_writing(path) as store:
            assert store.discard_damaged() > 0
            missing = list(store.missing(TASKS[:9]))
            assert missing
            store.add(map_records(missing), GRID, 1.0)
            assert sorted(r.task.seed for r in store.records()) == sorted(t.seed for t in TASKS[:9])
            assert store.discard_damaged() == 0


def test_a_damaged_list_of_sweeps_and_damaged_pages_are_reported(tmp_path):
    path = tmp_path / "a.sqlite"
    changed(path, "UPDATE sweeps SET tasks = 'many'")
    with pytest.raises(FileFormatError, match="list of its sweeps"), open_for_reading(path) as s:
        status(s)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"CREATE TABLE results", b"CREATE TABL\xf2 results"))
    with pytest.raises(FileFormatError, match="cannot be read"), open_for_reading(path) as s:
        list(s.records())
    path.write_bytes(whole[:4096] + bytes(len(whole) - 4096))
    for opening in (open_for_reading, open_for_writing):
        with pytest.raises(FileFormatError, match="cannot be read"), opening(path) as store:
            list(store.records())


def test_a_lock_goes_by_the_file_and_not_by_its_name(tmp_path):
    path, linked, hard = tmp_path / "a.sqlite", tmp_path / "link", tmp_path / "hard"
    filled(path, [])
    linked.symlink_to(path)
    hard.hardlink_to(path)
    code = (
        "import sys; from neuromanifold.atlas.store import open_for_writing\n"
        "open_for_writing(sys.argv[1]).__enter__()"
    )
    with open_for_writing(path):
        for other in (path, linked, hard):
            with pytest.raises(FileFormatError, match="another command is writing"):
                open_for_writing(other).__enter__()
        found = subprocess.run([sys.executable, "-c", code, hard], capture_output=True, text=True)
        assert "another command is writing" in found.stderr
    with open_for_writing(linked):
        pass


def test_a_store_is_read_where_nothing_can_be_written():
    folder = Path(tempfile.mkdtemp())
    try:
        path = filled(folder / "a.sqlite", map_records(TASKS[:3]))
        logged = folder / "logged.sqlite"
        shutil.copy(path, logged)
        execute(logged, "PRAGMA journal_mode = WAL")
        folder.chmod(0o555)
        code = (
            "import os, sys; from neuromanifold.atlas.store import open_for_reading\n"
            "os.getuid() or os.setuid(65534)  # root can write everywhere\n"
            "with open_for_reading(sys.argv[1]) as store: print(len(list(store.records())))"
        )
        for file in (path, logged):
            found = subprocess.run(
                [sys.executable, "-c", code, file], capture_output=True, text=True
            )
            assert (found.stdout, found.stderr) == ("3\n", "")
        assert sorted(p.name for p in folder.iterdir()) == ["a.sqlite", "logged.sqlite"]
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_store_that_somebody_begins_to_write_is_looked_at_again(tmp_path, monkeypatch):
    """It was read as a file that nobody writes, and called malformed."""
    path, modes = filled(tmp_path / "a.sqlite", []), []

    class Beginning:
        def execute(self, *_):
            raise sqlite3.OperationalError("unable to open database file")

        def close(self):
            pass

    def connect(path, mode, real=store_module._connect):
        modes.append(mode)
        return Beginning() if len(modes) == 1 else real(path, mode)

    monkeypatch.setattr(store_module, "_connect", connect)
    with open_for_reading(path) as store:
        assert status(store).done == 0
    assert modes == ["mode=ro", "mode=ro"]


def test_reading_leaves_nothing_behind(tmp_path):
    path = filled(tmp_path / "a.sqlite", map_records(TASKS[:3]))
    before = path.read_bytes()
    with open_for_reading(path) as store:
        assert len(list(store.records())) == 3
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.sqlite"]
