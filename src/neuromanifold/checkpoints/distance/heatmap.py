"""A comparison as a figure: layers × heads."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from neuromanifold.checkpoints.distance.compare import UNRELATED, Comparison
from neuromanifold.style import INK, figure_of

PANELS = {"scores": "scores, ‖QᵀK − Q′ᵀK′‖", "writes": "writing, ‖O V − O′V′‖"}


def compare_figure(comparison: Comparison, ax: Sequence[Axes] | None = None) -> Sequence[Axes]:
    """Draw the distances of every head, scores and writing side by side, and return the axes.

    Args:
        comparison: what to draw.
        ax: two axes to draw into; by default those of a new figure.
    """
    ax = two_panels(len(comparison.layers)) if ax is None else ax
    images = [
        draw_heads(
            axes,
            np.array([getattr(layer, key) for layer in comparison.layers]),
            title,
            0,
            UNRELATED,
        )
        for axes, (key, title) in zip(ax, PANELS.items(), strict=True)
    ]
    figure_of(ax[0]).colorbar(images[-1], ax=list(ax), label="relative distance")
    return ax


def two_panels(layers: int) -> Sequence[Axes]:
    """Two axes side by side in a new figure, as high as some layers ask for."""
    figure = Figure(figsize=(9.0, 1.6 + 0.28 * layers), layout="constrained")
    return [figure.add_subplot(1, 2, number) for number in (1, 2)]


def draw_heads(
    axes: Axes, grid: np.ndarray, title: str, vmin: float, vmax: float | None = None
) -> AxesImage:
    """Draw one number for each layer and head; both are counted in whole numbers."""
    image = axes.imshow(grid, cmap="viridis", aspect="auto", vmin=vmin, vmax=vmax)
    axes.set_title(title, color=INK, fontsize=10)
    axes.set_xlabel("head")
    axes.set_ylabel("layer")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    return image
