"""Figures of results: each takes `ax=`, draws what was computed, and returns the axes."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from neuromanifold.style import BLUE, INK, MUTED, ORANGE, RED, TEAL, YELLOW, axes_for

if TYPE_CHECKING:
    from neuromanifold.certificates.ledger import Ledger
    from neuromanifold.certificates.numeric import Estimate

_PARTS = (TEAL, ORANGE, BLUE, YELLOW, MUTED, RED)
_HATCHES = ("", "//", "\\\\", "..", "xx", "++")


def plot_ledger(ledger: "Ledger", ax: Axes | None = None) -> Axes:
    """Where the parameters of a network go: one bar, cut into the lines of its ledger.

    Args:
        ledger: what `explain` answers.
        ax: the axes to draw into; new ones by default.
    """
    axes = axes_for(ax, 7.5, 2.2)
    lines = [line for line in ledger.lines if line.dimension]
    left = 0
    for i, line in enumerate(lines):
        axes.barh(
            0,
            line.dimension,
            left=left,
            color=_PARTS[i % len(_PARTS)],
            hatch=_HATCHES[i % len(_HATCHES)],
            edgecolor="white",
            label=f"{line.dimension} {line.name}",
        )
        left += line.dimension
    axes.set_yticks([])
    axes.set_xlim(0, left or 1)
    axes.set_xlabel(f"{ledger.parameters} parameters")
    axes.set_title(f"{ledger.certificate.subject} ({ledger.certificate.verdict})", color=INK)
    axes.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.32), frameon=False)
    return axes


def plot_spectrum(estimate: "Estimate", ax: Axes | None = None) -> Axes:
    """The singular values behind an estimate, and where the rank was read off if there is a gap.

    Args:
        estimate: what `estimate` answers.
        ax: the axes to draw into; new ones by default.
    """
    axes = axes_for(ax, 6.0, 3.6)
    values = np.asarray(estimate.singular_values)
    axes.semilogy(np.arange(1, len(values) + 1), np.maximum(values, 1e-300), ".", color=BLUE)
    if estimate.rank is not None:
        axes.axvline(estimate.rank + 0.5, color=RED, linestyle="--", label=f"rank {estimate.rank}")
        axes.legend(frameon=False)
    axes.set(xlabel="number", ylabel="singular value", title=f"{estimate.verdict}")
    return axes
