"""Checks of the figures: the records that they are drawn from, computed and compared."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.certificates.numeric import estimate, numeric_jacobian
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.geometry.slices import PAIRS, SLICES, TWO_UMBRELLAS, WHITNEY_UMBRELLA, Slice
from neuromanifold.geometry.surfaces import SliceSurface, slice_surface
from neuromanifold.paper.checks.exact_dimensions import certified
from neuromanifold.paper.checks.trial import Trial, check
from neuromanifold.paper.checks.virtual_weights import tree_factors, word
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


ROWS: Mapping[str, type[Any]] = {
    "float64": FloatRank,
    "float32": FloatRank,
    "certificates": ExactRank,
    "expected": ExpectedDimension,
}
"""What is known at each width of Figure 3, each from its own computation (fig-3)."""


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
        tuples: dict[str, Any] = {name: tuple(data[name]) for name in ("chain", "mirrored")}
        tuples["factors"] = tuple(map(tuple, data["factors"]))
        return cls(**{**data, **tuples})


def surfaces(quick: bool) -> list[SliceSurface]:
    """The slices of Figure 1: Whitney's umbrella, and two umbrellas (fig-1)."""
    return [_surface(slice_, quick) for slice_ in (WHITNEY_UMBRELLA, TWO_UMBRELLAS)]


def _surface(slice_: Slice, quick: bool) -> SliceSurface:
    lines, points = (60, 12) if quick else (180, 24)
    return slice_surface(slice_, lines=lines, points=points)


@check("fig-1")
def slice_of_a_layer(trial: Trial) -> str:
    """The surface has weights at every vertex, a singular line and a dotted part (fig-1)."""
    for slice_ in SLICES:
        surface = _surface(slice_, trial.quick)
        mesh, name = surface.mesh, slice_.name
        trial.close(f"{name}: equation", mesh.equation_error, _MESH_ROUNDING)
        trial.close(f"{name}: weights", mesh.weights_error, _MESH_ROUNDING)
        for segment in surface.singular:
            found = slice_.membership(segment.mean(axis=0)).member
            trial.equal(f"{name}: singular line inside", True, found)
        for segment in surface.closure_only:
            middle = slice_.membership(segment.mean(axis=0))
            dotted = middle.in_closure and not middle.member
            trial.equal(f"{name}: dotted part outside", True, dotted)
        trial.numbers[name] = {
            "equation": slice_.polynomial,
            "vertices": len(mesh.vertices),
            "faces": len(mesh.faces),
            "largest equation error": mesh.equation_error,
            "boundary points": surface.boundary_points,
        }
    umbrella = slice_surface(WHITNEY_UMBRELLA, lines=12, points=4)
    trial.equal("the pinch", np.zeros((1, 3)), umbrella.boundary_points)
    dimension = certified(PAIRS, trial.seed).lower
    trial.equal("dimension of the layer", 5, dimension)
    return (
        f"{len(SLICES)} slices: every vertex of the meshes against the equation and against its "
        f"weights, float64; the dimension {dimension} by an exact rank (seed {trial.seed})"
    )


@check("fig-2")
def unrolled_tree(trial: Trial) -> str:
    """The forms in the order drawn, from the base-3 rule and from the recursion (fig-2)."""
    for depth in (2, 3):
        factors = tree_factors(depth)
        trial.equal(f"l = {depth}", word(depth), factors)
        trial.numbers[f"l = {depth}"] = " ".join(form_name(*factor) for factor in factors)
    return "the forms in order for l = 2 and 3, by the base-3 rule and by the recursion written out"


def form_name(layer: int, transposed: bool) -> str:
    """M_i or M_iᵀ, with subscripts of Unicode."""
    return "M" + chr(ord("₀") + layer) + ("ᵀ" if transposed else "")


@check("fig-3")
def dimensions(trial: Trial) -> str:
    """Estimated, certified and expected dimensions for δ = 3, …, 10 (fig-3).

    Two softmax layers of width δ, ranks 2, three tokens. Certificate and float64 must meet theory;
    float32 is shown as it is.
    """
    widths = range(3, 6 if trial.quick else 11)
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    short = []
    for width in widths:
        network = Architecture((width,) * 3, (2, 2), 3, "softmax")
        theory, proved = dimension_formula(network), certified(network, trial.seed)
        assert theory.dimension is not None, "softmax bottlenecks have a formula"
        expected = ExpectedDimension(width, theory.dimension, theory.status, network.parameters)
        exact = ExactRank(width, proved.lower, proved.upper, proved.verdict, proved.prime)
        measured = estimate(network, seed=trial.seed, inputs=SAMPLES)
        float64 = FloatRank(width, measured.rank, measured.gap, measured.dtype)
        float32 = _float32_rank(network, trial.seed)
        trial.equal(f"δ = {width}: certificate", expected.dimension, exact.lower)
        trial.equal(f"δ = {width}: proved", "exact", exact.verdict)
        trial.equal(f"δ = {width}: float64", expected.dimension, float64.rank)
        for name, row in zip(ROWS, (float64, float32, exact, expected), strict=True):
            rows[name].append(asdict(row))
        if float32.rank != expected.dimension:
            short.append(width)
    trial.numbers |= {**rows, "widths where float32 falls short": short}
    return (
        f"{len(widths)} widths δ = {widths[0]} to {widths[-1]}: exact ranks, float64 and float32 "
        f"ranks of the Jacobian at {SAMPLES} normal inputs (seed {trial.seed})"
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


@check("fig-4")
def cancellation(trial: Trial) -> str:
    """Mirror images around a skew form have opposite monomials (fig-4).

    Around a place of layer v the forms of lower layers are mirrored into their transposes, so the
    reflected chain has the same factors but for x_kᵀ Σ x_k', which changes sign. Every chain of
    tokens x_2, x_3 with at most two x_3 is tried, around every place of layer 2 and higher.
    """
    forms, skew, X = _integers(trial.seed, depth=3)
    pairs = 0
    wrong: list[str] = []
    for j, (layer, _) in enumerate(tree_factors(3)[:-1], start=1):
        reaches = range((3 ** (layer - 1) - 1) // 2 + 1) if layer > 1 else ()
        for chain, reach in product(_chains(13, 2), reaches):
            window = chain[j - reach - 1 : j + reach + 1]
            if j + reach >= 13 or window[0] != window[-1]:
                continue
            mirrored = reflected(chain, j, reach)
            first, second = (monomial(one, j, forms, skew, X) for one in (chain, mirrored))
            pairs += 1
            if first + second:
                wrong.append(f"place {j}, chain {chain}: {first} + {second} ≠ 0")
    example = reflection_example(trial.seed)
    trial.equal("the example of the figure", 0, example.value + example.mirrored_value)
    trial.equal("the example does not vanish", True, example.value != 0)
    trial.equal(f"{pairs} mirrored pairs: those that do not cancel", [], wrong)
    trial.numbers |= {"example": asdict(example), "pairs": pairs}
    return (
        f"{pairs} pairs of mirrored chains for l = 3, in Python integers (seed {trial.seed}): all "
        "cancel"
    )


def _chains(length: int, most: int) -> list[tuple[int, ...]]:
    """Chains of x_2 with at most so many x_3, and x_1 at the end."""
    chains: list[tuple[int, ...]] = []
    for count in range(most + 1):
        for places in combinations(range(length), count):
            tokens = [3 if k in places else 2 for k in range(length)]
            chains.append((*tokens, 1))
    return chains
