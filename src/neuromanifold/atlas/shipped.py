"""Grids and tables that come with the package, by name."""

from importlib.resources import files
from pathlib import Path
from typing import Literal

from neuromanifold.errors import FileFormatError

Kind = Literal["grids", "tables"]
_SUFFIX: dict[Kind, str] = {"grids": ".toml", "tables": ".csv"}
_WANTED: dict[Kind, str] = {"grids": "a grid (TOML)", "tables": "an atlas made by `atlas run`"}


def shipped(kind: Kind) -> dict[str, Path]:
    """The files of the package by name."""
    folder = Path(str(files("neuromanifold.atlas") / kind))
    return {path.stem: path for path in sorted(folder.glob(f"*{_SUFFIX[kind]}"))}


def named_file(name: str | Path, kind: Kind) -> Path:
    """The file with this path, else the one of the package with this name."""
    path, ours = Path(name), shipped(kind)
    if not path.exists():
        path = ours.get(str(name), path)
    if not path.is_file():
        names = ", ".join(ours)
        raise FileFormatError(f"{name} is not a file; give {_WANTED[kind]} or a name: {names}")
    return path
