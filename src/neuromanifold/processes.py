"""A process at the end of a pipe, for work that must be possible to end at any time.

A pipe has no name and no port: nobody but the process that made it and the one that inherited it
can send anything through it, so no other user of the machine can have code run here.
"""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from typing import Any


class PipedProcess:
    """A new process that runs `serve(pipe, *arguments)`, and this side of the pipe.

    It never sees Ctrl-C: the one that started it does, and ends it.
    """

    def __init__(
        self,
        serve: Callable[..., None],
        *arguments: Any,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        context = get_context("spawn")
        self.pipe: Connection
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, *arguments), daemon=True)
        with _environment(environment or {}), _without_interrupts():
            self._process.start()
        theirs.close()

    @property
    def is_alive(self) -> bool:
        """Whether it is running."""
        return self._process.is_alive()

    def stop(self) -> None:
        """End the process, whatever it is doing: it holds nothing that could be lost."""
        self._process.kill()
        self._process.join()
        with suppress(OSError):
            self.pipe.close()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """What is blocked stays blocked in a process that is started, from its first instruction on."""
    resource_tracker.ensure_running()  # it would unblock the signal while it is started
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
