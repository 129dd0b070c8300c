"""Grids and tables that come with the package, by name."""

from importlib.resources import files
from pathlib import Path
from typing import Literal

from neuromanifold.errors import FileFormatError

Kind = Literal["grids", "tables"]
_SUFFIX: dict[Kind, str] = {"grids": ".toml", "tables": ".csv"}


def shipped(kind: Kind) -> dict[str, Path]:
    """The files of the package by name."""
    folder = Path(str(files("neuromanifold.atlas") / kind))
    return {path.stem: path for path in sorted(folder.glob(f"*{_SUFFIX[kind]}"))}


def named_file(name: str | Path, kind: Kind) -> Path:
    """The file with this path, else the one of the package with this name."""
    path, ours = Path(name), shipped(kind)
    if path.exists() or str(name) not in ours:
        return path
    return ours[str(name)]


def no_file(name: str | Path, kind: Kind, wanted: str) -> FileFormatError:
    """The sentence for a name that is neither a file nor known."""
    return FileFormatError(
        f"{name} is not a file; give {wanted} or a name: {', '.join(shipped(kind))}"
    )
