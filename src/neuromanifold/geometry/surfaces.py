"""Slices as meshes and curves, ready to be drawn (fig-1, whitney-umbrella).

The mesh comes from the parametrisation, not from the equation: for the linear form ν that vanishes
at (x, y) = (cos θ, sin θ), the points of the slice where ν divides f and g form a line; its part
inside the box is a row of vertices, and neighbouring rows are joined. So every vertex comes with
its ν, hence with weights: V = ν and the columns of A are f/ν and g/ν. The equation of the slice is
then checked at every vertex.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Float64, Int

from neuromanifold.errors import ArgumentError
from neuromanifold.geometry.segre import product_table
from neuromanifold.geometry.slices import Box, Slice

_BISECTIONS = 40  # halvings of a step in θ, to the rounding of a float64
_FLAT = 1e-12  # triangles of a smaller area, relative to the box, are left out

Line = tuple[Float64[np.ndarray, "3"], Float64[np.ndarray, "3"]]
Segment = Float64[np.ndarray, "2 3"]


@dataclass(frozen=True, slots=True, eq=False)
class Mesh:
    """Triangles on the surface, every vertex with its weights.

    Attributes:
        vertices: points of the slice.
        faces: the vertices of each triangle.
        form: A at every vertex.
        value: V at every vertex.
        equation_error: the largest value of the slice's polynomial at a vertex, relative to the
            fourth power of the norm of the forms, in which it is homogeneous.
        weights_error: the largest relative distance between the forms at a vertex and the products
            of linear forms of its weights.
    """

    vertices: Float64[np.ndarray, "vertices 3"]
    faces: Int[np.ndarray, "faces 3"]
    form: Float64[np.ndarray, "vertices 2 2"]
    value: Float64[np.ndarray, "vertices 1 2"]
    equation_error: float
    weights_error: float


@dataclass(frozen=True, slots=True, eq=False)
class SliceSurface:
    """A slice of the neuromanifold inside a box.

    Attributes:
        slice: the slice.
        box: the limits of each coordinate.
        mesh: the surface, all of it in the neuromanifold.
        singular: segments of singular points in the neuromanifold, where two sheets cross.
        closure_only: segments of singular points of the Zariski closure, not in the neuromanifold.
        boundary_points: the singular points that are boundary points: the pinches.
    """

    slice: Slice
    box: Box
    mesh: Mesh
    singular: tuple[Segment, ...]
    closure_only: tuple[Segment, ...]
    boundary_points: Float64[np.ndarray, "points 3"]


def slice_surface(
    slice_: Slice, *, box: Box | None = None, lines: int = 180, points: int = 24
) -> SliceSurface:
    """The surface that a slice cuts out of the neuromanifold, with its special points (fig-1).

    Args:
        slice_: the slice.
        box: the limits of each coordinate; None takes the slice's own.
        lines: the number of directions ν, evenly spaced over the half circle.
        points: the number of vertices on each line.
    """
    if lines < 3 or points < 2:
        raise ArgumentError(f"at least 3 lines of 2 points were wanted; got {lines} of {points}")
    box = slice_.box if box is None else box
    if any(low >= high for low, high in box):
        raise ArgumentError(f"every limit (low, high) of a box needs low < high; got {box}")
    singular, closure_only, boundary_points = _singular_line(slice_, box)
    mesh = _mesh(slice_, box, lines, points)
    return SliceSurface(slice_, box, mesh, singular, closure_only, boundary_points)


def _ruling(slice_: Slice, angle: float) -> Line | None:
    """The line of points where ν divides f and g: a point and a unit vector (prop-a.5).

    f and g vanish at (cos θ, sin θ): two equations n·u + n_0 = 0. None when they are dependent,
    where a line has gone to infinity.
    """
    x, y = np.cos(angle), np.sin(angle)
    monomials = np.array([x * x, x * y, y * y])
    normals, constants = (slice_.directions @ monomials).T, slice_.base @ monomials
    direction = np.cross(normals[0], normals[1])
    length = np.linalg.norm(direction)
    if length < np.finfo(np.float64).eps:
        return None
    return np.linalg.lstsq(normals, -constants)[0], direction / length


def _clipped(line: Line | None, box: Box) -> tuple[float, float] | None:
    """The parameters where the line enters and leaves the box, or None when it misses it."""
    if line is None:
        return None
    enter, leave = -np.inf, np.inf
    for position, speed, (low, high) in zip(*line, box, strict=True):
        if abs(speed) < np.finfo(np.float64).eps:
            if not low <= position <= high:
                return None
            continue
        first, last = sorted(((low - position) / speed, (high - position) / speed))
        enter, leave = max(enter, first), min(leave, last)
    return (float(enter), float(leave)) if enter < leave else None


def _row(slice_: Slice, box: Box, angle: float, points: int) -> np.ndarray | None:
    """The vertices over one direction, or None."""
    line = _ruling(slice_, angle)
    limits = _clipped(line, box)
    if line is None or limits is None:
        return None
    return line[0] + np.linspace(*limits, points)[:, None] * line[1]


def _angles(slice_: Slice, box: Box, lines: int) -> list[list[float]]:
    """Runs of directions whose lines meet the box, each run up to where they leave it.

    The vector along the line is a cross product, continuous in the angle, and zero only where the
    line is at infinity. So opposite vectors at neighbouring angles mean that the lines between them
    went through infinity: a run ends there. Inside a run all rows of vertices go the same way.
    """
    runs: list[list[float]] = []
    previous: float | None = None
    before: Line | None = None
    for angle in np.linspace(0.0, np.pi, lines + 1).tolist():
        line = _ruling(slice_, angle)
        line = None if _clipped(line, box) is None else line
        if line is not None and (before is None or line[1] @ before[1] < 0):
            runs.append([])
            if before is None and previous is not None:
                runs[-1].append(_last_meeting(slice_, box, angle, previous))
        if line is None and before is not None and previous is not None:
            runs[-1].append(_last_meeting(slice_, box, previous, angle))
        if line is not None:
            runs[-1].append(angle)
        previous, before = angle, line
    return runs


def _last_meeting(slice_: Slice, box: Box, meeting: float, missing: float) -> float:
    """The direction between the two where lines stop meeting the box, by bisection."""
    for _ in range(_BISECTIONS):
        middle = (meeting + missing) / 2
        if _clipped(_ruling(slice_, middle), box) is None:
            missing = middle
        else:
            meeting = middle
    return meeting


def _mesh(slice_: Slice, box: Box, lines: int, points: int) -> Mesh:
    """Rows of vertices over every run of directions, neighbouring rows joined by triangles."""
    rows: list[np.ndarray] = []
    angles: list[float] = []
    faces: list[np.ndarray] = [np.zeros((0, 3), dtype=np.int64)]
    for run in _angles(slice_, box, lines):
        for k, angle in enumerate(run):
            row = _row(slice_, box, angle, points)
            assert row is not None, "every direction of a run has a line that meets the box"
            if k > 0:
                faces.append(_strip((len(rows) - 1) * points, points))
            rows.append(row)
            angles.append(angle)
    vertices = np.concatenate([np.zeros((0, 3)), *rows])
    forms = slice_.forms(vertices)
    A, V = _pair_over(forms, np.repeat(np.array(angles), points))
    sizes = np.linalg.norm(forms, axis=(1, 2))
    misses = np.linalg.norm(forms - product_table(A, V)[:, :, 0], axis=(1, 2))
    return Mesh(
        vertices=vertices,
        faces=_not_flat(np.concatenate(faces), vertices, box),
        form=A,
        value=V,
        equation_error=float(np.max(np.abs(slice_.equation(vertices)) / sizes**4, initial=0.0)),
        weights_error=float(np.max(misses / sizes, initial=0.0)),
    )


def _pair_over(
    forms: Float[np.ndarray, "vertices 2 3"], angles: Float[np.ndarray, " vertices"]
) -> tuple[Float64[np.ndarray, "vertices 2 2"], Float64[np.ndarray, "vertices 1 2"]]:
    """V = ν = sin θ x − cos θ y, and the columns of A, α = f/ν, by least squares (prop-a.5).

    (p x + r y) ν has the coefficients p sin θ, r sin θ − p cos θ, −r cos θ.
    """
    c, s, zero = np.cos(angles), np.sin(angles), np.zeros_like(angles)
    multiply = np.array([[s, zero], [-c, s], [zero, -c]]).transpose(2, 0, 1)
    columns = np.linalg.pinv(multiply) @ np.swapaxes(forms, 1, 2)
    return columns, np.stack([s, -c], axis=1)[:, None, :]


def _strip(start: int, points: int) -> Int[np.ndarray, "faces 3"]:
    """Two triangles for each pair of neighbours in the row from `start` on and the next row."""
    here = start + np.arange(points - 1)
    there = here + points
    lower = np.stack([here, here + 1, there], axis=1)
    upper = np.stack([here + 1, there + 1, there], axis=1)
    return np.concatenate([lower, upper])


def _not_flat(
    faces: Int[np.ndarray, "faces 3"], vertices: Float[np.ndarray, "vertices 3"], box: Box
) -> Int[np.ndarray, "kept 3"]:
    """The triangles with an area: a line that only touches the box gives none."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    areas = np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2
    return faces[areas > _FLAT * sum((high - low) ** 2 for low, high in box)]


def _singular_line(
    slice_: Slice, box: Box
) -> tuple[tuple[Segment, ...], tuple[Segment, ...], Float64[np.ndarray, "points 3"]]:
    """The line of proportional pairs in the box, by the sign of the discriminant of f.

    Along the line f = (f_0 + t f_0') x² + …, and f_1² − 4 f_0 f_2 is a polynomial of degree two in
    t: positive where f has two real factors, zero at boundary points (cor-a.6), negative where the
    factors are conjugate, in the Zariski closure only.
    """
    origin = slice_.singular_origin.astype(np.float64)
    direction = slice_.singular_direction.astype(np.float64)
    limits = _clipped((origin, direction), box)
    if limits is None:
        return (), (), np.zeros((0, 3))
    at_zero = slice_.forms(origin)[0]
    f0, f1, f2 = (
        np.polynomial.Polynomial([start, moved])
        for start, moved in zip(at_zero, slice_.forms(origin + direction)[0] - at_zero, strict=True)
    )
    discriminant = f1 * f1 - 4 * f0 * f2
    real = [
        float(root.real) for root in np.atleast_1d(discriminant.trim().roots()) if not root.imag
    ]
    roots = sorted({root for root in real if limits[0] <= root <= limits[1]})
    ends = sorted({*limits, *roots})
    inside: list[Segment] = []
    outside: list[Segment] = []
    for start, end in pairwise(ends):
        kind = inside if discriminant((start + end) / 2) > 0 else outside
        kind.append(origin + np.array([start, end])[:, None] * direction)
    pinches = origin + np.array(roots).reshape(-1, 1) * direction
    return tuple(inside), tuple(outside), pinches
