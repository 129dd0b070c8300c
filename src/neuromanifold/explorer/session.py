"""The files of a session: those named on the command line, and those dropped into the page.

The page knows files by their ids alone, so it cannot name a path. What is dropped lies in a folder
of its own that goes when the explorer stops.
"""

import json
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from neuromanifold.errors import ArgumentError, FileFormatError

Kind = Literal["weights", "certificate", "atlas", "evidence", "checkpoint"]

LARGEST_COUNT = 64
_JSON_BYTES = 8 * 1024 * 1024
_SAFETENSORS_HEADER = 100 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A file that the page may ask about.

    Attributes:
        id: how the page names it.
        name: its name, for the reader.
        kind: what is in it.
        path: where it lies; never sent to the page.
        named: whether it was named on the command line.
    """

    id: str
    name: str
    kind: Kind
    path: Path
    named: bool

    def to_dict(self) -> dict[str, object]:
        """What the page is told."""
        return {"id": self.id, "name": self.name, "kind": self.kind, "named": self.named}


class Session:
    """The files, by id."""

    def __init__(self, paths: tuple[Path, ...] = ()) -> None:
        self._files: dict[str, SessionFile] = {}
        for path in paths:
            if not path.exists():
                raise FileFormatError(f"{path} does not exist; name files that do")
            self._keep(path.name, path.resolve(), named=True)
        self._folder = tempfile.TemporaryDirectory(prefix="neuromanifold-explorer-")

    def close(self) -> None:
        """Remove everything that was dropped."""
        self._folder.cleanup()

    def files(self) -> list[SessionFile]:
        """All files, the oldest first."""
        return list(self._files.values())

    def get(self, id_: object) -> SessionFile:
        """The file with this id."""
        if not isinstance(id_, str) or id_ not in self._files:
            raise ArgumentError("this file is not part of the session; drop it in again")
        return self._files[id_]

    def receive(self, name: str, content: bytes) -> SessionFile:
        """Keep a file that was dropped into the page."""
        if len(self._files) >= LARGEST_COUNT:
            raise ArgumentError(f"a session holds at most {LARGEST_COUNT} files; start another")
        path = Path(self._folder.name) / secrets.token_hex(8)
        path.write_bytes(content)
        try:
            return self._keep(Path(name).name[:120] or "unnamed", path, named=False)
        except FileFormatError:
            path.unlink()
            raise

    def _keep(self, name: str, path: Path, *, named: bool) -> SessionFile:
        file = SessionFile(secrets.token_hex(8), name, kind_of(path, name), path, named)
        self._files[file.id] = file
        return file


def kind_of(path: Path, name: str) -> Kind:
    """What a file holds, by its content; anything unknown is refused."""
    if path.is_dir():
        return "checkpoint"
    with path.open("rb") as file:
        start = file.read(16)
        size = path.stat().st_size
        if start == b"SQLite format 3\0":
            return "atlas"
        if start[:4] == b"GGUF" or start[:2] in (b"PK", b"\x80\x02"):
            return "checkpoint"
        if start[:1] in (b"{", b"[") and size <= _JSON_BYTES:
            return _json_kind(path, name)
        length = int.from_bytes(start[:8], "little")
        if 2 <= length <= min(size, _SAFETENSORS_HEADER) and start[8:9] == b"{":
            file.seek(8)
            return _safetensors_kind(file.read(length), name)
    raise FileFormatError(
        f"{name} is neither a weights file, a certificate, an atlas, the results of a report nor a "
        "model; give one of these"
    )


def _json_kind(path: Path, name: str) -> Kind:
    try:
        data = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise FileFormatError(f"{name} is not valid JSON; it may be cut short") from None
    if isinstance(data, dict) and "format" in data:
        return "certificate"
    if isinstance(data, dict) and isinstance(data.get("statements"), list):
        return "evidence"
    raise FileFormatError(f"{name} is JSON, but no certificate and no results of a report")


def _safetensors_kind(header: bytes, name: str) -> Kind:
    try:
        data = json.loads(header)
    except (ValueError, RecursionError):
        raise FileFormatError(f"{name} has a broken safetensors header; write it again") from None
    about = data.get("__metadata__") if isinstance(data, dict) else None
    return "weights" if isinstance(about, dict) and "architecture" in about else "checkpoint"
