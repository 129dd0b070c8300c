"""Execution on Dask distributed: a cluster of local processes, or one that is running already."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

import dask
from distributed import Client, Future, KilledWorker, LocalCluster, as_completed

from neuromanifold.atlas.computation import run_batch
from neuromanifold.atlas.record import RECORD_VERSION, Record, failed
from neuromanifold.atlas.tasks import Task
from neuromanifold.errors import NeuromanifoldError

_AHEAD = 2
"""Batches in flight for every core: one running, one waiting, so that no core waits for us."""

_CONNECT_SECONDS = 10

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
    "distributed.worker.daemon": True,
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where batches run.

    Attributes:
        client: the connection to the scheduler.
        cores: how many batches run at the same time.
    """

    client: Client
    cores: int


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
        yield Cluster(client, count)


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
        yield Cluster(client, max(1, sum(client.nthreads().values())))


def execute(
    cluster: Cluster,
    batches: Iterator[list[Task]],
    time_limit: float | None,
    finished: Callable[[list[Record]], None],
) -> None:
    """Run the batches, a bounded number at a time, and hand over the records of each.

    A worker that dies loses its running batch, which Dask gives to another. A batch that keeps
    killing workers is cut in two, so that one task that cannot be done is found and recorded.
    """
    running: dict[Future[list[Record]], list[Task]] = {}
    completed = as_completed(loop=cluster.client.loop)

    def submit(batch: list[Task]) -> None:
        future = cluster.client.submit(run_batch, batch, time_limit, RECORD_VERSION, pure=False)
        running[future] = batch
        completed.add(future)

    for batch in islice(batches, _AHEAD * cluster.cores):
        submit(batch)
    while running:
        future = next(completed)
        batch = running.pop(future)
        retried = _collect(future, batch, finished)
        for part in retried or islice(batches, 1):
            submit(part)


def _collect(
    future: Future[list[Record]], batch: list[Task], finished: Callable[[list[Record]], None]
) -> list[list[Task]]:
    """Hand over what a batch came to; the parts of it that are to be tried again."""
    if future.status == "finished":
        finished(future.result())
        return []
    error = future.exception() if future.status == "error" else None
    if isinstance(error, KilledWorker):
        if len(batch) > 1:
            half = len(batch) // 2
            return [batch[:half], batch[half:]]
        finished([failed(batch[0], "every worker that tried this task died, perhaps of memory")])
        return []
    if isinstance(error, NeuromanifoldError):
        raise error
    reason = "the scheduler went away" if error is None else f"{type(error).__name__}: {error}"
    raise NeuromanifoldError(
        f"the cluster cannot run the tasks ({reason}); what is finished is stored: "
        "run the same command again"
    )
