"""Results as JSON, and in a notebook: one sentence, the numbers, a bar where parts make a whole.

Pure Python and inline styles: a notebook that was saved looks the same without this package.
"""

import html
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from operator import attrgetter
from typing import Any, ClassVar

from neuromanifold.errors import MissingExtraError
from neuromanifold.files import as_json

_COLOURS = ("#8ec5a6", "#f2c46d", "#9cc3ee", "#e5a3a0", "#c6b3e6", "#bfc7d1", "#f0b48a")
_CELL = "padding:.1em .6em;border-bottom:1px solid rgba(128,128,128,.35);"


class Recorded:
    """A dataclass with a JSON form: all its fields, or the entries that `_json` names, in order.

    An entry `key=path` has the attribute of that path, `element.condition`, under that key.
    """

    __slots__ = ()
    _json: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        named: Any = self
        entries = self._json.split() or [field.name for field in fields(named)]
        pairs = [entry.partition("=") for entry in entries]
        return {key: as_json(attrgetter(path or key)(self)) for key, _, path in pairs}


class Displayed:
    """A result that a notebook shows as its sentence and a table of its numbers.

    Where a result has `_parts()`, the names and sizes of the parts of a whole, they are the table,
    and a bar shows them side by side. One with `_entries()` has a table of its own, one with
    `_picture()` a picture instead of a bar.
    """

    __slots__ = ()

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        """The table of the result: its parts, or one row with its numbers and words."""
        if entries := _asked(self, "_entries"):
            return entries
        if parts := _asked(self, "_parts"):
            return [{"what": name, "dimension": size} for name, size in parts]
        values = _asked(self, "to_dict") or {}
        return [{key: value for key, value in values.items() if _is_plain(value)}]

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        sentence = f"<p style='margin:.2em 0'>{html.escape(str(self))}</p>"
        picture = _asked(self, "_picture") or _bar(_asked(self, "_parts"))
        return f"<div>{sentence}{picture}{_table(self._rows())}</div>"

    def to_frame(self) -> Any:
        """The table of the result as a pandas `DataFrame`."""
        try:
            pandas = import_module("pandas")
        except ImportError:
            raise MissingExtraError("a table as a frame needs pandas: pip install pandas") from None
        return pandas.DataFrame(list(self._rows()))


def _asked(value: object, name: str) -> Any:
    """What a result says of itself by a method that it may have."""
    method = getattr(value, name, None)
    return method() if callable(method) else ()


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float | bool | None)


def _bar(parts: Sequence[tuple[str, int]]) -> str:
    """The parts side by side, as wide as they are large; the numbers stand in the table below."""
    if not parts:
        return ""
    whole = sum(size for _, size in parts) or 1
    pieces = "".join(
        f"<div title='{html.escape(name)}: {size}' style='width:{100 * size / whole:.4g}%;"
        f"background:{_COLOURS[i % len(_COLOURS)]};color:#10151c;overflow:hidden;text-align:center;"
        f"border-right:1px solid #10151c'>{size if size > 0.05 * whole else ''}</div>"
        for i, (name, size) in enumerate(parts)
        if size
    )
    return f"<div style='display:flex;max-width:44em;margin:.4em 0'>{pieces}</div>"


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A row of names and a row for each entry; a single entry stands upright."""
    if not rows or not rows[0]:
        return ""
    if len(rows) == 1:
        lines = [(name, value) for name, value in rows[0].items()]
        head = ""
    else:
        lines = [tuple(row.values()) for row in rows]
        head = "".join(f"<th style='{_CELL}'>{html.escape(name)}</th>" for name in rows[0])
        head = f"<tr>{head}</tr>"
    body = "".join(
        "<tr>" + "".join(f"<td style='{_CELL}'>{_text(cell)}</td>" for cell in line) + "</tr>"
        for line in lines
    )
    return f"<table style='margin:.3em 0'>{head}{body}</table>"


def _text(value: object) -> str:
    if value is None:
        return "–"
    return html.escape(f"{value:.4g}" if isinstance(value, float) else str(value))
