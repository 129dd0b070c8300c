"""The colours and sizes that all figures share, and how they become files."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

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

RESOLUTION = 160
_SETTINGS = {"svg.hashsalt": "neuromanifold", "svg.fonttype": "path"}


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


def save_figure(figure: Figure, folder: Path, name: str) -> tuple[Path, Path]:
    """Write `name.png` and `name.svg`; the same figure gives the same bytes."""
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    with mpl.rc_context(_SETTINGS):
        figure.savefig(png, dpi=RESOLUTION, facecolor=PAPER, metadata={"Software": None})
        figure.savefig(svg, facecolor=PAPER, metadata={"Date": None, "Creator": None})
    return png, svg
