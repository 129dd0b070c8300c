"""A Dask cluster that is running already, with workers on any number of machines."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from neuromanifold.atlas.computation import run_batch
from neuromanifold.atlas.record import RECORD_VERSION, Record
from neuromanifold.atlas.sweep import Finished
from neuromanifold.atlas.tasks import Task
from neuromanifold.errors import NeuromanifoldError

if TYPE_CHECKING:
    from distributed import Client, Future

_CONNECT_SECONDS = 8
_WORKER_SECONDS = 60

_PROBE = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
from distributed import Client
Client(sys.argv[1], timeout=float(sys.argv[2])).scheduler_info()
os._exit(0)
"""


class DaskCluster:
    """The workers of a scheduler (a `Cluster`)."""

    def __init__(self, client: "Client") -> None:
        from distributed import as_completed

        self._client = client
        self._running: dict[Future[list[Record]], list[Task]] = {}
        self._completed = as_completed(loop=client.loop)

    @property
    def cores(self) -> int:
        """The threads of all workers."""
        return max(1, sum(self._client.nthreads().values()))

    def submit(self, batch: list[Task], time_limit: float | None) -> None:
        """Hand the batch to the scheduler."""
        future = self._client.submit(run_batch, batch, time_limit, RECORD_VERSION, pure=False)
        self._running[future] = batch
        self._completed.add(future)

    def wait(self) -> Finished:
        """Wait for a batch; Dask gives that of a dead worker to others before it gives up."""
        from distributed import KilledWorker

        future = next(self._completed)
        batch = self._running.pop(future)
        if future.status == "finished":
            return Finished(batch, future.result())
        error = future.exception() if future.status == "error" else None
        if isinstance(error, KilledWorker):
            return Finished(batch, None)
        if isinstance(error, NeuromanifoldError):
            raise error
        reason = "the scheduler went away" if error is None else f"{type(error).__name__}: {error}"
        raise NeuromanifoldError(
            f"the cluster cannot run the tasks ({reason}); what is finished is stored: "
            "run the same command again"
        )


@contextmanager
def dask_cluster(address: str) -> Iterator[DaskCluster]:
    """Connect to a scheduler that is running, and leave it running."""
    from distributed import Client

    _check_scheduler(address)
    # A worker or a scheduler that goes away is our business, which has its own sentence.
    for name in ("distributed", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    try:
        try:
            client.wait_for_workers(1, timeout=_WORKER_SECONDS)
        except TimeoutError:
            raise NeuromanifoldError(
                f"the Dask scheduler at {address} has no workers; start some with "
                f"`dask worker {address}`"
            ) from None
        yield DaskCluster(client)
    finally:
        with suppress(OSError, TimeoutError):
            client.close(timeout=_CONNECT_SECONDS)


def _check_scheduler(address: str) -> None:
    """Refuse an address where no Dask scheduler is.

    Dask's client takes what answers there for a scheduler: silence keeps it waiting and strange
    bytes make it allocate what they say. So a process of its own tries it first, which can be
    ended.
    """
    try:
        code = subprocess.run(
            [sys.executable, "-c", _PROBE, address, str(0.75 * _CONNECT_SECONDS)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_CONNECT_SECONDS,
        ).returncode
    except subprocess.TimeoutExpired:
        code = None
    if code != 0:
        raise NeuromanifoldError(
            f"no Dask scheduler answers at {address} within {_CONNECT_SECONDS:g} s; start one with "
            "`dask scheduler`, or leave --scheduler out"
        )
