"""How answers reach the terminal: JSON on request, otherwise plain lines."""

import json
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


def print_json(answer: object) -> None:
    """Print an answer as JSON."""
    sys.stdout.write(json.dumps(answer, indent=2, ensure_ascii=False) + "\n")


def print_lines(*lines: str) -> None:
    """Print lines of text."""
    sys.stdout.write("\n".join(lines) + "\n")


def columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows as lines, in aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


@contextmanager
def progress(doing: str, after: float = 1.0) -> Iterator[None]:
    """Say on stderr what is being done when it takes longer than a second, on a terminal only."""
    if not sys.stderr.isatty():
        yield
        return
    timer = threading.Timer(after, lambda: sys.stderr.write(f"{doing} …\n"))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
