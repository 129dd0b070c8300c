"""A time limit for a computation in the current thread.

Dask runs tasks in threads, where signals do not reach. CPython can raise an exception in another
thread before its next bytecode, which is soon enough: our computations are many short array
operations.
"""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class DeadlinePassed(BaseException):
    """Raised in a thread whose time is over; no `except Exception` on the way stops it."""


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Raise `DeadlinePassed` in the body when it takes longer; None sets no limit."""
    if seconds is None:
        yield
        return
    thread = threading.get_ident()
    lock = threading.Lock()
    over = False

    def expire() -> None:
        with lock:
            if not over:
                _raise_in(thread, DeadlinePassed)

    timer = threading.Timer(seconds, expire)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with lock:
            over = True
            # A body that ended as the timer went off may have the exception still to come.
            _raise_in(thread, None)
        timer.cancel()


def _raise_in(thread: int, exception: type[BaseException] | None) -> None:
    """Schedule an exception in a thread; None takes a scheduled one back."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), None if exception is None else ctypes.py_object(exception)
    )
