"""A comparison as a figure: layers × heads."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neuromanifold.checkpoints.compare import UNRELATED, Comparison
from neuromanifold.style import INK, figure_of

PANELS = {"scores": "scores, ‖QᵀK − Q′ᵀK′‖", "writes": "writing, ‖O V − O′V′‖"}


def compare_figure(comparison: Comparison, ax: Sequence[Axes] | None = None) -> Sequence[Axes]:
    """Draw the distances of every head, scores and writing side by side, and return the axes.

    Args:
        comparison: what to draw.
        ax: two axes to draw into; by default those of a new figure.
    """
    if ax is None:
        height = 1.6 + 0.28 * len(comparison.layers)
        figure = Figure(figsize=(9.0, height), layout="constrained")
        ax = [figure.add_subplot(1, 2, number) for number in (1, 2)]
    for axes, (key, title) in zip(ax, PANELS.items(), strict=True):
        grid = np.array([getattr(layer, key) for layer in comparison.layers])
        image = axes.imshow(grid, cmap="viridis", aspect="auto", vmin=0, vmax=UNRELATED)
        axes.set_title(title, color=INK, fontsize=10)
        axes.set_xlabel("head")
        axes.set_ylabel("layer")
    figure_of(ax[0]).colorbar(image, ax=list(ax), label="relative distance")
    return ax
