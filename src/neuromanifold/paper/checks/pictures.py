"""Checks of the figures: the records that they are drawn from, computed and compared."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.certificates.numeric import estimate, numeric_jacobian
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.geometry.slices import PAIRS, SLICES, TWO_UMBRELLAS, WHITNEY_UMBRELLA
from neuromanifold.geometry.surfaces import SliceSurface, slice_surface
from neuromanifold.networks.virtual import unrolled_factor
from neuromanifold.paper.checks.evidence import Case, Check, Finding, close, equal
from neuromanifold.paper.checks.exact_dimensions import certified
from neuromanifold.paper.checks.unrolled import word
from neuromanifold.symmetry.attention import attention_network

SAMPLES = 250
"""The number N of normal inputs of Figure 3."""
_MESH_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class FloatRank:
    """A rank in floating point: an estimate.

    Attributes:
        width: the width δ.
        rank: the number of singular values above the tolerance.
        gap: the ratio of singular values at the tolerance, or None.
        dtype: the floating-point numbers.
    """

    width: int
    rank: int | None
    gap: float | None
    dtype: str


@dataclass(frozen=True, slots=True)
class ExactRank:
    """Proved bounds from a certificate.

    Attributes:
        width: the width δ.
        lower: the rank over the prime field.
        upper: the upper bound.
        verdict: the certificate's verdict.
        prime: the prime.
    """

    width: int
    lower: int
    upper: int
    verdict: str
    prime: int


@dataclass(frozen=True, slots=True)
class ExpectedDimension:
    """What theory expects.

    Attributes:
        width: the width δ.
        dimension: the dimension by formula.
        status: how the formula is known.
        parameters: the number of parameters.
    """

    width: int
    dimension: int
    status: str
    parameters: int


@dataclass(frozen=True, slots=True)
class Reflection:
    """Two chains of tokens, mirror images around one place, whose monomials cancel (fig-4).

    Attributes:
        depth: the number l of layers.
        place: the place j around which the chain is reflected.
        reach: how many places on each side are reflected.
        chain: the tokens k_1, …, k_l̃, k of one monomial.
        mirrored: those of the other.
        factors: for each place the layer and whether the form is transposed; the form at the place
            j itself is replaced by a skew-symmetric one.
        value: the first monomial at integer weights and tokens.
        mirrored_value: the other one.
    """

    depth: int
    place: int
    reach: int
    chain: tuple[int, ...]
    mirrored: tuple[int, ...]
    factors: tuple[tuple[int, bool], ...]
    value: int
    mirrored_value: int

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Reflection":
        """The reflection with this JSON form, which has lists in place of tuples."""
        return cls(
            depth=data["depth"],
            place=data["place"],
            reach=data["reach"],
            chain=tuple(data["chain"]),
            mirrored=tuple(data["mirrored"]),
            factors=tuple((layer, transposed) for layer, transposed in data["factors"]),
            value=data["value"],
            mirrored_value=data["mirrored_value"],
        )


def surfaces(quick: bool) -> tuple[SliceSurface, SliceSurface]:
    """The two slices of Figure 1: Whitney's umbrella, and two umbrellas (fig-1)."""
    lines, points = (60, 12) if quick else (180, 24)
    first, second = (
        slice_surface(slice_, lines=lines, points=points)
        for slice_ in (WHITNEY_UMBRELLA, TWO_UMBRELLAS)
    )
    return first, second


def slice_of_a_layer(quick: bool, seed: int) -> Finding:
    """The surface has weights at every vertex, a singular line and a dotted part (fig-1)."""
    cases: list[Case] = []
    numbers: dict[str, object] = {}
    for slice_ in SLICES:
        surface = slice_surface(slice_, lines=60 if quick else 180, points=12 if quick else 24)
        mesh, name = surface.mesh, slice_.name
        cases.append(close(f"{name}: equation", mesh.equation_error, _MESH_ROUNDING))
        cases.append(close(f"{name}: weights", mesh.weights_error, _MESH_ROUNDING))
        for segment in surface.singular:
            found = slice_.membership(segment.mean(axis=0)).member
            cases.append(equal(f"{name}: singular line inside", True, found))
        for segment in surface.closure_only:
            middle = slice_.membership(segment.mean(axis=0))
            dotted = middle.in_closure and not middle.member
            cases.append(equal(f"{name}: dotted part outside", True, dotted))
        numbers[name] = {
            "equation": slice_.polynomial,
            "vertices": len(mesh.vertices),
            "faces": len(mesh.faces),
            "largest equation error": mesh.equation_error,
            "boundary points": surface.boundary_points,
        }
    umbrella = slice_surface(WHITNEY_UMBRELLA, lines=12, points=4)
    cases.append(equal("the pinch", np.zeros((1, 3)), umbrella.boundary_points))
    dimension = certified(PAIRS, seed).lower
    cases.append(equal("dimension of the layer", 5, dimension))
    return Finding(
        f"{len(SLICES)} slices: every vertex of the meshes against the equation and against its "
        f"weights, float64; the dimension {dimension} by an exact rank (seed {seed})",
        cases,
        numbers,
    )


def unrolled_tree(_quick: bool, _seed: int) -> Finding:
    """The forms in the order drawn, from the base-3 rule and from the recursion (fig-2)."""
    cases: list[Case] = []
    numbers = {}
    for depth in (2, 3):
        factors = tree_factors(depth)
        cases.append(equal(f"l = {depth}", word(depth), factors))
        numbers[f"l = {depth}"] = " ".join(form_name(*factor) for factor in factors)
    return Finding(
        "the forms in order for l = 2 and 3, by the base-3 rule and by the recursion written out",
        cases,
        numbers,
    )


def tree_factors(depth: int) -> list[tuple[int, bool]]:
    """Layer and transposition of M̃_1, …, M̃_{l̃−1} and of the last form M_1 (eq-12, fig-2)."""
    return [*(unrolled_factor(j) for j in range(1, (3**depth - 1) // 2)), (1, False)]


def form_name(layer: int, transposed: bool) -> str:
    """M_i or M_iᵀ, with subscripts of Unicode."""
    return "M" + chr(ord("₀") + layer) + ("ᵀ" if transposed else "")


def figure_three_network(width: int) -> Architecture:
    """Two softmax layers of width δ, ranks 2, three tokens (fig-3)."""
    return Architecture((width,) * 3, (2, 2), 3, "softmax")


class Row(NamedTuple):
    """What is known at one width of Figure 3, each from its own computation (fig-3)."""

    expected: ExpectedDimension
    certificate: ExactRank
    float64: FloatRank
    float32: FloatRank

    @property
    def cases(self) -> list[Case]:
        """Certificate and float64 must meet theory; float32 is shown as it is."""
        name, dimension = f"δ = {self.expected.width}", self.expected.dimension
        return [
            equal(f"{name}: certificate", dimension, self.certificate.lower),
            equal(f"{name}: proved", "exact", self.certificate.verdict),
            equal(f"{name}: float64", dimension, self.float64.rank),
        ]


def _row(width: int, seed: int) -> Row:
    network = figure_three_network(width)
    theory, proved = dimension_formula(network), certified(network, seed)
    assert theory.dimension is not None, "softmax bottlenecks have a formula"
    measured = estimate(network, seed=seed, inputs=SAMPLES)
    return Row(
        ExpectedDimension(width, theory.dimension, theory.status, network.parameters),
        ExactRank(width, proved.lower, proved.upper, proved.verdict, proved.prime),
        FloatRank(width, measured.rank, measured.gap, measured.dtype),
        _float32_rank(network, seed),
    )


def dimensions(quick: bool, seed: int) -> Finding:
    """Estimated, certified and expected dimensions for δ = 3, …, 10 (fig-3)."""
    widths = range(3, 6 if quick else 11)
    rows = [_row(width, seed) for width in widths]
    short = [row.float32.width for row in rows if row.float32.rank != row.expected.dimension]
    return Finding(
        f"{len(widths)} widths δ = {widths[0]} to {widths[-1]}: exact ranks, float64 and float32 "
        f"ranks of the Jacobian at {SAMPLES} normal inputs (seed {seed})",
        [case for row in rows for case in row.cases],
        {
            "float64": [asdict(row.float64) for row in rows],
            "float32": [asdict(row.float32) for row in rows],
            "certificates": [asdict(row.certificate) for row in rows],
            "expected": [asdict(row.expected) for row in rows],
            "widths where float32 falls short": short,
        },
    )


def _float32_rank(network: Architecture, seed: int) -> FloatRank:
    """The rank of the float32 Jacobian by the usual tolerance, nothing done to help it."""
    net = attention_network(network)
    J = numeric_jacobian(net, net.draw(seed), seed=seed, inputs=SAMPLES, dtype=np.float32)
    sigma = np.linalg.svd(J, compute_uv=False)
    above = int(np.sum(sigma > sigma[0] * max(J.shape) * np.finfo(np.float32).eps))
    gap = float(sigma[above - 1] / sigma[above]) if 0 < above < sigma.size else None
    return FloatRank(network.widths[0], above, gap, "float32")


def reflected(chain: tuple[int, ...], place: int, reach: int) -> tuple[int, ...]:
    """The chain with k_{j−m}, …, k_{j+m+1} reversed, j the place and m the reach (fig-4)."""
    start, end = place - reach - 1, place + reach + 1
    return chain[:start] + chain[start:end][::-1] + chain[end:]


def monomial(
    chain: tuple[int, ...], place: int, forms: list[np.ndarray], skew: np.ndarray, X: np.ndarray
) -> int:
    """∏_j x_{k_j}ᵀ M̃_j x_{k_{j+1}} in Python integers, with Σ in place of the form at `place`."""
    depth = len(forms)
    total = 1
    for j, (layer, transposed) in enumerate(tree_factors(depth), start=1):
        M = skew if j == place else forms[layer - 1]
        M = M.T if transposed else M
        total *= int(X[:, chain[j - 1]] @ M @ X[:, chain[j]])
    return total


def _integers(seed: int, depth: int) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Integer forms, a skew-symmetric form and three tokens, as Python integers.

    Column k of the tokens is x_k; column 0 is not used. The entries are small and x_2ᵀ M x_2 = ±2,
    so that the numbers in the figure stay short.
    """
    generator = np.random.default_rng((seed, 41))
    signs = generator.choice([-1, 1], (depth, 2))
    forms = [np.array([[2 * s, u], [3 - u, 1]], dtype=object) for s, u in signs.tolist()]
    skew = np.array([[0, 1], [-1, 0]], dtype=object) * int(generator.integers(1, 4))
    X = np.array([[0, 1, 1, 1], [0, 1, 0, 2]], dtype=object)
    return forms, skew, X


def reflection_example(seed: int) -> Reflection:
    """A chain for l = 3 around the place 9 of the third form, and its mirror image (fig-4).

    All tokens are x_2 but for two x_3 near the centre; the last one, the output's, is x_1.
    """
    depth, place, reach = 3, 9, 1
    chain = [2] * 13 + [1]
    chain[place - 1] = 3
    first = tuple(chain)
    second = reflected(first, place, reach)
    forms, skew, X = _integers(seed, depth)
    values = (monomial(one, place, forms, skew, X) for one in (first, second))
    return Reflection(depth, place, reach, first, second, tuple(tree_factors(depth)), *values)


def cancellation(_quick: bool, seed: int) -> Finding:
    """Mirror images around a skew form have opposite monomials (fig-4).

    Around a place of layer v the forms of lower layers are mirrored into their transposes, so the
    reflected chain has the same factors but for x_kᵀ Σ x_k', which changes sign. Every chain of
    tokens x_2, x_3 with at most two x_3 is tried, around every place of layer 2 and higher.
    """
    depth = 3
    forms, skew, X = _integers(seed, depth)
    cases: list[Case] = []
    pairs = 0
    for j, (layer, _) in enumerate(tree_factors(depth)[:-1], start=1):
        if layer < 2:
            continue
        for chain in _chains(13, 2):
            for reach in range((3 ** (layer - 1) - 1) // 2 + 1):
                window = chain[j - reach - 1 : j + reach + 1]
                if j + reach >= 13 or window[0] != window[-1]:
                    continue
                both = [
                    monomial(one, j, forms, skew, X) for one in (chain, reflected(chain, j, reach))
                ]
                pairs += 1
                if sum(both):
                    cases.append(Case(f"place {j}, chain {chain}", f"{both[0]} + {both[1]} ≠ 0"))
    example = reflection_example(seed)
    cases.append(equal("the example of the figure", 0, example.value + example.mirrored_value))
    cases.append(equal("the example does not vanish", True, example.value != 0))
    cases.append(Case(f"{pairs} mirrored pairs"))
    return Finding(
        f"{pairs} pairs of mirrored chains for l = 3, in Python integers (seed {seed}): all cancel",
        cases,
        {"example": asdict(example), "pairs": pairs},
    )


def _chains(length: int, most: int) -> list[tuple[int, ...]]:
    """Chains of x_2 with at most so many x_3, and x_1 at the end."""
    chains: list[tuple[int, ...]] = []
    for count in range(most + 1):
        for places in combinations(range(length), count):
            tokens = [3 if k in places else 2 for k in range(length)]
            chains.append((*tokens, 1))
    return chains


CHECKS: dict[str, Check] = {
    "fig-1": slice_of_a_layer,
    "fig-2": unrolled_tree,
    "fig-3": dimensions,
    "fig-4": cancellation,
}
