"""Figure 3: estimated, certified and expected dimensions (fig-3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neuromanifold.paper.checks.pictures import ExactRank, ExpectedDimension, FloatRank
from neuromanifold.style import BLUE, MUTED, ORANGE, RED, note, plain


@dataclass(frozen=True, slots=True)
class _Series:
    """Computed ranks with the look of their marks."""

    label: str
    ranks: Mapping[int, int]
    marker: str
    size: float
    colour: str

    def draw(self, axes: Axes, base: Mapping[int, int]) -> None:
        """Mark the ranks less what `base` has at the same width."""
        axes.plot(
            list(self.ranks),
            [rank - base[width] for width, rank in self.ranks.items()],
            label=self.label,
            linestyle="",
            marker=self.marker,
            markersize=self.size,
            markeredgewidth=2,
            color=self.colour,
            markerfacecolor="none" if self.marker == "s" else self.colour,
        )


def dimensions_figure(
    float64: Sequence[FloatRank],
    float32: Sequence[FloatRank],
    certificates: Sequence[ExactRank],
    expected: Sequence[ExpectedDimension],
    ax: Sequence[Axes] | None = None,
) -> Sequence[Axes]:
    """A line for theory, marks for what was computed; below, how far each is from theory.

    Args:
        float64: ranks in float64.
        float32: ranks in float32.
        certificates: exact ranks.
        expected: what the formula says.
        ax: two axes to draw into; by default those of a new figure.
    """
    if ax is None:
        figure = Figure(figsize=(9.6, 6.6), layout="constrained")
        ax = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1]).tolist()
    upper, lower = ax
    theory = {row.width: row.dimension for row in expected}
    proved = {row.width: row.lower for row in certificates if row.verdict == "exact"}
    name = "exact rank over a prime field: proved"
    series = [
        _Series(name, proved, "s", 11.0, BLUE),
        _Series("estimate: rank in float64", _ranks(float64), "o", 5.5, ORANGE),
        _Series("rank in float32, usual tolerance", _ranks(float32), "x", 9.0, RED),
    ]
    label = "formula, Equation 16"
    upper.plot(list(theory), list(theory.values()), color=MUTED, linewidth=2, label=label)
    lower.axhline(0, color=MUTED, linewidth=2)
    for one in series:
        one.draw(upper, dict.fromkeys(theory, 0))
        one.draw(lower, theory)
    for place in theory.items():
        note(upper, str(place[1]), place, 13, ha="center", fontsize=11)
    upper.set_ylabel("dimension", fontsize=13)
    lower.set_ylabel("less the formula", fontsize=12)
    lower.set_xlabel(r"width $\delta$", fontsize=13)
    lower.set_xticks(list(theory))
    upper.legend(frameon=False, fontsize=12, loc="upper left")
    for axes, margin in ((upper, 0.12), (lower, 0.25)):
        axes.margins(y=margin)
        axes.tick_params(labelsize=11)
        plain(axes, "y")
    return ax


def _ranks(series: Sequence[FloatRank]) -> dict[int, int]:
    return {row.width: row.rank for row in series if row.rank is not None}
