"""Figure 1: slices of the neuromanifold of one layer (fig-1, whitney-umbrella)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LightSource, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

from neuromanifold.geometry.surfaces import SliceSurface
from neuromanifold.style import INK, MUTED, RED, YELLOW

_VIEWS = {"Whitney's umbrella": (20, -62), "two umbrellas": (24, -58), "crossing sheets": (22, -60)}
_FORMS = {
    "Whitney's umbrella": r"$f=x^2-s\,y^2,\quad g=b\,xy+c\,y^2$",
    "two umbrellas": r"$f=x^2+u\,xy+v\,y^2,\quad g=x^2+2w\,xy+y^2$",
    "crossing sheets": r"$f=x^2+u\,xy+v\,y^2,\quad g=x^2+2w\,xy-y^2$",
}
_SHEET = "#7fb2dc"


def slice_figure(
    surfaces: Sequence[SliceSurface], ax: Sequence[Axes] | None = None
) -> Sequence[Axes]:
    """The surfaces with their singular lines: solid inside, dotted in the Zariski closure only.

    Args:
        surfaces: the surfaces.
        ax: three-dimensional axes for each of them; by default those of a new figure.
    """
    if ax is None:
        ax = _panels(len(surfaces))
    for axes, surface in zip(ax, surfaces, strict=True):
        _draw(axes, surface)
    return ax


def _panels(count: int) -> list[Axes]:
    """Three-dimensional axes side by side, with one legend below."""
    figure = Figure(figsize=(5.6 * count, 5.9))
    figure.legend(
        _legend_handles(),
        [
            "singular line, two sheets cross",
            "singular line of the Zariski closure only",
            "boundary point",
        ],
        loc="lower center",
        ncols=3,
        frameon=False,
        fontsize=10.5,
    )
    figure.subplots_adjust(left=0.0, right=0.97, bottom=0.08, top=0.9, wspace=0.02)
    return [
        figure.add_subplot(1, count, k, projection="3d", computed_zorder=False)
        for k in range(1, count + 1)
    ]


def _draw(axes: Any, surface: SliceSurface) -> None:
    mesh = surface.mesh
    elevation, azimuth = _VIEWS[surface.slice.name]
    triangles = mesh.vertices[mesh.faces]
    lines, dots = {"colors": YELLOW, "zorder": 3}, (0, (1, 1.3))
    sheet = {"edgecolors": (1, 1, 1, 0.08), "linewidths": 0.15, "zorder": 1}
    for part in (
        Poly3DCollection(triangles, facecolors=_shaded(triangles, surface), **sheet),
        Line3DCollection(surface.singular, linewidths=4.0, **lines),
        Line3DCollection(surface.closure_only, linewidths=3.2, linestyles=dots, **lines),
    ):
        axes.add_collection3d(part)
    points = surface.boundary_points
    axes.scatter(*points.T, s=70, color=RED, edgecolors="white", depthshade=False, zorder=4)
    for axis, limits, name in zip("xyz", surface.box, surface.slice.coordinates, strict=True):
        getattr(axes, f"set_{axis}lim")(*limits)
        getattr(axes, f"set_{axis}label")(f"${name}$", fontsize=15, labelpad=1, color=INK)
        getattr(axes, f"{axis}axis").set_major_locator(_whole(limits))
        getattr(axes, f"{axis}axis").pane.set(facecolor=(0.97, 0.975, 0.985), edgecolor=MUTED)
        axes.tick_params(axis=axis, labelsize=10, colors=MUTED, pad=0)
    axes.grid(False)
    axes.set_box_aspect((1, 1, 0.9), zoom=1.0)
    axes.view_init(elevation, azimuth)
    axes.set_title(
        f"{surface.slice.name}\n{_FORMS[surface.slice.name]}", fontsize=13, color=INK, y=1.01
    )


def _whole(limits: tuple[float, float]) -> Any:
    low, high = limits
    return FixedLocator([low, (low + high) / 2, high])


def _shaded(triangles: np.ndarray, surface: SliceSurface) -> np.ndarray:
    """Colours by the angle to the light; both sides of a triangle count the same."""
    extent = np.array([high - low for low, high in surface.box])
    scaled = triangles / extent
    normals = np.cross(scaled[:, 1] - scaled[:, 0], scaled[:, 2] - scaled[:, 0])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    light = LightSource(azdeg=300, altdeg=50).direction
    bright = 0.45 + 0.55 * np.abs(normals @ light)
    colours = np.array(to_rgb(_SHEET)) * bright[:, None]
    return np.concatenate([np.clip(colours, 0, 1), np.full((len(bright), 1), 0.82)], axis=1)


def _legend_handles() -> list[Any]:
    return [
        Line2D([], [], color=YELLOW, linewidth=4),
        Line2D([], [], color=YELLOW, linewidth=3.2, linestyle=(0, (1, 1.3))),
        Line2D([], [], color=RED, marker="o", markersize=8, linestyle="", markeredgecolor="white"),
    ]
