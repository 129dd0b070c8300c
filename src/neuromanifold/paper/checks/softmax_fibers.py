"""Checks of the fibers of softmax networks: what is seen, what is not, and the edge between."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.networks.weights import Weights
from neuromanifold.paper.checks.deep_fibers import certify_virtual
from neuromanifold.paper.checks.evaluation import (
    DIFFERENT,
    ROUNDING,
    distance,
    normal_input,
    output,
)
from neuromanifold.paper.checks.evidence import Case, apart, close, equal
from neuromanifold.paper.checks.exact_dimensions import compare_dimensions, theorem
from neuromanifold.paper.checks.softmax_dimensions import random_softmax
from neuromanifold.paper.checks.trial import Trial, check

Forms = Sequence[np.ndarray]

SKEW = np.array([[0.0, 1.5], [-1.5, 0.0]])
FORM = np.array([[0.8, -0.3], [1.1, 0.4]])
OTHER = np.array([[-0.5, 0.9], [0.2, 0.7]])
THIN = np.outer([1.0, 2.0], [1.0, -1.0])
ZERO = np.zeros((2, 2))
LINEAR = np.array([[1.0, 0.2], [-0.4, 0.9]])


def twin(
    forms: Forms, X: np.ndarray, L: np.ndarray = LINEAR, *, mask: bool = False, inner: bool = False
) -> np.ndarray:
    """L F_{M_l} ∘ … ∘ F_{M_1}(X), straight from the definition; also for complex numbers."""
    for M in forms:
        scores = np.exp(X.T @ M @ X)
        weights = np.triu(scores) if mask else scores
        X = (X if inner else 0) + X @ (weights / weights.sum(0))
    return L @ X


def _inputs(tokens: int, seed: int) -> list[np.ndarray]:
    """Tokens that are far apart, since near consensus deep layers are hardly seen (consensus)."""
    generator = np.random.default_rng((seed, 41))
    return list(2 * generator.standard_normal((12, 2, tokens)))


def _alike(name: str, gap: float, same: bool) -> Case:
    name = f"{name} {'same' if same else 'different'}"
    return close(name, gap, ROUNDING) if same else apart(name, gap, DIFFERENT)


def compared(
    first: Forms, second: Forms, tokens: int, seed: int, *, same: bool, **kind: Any
) -> Case:
    """Whether two lists of forms have the same function at a few inputs."""
    inputs = _inputs(tokens, seed)
    gap = max(distance(twin(first, X, **kind), twin(second, X, **kind)) for X in inputs)
    return _alike(f"function, t = {tokens}:", gap, same)


def _full_rank(architecture: Architecture, seed: int) -> Case:
    """(M, L) ↦ φ has an injective differential at a random point of GF(p) (softmax-exact)."""
    found = certify_virtual(architecture, seed)
    if not found.lower_is_proved:
        return Case(architecture.name, "the rank is not a proved bound")
    return equal(f"{architecture}: rank of d(M, L) ↦ φ", found.parameters, found.lower)


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
        values = [twin(parts, X, L) for X in _inputs(tokens, seed)]
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
    for first, second, t, same in pairs:
        trial.cases.append(compared(first, second, t, trial.seed, same=same))
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
    trial.cases += [_full_rank(one, trial.seed) for one in full]
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
    mask, inner = "mask" in kind, "skip" in kind
    pairs = [(edge[:2], 2, True), (edge[:2], 3, False), (edge[2:], 2, False)]
    for (first, second), t, same in [*pairs, (((ZERO, FORM), (ZERO, OTHER)), 3, False)]:
        case = compared(first, second, t, trial.seed, same=same, mask=mask, inner=inner)
        trial.cases.append(case)
    sizes = [(2, 2), (2, 3)] if trial.quick else most
    for d, t in sizes:
        network = Architecture((d,) * 3, (d,) * 2, t, "softmax", **kind)
        trial.cases.append(_full_rank(network, trial.seed))
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
        trial.cases.append(_alike(f"two heads, t = {tokens},", gap, same))
    return f"{checked}; five pairs of layers with two heads in float64"


def _layer_of(layer: Architecture, heads: list[tuple[np.ndarray, np.ndarray]]) -> Weights:
    """The weights with these pairs (A, V), keys the identity."""
    A, V = (np.stack(parts) for parts in zip(*heads, strict=True))
    tensors = {"query": A, "key": np.stack([np.eye(2)] * 2), "value": V}
    return Weights.from_tensors(layer, [tensors])
