"""Slices: their equations, meshes, singular lines and boundary points."""

import itertools

import numpy as np
import pytest
import sympy

from neuromanifold.errors import ArgumentError
from neuromanifold.geometry.classify import classify
from neuromanifold.geometry.membership import weights_of_pair
from neuromanifold.geometry.segre import product_table
from neuromanifold.geometry.slices import (
    CROSSING_SHEETS,
    PAIRS,
    SLICES,
    TWO_UMBRELLAS,
    WHITNEY_UMBRELLA,
)
from neuromanifold.geometry.surfaces import slice_surface

EACH = pytest.mark.parametrize("slice_", SLICES, ids=lambda slice_: slice_.name)


def symbolic(slice_):
    """The coordinates and the resultant of f and g as SymPy computes it."""
    x, *u = sympy.symbols(("x", *slice_.coordinates))
    forms = sympy.Matrix(slice_.base.tolist())
    for v, moved in zip(u, slice_.directions, strict=True):
        forms += v * sympy.Matrix(moved.tolist())
    f, g = (forms[r, 0] * x**2 + forms[r, 1] * x + forms[r, 2] for r in range(2))
    return u, f, g, x


def along(slice_, t):
    return slice_.singular_origin + t * slice_.singular_direction.astype(float)


@EACH
def test_the_polynomial_is_the_resultant(slice_):
    # g is padded to degree two, so the Sylvester determinant is written out by its matrix.
    u, f, g, x = symbolic(slice_)
    (f0, f1, f2), (g0, g1, g2) = ([sympy.expand(h).coeff(x, k) for k in (2, 1, 0)] for h in (f, g))
    sylvester = sympy.Matrix([[f0, f1, f2, 0], [0, f0, f1, f2], [g0, g1, g2, 0], [0, g0, g1, g2]])
    ours = sympy.sympify(slice_.polynomial, locals={str(v): v for v in u})
    assert sympy.expand(sylvester.det() - ours) == 0
    point = np.array([0.3, -0.7, 1.1])
    value = ours.subs(dict(zip(u, point, strict=True)))
    assert float(slice_.equation(point)) == pytest.approx(float(value), rel=1e-12)


@pytest.mark.statement("whitney-umbrella")
def test_the_umbrella_is_whitneys():
    assert WHITNEY_UMBRELLA.polynomial == "-s*b^2 + c^2"


@EACH
def test_the_singular_points_are_exactly_the_line(slice_):
    # A polynomial vanishes on all singular points iff 1 is in the ideal of them and 1 − z · it.
    u, *_ = symbolic(slice_)
    ours = sympy.sympify(slice_.polynomial, locals={str(v): v for v in u})
    ideal = [ours, *(ours.diff(v) for v in u)]
    origin, direction = slice_.singular_origin.tolist(), slice_.singular_direction.tolist()
    t, z = sympy.symbols("t z")
    on_line = {v: o + t * e for v, o, e in zip(u, origin, direction, strict=True)}
    assert all(sympy.expand(p.subs(on_line)) == 0 for p in ideal)
    moved = [v - o for v, o in zip(u, origin, strict=True)]
    equations = [
        moved[i] * direction[j] - moved[j] * direction[i]
        for i, j in itertools.combinations(range(3), 2)
    ]
    for equation in equations:
        basis = sympy.groebner([*ideal, 1 - z * equation], *u, z, order="grevlex")
        assert basis.exprs == [1]


@EACH
def test_every_vertex_is_on_the_surface_and_has_weights(slice_):
    mesh = slice_surface(slice_, lines=60, points=8).mesh
    assert mesh.equation_error <= 1e-15
    assert mesh.weights_error <= 1e-14
    forms = slice_.forms(mesh.vertices)
    tables = product_table(mesh.form, mesh.value)[:, :, 0]
    np.testing.assert_allclose(tables, forms, atol=1e-13)
    for k in range(0, len(mesh.vertices), 37):
        assert slice_.membership(mesh.vertices[k]).member
    low, high = np.array(slice_.box).T
    assert np.all(mesh.vertices >= low - 1e-12)
    assert np.all(mesh.vertices <= high + 1e-12)


@EACH
def test_the_mesh_covers_the_surface_and_does_not_leave_it(slice_):
    surface = slice_surface(slice_)
    vertices, faces = surface.mesh.vertices, surface.mesh.faces
    corners = vertices[faces]
    # Inside a triangle the equation holds up to the square of its size.
    middles = corners.mean(axis=1)
    sizes = np.linalg.norm(slice_.forms(middles), axis=(1, 2))
    assert np.max(np.abs(slice_.equation(middles)) / sizes**4) <= 1e-3
    # Points of the surface found by the equation: on random lines through the box.
    generator = np.random.default_rng(0)
    low, high = np.array(slice_.box).T
    found = 0
    for start, end in generator.uniform(low, high, (60, 2, 3)):
        nodes = np.cos(np.arange(5) * np.pi / 4) / 2 + 0.5
        values = slice_.equation(start + nodes[:, None] * (end - start))
        roots = np.polynomial.Polynomial.fit(nodes, values, 4, domain=[0, 1]).roots()
        for root in roots[(np.abs(roots.imag) < 1e-9) & (roots.real > 0) & (roots.real < 1)].real:
            point = start + root * (end - start)
            assert np.min(np.linalg.norm(vertices - point, axis=1)) <= 0.25
            found += 1
    assert found > 10


@EACH
def test_the_singular_line_is_split_where_the_neuromanifold_ends(slice_):
    surface = slice_surface(slice_, lines=12, points=4)
    for segments, member in ((surface.singular, True), (surface.closure_only, False)):
        for start, end in segments:
            for weight in (0.1, 0.5, 0.9):
                found = slice_.membership((1 - weight) * start + weight * end)
                assert found.member == member
                assert found.in_closure
                assert (found.form_rank, found.value_rank) == (1, 1)
    for point in surface.boundary_points:
        found = slice_.membership(point)
        assert classify(weights_of_pair(found.form, found.value, PAIRS)).boundary
    total = sum(
        np.linalg.norm(end - start) for start, end in (*surface.singular, *surface.closure_only)
    )
    low, high = np.array(slice_.box).T
    steps = np.linspace(-10, 10, 20001)
    points = slice_.singular_origin + steps[:, None] * slice_.singular_direction
    inside = np.all((points >= low) & (points <= high), axis=1)
    assert total == pytest.approx(
        inside.sum() * 1e-3 * np.linalg.norm(slice_.singular_direction), abs=1e-2
    )


@pytest.mark.parametrize("lines", [12, 25, 180])
def test_sheets_that_go_to_infinity_are_not_joined_there(lines):
    # On this surface w = −(1 + r²)/(2r) for ν = x − r y, so |w| ≥ 1 and w changes sign at infinity.
    box = ((-1e4, 1e4), (-1e4, 1e4), (-1e4, 1e4))
    mesh = slice_surface(TWO_UMBRELLAS, box=box, lines=lines).mesh
    heights = mesh.vertices[mesh.faces][..., 2]
    assert np.any(heights > 0)
    assert np.any(heights < 0)
    assert np.all(np.sign(heights) == np.sign(heights[:, :1]))


def test_the_three_pictures_differ():
    def picture(slice_):
        surface = slice_surface(slice_, lines=12, points=4)
        return len(surface.singular), len(surface.closure_only), len(surface.boundary_points)

    assert picture(WHITNEY_UMBRELLA) == (1, 1, 1)
    assert picture(TWO_UMBRELLAS) == (2, 1, 2)
    assert picture(CROSSING_SHEETS) == (1, 0, 0)


@pytest.mark.statement("whitney-umbrella")
def test_the_umbrella_has_its_handle_in_the_closure_and_its_pinch_on_the_boundary():
    surface = slice_surface(WHITNEY_UMBRELLA, lines=12, points=4)
    np.testing.assert_allclose(surface.singular, [[[0, 0, 0], [1, 0, 0]]], atol=1e-15)
    np.testing.assert_allclose(surface.closure_only, [[[-1, 0, 0], [0, 0, 0]]], atol=1e-15)
    np.testing.assert_allclose(surface.boundary_points, [[0, 0, 0]], atol=1e-15)


@pytest.mark.parametrize("lines", [7, 12])
def test_the_mesh_ends_at_the_box_and_not_at_the_last_line_before_it(lines):
    # c = −b r and s = r² ≤ 1: the edge b = 1 runs from c = −1 to c = 1.
    vertices = slice_surface(WHITNEY_UMBRELLA, lines=lines).mesh.vertices
    edge = vertices[np.isclose(vertices[:, 1], 1.0)]
    assert edge[:, 2].min() == pytest.approx(-1.0)
    assert edge[:, 2].max() == pytest.approx(1.0)


def test_a_box_off_the_singular_line_has_none_of_it():
    surface = slice_surface(WHITNEY_UMBRELLA, box=((0.1, 1.0), (0.5, 1.0), (-1.0, 1.0)), lines=60)
    assert (surface.singular, surface.closure_only) == ((), ())
    assert len(surface.boundary_points) == 0
    assert len(surface.mesh.faces) > 0


def test_a_box_off_the_surface_has_an_empty_mesh():
    surface = slice_surface(WHITNEY_UMBRELLA, box=((-2.0, -1.0), (0.5, 1.0), (0.5, 1.0)))
    assert len(surface.mesh.vertices) == len(surface.mesh.faces) == 0


def test_wrong_boxes_and_grids_are_refused():
    with pytest.raises(ArgumentError, match="needs low < high"):
        slice_surface(WHITNEY_UMBRELLA, box=((1.0, 0.0), (0.0, 1.0), (0.0, 1.0)))
    with pytest.raises(ArgumentError, match="at least 3 lines of 2 points"):
        slice_surface(WHITNEY_UMBRELLA, lines=2)
