"""Waiting for long work: a line that counts on a terminal, a bar in a notebook, else plain lines.

Nothing appears in the first seconds, so that what is quick stays quiet.
"""

import html
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from neuromanifold.cost import duration_text

_PATIENCE = 3.0
"""Seconds after which it is said how far the work is."""

Show = Callable[[str, float | None], None]
"""Shows a line and the part that is done, if it is known."""


class Bar:
    """How far a piece of work is; whoever does it may say so with `at`."""

    def __init__(self, doing: str, expected: float | None) -> None:
        self.doing = doing
        self._expected = expected
        self._started = time.monotonic()
        self._part: float | None = None

    def at(self, done: int, total: int) -> None:
        """Say that so many of all pieces are done."""
        self._part = done / total if total else 1.0

    @property
    def part(self) -> float | None:
        """The part that is done, as it was said or from the expected time."""
        if self._part is not None or not self._expected:
            return self._part
        return min(1.0, self.seconds / self._expected)

    @property
    def seconds(self) -> float:
        """How long it has taken."""
        return time.monotonic() - self._started

    def line(self) -> str:
        """What is being done, since when, and how long it will still take."""
        expected = self.seconds / self._part if self._part else self._expected
        if expected is None:
            return f"{self.doing}: {duration_text(self.seconds)}"
        left = expected - self.seconds
        words = f"roughly {duration_text(left)} left" if left > 1 else "longer than was expected"
        return f"{self.doing}: {duration_text(self.seconds)}, {words}"


@contextmanager
def progress(doing: str, expected: float | None = None) -> Iterator[Bar]:
    """Show what is being done and how long it will still take, after a few seconds.

    Args:
        doing: what, in a word or two.
        expected: seconds that it should take; without, and until the work says how far it is,
            only the time that has passed is shown.
    """
    over, bar = threading.Event(), Bar(doing, expected)
    place = _notebook() or (_terminal() if sys.stderr.isatty() else None)
    reporter = threading.Thread(target=_report, args=(bar, over, place), daemon=True)
    reporter.start()
    try:
        yield bar
    finally:
        over.set()
        reporter.join()


def _report(bar: Bar, over: threading.Event, place: Show | None) -> None:
    pause, said = _PATIENCE, False
    while not over.wait(pause):
        said = True
        if place is None:
            sys.stderr.write(f"{bar.line()}\n")
            sys.stderr.flush()
            pause = max(_PATIENCE, bar.seconds)
        else:
            place(bar.line(), bar.part)
            pause = min(1.0, _PATIENCE)
    if said and place is not None:
        place("", None)


def _terminal() -> Show:
    """One line that is written over and over, and goes at the end."""

    def show(line: str, _part: float | None) -> None:
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()

    return show


def _notebook() -> Show | None:
    """A bar below the running cell of a notebook, which goes at the end; None outside of one."""
    ipython: Any = sys.modules.get("IPython")
    if ipython is None or not hasattr(ipython.get_ipython(), "kernel"):
        return None
    shown: Any = import_module("IPython.display")
    handle: Any = None

    def show(line: str, part: float | None) -> None:
        nonlocal handle
        value = "" if part is None else f" value='{part:.4f}'"
        drawn = shown.HTML(f"<progress{value}></progress> {html.escape(line)}" if line else "")
        if handle is None:
            handle = shown.display(drawn, display_id=True)
        else:
            handle.update(drawn)

    return show
