"""A sweep from the grid to the last record; running it again does what is missing.

Batches of its tasks run on a *cluster*, and one that kills its worker does not stop the others.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from neuromanifold.atlas.record import Record, failed
from neuromanifold.atlas.store import Store
from neuromanifold.atlas.tasks import Survey, Task, batches

_DEATHS = 2
"""A worker may die of something else; a task that stood alone twice when its worker died is it."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A batch that is no longer running.

    Attributes:
        batch: its tasks.
        records: what came out, or None when its worker died.
    """

    batch: list[Task]
    records: list[Record] | None


class Cluster(Protocol):
    """Where batches run: processes of this machine, or a cluster of Dask."""

    @property
    def cores(self) -> int:
        """How many batches can run at the same time now; workers may come and go."""
        ...

    def submit(self, batch: list[Task], time_limit: float | None) -> None:
        """Start a batch; called only while fewer than `cores` are running."""
        ...

    def wait(self) -> Finished:
        """Wait for any batch that is running."""
        ...


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the sweep is.

    Attributes:
        tasks: all tasks of the grid.
        left: how many have no record yet.
        computed: how many this run has computed.
        failed: how many of those failed.
        seconds: how long this run has taken.
    """

    tasks: int
    left: int
    computed: int
    failed: int
    seconds: float


def run_sweep(
    survey: Survey,
    store: Store,
    cluster: Callable[[], AbstractContextManager[Cluster]],
    *,
    time_limit: float | None = None,
    retry: bool = False,
    report: Callable[[Progress], None],
) -> Progress:
    """Compute and store every task of the grid that has no record yet.

    Args:
        survey: the grid, walked through.
        store: open for writing.
        cluster: opens the cluster; not called when nothing is left.
        time_limit: seconds for each task.
        retry: also do again what failed before.
        report: called at the beginning and after every batch.
    """
    grid, tasks = survey.grid, survey.tasks
    missing = list(store.missing(survey, retry=retry))
    store.begin_sweep(grid, tasks, tasks - len(missing))
    progress = Progress(tasks, len(missing), 0, 0, 0.0)
    report(progress)
    if not missing:
        return progress
    with cluster() as opened:
        started = time.monotonic()

        def finished(records: list[Record]) -> None:
            nonlocal progress
            seconds = time.monotonic() - started
            store.add(records, grid, seconds - progress.seconds)
            progress = Progress(
                tasks,
                progress.left - len(records),
                progress.computed + len(records),
                progress.failed + sum(record.error is not None for record in records),
                seconds,
            )
            report(progress)

        execute(opened, batches(missing), time_limit, finished)
    return progress


def execute(
    cluster: Cluster,
    batches: Iterator[list[Task]],
    time_limit: float | None,
    finished: Callable[[list[Record]], None],
) -> None:
    """Run the batches, one a core at a time, and hand over the records of each.

    As no batch waits at a worker, one that kills workers is known by that: it is cut in two, until
    a task that cannot be done stands alone and is recorded.
    """
    again: deque[list[Task]] = deque()
    deaths: Counter[Task] = Counter()
    running = 0

    def submit() -> None:
        nonlocal running
        while running < cluster.cores:
            batch = again.popleft() if again else next(batches, None)
            if batch is None:
                return
            cluster.submit(batch, time_limit)
            running += 1

    submit()
    while running:
        done = cluster.wait()
        running -= 1
        records = _mourn(done.batch, deaths, again) if done.records is None else done.records
        # First the next batch, then the disk: meanwhile the worker has something to do.
        submit()
        if records:
            finished(records)


def _mourn(batch: list[Task], deaths: Counter[Task], again: deque[list[Task]]) -> list[Record]:
    """What to do with a batch whose worker died: try parts of it again, or give up on its task."""
    if len(batch) > 1:
        half = len(batch) // 2
        again.extend([batch[:half], batch[half:]])
        return []
    deaths[batch[0]] += 1
    if deaths[batch[0]] < _DEATHS:
        again.append(batch)
        return []
    return [failed(batch[0], "every worker that tried this task died, perhaps of memory")]
