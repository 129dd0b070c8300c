"""Checks of singular, boundary and limit points of one layer."""

from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.geometry.classify import classify
from neuromanifold.geometry.closedness import Escape, diverging_sequence, limit_of_functions
from neuromanifold.geometry.layer import Factors
from neuromanifold.geometry.membership import factor_table
from neuromanifold.geometry.segre import product_table
from neuromanifold.geometry.tangent import TangentSpace, zariski_tangent_space
from neuromanifold.networks.weights import Weights, conditioned_weights
from neuromanifold.paper.checks.trial import Trial, check


class Kind(NamedTuple):
    """A kind of point of one layer.

    Attributes:
        d: the input width.
        d_out: the output width d'.
        a: the query/key rank.
        attention_rank: the rank of A.
        value_rank: the rank of V.
        parallel: for A = k⊗q and V = h⊗v of rank one, whether k ∥ v.
    """

    d: int
    d_out: int
    a: int
    attention_rank: int
    value_rank: int
    parallel: bool = False

    def __str__(self) -> str:
        direction = (", k ∥ v" if self.parallel else ", k ∦ v") * (
            self.attention_rank == self.value_rank == 1
        )
        return (
            f"d = {self.d}, d' = {self.d_out}, a = {self.a}, rank A = {self.attention_rank}, "
            f"rank V = {self.value_rank}{direction}"
        )


_EXAMPLE = Kind(3, 2, 2, 1, 2)
"""The point that the printed list of singular points leaves out."""


def point_of(kind: Kind, seed: int) -> Weights:
    """Integer weights of this kind."""
    d, d_out, a, attention_rank, value_rank, parallel = kind
    generator = np.random.default_rng((seed, d, d_out, a, attention_rank, value_rank))
    layer = Architecture((d, d_out), (a,), 2)

    def matrix(rows: int, kept: int) -> np.ndarray:
        # A unit lower triangle in front keeps `kept` rows independent whatever is drawn.
        full = generator.integers(-2, 3, (rows, d))
        full[:, :rows] = np.tril(full[:, :rows], -1)[:, :d] + np.eye(rows, min(rows, d), dtype=int)
        full[kept:] = 0
        return full.astype(np.float64)

    K, Q = matrix(a, attention_rank), matrix(a, attention_rank)
    V = generator.integers(1, 3, (d_out, 1)) * K[:1] if parallel else matrix(d_out, value_rank)
    if not parallel and attention_rank == value_rank == 1 and d > 1:
        V[0] = K[0] + np.eye(d)[-1] * (1 + abs(K[0, 0]))
    tensors = {"query": Q[None], "key": K[None], "value": np.asarray(V, dtype=np.float64)[None]}
    return Weights.from_tensors(layer, [tensors])


_SIZES = [(2, 1, 2), (2, 2, 1), (2, 2, 2), (3, 2, 2)]


def _kinds(trial: Trial) -> list[Kind]:
    """All ranks of A and V; for ranks one with k ∦ v and with k ∥ v."""
    return [
        Kind(d, d_out, a, attention_rank, value_rank, parallel)
        for d, d_out, a in trial.some(_SIZES, 2)
        for attention_rank in range(min(a, d) + 1)
        for value_rank in range(min(d, d_out) + 1)
        for parallel in ((False, True) if attention_rank == value_rank == 1 else (False,))
    ]


@lru_cache(maxsize=256)
def _tangent_space(kind: Kind, seed: int) -> TangentSpace:
    return zariski_tangent_space(point_of(kind, seed), seed=seed)


def _low_rank_example(trial: Trial) -> None:
    """Tangent vectors alone decide: one more than the dimension, so no equations are needed."""
    point = point_of(_EXAMPLE, trial.seed)
    tangent = zariski_tangent_space(point, highest_degree=2, seed=trial.seed)
    trial.refute(
        f"{_EXAMPLE}: rank A · rank V = {_EXAMPLE.attention_rank * _EXAMPLE.value_rank}, and still "
        f"the tangent space has dimension at least {tangent.lower}, the neuromanifold "
        f"{tangent.dimension}.",
        tangent.singular is True,
        {"tangent space at least": tangent.lower, "dimension": tangent.dimension},
    )


@check("cor-a.4")
def singular_where_both_ranks_one(trial: Trial) -> str:
    """Where rank A · rank V ≤ 1 the tangent space is too large (cor-a.4)."""
    kinds = [kind for kind in _kinds(trial) if kind.attention_rank * kind.value_rank <= 1]
    for kind in kinds:
        trial.equal(f"{kind}: singular", True, _tangent_space(kind, trial.seed).singular)
    _low_rank_example(trial)
    return (
        f"Zariski tangent spaces at {len(kinds)} points with rank A · rank V ≤ 1, bounded from "
        f"both sides over a prime field (seed {trial.seed})"
    )


@check("low-rank-singular")
def all_singular_points(trial: Trial) -> str:
    """Singular iff rank A · rank V ≤ 1 or rank A < a < d (low-rank-singular)."""
    table = {}
    for kind in _kinds(trial):
        tangent = _tangent_space(kind, trial.seed)
        expected = (
            kind.attention_rank * kind.value_rank <= 1 or kind.attention_rank < kind.a < kind.d
        )
        trial.equal(f"{kind}: singular", expected, tangent.singular)
        classified = classify(point_of(kind, trial.seed)).singular
        trial.equal(f"{kind}: classified", expected, classified)
        table[str(kind)] = f"tangent space {tangent.lower}, dimension {tangent.dimension}"
    trial.numbers["points"] = table
    sizes = ", ".join(str(size) for size in trial.some(_SIZES, 2))
    return (
        f"{len(table)} points, every pair of ranks for (d, d', a) = {sizes}: Zariski tangent "
        f"spaces over a prime field (seed {trial.seed})"
    )


@check("cor-a.6")
def boundary_points(trial: Trial) -> str:
    """The relative boundary is where (A, V) is critical (cor-a.6).

    A point is on the boundary when points of the Zariski closure that are not in the neuromanifold
    come arbitrarily close. At q_m h_n k² they do: q_m h_n (k² + ε u²) is definite for every ε > 0.
    At q_m h_n k v with k ∦ v they do not: q_m h_n (k v ± ε u²) is a product of real forms for
    small ε and u in the span of k and v, where all forms of rank two nearby are.
    """
    for kind in _kinds(trial):
        if not kind.attention_rank == kind.value_rank == 1:
            continue
        W = point_of(kind, trial.seed)
        for size in (1e-1, 1e-2, 1e-3):
            near = factor_table(_beside(Factors.of(W), size), kind.a)
            outside = not near.member and near.in_closure
            trial.equal(f"{kind}, ε = {size:g}", kind.parallel, outside)
        trial.equal(f"{kind}: classified", kind.parallel, classify(W).boundary)
    zero = point_of(Kind(2, 2, 2, 0, 1), trial.seed)
    trial.equal("the zero function: classified", True, classify(zero).boundary)
    return (
        f"{trial.cases} comparisons: at points of ranks one, whether the Zariski "
        "closure leaves the neuromanifold at three small distances ε, float64 "
        f"(seed {trial.seed})"
    )


def _beside(layer: Factors, size: float) -> np.ndarray:
    """The table of q_m h_n (k v ± ε u²), u orthogonal to k, for A = k⊗q and V = h⊗v.

    ε is `size` times the distance |k| |v| (1 − |cos|)/2 of k v to the definite forms, and times
    |k| |v| where that vanishes.
    """
    A, V = layer.form, layer.value_map
    left, values, right = np.linalg.svd(A)
    k, q = left[:, 0] * values[0], right[0]
    outer, lengths, inner = np.linalg.svd(V)
    h, v = outer[:, 0] * lengths[0], inner[0]
    cosine = k @ v / values[0]
    off = v - cosine * k / values[0]
    parallel = np.linalg.norm(off) < 1e-9
    u = np.linalg.svd(k[None])[2][1] if parallel else off / np.linalg.norm(off)
    scale = values[0] * (1.0 if parallel else (1 - abs(cosine)) / 2)
    moved = np.sign(cosine or 1.0) * size * scale * np.outer(h, u)
    return product_table(A, V) + product_table(np.outer(u, q), moved)


@check("cor-a.1")
def closed(trial: Trial) -> str:
    """Limits of functions are functions, even when the weights diverge (cor-a.1)."""
    escapes: tuple[Escape, ...] = ("scaling", "key-query", "vanishing")
    norms = {}
    for (d, d_out, a), escape in product(trial.some(_SIZES, 2), escapes):
        layer = Architecture((d, d_out), (a,), 2)
        weights = conditioned_weights(layer, trial.seed)
        limit = limit_of_functions(diverging_sequence(weights, escape, seed=trial.seed))
        name = f"{layer}, {escape}"
        error = np.inf if limit.error is None else limit.error
        trial.close(f"{name}: the limit has weights", float(error), 1e-9)
        norms[name] = growth = float(limit.weight_norms[-1] / limit.weight_norms[0])
        trial.equal(f"{name}: the weights diverge", True, growth > 1e3)
    trial.numbers["growth of the weights"] = norms
    return (
        f"{len(norms)} sequences of weights that grow a thousand times and more while their "
        f"functions converge; weights of each limit found to 1e-9 (seed {trial.seed})"
    )


@check("thm-3.4")
def geometry_of_one_layer(trial: Trial) -> str:
    """Closed; singular and boundary points by ranks of A and V (thm-3.4)."""
    smooth = [
        kind
        for kind in _kinds(trial)
        if kind.attention_rank == min(kind.a, kind.d)
        and kind.value_rank == min(kind.d, kind.d_out)
        and kind.attention_rank * kind.value_rank > 1
    ]
    for kind in smooth:
        trial.equal(f"{kind}: singular", False, _tangent_space(kind, trial.seed).singular)
    for part in (closed, singular_where_both_ranks_one, boundary_points):
        part(trial)
    return (
        "closedness, singular and boundary points together, and "
        f"{len(smooth)} points of full rank, which are smooth (seed {trial.seed})"
    )
