"""Checks of the fibers of softmax networks: what is seen, what is not, and the edge between."""

from collections.abc import Sequence

import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.certificates.exact import certify_function
from neuromanifold.networks.virtual import VirtualWeights, evaluate_virtual
from neuromanifold.networks.weights import Weights
from neuromanifold.paper.checks.evaluation import (
    DIFFERENT,
    ROUNDING,
    distance,
    normal_input,
    output,
)
from neuromanifold.paper.checks.evidence import Case, Check, Finding, apart, close, equal
from neuromanifold.paper.checks.exact_dimensions import compare_dimensions
from neuromanifold.paper.checks.softmax_dimensions import expected, random_softmax

SKEW = np.array([[0.0, 1.5], [-1.5, 0.0]])
FORM = np.array([[0.8, -0.3], [1.1, 0.4]])
OTHER = np.array([[-0.5, 0.9], [0.2, 0.7]])
THIN = np.outer([1.0, 2.0], [1.0, -1.0])
LINEAR = np.array([[1.0, 0.2], [-0.4, 0.9]])


def twin(
    forms: Sequence[np.ndarray], X: np.ndarray, L: np.ndarray = LINEAR, *, mask: bool, inner: bool
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


def compared(
    first: Sequence[np.ndarray],
    second: Sequence[np.ndarray],
    tokens: int,
    seed: int,
    *,
    same: bool,
    mask: bool = False,
    inner: bool = False,
) -> Case:
    """Whether two lists of forms have the same function at a few inputs."""
    gap = max(
        distance(twin(first, X, mask=mask, inner=inner), twin(second, X, mask=mask, inner=inner))
        for X in _inputs(tokens, seed)
    )
    name = f"t = {tokens}: {'same' if same else 'different'} function"
    return close(name, gap, ROUNDING) if same else apart(name, gap, DIFFERENT)


def _full_rank(architecture: Architecture, seed: int) -> Case:
    """(M, L) ↦ φ has an injective differential at a random point of GF(p) (softmax-exact)."""
    d, depth = architecture.widths[0], architecture.depth
    weights = VirtualWeights(
        tuple(np.zeros((d, d)) for _ in range(depth)),
        np.zeros((architecture.widths[-1], d)),
        architecture,
    )
    X = np.zeros((d, architecture.tokens))
    found = certify_function(evaluate_virtual, weights, X, seed=seed, name="virtual weights")
    if not found.lower_is_proved:
        return Case(architecture.name, "the rank is not a proved bound")
    return equal(f"{architecture}: rank of d(M, L) ↦ φ", found.parameters, found.lower)


def _numeric_rank(forms: Sequence[np.ndarray], tokens: int, seed: int) -> int:
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
        values = [twin(parts, X, L, mask=False, inner=False) for X in _inputs(tokens, seed)]
        columns.append(np.imag(np.ravel(values)) / 1e-30)
    singular = np.linalg.svd(np.stack(columns), compute_uv=False)
    return int(np.sum(singular > 1e-10 * singular[0]))


def every_fiber(quick: bool, seed: int) -> Finding:
    """All fibers: layers behind the first collapsing one are not seen (softmax-fibers).

    Two tokens and a skew form in layer 1, or a zero form: later forms may change, and the
    differential loses their 4 dimensions each. With three tokens a skew form is as good as another.
    """
    zero = np.zeros((2, 2))
    cases = [
        compared((SKEW, FORM), (SKEW, OTHER), 2, seed, same=True),
        compared((SKEW, FORM), (SKEW, OTHER), 3, seed, same=False),
        compared((zero, FORM), (zero, OTHER), 3, seed, same=True),
        compared((FORM, SKEW, FORM), (FORM, SKEW, OTHER), 2, seed, same=True),
        compared((FORM, OTHER), (FORM, FORM), 2, seed, same=False),
        compared((FORM, OTHER), (OTHER, OTHER), 3, seed, same=False),
        compared((THIN, FORM), (THIN, OTHER), 2, seed, same=False),
    ]
    ranks = [
        ("skew, t = 2", (SKEW, FORM), 2, 8),
        ("skew, t = 3", (SKEW, FORM), 3, 12),
        ("zero, t = 3", (zero, FORM), 3, 8),
        ("rank one, t = 2", (THIN, FORM), 2, 12),
    ]
    for name, forms, tokens, rank in ranks:
        cases.append(equal(f"{name}: rank", rank, _numeric_rank(forms, tokens, seed)))
    sizes = [(d, d_out, t) for d in (1, 2, 3) for d_out in (1, 2) for t in (2, 3)]
    full = [
        Architecture((d,) * depth + (d_out,), (d,) * depth, t, "softmax")
        for depth in (2, 3)
        for d, d_out, t in sizes
        if d > 1 or t == 2  # three tokens of width one have dependent exponents (softmax-exact)
    ][: 4 if quick else None]
    cases += [_full_rank(one, seed) for one in full]
    return Finding(
        f"seven pairs of networks in float64, four ranks at special points, {len(full)} "
        f"differentials over GF(p), exactly (seed {seed})",
        cases,
    )


def causal_fibers(quick: bool, seed: int) -> Finding:
    """One point, but (0, N) ~ (N/2, 0) if t = 2 and N is skew (softmax-causal-fibers)."""
    zero, fields = np.zeros((2, 2)), {"mask": True}
    cases = [
        compared((zero, SKEW), (SKEW / 2, zero), 2, seed, same=True, **fields),
        compared((zero, SKEW), (SKEW / 2, zero), 3, seed, same=False, **fields),
        compared((zero, FORM), (FORM / 2, zero), 2, seed, same=False, **fields),
        compared((zero, FORM), (zero, OTHER), 3, seed, same=False, **fields),
    ]
    sizes = [(2, 2), (2, 3)] if quick else [(1, 2), (1, 3), (2, 2), (2, 3), (3, 2), (3, 3)]
    cases += [
        _full_rank(Architecture((d,) * 3, (d,) * 2, t, "softmax", mask="causal"), seed)
        for d, t in sizes
    ]
    return Finding(
        f"four pairs of networks in float64, {len(sizes)} differentials over GF(p) (seed {seed})",
        cases,
    )


def inner_fibers(quick: bool, seed: int) -> Finding:
    """One point, but (N, −N/2) ~ (0, N/2) if t = 2 and N is skew (softmax-inner-fibers)."""
    zero, fields = np.zeros((2, 2)), {"inner": True}
    cases = [
        compared((SKEW, -SKEW / 2), (zero, SKEW / 2), 2, seed, same=True, **fields),
        compared((SKEW, -SKEW / 2), (zero, SKEW / 2), 3, seed, same=False, **fields),
        compared((FORM, -FORM / 2), (zero, FORM / 2), 2, seed, same=False, **fields),
        compared((zero, FORM), (zero, OTHER), 3, seed, same=False, **fields),
    ]
    sizes = [(2, 2), (2, 3)] if quick else [(1, 2), (2, 2), (2, 3), (3, 2), (3, 3)]
    cases += [
        _full_rank(Architecture((d,) * 3, (d,) * 2, t, "softmax", skip="inner"), seed)
        for d, t in sizes
    ]
    return Finding(
        f"four pairs of networks in float64, {len(sizes)} differentials over GF(p) (seed {seed})",
        cases,
    )


def one_layer_of_heads(quick: bool, seed: int) -> Finding:
    """One layer shows Σ V_h δ(A_h), with two tokens its odd part and Σ V_h (softmax-layer)."""
    found = compare_dimensions(random_softmax("layer", 8 if quick else 60, seed), expected, seed)
    zero = np.zeros((2, 2))
    pair, none = [(FORM, LINEAR), (OTHER, SKEW)], [(zero, LINEAR), (zero, LINEAR)]
    cases = [
        _same_heads([(FORM, LINEAR), (-FORM, LINEAR)], none, 2, True, seed),
        _same_heads([(FORM, LINEAR), (-FORM, LINEAR)], none, 3, False, seed),
        _same_heads(
            [(FORM, LINEAR), (FORM, OTHER)], [(FORM, LINEAR + OTHER), (OTHER, zero)], 3, True, seed
        ),
        _same_heads(pair, pair[::-1], 2, True, seed),
        _same_heads(pair, [(FORM, SKEW), (OTHER, LINEAR)], 2, False, seed),
    ]
    checked = f"{found.checked}; five pairs of layers with two heads in float64"
    return Finding(checked, [*found.cases, *cases], found.numbers)


def _same_heads(
    first: list[tuple[np.ndarray, np.ndarray]],
    second: list[tuple[np.ndarray, np.ndarray]],
    tokens: int,
    same: bool,
    seed: int,
) -> Case:
    layer = Architecture((2, 2), (2,), tokens, "softmax", heads=2)
    X = normal_input(layer, seed)
    values = []
    for heads in (first, second):
        tensors = {
            "query": np.stack([A for A, _ in heads]),
            "key": np.stack([np.eye(2)] * 2),
            "value": np.stack([V for _, V in heads]),
        }
        values.append(output(Weights.from_tensors(layer, [tensors]), X))
    gap, name = distance(*values), f"two heads, t = {tokens}, {'same' if same else 'different'}"
    return close(name, gap, ROUNDING) if same else apart(name, gap, DIFFERENT)


CHECKS: dict[str, Check] = {
    "softmax-fibers": every_fiber,
    "softmax-causal-fibers": causal_fibers,
    "softmax-inner-fibers": inner_fibers,
    "softmax-layer": one_layer_of_heads,
}
