"""Checks of all fibers and all critical points of one layer, over small finite fields.

By prop-a.5 the function of (A, V) is its table of products of linear forms, a polynomial statement
that makes sense over every field. Polynomials factor uniquely over every field, which is all that
the description of the fibers uses; so over GF(3) and GF(5) *all* pairs can be listed, and every
fiber counted, with nothing left to chance.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Int

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import rank
from neuromanifold.architecture import Architecture
from neuromanifold.geometry.differential import pair_differential
from neuromanifold.geometry.layer import Factors
from neuromanifold.geometry.segre import product_table
from neuromanifold.networks.weights import Weights, conditioned_weights
from neuromanifold.paper.checks.evaluation import distance
from neuromanifold.paper.checks.trial import Trial, check
from neuromanifold.recovery.oracle import network_oracle
from neuromanifold.recovery.recover import recover

RECOVERED = 1e-8
"""Largest relative error of weights recovered in float64 from well-conditioned equations."""

_FIELDS = [(3, 1), (3, 2), (5, 1)]
"""Primes p and output widths d', with d = 2."""


@dataclass(frozen=True, slots=True, eq=False)
class AllPairs:
    """Every pair (A, V) with d = 2 over GF(p).

    Attributes:
        prime: p.
        attention: every A.
        value: every V.
        fibers: for each pair the number of its fiber.
        sizes: the number of pairs in each fiber.
    """

    prime: int
    attention: Int[np.ndarray, "pairs 2 2"]
    value: Int[np.ndarray, "pairs d_out 2"]
    fibers: Int[np.ndarray, " pairs"]
    sizes: Int[np.ndarray, " fibers"]


def all_pairs(prime: int, d_out: int) -> AllPairs:
    """List the pairs and sort them by their tables of products (prop-a.5)."""
    entries = np.array(list(product(range(prime), repeat=4 + 2 * d_out)))
    A, V = entries[:, :4].reshape(-1, 2, 2), entries[:, 4:].reshape(-1, d_out, 2)
    tables = np.mod(product_table(A.astype(float), V.astype(float)), prime).astype(np.int64)
    _, fibers, sizes = np.unique(
        tables.reshape(len(entries), -1), axis=0, return_inverse=True, return_counts=True
    )
    return AllPairs(prime, A, V, fibers.ravel(), sizes)


def _determinants(matrices: Int[np.ndarray, "pairs 2 2"], prime: int) -> np.ndarray:
    return (matrices[:, 0, 0] * matrices[:, 1, 1] - matrices[:, 0, 1] * matrices[:, 1, 0]) % prime


def _ranks(matrices: np.ndarray, prime: int) -> np.ndarray:
    """Ranks of matrices with two columns and one or two rows."""
    found = np.any(matrices, axis=(1, 2)).astype(int)
    if matrices.shape[1] == 2:
        found += _determinants(matrices, prime) != 0
    return found


def _parallel(pairs: AllPairs) -> np.ndarray:
    """For pairs of ranks one whether k ∥ v: column space of A against row space of V."""
    A, V, every = pairs.attention, pairs.value, np.arange(len(pairs.value))
    k = A[every, :, np.any(A, axis=1).argmax(axis=1)]
    rows = V[every, np.any(V, axis=2).argmax(axis=1)]
    return (k[:, 0] * rows[:, 1] - k[:, 1] * rows[:, 0]) % pairs.prime == 0


def expected_sizes(pairs: AllPairs) -> Int[np.ndarray, " pairs"]:
    """The number of pairs in the fiber of each pair, by the description of the fibers (thm-3.2).

    p − 1 rescalings; twice as many for A = k⊗q, V = h⊗v with k ∦ v; for the zero function all pairs
    with A = 0 or V = 0.
    """
    p, rank_A, rank_V = pairs.prime, *_both_ranks(pairs)
    values, attentions = p ** pairs.value[0].size, p**4
    swapped = (rank_A == 1) & (rank_V == 1) & ~_parallel(pairs)
    sizes = np.where(swapped, 2 * (p - 1), p - 1)
    return np.where(rank_A * rank_V == 0, values + attentions - 1, sizes)


def _both_ranks(pairs: AllPairs) -> tuple[np.ndarray, np.ndarray]:
    return _ranks(pairs.attention, pairs.prime), _ranks(pairs.value, pairs.prime)


def _every_pair(trial: Trial, most: int | None = None) -> Iterator[tuple[AllPairs, str]]:
    """All pairs over each of the fields, with the name of the field."""
    for prime, d_out in trial.some(_FIELDS[:most], 1):
        yield all_pairs(prime, d_out), f"d = 2, d' = {d_out} over GF({prime})"


@check("thm-3.2")
def fibers_of_one_layer(trial: Trial) -> str:
    """All fibers: rescalings, the swap for ranks one, and the zero function (thm-3.2)."""
    for pairs, name in _every_pair(trial):
        found, expected = pairs.sizes[pairs.fibers], expected_sizes(pairs)
        wrong = int(np.sum(found != expected))
        trial.equal(f"pairs whose fiber has another size, {name}", 0, wrong)
        trial.equal(f"rescalings leave their fiber, {name}", 0, _leaving(pairs))
        trial.equal(f"swaps leave their fiber, {name}", 0, _swaps_leaving(pairs))
        trial.numbers[f"pairs, {name}"] = len(found)
        trial.numbers[f"fibers, {name}"] = len(pairs.sizes)
    listed = (f"{n} {name}" for name, n in trial.numbers.items() if "pairs" in name)
    return (
        f"every pair (A, V) over small fields, with nothing left out: {', '.join(listed)}; "
        f"{_recovered(trial)} layers recovered from their functions in float64 (seed {trial.seed})"
    )


def _recovered(trial: Trial) -> int:
    """Real layers: (A, V) comes back from the function up to scale, with the swap for ranks one."""
    sizes = trial.some([(2, 1, 1), (3, 2, 2), (4, 3, 4)], 2)
    for d, d_out, a in sizes:
        layer = Architecture((d, d_out), (a,), 2)
        W = conditioned_weights(layer, trial.seed)
        found = recover(network_oracle(W), layer, seed=trial.seed)
        points = () if found.weights is None else (found.weights, *found.alternatives)
        wanted = 2 if a == d_out == 1 else 1
        trial.equal(f"{layer}: points of the fiber", wanted, len(points))
        nearest = min((_off_up_to_scale(W, point) for point in points), default=1.0)
        trial.close(f"{layer}: (A, V) up to scale", nearest, RECOVERED)
    return len(sizes)


def _off_up_to_scale(first: Weights, second: Weights) -> float:
    """The distance of A ⊗ V, which rescaling leaves alone, relative to its size."""
    layers = (Factors.of(weights) for weights in (first, second))
    return distance(*(np.multiply.outer(one.form, one.value_map) for one in layers))


def _number(pairs: AllPairs, A: np.ndarray, V: np.ndarray) -> np.ndarray:
    """The place of pairs in the list: their entries are its digits in base p."""
    digits = np.concatenate([A.reshape(len(A), -1), V.reshape(len(V), -1)], axis=1) % pairs.prime
    return digits @ pairs.prime ** np.arange(digits.shape[1])[::-1]


def _leaving(pairs: AllPairs) -> int:
    """How many pairs (λA, V/λ) are in another fiber than (A, V)."""
    p, left = pairs.prime, 0
    for x in range(1, p):
        moved = _number(pairs, x * pairs.attention, pow(x, -1, p) * pairs.value)
        left += int(np.sum(pairs.fibers[moved] != pairs.fibers))
    return left


def _swaps_leaving(pairs: AllPairs) -> int:
    """How many swapped pairs (v⊗q, h⊗k) are in another fiber than (k⊗q, h⊗v)."""
    vectors = np.array(list(product(range(pairs.prime), repeat=2)))
    heads = np.array(list(product(range(pairs.prime), repeat=pairs.value.shape[1])))
    every = zip(*product(vectors, vectors, vectors, heads), strict=True)
    k, q, v, h = (np.array(part) for part in every)
    first = _number(pairs, k[:, :, None] * q[:, None, :], h[:, :, None] * v[:, None, :])
    second = _number(pairs, v[:, :, None] * q[:, None, :], h[:, :, None] * k[:, None, :])
    return int(np.sum(pairs.fibers[first] != pairs.fibers[second]))


@check("cor-a.2")
def birational(trial: Trial) -> str:
    """Up to scale, fibers of non-zero functions have one point or two (cor-a.2)."""
    for pairs, name in _every_pair(trial):
        rank_A, rank_V = _both_ranks(pairs)
        sizes = pairs.sizes[pairs.fibers] // (pairs.prime - 1)
        points = np.where(rank_A * rank_V == 0, 0, sizes)
        counts = {str(n): int(np.sum(points == n)) for n in np.unique(points) if n}
        special = (rank_A == 1) & (rank_V == 1) & ~_parallel(pairs)
        trial.equal(f"numbers of points, {name}", ["1", "2"], sorted(counts))
        trial.equal(f"two points where special, {name}", special, points == 2)
        trial.numbers[f"pairs by points of their fiber, {name}"] = counts
    return "every pair (A, V) with φ ≠ 0 over small fields, up to scale"


@check("lemma-a.3")
def critical_points(trial: Trial) -> str:
    """(A, V) is critical iff A = k⊗q and V = h⊗k, or A = 0, or V = 0 (lemma-a.3).

    The differential of (A, V) ↦ φ has its largest rank, d² + dd' − 1, everywhere else.
    """
    for pairs, name in _every_pair(trial, most=2):
        field = PrimeField(pairs.prime)
        rank_A, rank_V = _both_ranks(pairs)
        expected = (rank_A * rank_V == 0) | ((rank_A == 1) & (rank_V == 1) & _parallel(pairs))
        found = np.array(
            [_is_critical(A, V, field) for A, V in zip(pairs.attention, pairs.value, strict=True)]
        )
        trial.equal(f"pairs decided wrongly, {name}", 0, int(np.sum(found != expected)))
        trial.numbers[f"pairs, {name}"] = len(found)
        trial.numbers[f"critical pairs, {name}"] = int(np.sum(found))
    dropped = rank(pair_differential(np.zeros((2, 2)), np.eye(2)), PrimeField())
    trial.refute(
        f"d = d' = 2, A = 0, V = 1: the differential has rank {dropped} < 7, so (A, V) is "
        "critical; V has rank two, so it is not of the printed form h⊗k.",
        dropped < 7,
        {"rank": dropped, "largest rank": 7},
    )
    return "the rank of the differential at every pair (A, V): " + ", ".join(
        f"{count} {name}" for name, count in trial.numbers.items()
    )


def _is_critical(A: np.ndarray, V: np.ndarray, field: PrimeField) -> bool:
    differential = pair_differential(A.astype(np.float64), V.astype(np.float64))
    balanced = np.ascontiguousarray(field.reduce(differential))
    return rank(balanced, field) < A.size + V.size - 1
