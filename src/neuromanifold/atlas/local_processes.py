"""A cluster of processes of this machine, each at the end of a pipe.

(A local Dask cluster listens on a port; authenticating its workers takes certificates, and a
package to make them.)
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait

from neuromanifold.atlas.computation import run_batch
from neuromanifold.atlas.record import RECORD_VERSION
from neuromanifold.atlas.sweep import Finished
from neuromanifold.atlas.tasks import Task
from neuromanifold.errors import NeuromanifoldError
from neuromanifold.processes import PipedProcess

# Every process is one core's worth of work, and traced programs run on the CPU.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_ENVIRONMENT = {**dict.fromkeys(_THREADS, "1"), "JAX_PLATFORMS": "cpu"}
_STARTS = 5
"""A worker that dies so often without having finished anything is not the batch's fault."""


class _Worker(PipedProcess):
    """One process, and the batch it is working on."""

    def __init__(self) -> None:
        self.batch: list[Task] | None = None
        super().__init__(_answer, _ENVIRONMENT)


class LocalProcesses:
    """Workers on this machine (a `Cluster`)."""

    def __init__(self, workers: list[_Worker]) -> None:
        self._workers = workers
        self._fruitless = 0

    @property
    def cores(self) -> int:
        """One batch a process."""
        return len(self._workers)

    def submit(self, batch: list[Task], time_limit: float | None) -> None:
        """Send the batch to a process that has nothing to do."""
        worker = next(worker for worker in self._workers if worker.batch is None)
        worker.batch = batch
        with suppress(OSError):  # it has died; `wait` will find that out
            worker.pipe.send((batch, time_limit, RECORD_VERSION))

    def wait(self) -> Finished:
        """Wait until a process has finished its batch, or has died and been replaced."""
        busy = [worker for worker in self._workers if worker.batch is not None]
        ready = wait([worker.pipe for worker in busy])
        worker = next(worker for worker in busy if worker.pipe in ready)
        batch, worker.batch = worker.batch or [], None
        try:
            answer = worker.pipe.recv()
        except (EOFError, OSError):
            self._fruitless += 1
            if self._fruitless >= _STARTS * max(1, len(self._workers)):
                raise NeuromanifoldError(
                    "the worker processes die before they have finished anything; perhaps there "
                    "is too little memory: try --workers 1"
                ) from None
            worker.stop()
            self._workers[self._workers.index(worker)] = _Worker()
            return Finished(batch, None)
        if isinstance(answer, BaseException):
            raise answer
        self._fruitless = 0
        return Finished(batch, answer)


@contextmanager
def local_processes(workers: int) -> Iterator[LocalProcesses]:
    """Start so many processes, and stop them in the end."""
    started: list[_Worker] = []
    try:
        for _ in range(workers):
            started.append(_Worker())  # noqa: PERF401 (those before a failed one must be stopped)
        yield LocalProcesses(started)
    finally:
        for worker in started:
            worker.stop()


def _answer(asked: tuple[list[Task], float | None, int], _: object) -> object:
    """The records of a batch, or why there are none."""
    try:
        return run_batch(*asked)
    except NeuromanifoldError as error:
        return error
