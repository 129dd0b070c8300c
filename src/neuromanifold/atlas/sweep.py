"""A sweep from the grid to the last record; running it again does what is missing."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from neuromanifold.atlas.grid import Grid
from neuromanifold.atlas.record import Record
from neuromanifold.atlas.store import Store
from neuromanifold.atlas.tasks import batches, tasks_of

if TYPE_CHECKING:
    from neuromanifold.atlas.execution import Cluster


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
    grid: Grid,
    store: Store,
    tasks: int,
    cluster: Callable[[], AbstractContextManager["Cluster"]],
    *,
    time_limit: float | None = None,
    retry: bool = False,
    report: Callable[[Progress], None],
) -> Progress:
    """Compute and store every task of the grid that has no record yet.

    Args:
        grid: what to sweep.
        store: open for writing.
        tasks: the number of the grid's tasks, from its survey.
        cluster: opens the cluster; not called when nothing is left.
        time_limit: seconds for each task.
        retry: also do again what failed before.
        report: called at the beginning and after every batch.
    """
    left = sum(1 for _ in store.missing(tasks_of(grid), retry=retry))
    store.begin_sweep(grid, tasks, tasks - left)
    progress = Progress(tasks, left, 0, 0, 0.0)
    report(progress)
    if not left:
        return progress
    from neuromanifold.atlas.execution import execute

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

        missing = store.missing(tasks_of(grid), retry=retry)
        execute(opened, batches(missing), time_limit, finished)
    return progress
