"""A sweep from the grid to the last record; running it again does what is missing."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from neuromanifold.atlas.record import Record
from neuromanifold.atlas.store import Store
from neuromanifold.atlas.tasks import Survey, batches

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
    survey: Survey,
    store: Store,
    cluster: Callable[[], AbstractContextManager["Cluster"]],
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

        execute(opened, batches(missing), time_limit, finished)
    return progress
