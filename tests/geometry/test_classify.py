"""Classification: ranks, kinds of points, distances, differentials, and what is refused."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError, HypothesisError, NotCoveredError, WeightsError
from neuromanifold.geometry.classify import classify
from neuromanifold.geometry.differential import factor_differential, pair_differential
from neuromanifold.geometry.layer import Factors
from neuromanifold.geometry.segre import product_table, table_of
from neuromanifold.networks.weights import Weights, random_weights, unflatten
from neuromanifold.symmetry.group_element import GroupElement, parts_of
from single_layers import architecture, float_layer, integer_layer, layer

SEEDS = st.integers(0, 10**6)

# sizes, ranks of A and V, k ∥ v; then critical, singular, and points of the fiber.
TABLE = [
    ((3, 2, 2), (2, 2), False, False, False, 1),
    ((3, 2, 2), (2, 1), False, False, False, 1),
    ((3, 2, 2), (1, 2), False, False, True, 1),
    ((3, 2, 2), (1, 1), False, False, True, 2),
    ((3, 2, 2), (1, 1), True, True, True, 1),
    ((3, 2, 2), (0, 2), False, True, True, None),
    ((3, 2, 2), (2, 0), False, True, True, None),
    ((3, 2, 3), (1, 2), False, False, False, 1),
    ((3, 2, 3), (2, 2), False, False, False, 1),
    ((3, 2, 5), (3, 2), False, False, False, 1),
    ((2, 1, 2), (2, 1), False, False, False, 1),
    ((2, 1, 2), (1, 1), False, False, True, 2),
    ((2, 1, 2), (1, 1), True, True, True, 1),
    ((3, 3, 1), (1, 3), False, False, False, 1),
]


@pytest.mark.statement("thm-3.4")
@pytest.mark.parametrize(("sizes", "ranks", "parallel", "critical", "singular", "points"), TABLE)
@given(seed=SEEDS)
def test_every_kind_of_point_is_recognised(
    sizes, ranks, parallel, critical, singular, points, seed
):
    found = classify(float_layer(*sizes, *ranks, seed, parallel=parallel))
    assert (found.attention.rank, found.value.rank) == ranks
    assert found.critical == found.boundary == critical
    assert found.singular == singular
    assert found.fiber_points == points
    assert bool(found.reasons) == (critical or singular)


@pytest.mark.parametrize(("sizes", "ranks", "parallel"), [row[:3] for row in TABLE])
@given(seed=SEEDS)
def test_scalings_and_gauge_change_nothing(sizes, ranks, parallel, seed):
    weights = float_layer(*sizes, *ranks, seed, parallel=parallel)
    generator = np.random.default_rng(seed)
    gauge = parts_of(weights.architecture)["key_query"].random(generator)
    scaling = (np.array([generator.choice([-1e3, 1e-3])]),)
    moved = GroupElement(weights.architecture, scaling=scaling, key_query=gauge).act(weights)
    before, after = classify(weights), classify(moved)
    one, other = before.to_dict(), after.to_dict()
    for name in one.keys() - {"reasons", "gap", "distance", "tolerance"}:
        assert one[name] == other[name]
    assert after.distances.rank_one == pytest.approx(before.distances.rank_one, abs=1e-10)
    assert after.distances.boundary == pytest.approx(before.distances.boundary, abs=1e-10)


@pytest.mark.statement("lemma-a.3")
@pytest.mark.parametrize(("sizes", "ranks", "parallel", "critical"), [row[:4] for row in TABLE])
def test_the_computed_differential_is_deficient_exactly_at_critical_points(
    sizes, ranks, parallel, critical
):
    d, d_out, _ = sizes
    for seed in range(5):
        found = classify(float_layer(*sizes, *ranks, seed, parallel=parallel))
        assert (found.pair_differential.rank < d * d + d * d_out - 1) == critical
        assert found.pair_differential.gap > 1e6


@pytest.mark.parametrize(("sizes", "ranks", "parallel"), [row[:3] for row in TABLE])
def test_exact_and_numeric_ranks_agree_for_integer_weights(sizes, ranks, parallel):
    for seed in range(3):
        weights = integer_layer(*sizes, *ranks, seed, parallel=parallel)
        found = classify(weights, field=PrimeField())
        exact = found.exact
        assert exact.prime == PrimeField().modulus
        assert (exact.attention, exact.value) == (found.attention.rank, found.value.rank)
        assert exact.pair_differential == found.pair_differential.rank
        assert exact.weight_differential == found.weight_differential.rank


def test_exact_ranks_are_those_of_the_floats_themselves():
    # 0.1 · 3 and 0.3 differ in floats, so rows that look proportional are not.
    key = np.array([[0.1, 0.3], [0.3, 0.9]])
    weights = layer(np.eye(2), key, np.array([[1.0, 2.0]]))
    found = classify(weights, field=PrimeField())
    assert found.attention.rank == 1
    assert found.exact.attention == 2


@pytest.mark.parametrize("value_ranks", [None, (2,)])
def test_the_differentials_are_those_of_the_table(value_ranks):
    network = Architecture(widths=(3, 2), ranks=(2,), tokens=2, value_ranks=value_ranks)
    weights, factors = random_weights(network, 0), Factors.of(random_weights(network, 0))
    direction = random_weights(network, 1)
    step = 1e-6
    ahead, behind = (
        table_of(unflatten(network, weights.flatten() + sign * step * direction.flatten()))
        for sign in (1, -1)
    )
    of_weights = pair_differential(factors.form, factors.value_map) @ factor_differential(factors)
    np.testing.assert_allclose(
        of_weights @ direction.flatten(), ((ahead - behind) / (2 * step)).ravel(), atol=1e-8
    )


def test_the_pair_differential_is_the_product_rule():
    generator = np.random.default_rng(0)
    A, dA = generator.standard_normal((2, 3, 3))
    V, dV = generator.standard_normal((2, 2, 3))
    moved = pair_differential(A, V) @ np.concatenate([dA.ravel(), dV.ravel()])
    np.testing.assert_allclose(
        moved, (product_table(dA, V) + product_table(A, dV)).ravel(), atol=1e-13
    )


@given(seed=SEEDS)
def test_distances_are_attained_and_no_special_pair_is_nearer(seed):
    weights = float_layer(3, 2, 3, 3, 2, seed)
    factors, found = Factors.of(weights), classify(weights)
    A = factors.form / np.linalg.norm(factors.form)
    V = factors.value_map / np.linalg.norm(factors.value_map)
    generator = np.random.default_rng(seed)

    def boundary(k):
        k = k / np.linalg.norm(k)
        return np.hypot(
            np.linalg.norm(A - np.outer(k, k @ A)), np.linalg.norm(V - np.outer(V @ k, k))
        )

    tries = [boundary(k) for k in generator.standard_normal((300, 3))]
    assert found.distances.boundary <= min(min(tries), 1.0) + 1e-12
    assert min(tries) <= max(found.distances.boundary, 1.0) + 0.2
    assert found.distances.rank_one <= found.distances.boundary + 1e-12
    near = [np.outer(x, y) for x, y in generator.standard_normal((300, 2, 3))]
    best_A = min(np.linalg.norm(A - np.sum(A * B) / np.sum(B * B) * B) for B in near)
    assert found.distances.rank_one <= np.hypot(best_A, np.linalg.norm(V))


def test_distances_vanish_on_the_special_pairs_and_grow_with_the_perturbation():
    rank_one, square = float_layer(3, 2, 2, 1, 1, 0), float_layer(3, 2, 2, 1, 1, 0, parallel=True)
    assert classify(rank_one).distances.rank_one <= 1e-14
    assert classify(rank_one).distances.boundary > 1e-2
    assert classify(square).distances.boundary <= 1e-14
    noise = random_weights(square.architecture, 1).flatten()
    distances = [
        classify(unflatten(square.architecture, square.flatten() + size * noise)).distances
        for size in (1e-8, 1e-4)
    ]
    assert 1e-10 < distances[0].boundary < 1e-6 < distances[1].boundary < 1e-2


@pytest.mark.parametrize("size", [1e-3, 1e-6])
def test_a_small_perturbation_of_a_special_pair_is_no_longer_special(size):
    square = float_layer(3, 2, 2, 1, 1, 0, parallel=True)
    noise = random_weights(square.architecture, 1).flatten()
    found = classify(unflatten(square.architecture, square.flatten() + size * noise))
    assert (found.attention.rank, found.value.rank) == (2, 2)
    assert not found.critical
    assert classify(
        unflatten(square.architecture, square.flatten() + size * noise), tolerance=1e-2
    ).critical


def test_the_tolerance_follows_the_dtype():
    square = float_layer(3, 2, 2, 1, 1, 0, parallel=True)
    tensors = {name: x.astype(np.float32) for name, x in square.layers[0].tensors().items()}
    single = Weights.from_tensors(square.architecture, [tensors])
    assert classify(single).critical
    assert not classify(single, tolerance=1e-12).critical


def test_factors_that_cancel_give_rank_zero():
    # K has the rows k and −k, Q twice the row q: A = k⊗q − k⊗q.
    key, query = np.array([[0.1, 0.2], [-0.1, -0.2]]), np.array([[0.3, 0.7], [0.3, 0.7]])
    found = classify(layer(query, key, np.array([[1.0, 2.0]])))
    assert found.attention.rank == 0
    assert found.reasons[0] == "A = 0: critical, a boundary point (lemma-a.3, cor-a.6)"


def test_the_json_form_has_the_promised_fields():
    answer = json.loads(json.dumps(classify(float_layer(3, 2, 2, 1, 2, 0)).to_dict()))
    assert answer["tolerance"] < answer["distance"]["rank_one"]
    assert answer["gap"]["A"] is None or answer["gap"]["A"] > 1e10
    for name in ("gap", "distance", "tolerance"):
        answer.pop(name)
    assert answer == {
        "verdict": "numerical",
        "rank_A": 1,
        "rank_V": 2,
        "critical": False,
        "boundary": False,
        "singular": True,
        "reasons": ["rank A = 1 < a = 2 < d = 3: singular (low-rank-singular)"],
        "differential_rank": {"AV": 14, "QKV": 10},
        "fiber_points": 1,
    }


def test_a_pair_near_a_special_one_is_undecided():
    weights = float_layer(3, 2, 3, 2, 2, 0)
    layer = weights.layers[0]
    U, S, Wt = np.linalg.svd(layer.attention_matrices()[0])
    for small, verdict in ((1e-12, "undecided"), (1e-6, "numerical")):
        S[1] = small * S[0]
        tensors = {"key": np.eye(3)[None], "query": ((U * S) @ Wt)[None], "value": layer.value}
        found = classify(Weights.from_tensors(weights.architecture, [tensors]))
        assert found.verdict == verdict
        assert ("undecided" in str(found)) == (verdict == "undecided")


def test_it_prints_as_a_sentence():
    printed = str(classify(float_layer(2, 1, 2, 2, 1, 0)))
    assert printed.startswith("rank A = 2, rank V = 1: a smooth point of the neuromanifold (gaps ")
    assert "tolerance" in printed
    assert "critical, boundary, singular; A = k⊗q and V = h⊗v with k ∥ v" in str(
        classify(float_layer(2, 1, 2, 1, 1, 0, parallel=True))
    )


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        ({"widths": (1, 2)}, HypothesisError, r"widths\[0\] = 1 < 2"),
        ({"widths": (2, 1), "ranks": (1,)}, HypothesisError, r"widths\[1\] = 1 < 2 and ranks"),
        ({"tokens": 1}, HypothesisError, "tokens = 1 < 2"),
        ({"value_ranks": (1,)}, HypothesisError, r"value_ranks\[0\] = 1 < 3"),
        ({"widths": (3, 3, 3), "ranks": (2, 2)}, NotCoveredError, "depth = 2 > 1"),
        ({"heads": 2}, NotCoveredError, "heads = 2 > 1"),
        ({"attention": "softmax"}, NotCoveredError, "attention = softmax"),
        ({"mask": "causal"}, NotCoveredError, "mask = causal"),
        ({"widths": (40, 40)}, NotCoveredError, "take a smaller layer"),
    ],
)
def test_what_is_not_covered_is_refused_with_the_reason(fields, error, text):
    network = Architecture(**{"widths": (3, 3), "ranks": (2,), "tokens": 2, **fields})
    with pytest.raises(error, match=text):
        classify(random_weights(network, 0))


def test_weights_that_are_not_finite_are_refused():
    network = architecture(3, 2, 2)
    broken = random_weights(network, 0).flatten()
    broken[3] = np.inf
    with pytest.raises(WeightsError, match="finite"):
        classify(unflatten(network, broken))


@pytest.mark.parametrize("tolerance", [np.nan, -1.0, 1.0, np.inf])
def test_a_tolerance_that_decides_nothing_is_refused(tolerance):
    with pytest.raises(ArgumentError, match="tolerance must be at least 0 and below 1"):
        classify(random_weights(architecture(3, 2, 2), 0), tolerance=tolerance)


def test_the_coarsest_dtype_decides_what_counts_as_zero():
    """A form of rank one whose keys were rounded to float32, beside tensors in float64."""
    weights = random_weights(architecture(3, 2, 2), 0)
    layer = weights.layers[0]
    key = np.array(layer.key)
    key[0, 1] = 0.3 * key[0, 0]
    exact = classify(Weights.from_tensors(weights.architecture, [layer.tensors() | {"key": key}]))
    rounded = [layer.tensors() | {"key": key.astype(np.float32)}]
    assert exact.attention.rank == 1
    assert classify(Weights.from_tensors(weights.architecture, rounded)).attention.rank == 1
