"""A store keeps every finished record once, and refuses what is not its own."""

import sqlite3
import subprocess
import sys

import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.atlas.grid import Grid
from neuromanifold.atlas.queries import select, status
from neuromanifold.atlas.record import Record, failed
from neuromanifold.atlas.store import open_for_reading, open_for_writing
from neuromanifold.atlas.tasks import Task, tasks_of
from neuromanifold.errors import FileFormatError, NeuromanifoldError

GRID = Grid.from_dict(
    {
        "architecture": {"widths": {"each": "1..3"}, "ranks": [1], "tokens": [1, 2]},
        "tasks": {"seeds": 3, "readouts": ["logits", "decisions"]},
    }
)
TASKS = tuple(tasks_of(GRID))


def record(task, **fields):
    given = {
        "lower": 3,
        "upper": 3,
        "upper_source": "symmetries",
        "lower_proved": True,
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
        record(softmax, lower=2, lower_proved=False, verdict="bounds", formula=None),
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
        store.add([record(TASKS[0], lower=1), record(TASKS[1], lower=1)], GRID, 1.0)
        assert {r.task: r.lower for r in store.records()} == {TASKS[0]: 3, TASKS[1]: 1}


def test_status_counts(tmp_path):
    records = [
        record(TASKS[0]),
        record(TASKS[1], lower=2, verdict="bounds"),
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
    unproved = record(TASKS[9], lower=5, upper=6, lower_proved=False, verdict="bounds", formula=4)
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


def newer(path):
    filled(path, [record(TASKS[0])])
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()


@pytest.mark.parametrize("opening", [open_for_writing, open_for_reading])
@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (text, "is not an atlas: file is not a database"),
        (database, "is not an atlas but another database"),
        (newer, "was made by a newer version"),
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
