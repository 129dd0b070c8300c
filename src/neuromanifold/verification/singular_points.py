"""Checks of singular, boundary and limit points of one layer."""

import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.geometry.classify import classify
from neuromanifold.geometry.closedness import Escape, diverging_sequence, limit_of_functions
from neuromanifold.geometry.membership import factor_table
from neuromanifold.geometry.segre import product_table
from neuromanifold.geometry.tangent import TangentSpace, zariski_tangent_space
from neuromanifold.networks.weights import Weights, conditioned_weights
from neuromanifold.verification.evidence import Case, Check, Counterexample, Finding, close, equal

_EXAMPLE = (3, 2, 2, 1, 2)
"""d, d', a, rank A, rank V of the smooth-looking point that is singular."""


def layer_of_ranks(
    d: int, d_out: int, a: int, rank_A: int, rank_V: int, seed: int, *, parallel: bool = False
) -> Weights:
    """Integer weights with given ranks of A and V; `parallel` makes k ∥ v for ranks one."""
    generator = np.random.default_rng((seed, d, d_out, a, rank_A, rank_V))
    layer = Architecture((d, d_out), (a,), 2)

    def matrix(rows: int, kept: int) -> np.ndarray:
        # A unit lower triangle in front keeps `kept` rows independent whatever is drawn.
        full = generator.integers(-2, 3, (rows, d))
        full[:, :rows] = np.tril(full[:, :rows], -1)[:, :d] + np.eye(rows, min(rows, d), dtype=int)
        full[kept:] = 0
        return full.astype(np.float64)

    K, Q = matrix(a, rank_A), matrix(a, rank_A)
    V = generator.integers(1, 3, (d_out, 1)) * K[:1] if parallel else matrix(d_out, rank_V)
    if not parallel and rank_A == rank_V == 1 and d > 1:
        V[0] = K[0] + np.eye(d)[-1] * (1 + abs(K[0, 0]))
    tensors = {"query": Q[None], "key": K[None], "value": np.asarray(V, dtype=np.float64)[None]}
    return Weights.from_tensors(layer, [tensors])


def _sizes(quick: bool) -> list[tuple[int, int, int]]:
    return [(2, 1, 2), (2, 2, 1)] if quick else [(2, 1, 2), (2, 2, 1), (2, 2, 2), (3, 2, 2)]


def _points(quick: bool, seed: int) -> list[tuple[Weights, bool]]:
    """Layers with all ranks of A and V; for ranks one with k ∦ v and with k ∥ v."""
    points = []
    for d, d_out, a in _sizes(quick):
        for rank_A in range(min(a, d) + 1):
            for rank_V in range(min(d, d_out) + 1):
                for parallel in (False, True) if rank_A == rank_V == 1 else (False,):
                    ranks = (rank_A, rank_V)
                    W = layer_of_ranks(d, d_out, a, *ranks, seed, parallel=parallel)
                    points.append((W, parallel))
    return points


def _name(weights: Weights) -> str:
    found = classify(weights)
    d, d_out = weights.architecture.widths
    return (
        f"d = {d}, d' = {d_out}, a = {weights.architecture.ranks[0]}, rank A = "
        f"{found.attention.rank}, rank V = {found.value.rank}"
    )


def _low_rank_example(seed: int) -> tuple[TangentSpace, Counterexample]:
    """The point that the printed list of singular points leaves out."""
    d, d_out, a, rank_A, rank_V = _EXAMPLE
    tangent = zariski_tangent_space(layer_of_ranks(*_EXAMPLE, seed), seed=seed)
    return tangent, Counterexample(
        text=f"d = {d}, d' = {d_out}, a = {a}, rank A = {rank_A}, rank V = {rank_V}: "
        f"rank A · rank V = {rank_A * rank_V}, and still the tangent space has dimension "
        f"{tangent.lower}, the neuromanifold {tangent.dimension}.",
        refutes=tangent.singular is True,
        numbers={"tangent space": tangent.lower, "dimension": tangent.dimension},
    )


def singular_where_both_ranks_one(quick: bool, seed: int) -> Finding:
    """Where rank A · rank V ≤ 1 the tangent space is too large (cor-a.4)."""
    cases = []
    for W, _ in _points(quick, seed):
        found = classify(W)
        if found.attention.rank * found.value.rank <= 1:
            tangent = zariski_tangent_space(W, seed=seed)
            cases.append(equal(_name(W), True, tangent.singular))
    _, counterexample = _low_rank_example(seed)
    return Finding(
        f"Zariski tangent spaces at {len(cases)} points with rank A · rank V ≤ 1, bounded from "
        f"both sides over a prime field (seed {seed})",
        cases,
        counterexample=counterexample,
    )


def all_singular_points(quick: bool, seed: int) -> Finding:
    """Singular iff rank A · rank V ≤ 1 or rank A < a < d (low-rank-singular)."""
    cases: list[Case] = []
    table = {}
    for W, _ in _points(quick, seed):
        tangent, (d, _), a = zariski_tangent_space(W, seed=seed), *_shape(W)
        found = classify(W)
        rank_A, rank_V = found.attention.rank, found.value.rank
        expected = rank_A * rank_V <= 1 or rank_A < a < d
        cases.append(equal(f"{_name(W)}: singular", expected, tangent.singular))
        cases.append(equal(f"{_name(W)}: classified", expected, found.singular))
        table[_name(W)] = f"tangent space {tangent.lower}, dimension {tangent.dimension}"
    return Finding(
        f"{len(table)} points, every pair of ranks for d, d', a = {_listed(quick)}: Zariski "
        f"tangent spaces over a prime field, bounds meeting (seed {seed})",
        cases,
        {"points": table},
    )


def _shape(weights: Weights) -> tuple[tuple[int, ...], int]:
    return weights.architecture.widths, weights.architecture.ranks[0]


def _listed(quick: bool) -> str:
    return ", ".join(str(size) for size in _sizes(quick))


def boundary_points(quick: bool, seed: int) -> Finding:
    """The relative boundary is where (A, V) is critical (cor-a.6).

    A point is on the boundary when points of the Zariski closure that are not in the neuromanifold
    come arbitrarily close. At q_m h_n k² they do: q_m h_n (k² + ε u²) is definite for every ε > 0.
    At q_m h_n k v with k ∦ v they do not: q_m h_n (k v ± ε u²) is a product of real forms for
    small ε and u in the span of k and v, where all forms of rank two nearby are.
    """
    cases: list[Case] = []
    for W, parallel in _points(quick, seed):
        found = classify(W)
        A, V = W.layers[0].attention_matrices()[0], W.layers[0].value_maps()[0]
        if found.attention.rank != 1 or found.value.rank != 1:
            continue
        for size in (1e-1, 1e-2, 1e-3):
            near = _beside(np.asarray(A), np.asarray(V), size)
            membership = factor_table(near, W.architecture.ranks[0])
            outside = not membership.member and membership.in_closure
            words = "k ∥ v" if parallel else "k ∦ v"
            cases.append(equal(f"{_name(W)}, {words}, ε = {size:g}", parallel, outside))
        cases.append(equal(f"{_name(W)}: classified", parallel, found.boundary))
    zero = layer_of_ranks(2, 2, 2, 0, 1, seed)
    cases.append(equal("the zero function: classified", True, classify(zero).boundary))
    return Finding(
        f"{len(cases)} comparisons: at points of ranks one, whether the Zariski closure leaves the "
        f"neuromanifold at distances 0.1, 0.01 and 0.001, float64 (seed {seed})",
        cases,
    )


def _beside(A: np.ndarray, V: np.ndarray, size: float) -> np.ndarray:
    """The table of q_m h_n (k v + ε u²) for A = k⊗q, V = h⊗v, u in the span of k, v or beside k."""
    left, values, right = np.linalg.svd(A)
    k, q = left[:, 0] * values[0], right[0]
    outer, lengths, inner = np.linalg.svd(V)
    h, v = outer[:, 0] * lengths[0], inner[0]
    u = v - (v @ k) / (k @ k) * k
    if np.linalg.norm(u) < 1e-9:
        u = np.linalg.svd(k[None])[2][1]
    sign = 1.0 if k @ v > 0 else -1.0
    square = product_table(np.outer(u, q), sign * size * np.outer(h, u / np.linalg.norm(u) ** 2))
    return product_table(A, V) + square


def closed(quick: bool, seed: int) -> Finding:
    """Limits of functions are functions, even when the weights diverge (cor-a.1)."""
    escapes: tuple[Escape, ...] = ("scaling", "key-query", "vanishing")
    cases: list[Case] = []
    norms = {}
    for d, d_out, a in _sizes(quick):
        layer = Architecture((d, d_out), (a,), 2)
        for escape in escapes:
            sequence = diverging_sequence(conditioned_weights(layer, seed), escape, seed=seed)
            limit = limit_of_functions(sequence)
            name = f"{layer}, {escape}"
            error = np.inf if limit.error is None else limit.error
            cases.append(close(f"{name}: the limit has weights", float(error), 1e-9))
            growth = float(limit.weight_norms[-1] / limit.weight_norms[0])
            cases.append(equal(f"{name}: the weights diverge", True, growth > 1e3))
            norms[name] = growth
    return Finding(
        f"{len(norms)} sequences of weights that grow a thousand times and more while their "
        f"functions converge; weights of each limit found to 1e-9 (seed {seed})",
        cases,
        {"growth of the weights": norms},
    )


def geometry_of_one_layer(quick: bool, seed: int) -> Finding:
    """Closed; singular and boundary points by ranks of A and V (thm-3.4)."""
    parts = [
        closed(quick, seed),
        singular_where_both_ranks_one(quick, seed),
        boundary_points(quick, seed),
    ]
    tangent, counterexample = _low_rank_example(seed)
    smooth = _full_ranks_are_smooth(quick, seed)
    return Finding(
        checked=f"closedness, singular and boundary points as in cor-a.1, cor-a.4 and cor-a.6, and "
        f"{len(smooth)} points of full rank, which are smooth",
        cases=[*smooth, *(case for part in parts for case in part.cases)],
        numbers={"tangent space and dimension": str(tangent)},
        counterexample=counterexample,
    )


def _full_ranks_are_smooth(quick: bool, seed: int) -> list[Case]:
    cases = []
    for d, d_out, a in _sizes(quick):
        W = layer_of_ranks(d, d_out, a, min(a, d), min(d, d_out), seed)
        if min(a, d) * min(d, d_out) > 1:
            tangent = zariski_tangent_space(W, seed=seed)
            cases.append(equal(f"{_name(W)}: singular", False, tangent.singular))
    return cases


CHECKS: dict[str, Check] = {
    "cor-a.1": closed,
    "cor-a.4": singular_where_both_ranks_one,
    "cor-a.6": boundary_points,
    "low-rank-singular": all_singular_points,
    "thm-3.4": geometry_of_one_layer,
}
