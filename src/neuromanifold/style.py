"""The colours and sizes that all figures share, and how they become files."""

from functools import partial
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neuromanifold.files import write_whole

INK = "#22262e"
MUTED = "#8a919e"
PAPER = "#ffffff"
BLUE = "#2b6cb0"
TEAL = "#1f9e89"
ORANGE = "#dd7a1f"
RED = "#c0392b"
YELLOW = "#f5c400"
LAYERS = (BLUE, ORANGE, TEAL)
"""The colour of a form, by its layer."""

_LOOK = {"dpi": 160, "facecolor": PAPER}
_SETTINGS = {"svg.hashsalt": "neuromanifold", "svg.fonttype": "path"}
_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def axes_for(ax: Axes | None, width: float, height: float) -> Axes:
    """The given axes, or those of a new figure that a notebook shows and `savefig` writes."""
    if ax is not None:
        return ax
    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def figure_of(axes: Axes) -> Figure:
    """The figure that axes belong to."""
    figure = axes.get_figure(root=True)
    if figure is None:
        raise ValueError("the axes belong to no figure")
    return figure


def plain(axes: Axes, grid: Literal["both", "y"] = "both") -> None:
    """No frame, faint lines to read heights from."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color="#e8eaee")
    axes.set_axisbelow(True)


def write(axes: Axes, x: float, y: float, text: str, **look: Any) -> None:
    """Text centred at a place."""
    look = {"ha": "center", "va": "center", "fontsize": 13, "color": INK, **look}
    axes.text(x, y, text, **look)


def note(axes: Axes, text: str, at: tuple[float, float], above: float, **look: Any) -> None:
    """A few words so many points above a place."""
    look = {"fontsize": 10, "color": INK, **look}
    axes.annotate(text, at, xytext=(0, above), textcoords="offset points", **look)


def save_figure(figure: Figure, *files: Path, force: bool = True) -> None:
    """Write a figure in the format of each file's name; the same figure gives the same bytes."""
    with mpl.rc_context(_SETTINGS):
        for file in files:
            kind = file.suffix.lstrip(".").lower()
            write = partial(figure.savefig, format=kind, **_LOOK, metadata=_METADATA[kind])
            write_whole(file, write, force=force)
