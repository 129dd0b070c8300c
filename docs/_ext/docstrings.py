"""Docstrings as they are written here, made into reStructuredText.

Docstrings are plain text for a reader of the code: names in single backquotes, formulas in Unicode
on indented lines, lists right below the line that announces them. Here names become code, indented
lines literal blocks, and lists get their blank line.
"""

import re

from sphinx.application import Sphinx

_CODE = re.compile(r"(``[^`]+``|`[^`]+`)")
_SPECIAL = re.compile(r"(?<!\\)([*|]|(?<=\w)_(?=\W|$))")
_FIELD = re.compile(r":\w+.*?:")


def process(
    _app: Sphinx, _what: str, _name: str, _obj: object, _options: object, lines: list[str]
) -> None:
    """Rewrite the lines in place, after napoleon has made fields of the sections."""
    result: list[str] = []
    literal = False
    for number, line in enumerate(lines):
        before = lines[number - 1] if number else ""
        indented = line.startswith("    ") and line.strip()
        if indented and not before.strip() and not literal and _opens_display(result):
            literal = True
            result += ["::", ""]
        elif literal and line.strip() and not line.startswith("    "):
            literal = False
        if not literal and _opens_list(before, line):
            result.append("")
        result.append(line if literal or line.lstrip().startswith(">>>") else _inline(line))
    lines[:] = result


def _opens_display(result: list[str]) -> bool:
    """Whether an indented line here belongs to a paragraph at the margin, and not to a list."""
    previous = next((line for line in reversed(result) if line.strip()), "")
    return bool(previous) and not previous.startswith((" ", "-", ":", ".."))


def _opens_list(before: str, line: str) -> bool:
    """Whether a list begins here, right below a line of the paragraph before it."""
    margin = len(line) - len(line.lstrip())
    if not line[margin:].startswith("- ") or not before.strip():
        return False
    return len(before) - len(before.lstrip()) <= margin and not before[margin:].startswith("- ")


def _inline(line: str) -> str:
    head = _FIELD.match(line.lstrip())
    if head is not None:
        start = len(line) - len(line.lstrip()) + head.end()
        return line[:start] + _inline(line[start:])
    parts = _CODE.split(line)
    return "".join(
        _literal(part, parts[number + 1]) if number % 2 else _SPECIAL.sub(r"\\\1", part)
        for number, part in enumerate(parts)
    )


def _literal(code: str, after: str) -> str:
    """A literal; a plural or another ending right after it is no part of the code."""
    return f"``{code.strip('`')}``" + (r"\ " if after[:1].isalnum() else "")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
