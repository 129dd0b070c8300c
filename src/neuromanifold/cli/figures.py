"""Figures that commands write: --figure FILE.png, .svg or .pdf."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from neuromanifold.errors import ArgumentError
from neuromanifold.files import check_writable

FigureFile = Annotated[Path | None, Parameter(help="draw it into this file, .png, .svg or .pdf")]


def check_figure(path: Path | None, *, force: bool) -> None:
    """Refuse a file that cannot be written, or of another kind, before the computation."""
    if path is not None and path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ArgumentError(f"--figure writes .png, .svg or .pdf; got {path.name}")
    check_writable(path, force=force)
