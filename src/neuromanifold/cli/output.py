"""How answers reach the terminal: JSON on request, otherwise plain lines."""

import json
import sys
from collections.abc import Callable, Sequence

from neuromanifold.files import as_json


def print_answer(json_wanted: bool, answer: object, *lines: str) -> None:
    """Print an answer: as JSON, in which a number that is not finite is null, or as lines."""
    if json_wanted:
        plain = (sys.stdout.encoding or "utf-8").lower() != "utf-8"
        text = json.dumps(as_json(answer), indent=2, ensure_ascii=plain, allow_nan=False)
        # What is not printable stands inside a string, where JSON has an escape for it.
        text = _escaped(text, lambda c: json.dumps(c)[1:-1])
    else:
        text = "\n".join(map(printable, lines))
    sys.stdout.write(text + "\n")


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
