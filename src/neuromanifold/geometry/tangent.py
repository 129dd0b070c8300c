"""The Zariski tangent space of the neuromanifold at given weights, without the theorems on it.

Upper bound. Equations f of the Zariski closure, found by interpolation in low degree, have
differentials that vanish on the tangent space: it is contained in their common kernel.

Lower bound. Let T(ε) = T + ε T₁ + ε² T₂ + … be an arc of products of linear forms through the point
T. An equation f with linear part ℓ and quadratic part q at T has f(T(ε)) = 0, hence

    ℓ(T₁) = 0    and    ℓ(T₂) + q(T₁, T₁) = 0.

So (ℓ, q) vanishes on all vectors (T₂, T₁·T₁), where T₁·T₁ holds all products of two coordinates,
and on (T₁, 0). If a combination of such vectors is (D, 0), then ℓ(D) = 0 for every equation: D is
in the Zariski tangent space. This is more than the tangents of arcs: at the pinch of Whitney's
umbrella c² = s b² the arcs (s, b, c) = (ε², ε, ±ε²) share T₁, and their T₂ differ by the direction
c, which is the leading term of no arc.

The arcs start at all points of the fiber (thm-3.2), since every branch through T counts. Where the
bounds meet, the dimension of the tangent space is known; compared with the dimension of the
neuromanifold it says whether T is singular (cor-a.4, low-rank-singular). All over GF(p).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from neuromanifold.algebra.echelon import EchelonForm
from neuromanifold.algebra.prime_field import PrimeField, Residues
from neuromanifold.algebra.rank import rank, rank_profile
from neuromanifold.architecture import Architecture
from neuromanifold.errors import NotCoveredError
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.geometry.ideal import Equations, interpolated_equations
from neuromanifold.geometry.layer import Factors, Matrix, check_layer
from neuromanifold.geometry.segre import product_table
from neuromanifold.networks.weights import Weights

_LARGEST = 40  # coordinates of the table; beyond, cubic equations are too many
_SPARE = 8  # random arcs more than there are dimensions to span

Pair = tuple[Matrix, Matrix]
Triple = tuple[Matrix, Matrix, Matrix]


@dataclass(frozen=True, slots=True)
class TangentSpace:
    """Bounds for the dimension of the Zariski tangent space at a point.

    Attributes:
        architecture: the layer.
        dimension: the dimension of the neuromanifold, by formula.
        lower: the dimension of a space of tangent vectors that was found by arcs.
        upper: the dimension of the kernel of the differentials of the equations.
        equations: the number of equations found in each degree that was used.
        starts: the number of weights that arcs started from.
        prime: the prime p of the field.
        seed: of the random points and arcs.
    """

    architecture: Architecture
    dimension: int
    lower: int
    upper: int
    equations: tuple[tuple[int, int], ...]
    starts: int
    prime: int
    seed: int

    @property
    def singular(self) -> bool | None:
        """Whether the tangent space is larger than the neuromanifold; None when undecided."""
        if self.lower > self.dimension:
            return True
        return False if self.upper == self.dimension else None

    def __str__(self) -> str:
        size = str(self.lower) if self.lower == self.upper else f"{self.lower} to {self.upper}"
        kind = {True: "singular", False: "smooth", None: "undecided"}[self.singular]
        return (
            f"the tangent space has dimension {size}, the neuromanifold {self.dimension}: {kind} "
            f"(mod {self.prime}, seed {self.seed})"
        )


def zariski_tangent_space(
    weights: Weights, *, highest_degree: int = 4, field: PrimeField | None = None, seed: int = 0
) -> TangentSpace:
    """Bounds for the Zariski tangent space at the function of the weights (low-rank-singular).

    Degrees of equations are added one by one until the bounds meet.

    Args:
        weights: of one small lightning layer; every float is taken at its exact dyadic value.
        highest_degree: of the equations.
        field: the prime field to compute in; None takes the default one.
        seed: of the random points and arcs.
    """
    architecture, field = weights.architecture, field or PrimeField()
    check_layer(architecture, "low-rank-singular")
    (d, d_out), a = architecture.widths, architecture.ranks[0]
    coordinates = d * d_out * d * (d + 1) // 2
    if coordinates > _LARGEST:
        raise NotCoveredError(
            f"equations are interpolated in at most {_LARGEST} coordinates; widths {d} and {d_out} "
            f"need {coordinates}: take a smaller layer"
        )
    A, V = Factors.of(weights).residues(field).pair_mod(field)
    starts = _starts(A, V, a, field, seed)
    lower = _arc_bound(starts, coordinates, field, seed)
    upper = coordinates
    found: list[Equations] = []
    point = field.reduce(product_table(A, V)).ravel()
    for degree in range(2, highest_degree + 1):
        if upper == lower:
            break
        found.append(interpolated_equations(d, d_out, a, degree, field, seed))
        upper = _kernel_bound(found, point, field)
    dimension = dimension_formula(architecture).dimension
    assert dimension is not None, "one lightning layer has a formula"
    return TangentSpace(
        architecture=architecture,
        dimension=dimension,
        lower=lower,
        upper=upper,
        equations=tuple((equations.degree, equations.count) for equations in found),
        starts=len(starts),
        prime=field.modulus,
        seed=seed,
    )


def _kernel_bound(equations: list[Equations], point: Residues, field: PrimeField) -> int:
    """The dimension of the common kernel of the differentials of the equations."""
    gradients = np.concatenate([of_degree.jacobian(point) for of_degree in equations])
    return gradients.shape[1] - rank(gradients, field)


def fiber_pairs(A: Matrix, V: Matrix, field: PrimeField) -> list[Pair]:
    """The pairs over GF(p) with the same table, one of each up to rescaling (thm-3.2, cor-a.2).

    For the zero function, whose fiber is not finite, (A, V) and (0, 0), where all branches meet.
    """
    (k, q), (h, v) = _rank_factors(A, field), _rank_factors(V, field)
    if 0 in (len(q), len(v)):
        return [(A, V), (np.zeros_like(A), np.zeros_like(V))]
    if len(q) == len(v) == 1 and rank(np.concatenate([k.T, v]), field) == 2:
        return [(A, V), (field.matmul(v.T, q), field.matmul(h, k.T))]
    return [(A, V)]


def _rank_factors(matrix: Matrix, field: PrimeField) -> tuple[Matrix, Matrix]:
    """C and R with C R the matrix, R of full row rank: pivot columns times reduced echelon rows."""
    form = EchelonForm(matrix.shape[1], field)
    form.add(np.ascontiguousarray(matrix))
    return matrix[:, form.pivots], form.basis


def _starts(A: Matrix, V: Matrix, a: int, field: PrimeField, seed: int) -> list[Triple]:
    """Factors (K, Q, V) of every pair of the fiber, from which arcs of rank at most a start.

    When rank A < a the factors have rows to spare: those of K or those of Q are zero, and the
    others are free. Arcs from different free rows reach different second order terms: two random
    choices on each side, and zero on both.
    """
    starts: list[Triple] = []
    for number, (A_here, V_here) in enumerate(fiber_pairs(A, V, field)):
        columns, rows = _rank_factors(A_here, field)
        d, spare = len(A), a - len(rows)
        free = field.random(seed, f"tangent spare rows {number}", (4, spare, d))
        zero = np.zeros((spare, d))
        choices = [(zero, zero), (zero, free[0]), (zero, free[1]), (free[2], zero), (free[3], zero)]
        starts += [
            (np.concatenate([columns.T, K]), np.concatenate([rows, Q]), V_here)
            for K, Q in (choices if spare else choices[:1])
        ]
    return starts


def _arc_bound(starts: list[Triple], coordinates: int, field: PrimeField, seed: int) -> int:
    """The dimension of the span of all (T₁, 0) and (T₂, T₁·T₁), cut with (·, 0).

    With the products in the first columns, this is the number of pivots in the last ones.
    """
    i, j = np.triu_indices(coordinates)
    rows = []
    for number, start in enumerate(starts):
        first, second = _arcs(start, i.size + coordinates + _SPARE, field, seed, number)
        products = field.multiply(first[:, i], first[:, j])
        straight = first[: coordinates + _SPARE]
        rows.append(np.concatenate([products, second], axis=1))
        rows.append(np.concatenate([np.zeros((len(straight), i.size)), straight], axis=1))
    _, pivots = rank_profile(np.concatenate(rows), field)
    return int(np.sum(pivots >= i.size))


def _arcs(
    start: Triple, count: int, field: PrimeField, seed: int, number: int
) -> tuple[Float64[np.ndarray, "count coordinates"], Float64[np.ndarray, "count coordinates"]]:
    """T₁ and T₂ of random arcs: K, Q and V move by random terms of order ε and ε²."""
    K, Q, V = (np.broadcast_to(matrix, (count, *matrix.shape)) for matrix in start)
    shapes = {"K": K.shape, "Q": Q.shape, "V": V.shape}
    K1, Q1, V1, K2, Q2, V2 = (
        field.random(seed, f"tangent arc {number} {name}{order}", shapes[name])
        for order in (1, 2)
        for name in shapes
    )

    def times(key: Residues, query: Residues) -> Residues:
        return field.matmul(np.swapaxes(key, 1, 2), query)

    A, A1 = times(K, Q), field.reduce(times(K1, Q) + times(K, Q1))
    A2 = field.reduce(times(K2, Q) + times(K1, Q1) + times(K, Q2))
    first = product_table(A1, V) + product_table(A, V1)
    second = product_table(A2, V) + product_table(A1, V1) + product_table(A, V2)
    return field.reduce(first).reshape(count, -1), field.reduce(second).reshape(count, -1)
