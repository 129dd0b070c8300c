"""Figure 3: estimated, certified and expected dimensions (fig-3)."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from neuromanifold.figures.style import BLUE, INK, MUTED, ORANGE, RED
from neuromanifold.verification.pictures import ExactRank, ExpectedDimension, FloatRank


def dimensions_figure(
    float64: Sequence[FloatRank],
    float32: Sequence[FloatRank],
    certificates: Sequence[ExactRank],
    expected: Sequence[ExpectedDimension],
) -> Figure:
    """A line for theory, marks for what was computed; below, how far each is from theory."""
    figure = Figure(figsize=(9.6, 6.6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    theory = {row.width: row.dimension for row in expected}
    upper.plot(
        list(theory),
        list(theory.values()),
        color=MUTED,
        linewidth=2,
        zorder=1,
        label="formula, Equation 16 (conjecture)",
    )
    lower.axhline(0, color=MUTED, linewidth=2, zorder=1)
    series = [
        (
            [(row.width, row.lower) for row in certificates if row.verdict == "exact"],
            "s",
            11,
            BLUE,
            "exact rank over a prime field: proved",
        ),
        (
            [(row.width, row.rank) for row in float64 if row.rank is not None],
            "o",
            5.5,
            ORANGE,
            "estimate: rank in float64",
        ),
        (
            [(row.width, row.rank) for row in float32 if row.rank is not None],
            "x",
            9,
            RED,
            "rank in float32, usual tolerance",
        ),
    ]
    for points, marker, size, colour, label in series:
        open_mark = {"markerfacecolor": "none"} if marker == "s" else {}
        look = {
            "linestyle": "",
            "marker": marker,
            "markersize": size,
            "color": colour,
            "markeredgewidth": 2,
            **open_mark,
        }
        upper.plot(*zip(*points, strict=True), label=label, **look)
        away = [(width, rank - theory[width]) for width, rank in points]
        lower.plot(*zip(*away, strict=True), **look)
    for row in expected:
        upper.annotate(
            str(row.dimension),
            (row.width, row.dimension),
            xytext=(0, 13),
            ha="center",
            textcoords="offset points",
            fontsize=11,
            color=INK,
        )
    upper.set_ylabel("dimension", fontsize=13)
    upper.margins(y=0.12)
    lower.margins(y=0.25)
    lower.set_ylabel("less the formula", fontsize=12)
    lower.set_xlabel(r"width $\delta$", fontsize=13)
    lower.set_xticks(list(theory))
    upper.legend(frameon=False, fontsize=12, loc="upper left")
    for axes in (upper, lower):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=11)
        axes.grid(axis="y", color="#e8eaee", zorder=0)
        axes.set_axisbelow(True)
    return figure
