"""How answers reach the terminal: JSON on request, otherwise plain lines."""

import json
import sys
from collections.abc import Sequence


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
