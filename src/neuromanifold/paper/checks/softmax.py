"""Checks of softmax networks: dimensions row by row of what is proved, and all fibers."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import jax.numpy as jnp
import numpy as np

from neuromanifold.architecture import Architecture, Mask, Skip
from neuromanifold.certificates.exact import certify
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.networks.weights import Weights, random_weights, replace_layers
from neuromanifold.paper.checks.deep_fibers import certify_virtual
from neuromanifold.paper.checks.evaluation import (
    DIFFERENT,
    ROUNDING,
    distance,
    from_forms,
    normal_input,
    output,
)
from neuromanifold.paper.checks.exact_dimensions import certified, compare_dimensions, theorem
from neuromanifold.paper.checks.trial import Trial, check
from neuromanifold.symmetry.families import network as network_of


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table of proved dimensions: what its networks are drawn from."""

    depths: tuple[int, ...] = (1, 2, 3)
    heads: tuple[int, ...] = (1,)
    tokens: tuple[int, ...] = (2, 3)
    skips: tuple[Skip, ...] = ("none",)
    masks: tuple[Mask, ...] = ("none",)
    narrowest: int = 1
    bottleneck: bool = False


_ANY: tuple[Skip, ...] = ("none", "inner")
_MASKS: tuple[Mask, ...] = ("none", "causal")
ROWS: Mapping[str, Row] = {
    "one head": Row(),
    "one head, causal": Row(masks=("causal",)),
    "one head, inner": Row(skips=("inner",)),
    "one head, inner, causal": Row(skips=("inner",), masks=("causal",)),
    "residual": Row(heads=(1, 2, 3), skips=("residual",)),
    "residual, causal": Row(heads=(1, 2, 3), skips=("residual",), masks=("causal",)),
    "layer": Row(depths=(1,), heads=(2, 3), skips=_ANY, masks=_MASKS),
    "heads": Row(depths=(2, 3), heads=(2, 3), tokens=(3,), narrowest=2),
    "heads, bottleneck": Row((2, 3), (2, 3), skips=_ANY, masks=_MASKS, bottleneck=True),
    "one token": Row(heads=(1, 2), tokens=(1,), skips=_ANY, masks=_MASKS),
}


def random_softmax(row: str, count: int, seed: int, largest: int = 120) -> list[Architecture]:
    """Different random networks of a row with at most so many parameters."""
    draw = random.Random(f"{row} {seed}")
    found: dict[Architecture, None] = {}
    for _ in range(200 * count):
        network = _drawn(draw, ROWS[row])
        if network.parameters <= largest:
            found[network] = None
        if len(found) == count:
            break
    return list(found)


def _drawn(draw: random.Random, row: Row) -> Architecture:
    depth, skip = draw.choice(row.depths), draw.choice(row.skips)
    widths = tuple(draw.randint(row.narrowest, 4) for _ in range(depth + 1))
    if skip == "residual":
        widths = (draw.randint(1, 3),) * (depth + 1)
    if row.bottleneck:
        delta = draw.randint(1, 3)
        outer = (delta + draw.randint(0, 2), delta + draw.randint(0, 2))
        widths = (outer[0], *(delta,) * (depth - 1), outer[1])
    factored = draw.random() < 0.3 and not row.bottleneck
    return Architecture(
        widths=widths,
        ranks=tuple(draw.randint(1, 3) for _ in range(depth)),
        tokens=draw.choice(row.tokens),
        attention="softmax",
        heads=draw.choice(row.heads),
        value_ranks=tuple(draw.randint(1, 3) for _ in range(depth)) if factored else None,
        skip=skip,
        mask=draw.choice(row.masks),
    )


def _rows(trial: Trial, *names: str) -> str:
    count = 5 if trial.quick else 40
    networks = [one for row in names for one in random_softmax(row, count, trial.seed)]
    return compare_dimensions(trial, networks, theorem)


@check("softmax-dimension")
def one_head(trial: Trial) -> str:
    """One head: the dimension of the virtual weights (softmax-dimension)."""
    return _rows(trial, *(row for row in ROWS if row.startswith("one head")))


@check("softmax-one-token")
def one_token(trial: Trial) -> str:
    """One token: a linear map (softmax-one-token)."""
    return _rows(trial, "one token")


@check("softmax-residual")
def residual(trial: Trial) -> str:
    """The residual skip: all pairs (A, V) (softmax-residual)."""
    return _rows(trial, "residual", "residual, causal")


@check("softmax-heads-bottleneck")
def bottleneck_of_heads(trial: Trial) -> str:
    """Bottlenecks with several heads (softmax-heads-bottleneck)."""
    return _rows(trial, "heads, bottleneck")


@check("softmax-heads")
def deep_heads(trial: Trial) -> str:
    """Deep networks with several heads; two tokens that widen see less (softmax-heads)."""
    networks = random_softmax("heads", 6 if trial.quick else 60, trial.seed)
    two, three = (Architecture((2, 4, 2), (2, 4), t, "softmax", heads=2) for t in (2, 3))
    checked = compare_dimensions(trial, [three, *networks], theorem)
    ranks = {f"t = {one.tokens}": certified(one, trial.seed).lower for one in (two, three)}
    trial.equal(f"{two}: no formula", None, dimension_formula(two).dimension)
    trial.equal(f"{two}: rank", 52, ranks["t = 2"])
    same = distance(*_unseen_direction(two, trial.seed))
    trial.close(f"{two}: A_(2,h) + B has the same function", same, ROUNDING)
    trial.numbers["widths 2,4,2, ranks 2,4, two heads"] = ranks
    return checked


def _unseen_direction(network: Architecture, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Outputs for A_{2,1} and A_{2,1} + B, B invisible with two tokens.

    All differences of tokens after layer 1 are V_{1,1} p u + V_{1,2} q u, u = x_1 − x_2, so the
    scores see (p, q) ⊗ u only: B is invisible when every V_{1,g}ᵀ B V_{1,g'} is skew and
    B Σ_g V_{1,g} = 0. With S = [V_{1,1} V_{1,2}] invertible, B = S^{−T} (b ⊗ J) S^{−1}, where
    b = (1, −1; 2, −2) and J is the skew 2 × 2 matrix.
    """
    W, X = random_weights(network, seed), normal_input(network, seed)
    first, second = (layer.arrays() for layer in W.layers)
    S = np.linalg.inv(np.concatenate(list(first["value"]), axis=1))
    B = S.T @ np.kron([[1.0, -1.0], [2.0, -2.0]], [[0.0, 1.0], [-1.0, 0.0]]) @ S
    K, Q = second["key"], second["query"].copy()
    Q[0] = np.linalg.solve(K[0].T, K[0].T @ Q[0] + B)
    return output(W, X), output(replace_layers(W, [{}, {"query": Q}]), X)


Forms = Sequence[np.ndarray]

SKEW = np.array([[0.0, 1.5], [-1.5, 0.0]])
FORM = np.array([[0.8, -0.3], [1.1, 0.4]])
OTHER = np.array([[-0.5, 0.9], [0.2, 0.7]])
THIN = np.outer([1.0, 2.0], [1.0, -1.0])
ZERO = np.zeros((2, 2))
LINEAR = np.array([[1.0, 0.2], [-0.4, 0.9]])


def _inputs(tokens: int, seed: int) -> list[np.ndarray]:
    """Tokens that are far apart, since near consensus deep layers are hardly seen (consensus)."""
    generator = np.random.default_rng((seed, 41))
    return list(2 * generator.standard_normal((12, 2, tokens)))


def _alike(trial: Trial, name: str, gap: float, same: bool) -> None:
    if same:
        trial.close(f"{name} same", gap, ROUNDING)
    else:
        trial.apart(f"{name} different", gap, DIFFERENT)


def compare(
    trial: Trial, first: Forms, second: Forms, tokens: int, same: bool, **kind: Any
) -> None:
    """Whether two lists of forms have the same function at a few inputs."""

    def value(forms: Forms, X: np.ndarray) -> np.ndarray:
        return from_forms(forms, X, LINEAR, attention="softmax", **kind)

    gaps = [distance(value(first, X), value(second, X)) for X in _inputs(tokens, trial.seed)]
    _alike(trial, f"function, t = {tokens}:", max(gaps), same)


def _full_rank(trial: Trial, architecture: Architecture) -> None:
    """(M, L) ↦ φ has an injective differential at a random point of GF(p) (softmax-exact)."""
    found = certify_virtual(architecture, trial.seed)
    rank = found.lower if found.lower_is_proved else None
    trial.equal(f"{architecture}: proved rank of d(M, L) ↦ φ", found.parameters, rank)


def _numeric_rank(forms: Forms, tokens: int, seed: int) -> int:
    """The rank of the differential of (M, L) ↦ φ at given (M, L), from singular values.

    Derivatives by a complex step: φ is analytic, and Im φ(W + i h) / h is exact to rounding. What
    belongs to the kernel has singular values of the size of rounding, 1e−16 of the largest; the
    others of these networks are above 1e−4 of it.
    """
    point = np.concatenate([np.ravel(part) for part in (*forms, LINEAR)]).astype(complex)
    columns = []
    for n in range(len(point)):
        moved = point.copy()
        moved[n] += 1e-30j
        *parts, L = moved.reshape(-1, 2, 2)
        values = [from_forms(parts, X, L, attention="softmax") for X in _inputs(tokens, seed)]
        columns.append(np.imag(np.ravel(values)) / 1e-30)
    singular = np.linalg.svd(np.stack(columns), compute_uv=False)
    return int(np.sum(singular > 1e-10 * singular[0]))


@check("softmax-fibers")
def every_fiber(trial: Trial) -> str:
    """All fibers: layers behind the first collapsing one are not seen (softmax-fibers).

    Two tokens and a skew form in layer 1, or a zero form: later forms may change, and the
    differential loses their 4 dimensions each. With three tokens a skew form is as good as another.
    """
    pairs = [
        ((SKEW, FORM), (SKEW, OTHER), 2, True),
        ((SKEW, FORM), (SKEW, OTHER), 3, False),
        ((ZERO, FORM), (ZERO, OTHER), 3, True),
        ((FORM, SKEW, FORM), (FORM, SKEW, OTHER), 2, True),
        ((FORM, OTHER), (FORM, FORM), 2, False),
        ((FORM, OTHER), (OTHER, OTHER), 3, False),
        ((THIN, FORM), (THIN, OTHER), 2, False),
    ]
    for pair in pairs:
        compare(trial, *pair)
    ranks = [
        ("skew, t = 2", (SKEW, FORM), 2, 8),
        ("skew, t = 3", (SKEW, FORM), 3, 12),
        ("zero, t = 3", (ZERO, FORM), 3, 8),
        ("rank one, t = 2", (THIN, FORM), 2, 12),
    ]
    for name, forms, t, rank in ranks:
        trial.equal(f"{name}: rank", rank, _numeric_rank(forms, t, trial.seed))
    sizes = product((2, 3), (1, 2, 3), (1, 2), (2, 3))
    full = [
        Architecture((d,) * depth + (d_out,), (d,) * depth, t, "softmax")
        for depth, d, d_out, t in sizes
        if d > 1 or t == 2  # three tokens of width one have dependent exponents (softmax-exact)
    ]
    full = trial.some(full, 4)
    for network in full:
        _full_rank(trial, network)
    return (
        f"seven pairs of networks in float64, four ranks at special points, {len(full)} "
        f"differentials over GF(p), exactly (seed {trial.seed})"
    )


def _one_point(
    trial: Trial, edge: tuple[Forms, Forms, Forms, Forms], most: list[tuple[int, int]], **kind: Any
) -> str:
    """One point but for an edge: skew forms of two tokens, and no others.

    `edge` has two networks that are the same for two tokens, and the same two with a general form.
    """
    compare(trial, *edge[:2], 2, True, **kind)
    compare(trial, *edge[:2], 3, False, **kind)
    compare(trial, *edge[2:], 2, False, **kind)
    compare(trial, (ZERO, FORM), (ZERO, OTHER), 3, False, **kind)
    sizes = [(2, 2), (2, 3)] if trial.quick else most
    for d, t in sizes:
        _full_rank(trial, Architecture((d,) * 3, (d,) * 2, t, "softmax", **kind))
    return (
        f"four pairs of networks in float64, {len(sizes)} differentials over GF(p) "
        f"(seed {trial.seed})"
    )


@check("softmax-causal-fibers")
def causal_fibers(trial: Trial) -> str:
    """One point, but (0, N) ~ (N/2, 0) if t = 2 and N is skew (softmax-causal-fibers)."""
    edge = (ZERO, SKEW), (SKEW / 2, ZERO), (ZERO, FORM), (FORM / 2, ZERO)
    sizes = [(1, 2), (1, 3), (2, 2), (2, 3), (3, 2), (3, 3)]
    return _one_point(trial, edge, sizes, mask="causal")


@check("softmax-inner-fibers")
def inner_fibers(trial: Trial) -> str:
    """One point, but (N, −N/2) ~ (0, N/2) if t = 2 and N is skew (softmax-inner-fibers)."""
    edge = (SKEW, -SKEW / 2), (ZERO, SKEW / 2), (FORM, -FORM / 2), (ZERO, FORM / 2)
    return _one_point(trial, edge, [(1, 2), (2, 2), (2, 3), (3, 2), (3, 3)], skip="inner")


_NORMALISED = [
    Architecture((2, 2), (2,), 3, "softmax"),
    Architecture((2, 1, 2), (1, 1), 2, "softmax"),
    Architecture((2, 2, 1), (1, 1), 2, "softmax"),
    Architecture((2, 2, 2), (1, 2), 2, "softmax"),
]


def other_normaliser(weights: list[dict[str, Any]], X: Any) -> Any:
    """The network with S(x) = x + √(x² + 1): positive, injective, analytic and S(0) = 1 (eq-15)."""
    for layer in weights:
        scores = X.T @ layer["key"].T @ layer["query"] @ X
        S = scores + jnp.sqrt(scores * scores + 1)
        X = layer["value"] @ X @ (S / S.sum(0))
    return X


@check("normalisers")
def other_normalisers(trial: Trial) -> str:
    """Exact ranks with S(x) = x + √(x² + 1) are the formula's for softmax (normalisers).

    The function factors through (M, L) whatever S is, so that its dimension is no larger.
    """
    networks = trial.some(_NORMALISED, 2)
    for network in networks:
        weights = [{k: np.zeros(s[1:]) for k, s in layer.items()} for layer in network.shapes]
        sample = np.zeros((network.widths[0], network.tokens))
        proof = certify(network_of(other_normaliser, weights, sample), seed=trial.seed)
        found = proof.lower if proof.lower_is_proved else None
        trial.equal(str(network), dimension_formula(network).dimension, found)
    return f"{len(networks)} networks with S(x) = x + √(x² + 1), exact ranks (seed {trial.seed})"


@check("softmax-layer")
def one_layer_of_heads(trial: Trial) -> str:
    """One layer shows Σ V_h δ(A_h), with two tokens its odd part and Σ V_h (softmax-layer)."""
    networks = random_softmax("layer", 8 if trial.quick else 60, trial.seed)
    checked = compare_dimensions(trial, networks, theorem)
    opposite, none = [(FORM, LINEAR), (-FORM, LINEAR)], [(ZERO, LINEAR), (ZERO, LINEAR)]
    twice, once = [(FORM, LINEAR), (FORM, OTHER)], [(FORM, LINEAR + OTHER), (OTHER, ZERO)]
    pair, crossed = [(FORM, LINEAR), (OTHER, SKEW)], [(FORM, SKEW), (OTHER, LINEAR)]
    for first, second, tokens, same in [
        (opposite, none, 2, True),
        (opposite, none, 3, False),
        (twice, once, 3, True),
        (pair, pair[::-1], 2, True),
        (pair, crossed, 2, False),
    ]:
        layer = Architecture((2, 2), (2,), tokens, "softmax", heads=2)
        X = normal_input(layer, trial.seed)
        gap = distance(*(output(_layer_of(layer, heads), X) for heads in (first, second)))
        _alike(trial, f"two heads, t = {tokens},", gap, same)
    return f"{checked}; five pairs of layers with two heads in float64"


def _layer_of(layer: Architecture, heads: list[tuple[np.ndarray, np.ndarray]]) -> Weights:
    """The weights with these pairs (A, V), keys the identity."""
    A, V = (np.stack(parts) for parts in zip(*heads, strict=True))
    tensors = {"query": A, "key": np.stack([np.eye(2)] * 2), "value": V}
    return Weights.from_tensors(layer, [tensors])
