"""The atlas against two processes that run the same list by hand, and its store at size.

Run: python benchmarks/atlas.py [--million]
`--million` adds the status of a store with a million records, which takes a minute to fill.
"""

import multiprocessing
import sys
import tempfile
import time
import tracemalloc
from contextlib import nullcontext
from pathlib import Path

from neuromanifold.atlas.computation import run_task
from neuromanifold.atlas.grid import Grid
from neuromanifold.atlas.local_processes import local_processes
from neuromanifold.atlas.queries import status
from neuromanifold.atlas.record import Record
from neuromanifold.atlas.store import open_for_reading, open_for_writing
from neuromanifold.atlas.sweep import run_sweep
from neuromanifold.atlas.tasks import Task, batches, survey

PROCESSES = 2


def sample(networks: int, seeds: int = 1) -> Grid:
    """A grid of small networks."""
    fields = {"depth": "1..3", "widths": {"each": "2..9"}, "ranks": {"each": "1..3"}, "tokens": 3}
    tasks = {"sample": networks, "seeds": seeds}
    return Grid.from_dict({"architecture": fields, "tasks": tasks})


def _by_hand(tasks: list[Task], ready: multiprocessing.Barrier) -> None:
    run_task(Task(tasks[0].architecture, "logits", 99, tasks[0].prime))  # imports, untimed
    ready.wait()
    for task in tasks:
        run_task(task)


def throughput() -> None:
    """The same tasks by the atlas, store and all, and by two processes without it."""
    grid = sample(400)
    tasks = list(survey(grid))
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(PROCESSES + 1)
    processes = [
        context.Process(target=_by_hand, args=(tasks[start::PROCESSES], ready))
        for start in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    ready.wait()
    started = time.perf_counter()
    for process in processes:
        process.join()
    by_hand = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder, local_processes(PROCESSES) as cluster:
        warm_up = [Task(tasks[0].architecture, "logits", seed, tasks[0].prime) for seed in (98, 99)]
        for task in warm_up:
            cluster.submit([task], None)
        for _ in warm_up:
            cluster.wait()
        started = time.perf_counter()
        with open_for_writing(Path(folder) / "a.sqlite") as store:
            run_sweep(survey(grid), store, lambda: nullcontext(cluster), report=lambda _: None)
        atlas = time.perf_counter() - started
    print(f"400 tasks on {PROCESSES} processes, atlas / by hand: throughput {by_hand / atlas:.2f}"
          "  (wanted ≥ 0.90)")  # fmt: skip


def filled(path: Path, grid: Grid, chunk: int = 5000) -> int:
    """Fill a store with made-up records of a grid."""
    total = 0
    with open_for_writing(path) as store:
        store.begin_sweep(grid, survey(grid).tasks, 0)
        records: list[Record] = []
        for task in survey(grid):
            records.append(Record(task, 1, 1, "symmetries", True, "exact", 1, "theorem", "eq-7"))
            if len(records) == chunk:
                store.add(records, grid, 1.0)
                total, records = total + chunk, []
        store.add(records, grid, 1.0)
    return total + len(records)


def resuming() -> None:
    """The same command on a sweep that is done."""
    grid = sample(5000, seeds=2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.sqlite"
        count = filled(path, grid)
        started = time.perf_counter()
        with open_for_writing(path) as store:
            left = run_sweep(survey(grid), store, local_processes, report=lambda _: None).left
        seconds = time.perf_counter() - started
    print(f"resuming a finished sweep of {count} tasks ({left} left): {seconds:.1f} s"
          "  (wanted: seconds)")  # fmt: skip


def memory() -> None:
    """What the command holds while it goes through tasks, ten times as many."""
    peaks = []
    for seeds in (10, 100):
        grid = sample(1000, seeds=seeds)
        tracemalloc.start()
        for _ in batches(survey(grid)):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    print(f"memory for 100,000 tasks / for 10,000: {peaks[1] / peaks[0]:.2f}  (wanted ≈ 1)")


def million() -> None:
    """The status of a store with a million records."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.sqlite"
        count = filled(path, sample(10_000, seeds=100))
        started = time.perf_counter()
        with open_for_reading(path) as store:
            done = status(store).done
        seconds = time.perf_counter() - started
        size = path.stat().st_size / 1e6
    print(f"status of {done} of {count} records, {size:.0f} MB: {seconds:.2f} s  (wanted < 1)")


if __name__ == "__main__":
    memory()
    resuming()
    throughput()
    if "--million" in sys.argv:
        million()
