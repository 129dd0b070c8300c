"""A process at the end of a pipe, for work that must be possible to end at any time.

A pipe has no name and no port: nobody but the process that made it and the one that inherited it
can send anything through it, so no other user of the machine can have code run here.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any


class PipedProcess:
    """A new process that answers what comes through a pipe, and this side of the pipe.

    What is sent is given to `answer` with a function that sends something before the answer. The
    process never sees Ctrl-C: the one that started it does, and ends it. It dies with that one.
    """

    def __init__(
        self,
        answer: Callable[[Any, Callable[[Any], None]], Any],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        context = get_context("spawn")
        self.pipe: Connection
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, answer), daemon=True)
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


def _serve(pipe: Connection, answer: Callable[[Any, Callable[[Any], None]], Any]) -> None:
    """The life of a process: questions in, answers out, until the pipe closes."""
    threading.Thread(target=_die_with_parent, daemon=True).start()
    sys.stdout = sys.stderr  # what is printed on the way is no part of an answer
    with suppress(EOFError, OSError):
        while True:
            pipe.send(answer(pipe.recv(), pipe.send))


def _die_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


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
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        for name in changes:
            if name in before:
                os.environ[name] = before[name]
            else:
                os.environ.pop(name, None)
