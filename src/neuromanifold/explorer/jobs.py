"""Long work, in processes of its own: with progress, a time limit, and a way to stop it.

A lane is one worker process and the jobs that wait for it. The process is started with the first
job, serves one job after another, and is ended when a job is cancelled or exceeds its time, since
nothing else stops a matrix product; the next job starts a new one.
"""

import itertools
import queue
import secrets
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Literal

from neuromanifold.errors import ArgumentError, NeuromanifoldError
from neuromanifold.processes import PipedProcess

State = Literal["waiting", "running", "done", "refused", "failed", "cancelled"]
Report = Callable[[str], None]
Runner = Callable[[str, dict[str, Any], Report], Any]
"""What a worker runs: the name of a task, its arguments, and where to say how far it is."""

WAITING_JOBS = 8
KEPT_JOBS = 64
_POLL = 0.05


@dataclass(slots=True)
class Job:
    """A piece of work, and how far it is.

    Attributes:
        task: the name of what is to be done.
        arguments: for the task.
        id: how the page names it.
        state: `refused` has a sentence for the user, `failed` is an error of the program.
        message: what is being done, or why it ended.
        result: the answer when it is done.
        seconds: how long it has been running.
    """

    task: str
    arguments: dict[str, Any]
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    state: State = "waiting"
    message: str = "waiting for the worker"
    result: Any = None
    seconds: float = 0.0
    finished: threading.Event = field(default_factory=threading.Event)

    def end(self, state: State, message: str, result: Any = None) -> None:
        """Note how it ended, once."""
        if not self.finished.is_set():
            self.state, self.message, self.result = state, message, result
            self.finished.set()

    def to_dict(self) -> dict[str, Any]:
        """What the page is told."""
        return {
            "id": self.id,
            "task": self.task,
            "state": self.state,
            "message": self.message,
            "seconds": round(self.seconds, 1),
            "result": self.result,
        }


class Lane:
    """One worker process and its queue."""

    def __init__(self, runner: Runner, time_limit: float) -> None:
        self._runner = runner
        self._time_limit = time_limit
        self._queue: queue.Queue[Job | None] = queue.Queue()
        self._process: PipedProcess | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Put a job at the end of the queue."""
        if self._queue.qsize() >= WAITING_JOBS:
            raise ArgumentError(
                f"{WAITING_JOBS} pieces of work are waiting; cancel one or wait until one is done"
            )
        self._queue.put(job)

    def close(self) -> None:
        """End the worker."""
        self._queue.put(None)
        self._stop()

    def _serve(self) -> None:
        while (job := self._queue.get()) is not None:
            if not job.finished.is_set():
                self._run(job)

    def _run(self, job: Job) -> None:
        started = time.monotonic()
        try:
            connection = self._worker()
            connection.send((job.task, job.arguments))
            job.state = "running"
            while not job.finished.is_set():
                job.seconds = time.monotonic() - started
                if job.seconds > self._time_limit:
                    job.end("cancelled", f"stopped after {self._time_limit:g} s, the time limit")
                elif connection.poll(_POLL):
                    said = connection.recv()
                    if isinstance(said, tuple):
                        job.end(*said)
                        return
                    job.message = said
        except (EOFError, OSError):
            job.end("failed", "the worker ended, perhaps for want of memory; ask for less")
        self._stop()  # cancelled, too long, or dead

    def _worker(self) -> Connection:
        if self._process is None or not self._process.is_alive:
            self._process = PipedProcess(partial(_answer, self._runner))
        return self._process.pipe

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.stop()


class Jobs:
    """The jobs of a session, in a lane for what takes long and one for what is quick."""

    def __init__(self, runner: Runner, *, time_limit: float) -> None:
        self._lanes = {True: Lane(runner, time_limit), False: Lane(runner, time_limit)}
        self._jobs: dict[str, Job] = {}

    def submit(self, task: str, arguments: dict[str, Any], *, long: bool) -> Job:
        """Start a job, or let it wait."""
        job = Job(task, arguments)
        self._lanes[long].submit(job)
        self._jobs[job.id] = job
        ended = [one for one in self._jobs.values() if one.finished.is_set()]
        for one in itertools.islice(ended, max(0, len(self._jobs) - KEPT_JOBS)):
            del self._jobs[one.id]
        return job

    def get(self, id_: str) -> Job:
        """The job with this id."""
        if id_ not in self._jobs:
            raise ArgumentError("this piece of work is not known any more; start it again")
        return self._jobs[id_]

    def cancel(self, id_: str) -> Job:
        """Stop a job, whether it waits or runs."""
        job = self.get(id_)
        job.end("cancelled", "cancelled")
        return job

    def close(self) -> None:
        """Stop everything."""
        for job in self._jobs.values():
            job.end("cancelled", "the explorer was stopped")
        for lane in self._lanes.values():
            lane.close()


def _answer(
    runner: Runner, asked: tuple[str, dict[str, Any]], report: Report
) -> tuple[State, str, Any]:
    """How a task with its arguments ends in a worker, and why, and with which result."""
    try:
        return "done", "done", runner(*asked, report)
    except NeuromanifoldError as error:
        return "refused", " ".join(str(error).split()), None
    except MemoryError:
        return "refused", "there is not enough memory for this; ask for something smaller", None
    except Exception as error:  # the page gets a sentence, the terminal the whole story
        traceback.print_exc()
        return "failed", f"this is an error of the program, please report it: {error!r}", None
