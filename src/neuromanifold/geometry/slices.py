"""Affine slices of the neuromanifold with d = a = 2, d' = 1, as surfaces (whitney-umbrella).

By prop-a.5 this neuromanifold is the set of pairs (f, g) = (α_1 ν, α_2 ν) of binary quadratic forms
with a common real linear factor ν; it has dimension 5 in a space of 6. Its Zariski closure is where
the resultant vanishes: with f = f_0 x² + f_1 xy + f_2 y² and g likewise,

    Res(f, g) = (f_0 g_2 − f_2 g_0)² − (f_0 g_1 − f_1 g_0)(f_1 g_2 − f_2 g_1).

A slice is an affine map from R³ to the pairs. There

- the surface is ruled: that ν divides f and g, i.e. that both vanish at the point (x, y) where ν
  does, is two affine equations in R³, so to each direction ν belongs a line;
- singular points are those with f and g proportional, f = q_1 k, g = q_2 k (cor-a.4): where k is a
  product of two different real forms, two sheets cross; where it is a square, a boundary point
  (cor-a.6); where it is definite, the point is in the Zariski closure only.

In each slice below the proportional pairs form one straight line. `surfaces` makes the meshes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import Ordering, fmpz_mpoly_ctx
from jaxtyping import Float, Int

from neuromanifold.architecture import Architecture
from neuromanifold.geometry.membership import Membership, factor_table

PAIRS = Architecture(widths=(2, 1), ranks=(2,), tokens=2)
"""The layer whose neuromanifold is cut."""

Points = Float[np.ndarray, "*batch 3"]
Box = tuple[tuple[float, float], tuple[float, float], tuple[float, float]]


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """A 3-dimensional affine slice of the pairs (f, g) of binary quadratic forms.

    It is meant to have a line, or none, over every direction ν: no ν divides a plane of pairs.

    Attributes:
        name: what it shows.
        coordinates: the names of its three coordinates.
        base: the pair at the origin: rows f and g, coefficients of x², xy, y². f has no zero in the
            slice, since no coordinate moves its coefficient of x².
        directions: the pair that each coordinate multiplies.
        singular_origin: a point of the line of proportional pairs.
        singular_direction: its direction.
        box: the limits of each coordinate that make a good picture.
    """

    name: str
    coordinates: tuple[str, str, str]
    base: Int[np.ndarray, "2 3"]
    directions: Int[np.ndarray, "3 2 3"]
    singular_origin: Int[np.ndarray, "3"]
    singular_direction: Int[np.ndarray, "3"]
    box: Box

    def forms(self, points: Points) -> Float[np.ndarray, "*batch 2 3"]:
        """The coefficients of f and g at points of the slice."""
        return self.base + np.tensordot(points, self.directions, axes=1)

    @property
    def polynomial(self) -> str:
        """The equation of the Zariski closure in the slice, with integer coefficients.

        >>> WHITNEY_UMBRELLA.polynomial
        '-s*b^2 + c^2'
        """
        ring = fmpz_mpoly_ctx.get(self.coordinates, Ordering.lex)
        pair = [[ring.constant(int(number)) for number in row] for row in self.base]
        for variable, moved in zip(ring.gens(), self.directions, strict=True):
            for row in range(2):
                for place in range(3):
                    pair[row][place] += variable * int(moved[row, place])
        return str(_resultant(*pair))

    def equation(self, points: Points) -> Float[np.ndarray, "*batch"]:
        """The value of the polynomial at points of the slice (whitney-umbrella)."""
        pair = np.moveaxis(self.forms(points), (-2, -1), (0, 1))
        return np.asarray(_resultant(*(tuple(form) for form in pair)))

    def membership(self, point: Float[np.ndarray, "3"]) -> Membership:
        """Weights (A, V) of a point of the slice, or why the neuromanifold has none (prop-a.5)."""
        return factor_table(self.forms(point)[:, None, :], PAIRS.ranks[0])


def _resultant(f: Sequence[Any], g: Sequence[Any]) -> Any:
    """The resultant of two binary quadratic forms with coefficients in any ring."""
    outer = f[0] * g[2] - f[2] * g[0]
    return outer * outer - (f[0] * g[1] - f[1] * g[0]) * (f[1] * g[2] - f[2] * g[1])


WHITNEY_UMBRELLA = Slice(
    name="Whitney's umbrella",
    coordinates=("s", "b", "c"),
    base=np.array([[1, 0, 0], [0, 0, 0]]),
    directions=np.array([[[0, 0, -1], [0, 0, 0]], [[0, 0, 0], [0, 1, 0]], [[0, 0, 0], [0, 0, 1]]]),
    singular_origin=np.array([0, 0, 0]),
    singular_direction=np.array([1, 0, 0]),
    box=((-1.0, 1.0), (-1.0, 1.0), (-1.0, 1.0)),
)
"""f = x² − s y², g = b xy + c y²: the surface c² = s b².

f and g are proportional iff g = 0, on the line b = c = 0, with f a product of real forms for s > 0,
a square at the pinch s = 0, definite for s < 0 (whitney-umbrella).
"""

_MONIC = [[[0, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 0, 0]], [[0, 0, 0], [0, 2, 0]]]

TWO_UMBRELLAS = Slice(
    name="two umbrellas",
    coordinates=("u", "v", "w"),
    base=np.array([[1, 0, 0], [1, 0, 1]]),
    directions=np.array(_MONIC),
    singular_origin=np.array([0, 1, 0]),
    singular_direction=np.array([2, 0, 1]),
    box=((-4.0, 4.0), (-1.0, 3.0), (-2.0, 2.0)),
)
"""f = x² + u xy + v y², g = x² + 2w xy + y².

f and g are proportional iff equal, on the line u = 2w, v = 1. There f = x² + 2w xy + y² has two
real factors for |w| > 1 and is definite for |w| < 1: two umbrellas, whose pinches w = ±1 are
joined by a segment of the Zariski closure only.
"""

CROSSING_SHEETS = Slice(
    name="crossing sheets",
    coordinates=("u", "v", "w"),
    base=np.array([[1, 0, 0], [1, 0, -1]]),
    directions=np.array(_MONIC),
    singular_origin=np.array([0, -1, 0]),
    singular_direction=np.array([2, 0, 1]),
    box=((-4.0, 4.0), (-3.0, 1.0), (-2.0, 2.0)),
)
"""f = x² + u xy + v y², g = x² + 2w xy − y².

f and g are proportional iff equal, on the line u = 2w, v = −1. There f = x² + 2w xy − y² is always
a product of two different real forms: two sheets cross along the whole line, no boundary point.
"""

SLICES = (WHITNEY_UMBRELLA, TWO_UMBRELLAS, CROSSING_SHEETS)
