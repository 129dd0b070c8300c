"""The figures of a report, drawn from the evidence of the statements that they show."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from neuromanifold.display import Recorded
from neuromanifold.paper.checks.consensus import Spread
from neuromanifold.paper.checks.evidence import Evidence
from neuromanifold.paper.checks.pictures import ROWS, Reflection, surfaces
from neuromanifold.paper.checks.virtual_weights import tree_factors
from neuromanifold.paper.figures.consensus import consensus_figure
from neuromanifold.paper.figures.dimensions import dimensions_figure
from neuromanifold.paper.figures.reflection import reflection_figure
from neuromanifold.paper.figures.slices import slice_figure
from neuromanifold.paper.figures.unrolled_tree import tree_figure
from neuromanifold.style import figure_of, save_figure


@dataclass(frozen=True, slots=True)
class Drawing(Recorded):
    """A figure of a report.

    Attributes:
        id: the statement it shows.
        caption: what is to be seen.
        png: the picture as PNG.
        svg: the picture as SVG.
    """

    id: str
    caption: str
    png: Path
    svg: Path
    _json = "caption png=png.name svg=svg.name"


def _slices(_evidence: Evidence) -> tuple[Figure, str]:
    """Figure 1, the meshes computed again from the slices (fig-1)."""
    caption = (
        "Two three-dimensional slices of the functions of one layer with d = a = 2, d' = 1 and two "
        "tokens, a set of dimension 5 in a space of 40. Every vertex of the surfaces has weights. "
        "Where the yellow line is dotted, it belongs to the Zariski closure only."
    )
    return figure_of(slice_figure(surfaces(quick=False))[0]), caption


def _tree(_evidence: Evidence) -> tuple[Figure, str]:
    """Figure 2 (fig-2)."""
    caption = (
        "The forms of the unrolled network in order, for two and three layers. The layer of M̃_j is "
        "the place, from the right, of the first non-zero digit of j in base 3 (bold); a 2 there "
        "means transposed. D_i is a block of the recursion, and equals its own transpose."
    )
    return figure_of(tree_figure([tree_factors(2), tree_factors(3)])[0]), caption


def _dimensions(evidence: Evidence) -> tuple[Figure, str]:
    """Figure 3 (fig-3)."""
    numbers = evidence.evidence
    rows = {name: [kind(**row) for row in numbers[name]] for name, kind in ROWS.items()}
    short = numbers["widths where float32 falls short"]
    caption = (
        "Two softmax layers with ranks 2, three tokens and all widths δ, 250 normal inputs. The "
        f"squares are proved over GF({rows['certificates'][0].prime}); float64 agrees; float32 "
        f"falls short at {len(short)} of {len(rows['float32'])} widths."
    )
    return figure_of(dimensions_figure(**rows)[0]), caption


def _reflection(evidence: Evidence) -> tuple[Figure, str]:
    """Figure 4 (fig-4)."""
    reflection = Reflection.from_dict(evidence.evidence["example"])
    caption = (
        "Two terms of the unrolled sum for three layers, with a skew-symmetric form Σ_3 in one "
        "place. Reversing the tokens around it turns every other factor into one that is there "
        "already, and x_3ᵀ Σ_3 x_2 into its negative: the two terms cancel, here with the integers "
        "on the right."
    )
    return figure_of(reflection_figure(reflection)), caption


def _consensus(evidence: Evidence) -> tuple[Figure, str]:
    """Spread through layers (consensus)."""
    rows = [Spread(row["exponent"], tuple(row["log2"])) for row in evidence.evidence["spreads"]]
    caption = (
        "Three tokens near one point go through three softmax layers. Every layer cubes their "
        "spread, so that deep layers hardly see differences: computed in ball arithmetic."
    )
    return figure_of(consensus_figure([row for row in rows if row.exponent <= 16])), caption


_DRAWINGS: Mapping[str, Callable[[Evidence], tuple[Figure, str]]] = {
    "fig-1": _slices,
    "fig-2": _tree,
    "fig-3": _dimensions,
    "fig-4": _reflection,
    "consensus": _consensus,
}


def draw(evidence: Evidence, folder: Path) -> Drawing | None:
    """The figure of a statement, written to the folder; None if it has none or its check fails."""
    if evidence.id not in _DRAWINGS or evidence.verdict == "fails":
        return None
    figure, caption = _DRAWINGS[evidence.id](evidence)
    name = evidence.id.replace("fig", "figure")
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    save_figure(figure, png, svg)
    return Drawing(evidence.id, caption, png, svg)
