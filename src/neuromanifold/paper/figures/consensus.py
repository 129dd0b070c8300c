"""The spread of tokens through softmax layers near consensus (consensus)."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from neuromanifold.paper.checks.consensus import Spread
from neuromanifold.style import BLUE, INK, MUTED, ORANGE, RED, TEAL, axes_for, note, plain

_COLOURS = (INK, BLUE, ORANGE, TEAL, RED)
FLOAT32, FLOAT64 = -24, -53
"""log2 of the relative precision of float32 and float64."""


def consensus_figure(curves: Sequence[Spread], ax: Axes | None = None) -> Axes:
    """Spread against ε, both on scales of powers of two: slopes 1, 3, 9, … by layers.

    Args:
        curves: the spreads at several ε.
        ax: the axes to draw into; new ones by default.
    """
    axes = axes_for(ax, 8.4, 5.4)
    exponents = [-one.exponent for one in curves]
    for i in range(len(curves[0].log2)):
        label = "input: slope 1" if i == 0 else f"after layer {i}: slope {3**i}"
        heights = [one.log2[i] for one in curves]
        colour = _COLOURS[i % len(_COLOURS)]
        axes.plot(exponents, heights, marker="o", markersize=4, color=colour, label=label)
    for height, name in ((FLOAT32, "float32"), (FLOAT64, "float64")):
        axes.axhline(height, color=MUTED, linewidth=1, linestyle="--")
        note(axes, f"below this {name} loses them", (exponents[-1], height), 4, color=MUTED)
    axes.set_xlabel(r"$\log_2 \varepsilon$, the spread of the input tokens", fontsize=12)
    axes.set_ylabel(r"$\log_2$ of the largest distance of two tokens", fontsize=12)
    axes.set_ylim(-200, 8)
    plain(axes)
    axes.legend(frameon=False, fontsize=11, loc="lower right")
    return axes
