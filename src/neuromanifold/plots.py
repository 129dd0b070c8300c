"""Figures of results: each takes `ax=`, draws what was computed, and returns the axes."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from neuromanifold.style import BLUE, INK, MUTED, ORANGE, RED, TEAL, YELLOW, axes_for, note

if TYPE_CHECKING:
    from neuromanifold.certificates.ledger import Ledger
    from neuromanifold.certificates.numeric import Estimate
    from neuromanifold.certificates.sensitivity import Sensitivity, TensorSensitivity

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


_FAMILIES = {"query": ORANGE, "key": RED, "value": TEAL, "output": BLUE}


def plot_sensitivity(found: "Sensitivity", ax: Axes | None = None) -> Axes:
    """The singular values of every tensor's columns of the Jacobian, by layer and family.

    Above queries and keys stands the measured order in the spread of the tokens, relative to that
    spread, and below it the prediction: 1, 5, 17, 53 (consensus).

    Args:
        found: what `sensitivity` answers.
        ax: the axes to draw into; new ones by default.
    """
    axes = axes_for(ax, 1.6 + 0.8 * len(found.tensors), 4.2)
    top = max(one.singular_values[0] for one in found.tensors)
    named: set[str] = set()
    for place, one in enumerate(found.tensors):
        values = np.asarray([value for value in one.singular_values if value > 1e-17 * top])
        color = _FAMILIES.get(one.family, BLUE)
        label = None if one.family in named else one.family
        axes.semilogy(np.full(len(values), place), values, "_", color=color, ms=16, label=label)
        named.add(one.family)
        if one.predicted is not None:
            at = (place, one.singular_values[0])
            note(axes, _orders(one), at, 8, ha="center", fontsize=8)
    rounding = float(np.finfo(np.float32).eps) * top
    axes.axhline(rounding, color=MUTED, linestyle="--", label="lost in float32 below")
    axes.set_xticks(range(len(found.tensors)), [_place(one) for one in found.tensors])
    axes.set_xlim(-0.6, len(found.tensors) - 0.4)
    axes.margins(y=0.2)
    axes.set(ylabel="singular value", title=f"tokens {found.spread:g} apart")
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return axes


def _orders(one: "TensorSensitivity") -> str:
    """The measured order relative to the spread over the predicted one."""
    measured = "rounding" if one.order is None else f"{one.order - 1:.2f}"
    predicted = "" if one.predicted is None else f"\ntheory {one.predicted - 1}"
    return measured + predicted


def _place(one: "TensorSensitivity") -> str:
    return one.tensor if one.layer is None else f"{one.family}\nlayer {one.layer}"
