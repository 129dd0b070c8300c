"""Execution on Dask distributed: a cluster of local processes, or one that is running already."""

import logging
import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import dask
from distributed import Client, Future, KilledWorker, LocalCluster, as_completed

from neuromanifold.atlas.computation import run_batch
from neuromanifold.atlas.record import RECORD_VERSION, Record, failed
from neuromanifold.atlas.tasks import Task
from neuromanifold.errors import NeuromanifoldError

_CONNECT_SECONDS = 10
_WORKER_SECONDS = 60

# Every process is one core's worth of work, and traced programs run on the CPU.
_WORKER_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
}

_QUIET = {
    # A worker that is killed is our business, not the reader's: its batch is done again.
    "logging": {"distributed": "critical", "tornado": "critical", "bokeh": "critical"},
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where batches run.

    Attributes:
        client: the connection to the scheduler.
    """

    client: Client

    @property
    def cores(self) -> int:
        """How many batches can run at the same time now; workers may come and go."""
        return max(1, sum(self.client.nthreads().values()))


@contextmanager
def local_cluster(workers: int | None = None) -> Iterator[Cluster]:
    """Start processes of one thread each, by default one a core, and stop them in the end."""
    count = workers or len(os.sched_getaffinity(0))
    with (
        dask.config.set(_QUIET),
        LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=True,
            # Without an address the scheduler's HTTP server would want one fixed port.
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,
            env=_WORKER_ENVIRONMENT,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield Cluster(client)


@contextmanager
def running_cluster(address: str) -> Iterator[Cluster]:
    """Connect to a scheduler that is running, and leave it running."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise NeuromanifoldError(
            f"no Dask scheduler answers at {address} ({type(error).__name__}); start one with "
            "`dask scheduler`, or leave --scheduler out"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_WORKER_SECONDS)
        except TimeoutError:
            raise NeuromanifoldError(
                f"the Dask scheduler at {address} has no workers; start some with "
                f"`dask worker {address}`"
            ) from None
        yield Cluster(client)


def execute(
    cluster: Cluster,
    batches: Iterator[list[Task]],
    time_limit: float | None,
    finished: Callable[[list[Record]], None],
) -> None:
    """Run the batches, one a core at a time, and hand over the records of each.

    A worker that dies loses its running batch, which Dask gives to another. As no batch waits at a
    worker, one that keeps killing workers is known by that: it is cut in two, until a task that
    cannot be done stands alone and is recorded.
    """
    running: dict[Future[list[Record]], list[Task]] = {}
    again: deque[list[Task]] = deque()
    completed = as_completed(loop=cluster.client.loop)

    def submit() -> None:
        for _ in range(cluster.cores - len(running)):
            batch = again.popleft() if again else next(batches, None)
            if batch is None:
                return
            future = cluster.client.submit(run_batch, batch, time_limit, RECORD_VERSION, pure=False)
            running[future] = batch
            completed.add(future)

    submit()
    while running:
        future = next(completed)
        outcome = _outcome(future, running.pop(future))
        again.extend(outcome.again)
        # First the next batch, then the disk: meanwhile the worker has something to do.
        submit()
        if outcome.records:
            finished(outcome.records)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The records of a batch, or the parts of it that are to be tried again."""

    records: list[Record]
    again: list[list[Task]]


def _outcome(future: Future[list[Record]], batch: list[Task]) -> _Outcome:
    if future.status == "finished":
        return _Outcome(future.result(), [])
    error = future.exception() if future.status == "error" else None
    if isinstance(error, KilledWorker):
        if len(batch) > 1:
            half = len(batch) // 2
            return _Outcome([], [batch[:half], batch[half:]])
        died = failed(batch[0], "every worker that tried this task died, perhaps of memory")
        return _Outcome([died], [])
    if isinstance(error, NeuromanifoldError):
        raise error
    reason = "the scheduler went away" if error is None else f"{type(error).__name__}: {error}"
    raise NeuromanifoldError(
        f"the cluster cannot run the tasks ({reason}); what is finished is stored: "
        "run the same command again"
    )
