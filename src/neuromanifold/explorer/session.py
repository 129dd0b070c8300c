"""The files of a session: those named on the command line, and those dropped into the page.

The page knows files by their ids alone, so it cannot name a path. What is dropped lies in a folder
of its own that goes when the explorer stops.
"""

import json
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from neuromanifold.atlas.shipped import shipped
from neuromanifold.display import Recorded
from neuromanifold.errors import ArgumentError, FileFormatError

Kind = Literal["weights", "certificate", "atlas", "evidence", "checkpoint", "network"]
Origin = Literal["named", "dropped", "shipped"]
"""Named on the command line, dropped into the page, or part of the package."""

LARGEST_COUNT = 64
LARGEST_TOTAL = 2 * 2**30
"""Files, and bytes of all of them, that are taken from the page."""
_JSON_BYTES = 8 * 1024 * 1024
_SAFETENSORS_HEADER = 100 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SessionFile(Recorded):
    """A file that the page may ask about.

    Attributes:
        id: how the page names it.
        name: its name, for the reader.
        kind: what is in it.
        path: where it lies; never sent to the page.
        origin: how it came here.
    """

    id: str
    name: str
    kind: Kind
    path: Path
    origin: Origin
    _json = "id name kind origin"


class Session:
    """The files, by id."""

    def __init__(self, paths: tuple[Path, ...] = ()) -> None:
        self._files: dict[str, SessionFile] = {}
        tables = shipped("tables")
        for name, path in tables.items():
            self._keep(name, path, "shipped", "atlas")
        for path in paths:
            module, _, function = str(path).rpartition(":")
            if path.exists():
                self._keep(path.name, path.resolve(), "named")
            elif str(path) in tables:
                self._keep(str(path), tables[str(path)], "named", "atlas")
            elif function and Path(module).is_file():
                name = f"{Path(module).name}:{function}"
                self._keep(name, Path(module).resolve(), "named", "network")
            else:
                raise FileFormatError(
                    f"{path} does not exist; name files that do, module.py:function, or a table "
                    f"of the package: {', '.join(tables)}"
                )
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
        dropped = [file.path for file in self._files.values() if file.origin == "dropped"]
        if len(dropped) >= LARGEST_COUNT:
            raise ArgumentError(f"a session takes at most {LARGEST_COUNT} files; start another")
        if sum(path.stat().st_size for path in dropped) + len(content) > LARGEST_TOTAL:
            raise ArgumentError(
                f"a session takes at most {LARGEST_TOTAL // 2**20} MiB of files; name large ones "
                "on the command line"
            )
        ending = ".csv" if name.endswith(".csv") else ""
        path = Path(self._folder.name) / f"{secrets.token_hex(8)}{ending}"
        name = Path(name).name[:120] or "unnamed"
        try:
            path.write_bytes(content)
            return self._keep(name, path, "dropped")
        except (OSError, FileFormatError) as error:
            path.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise ArgumentError(f"{name} cannot be kept: {error.strerror}") from None
            raise

    def _keep(self, name: str, path: Path, origin: Origin, kind: Kind | None = None) -> SessionFile:
        file = SessionFile(secrets.token_hex(8), name, kind or kind_of(path, name), path, origin)
        self._files[file.id] = file
        return file


def kind_of(path: Path, name: str) -> Kind:
    """What a file holds, by its content; anything unknown is refused."""
    if path.is_dir():
        return "checkpoint"
    with path.open("rb") as file:
        start = file.read(16)
        size = path.stat().st_size
        if start == b"SQLite format 3\0" or path.suffix == ".csv":
            return "atlas"
        if start[:4] == b"GGUF" or start[:2] in (b"PK", b"\x80\x02"):
            return "checkpoint"
        if start[:1] in (b"{", b"[") and size <= _JSON_BYTES:
            told = f"{name} is not valid JSON; it may be cut short"
            return _json_kind(_parsed(path.read_bytes(), told), name)
        length = int.from_bytes(start[:8], "little")
        if 2 <= length <= min(size, _SAFETENSORS_HEADER) and start[8:9] == b"{":
            file.seek(8)
            told = f"{name} has a broken safetensors header; write it again"
            header = _parsed(file.read(length), told)
            about = header.get("__metadata__") if isinstance(header, dict) else None
            return (
                "weights" if isinstance(about, dict) and "architecture" in about else "checkpoint"
            )
    raise FileFormatError(
        f"{name} is neither a weights file, a certificate, an atlas, the results of a report nor a "
        "model; give one of these"
    )


def _json_kind(data: Any, name: str) -> Kind:
    if isinstance(data, dict) and "format" in data:
        return "certificate"
    if isinstance(data, dict) and isinstance(data.get("statements"), list):
        return "evidence"
    raise FileFormatError(f"{name} is JSON, but no certificate and no results of a report")


def _parsed(text: bytes, otherwise: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise FileFormatError(otherwise) from None
