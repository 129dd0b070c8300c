"""How answers reach the terminal: JSON on request, otherwise plain lines; progress on stderr."""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite

from neuromanifold.cost import duration_text


def print_json(answer: object) -> None:
    """Print an answer as JSON, in which a number that is not finite is null."""
    text = json.dumps(_finite(answer), indent=2, ensure_ascii=False, allow_nan=False)
    # What is not printable stands inside a string, where JSON has an escape for it.
    sys.stdout.write(_escaped(text, lambda c: json.dumps(c)[1:-1]) + "\n")


def _finite(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def print_lines(*lines: str) -> None:
    """Print lines of text."""
    sys.stdout.write("\n".join(map(printable, lines)) + "\n")


def say(sentence: str) -> None:
    """Write a line about the computation, which is no part of the answer, to stderr."""
    sys.stderr.write(printable(sentence) + "\n")


def printable(text: str) -> str:
    """The text with every character that could steer a terminal written as its escape.

    Names come from files that others wrote: an escape sequence in one must not reach a terminal.
    """
    return _escaped(text, lambda c: c.encode("unicode_escape").decode())


def _escaped(text: str, escape: Callable[[str], str]) -> str:
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c == "\n" or c.isprintable() else escape(c) for c in text)


def columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows as lines, in aligned columns."""
    rows = [tuple(printable(cell).replace("\n", "\\n") for cell in row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


@contextmanager
def progress(doing: str, expected: float | None = None) -> Iterator[None]:
    """Say on stderr what is being done and how long it will still take, after a few seconds.

    On a terminal one line counts down; elsewhere plain lines come at growing distances. Without an
    expected time they say only how long it has taken.
    """
    over = threading.Event()
    reporter = threading.Thread(target=_report, args=(doing, expected, over), daemon=True)
    reporter.start()
    try:
        yield
    finally:
        over.set()
        reporter.join()


_PATIENCE = 3.0
"""Seconds after which a command says how far it is."""


def _report(doing: str, expected: float | None, over: threading.Event) -> None:
    started, terminal = time.monotonic(), sys.stderr.isatty()
    pause, said = _PATIENCE, False
    while not over.wait(pause):
        passed = time.monotonic() - started
        line = f"{doing}: {duration_text(passed)}{_left(expected, passed)}"
        said = True
        if terminal:
            sys.stderr.write(f"\r\x1b[K{line}")
            pause = 1.0
        else:
            sys.stderr.write(f"{line}\n")
            pause = max(_PATIENCE, passed)
        sys.stderr.flush()
    if said and terminal:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def _left(expected: float | None, passed: float) -> str:
    if expected is None:
        return ""
    left = expected - passed
    return f", roughly {duration_text(left)} left" if left > 1 else ", longer than was expected"
