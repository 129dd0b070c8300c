"""The figures show their records, and become the same files again."""

import matplotlib.pyplot as plt
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

from neuromanifold.paper.checks.consensus import Spread
from neuromanifold.paper.checks.pictures import (
    ExactRank,
    ExpectedDimension,
    FloatRank,
    reflected,
    reflection_example,
    surfaces,
)
from neuromanifold.paper.checks.virtual_weights import tree_factors
from neuromanifold.paper.figures.consensus import consensus_figure
from neuromanifold.paper.figures.dimensions import dimensions_figure
from neuromanifold.paper.figures.reflection import reflection_figure
from neuromanifold.paper.figures.slices import slice_figure
from neuromanifold.paper.figures.unrolled_tree import tree, tree_figure
from neuromanifold.style import figure_of, save_figure

EXPECTED = [ExpectedDimension(3, 25, "theorem", 42), ExpectedDimension(4, 40, "theorem", 72)]
CERTIFICATES = [ExactRank(3, 25, 25, "exact", 8388593), ExactRank(4, 40, 41, "bounds", 8388593)]
FLOAT64 = [FloatRank(3, 25, 1e11, "float64"), FloatRank(4, None, None, "float64")]
FLOAT32 = [FloatRank(3, 23, 5.0, "float32"), FloatRank(4, 38, 4.0, "float32")]


def leaves(node):
    return [node] if node.place is not None else [x for c in node.children for x in leaves(c)]


def names(node):
    return [node.name] + [name for child in node.children for name in names(child)]


@pytest.mark.statement("fig-2")
def test_the_tree_has_the_forms_in_order_and_the_blocks_of_the_recursion():
    root = tree(tree_factors(3))
    assert [leaf.place for leaf in leaves(root)] == list(range(1, 14))
    assert [child.name for child in root.children] == ["D_2", "M_3", "D_1", "M_2", "M_1"]
    (block,) = [child for child in root.children if child.name == "D_2"]
    assert [child.name for child in block.children] == [
        "D_1",
        "M_2",
        "D_1",
        r"M_2^{\!\top}",
        "D_1",
    ]
    assert names(tree(tree_factors(2)))[1:] == ["D_1", "M_1", r"M_1^{\!\top}", "M_2", "M_1"]


@pytest.mark.statement("fig-2")
def test_every_form_is_labelled_with_its_place():
    panels = tree_figure([tree_factors(2), tree_factors(3)])
    texts = [text.get_text() for axes in panels for text in axes.texts]
    for j in range(1, 13):
        assert rf"$\widetilde{{M}}_{{{j}}}$" in texts


@pytest.mark.statement("fig-3")
def test_the_marks_are_the_records_and_the_line_is_the_formula():
    upper, _ = dimensions_figure(FLOAT64, FLOAT32, CERTIFICATES, EXPECTED)
    lines = {line.get_label(): line for line in upper.lines}
    shown = {label: line.get_xydata().tolist() for label, line in lines.items()}
    assert shown == {
        "formula, Equation 16": [[3, 25], [4, 40]],
        "exact rank over a prime field: proved": [[3, 25]],
        "estimate: rank in float64": [[3, 25]],
        "rank in float32, usual tolerance": [[3, 23], [4, 38]],
    }
    looks = {(line.get_marker(), line.get_linestyle()) for line in lines.values()}
    assert len(looks) == 4


@pytest.mark.statement("fig-4")
def test_the_reflection_shows_both_chains_and_their_values():
    example = reflection_example(0)
    assert reflected(example.mirrored, example.place, example.reach) == example.chain
    assert example.chain != example.mirrored
    texts = [text.get_text() for text in reflection_figure(example).texts]
    assert texts.count("$x_3$") == 2
    assert f"+{abs(example.value):,}" in texts
    assert f"−{abs(example.value):,}" in texts
    assert "sum  0" in texts


@pytest.mark.statement("fig-1")
def test_the_slices_have_surface_line_dots_and_boundary_points():
    shown = surfaces(quick=True)
    panels = slice_figure(shown)
    figure_of(panels[0]).draw_without_rendering()
    for axes, surface in zip(panels, shown, strict=True):
        solid, dotted = [c for c in axes.collections if isinstance(c, Line3DCollection)]
        assert len(solid.get_segments()) == len(surface.singular) > 0
        assert len(dotted.get_segments()) == len(surface.closure_only) > 0
        (sheet,) = [c for c in axes.collections if isinstance(c, Poly3DCollection)]
        assert len(sheet.get_facecolor()) == len(surface.mesh.faces)
        assert any(isinstance(c, PathCollection) for c in axes.collections)


def test_a_figure_becomes_the_same_files_again_and_leaves_no_state(tmp_path):
    for folder in (tmp_path / "first", tmp_path / "second"):
        folder.mkdir()
        files = [folder / f"figure-4.{kind}" for kind in ("png", "svg")]
        save_figure(figure_of(reflection_figure(reflection_example(0))), *files)
    for name in ("figure-4.png", "figure-4.svg"):
        first, second = ((tmp_path / part / name).read_bytes() for part in ("first", "second"))
        assert first == second
    assert first.lstrip().startswith(b"<?xml")
    assert plt.get_fignums() == []


def test_the_spreads_are_drawn_as_computed():
    curves = [Spread(k, (-float(k), -3.0 * k)) for k in (1, 2, 4)]
    axes = consensus_figure(curves)
    lines = {line.get_label(): line.get_xydata().tolist() for line in axes.lines[:2]}
    assert lines == {
        "input: slope 1": [[-1, -1], [-2, -2], [-4, -4]],
        "after layer 1: slope 3": [[-1, -3], [-2, -6], [-4, -12]],
    }


def test_figures_draw_into_the_axes_they_are_given():
    own = Figure()
    flat, solid = own.add_subplot(1, 2, 1), own.add_subplot(1, 2, 2, projection="3d")
    curves = [Spread(k, (-float(k), -3.0 * k)) for k in (1, 2, 4)]
    assert consensus_figure(curves, ax=flat) is flat
    assert reflection_figure(reflection_example(0), ax=flat) is flat
    assert tree_figure([tree_factors(2)], ax=[flat]) == [flat]
    assert dimensions_figure([], [], CERTIFICATES, EXPECTED, ax=[flat, flat]) == [flat, flat]
    assert slice_figure(surfaces(quick=True)[:1], ax=[solid]) == [solid]
    assert own.axes == [flat, solid]
    assert flat.has_data()
    assert solid.has_data()
