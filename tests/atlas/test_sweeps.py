"""Sweeps that are killed, resumed, or lose workers have the rows of an undisturbed run."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial

import pytest

from commands import session_is_gone, start, wait_for
from neuromanifold.atlas.computation import run_task
from neuromanifold.atlas.grid import load_grid
from neuromanifold.atlas.queries import status
from neuromanifold.atlas.store import open_for_reading
from neuromanifold.atlas.tasks import survey

GRID = """
[architecture]
depth = "1..2"
widths = {{ each = "{widths}" }}
ranks = {{ equal = "1..2" }}
tokens = {tokens}
[tasks]
seeds = {seeds}
"""


@pytest.fixture
def grid(tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text(GRID.format(widths="1..2", tokens=2, seeds=4))
    return path


@pytest.fixture
def larger_grid(tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text(GRID.format(widths="1..3", tokens=[1, 2, 3], seeds=12))
    return path


def row(record):
    """A record as text, without the time it took."""
    content = (record.values() | {"seconds": None}, dict(record.evidence))
    return json.dumps(content, sort_keys=True)


def rows_of(path):
    with open_for_reading(path) as store:
        return sorted(row(record) for record in store.records())


def rows_expected(grid):
    """What a run comes to that knows neither Dask nor SQLite."""
    return sorted(row(run_task(task)) for task in survey(load_grid(grid)))


def done(path):
    """How many rows a store has; 0 as long as it is none."""
    if not path.exists() or not path.stat().st_size:
        return 0
    with open_for_reading(path) as store:
        return status(store).done


def moved_on(process, path, before):
    """Whether the sweep has written rows, or has ended."""
    return done(path) > before or process.poll() is not None


def kill(process):
    if process.poll() is not None:
        process.communicate()
        pytest.fail("the sweep ended before it was killed: make its grid larger")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    wait_for(lambda: session_is_gone(process))


def test_killed_sweeps_resume_to_the_same_rows(grid, tmp_path):
    out = tmp_path / "a.sqlite"
    command = ("atlas", "run", grid, "--out", out, "--workers", "1")
    at_once = start(*command)
    wait_for(out.exists)
    kill(at_once)
    midway = start(*command)
    wait_for(lambda: done(out))
    kill(midway)
    rows = rows_of(out)
    last = start(*command, "--json")
    answer, log = last.communicate(timeout=300)
    assert last.returncode == 0, log
    expected = rows_expected(grid)
    assert json.loads(answer)["computed"] == len(expected) - len(rows) < len(expected)
    assert set(rows) <= set(expected)
    assert rows_of(out) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.sqlite", "grid.toml"]
    again = start(*command, "--json")
    assert json.loads(again.communicate(timeout=60)[0])["computed"] == 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_sweep_killed_a_dozen_times_resumes_to_the_same_rows(larger_grid, tmp_path):
    out = tmp_path / "a.sqlite"
    command = ("atlas", "run", larger_grid, "--out", out, "--workers", "1")
    moments, found = random.Random(6), []
    for _ in range(12):
        process = start(*command)
        before, started = done(out), time.monotonic()
        # Half of the kills strike while it starts, the others when rows have been written.
        if moments.random() < 0.5:
            time.sleep(moments.uniform(0, 3))
        else:
            wait_for(partial(moved_on, process, out, before))
            time.sleep(moments.uniform(0, 0.3))
        kill(process)
        found.append((done(out), time.monotonic() - started))
        assert found[-1][0] >= before
    last = start(*command)
    _, log = last.communicate(timeout=600)
    assert last.returncode == 0, log
    assert 0 < found[5][0] < found[11][0]
    assert rows_of(out) == rows_expected(larger_grid)


@contextmanager
def running(*words):
    process = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli." + words[0], *map(str, words[1:])],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def scheduler(tmp_path):
    """A Dask scheduler on loopback, and its address."""
    file = tmp_path / "scheduler.json"
    options = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", file)

    def address():
        try:
            return json.loads(file.read_text())["address"]
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    with running("dask_scheduler", *options):
        yield wait_for(address)


def worker(address, tmp_path, name):
    options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
    return running(
        "dask_worker", address, *options, "--name", name, "--local-directory", tmp_path / name
    )


def test_a_sweep_on_a_running_cluster_survives_the_death_of_a_worker(grid, tmp_path):
    out = tmp_path / "a.sqlite"
    with (
        scheduler(tmp_path) as address,
        worker(address, tmp_path, "one") as one,
        worker(address, tmp_path, "two") as two,
    ):
        process = start("atlas", "run", grid, "--out", out, "--scheduler", address)
        wait_for(lambda: done(out))
        one.kill()
        one.wait()
        _, log = process.communicate(timeout=300)
        assert process.returncode == 0, log
        assert two.poll() is None
    assert rows_of(out) == rows_expected(grid)
