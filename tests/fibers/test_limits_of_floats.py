"""Float decisions that know their limits: each case here once had a wrong answer."""

import json

import numpy as np
import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.errors import NotCoveredError
from neuromanifold.fibers.describe import describe_fiber
from neuromanifold.fibers.fingerprint import fingerprint
from neuromanifold.fibers.normal_form.canonical import canonical_form
from neuromanifold.fibers.same import same_function
from neuromanifold.networks.weights import Weights, random_weights, unflatten
from neuromanifold.symmetry.group_element import GroupElement

LAYER = Architecture((3, 4), (2,), 2)


def deep_softmax(depth, **fields):
    return Architecture((3,) * (depth + 1), (2,) * depth, 3, "softmax", **fields)


def with_tensors(weights, i, **tensors):
    layers = [dict(layer.tensors()) for layer in weights.layers]
    layers[i] |= tensors
    return Weights.from_tensors(weights.architecture, layers)


def scaled(weights, **factors):
    layers = [
        {name: T * factors.get(name, 1.0) for name, T in layer.tensors().items()}
        for layer in weights.layers
    ]
    return Weights.from_tensors(weights.architecture, layers)


def gauge(weights, seed, condition):
    return GroupElement.random(weights.architecture, np.random.default_rng(seed), condition).act(
        weights
    )


def single(weights):
    return unflatten(weights.architecture, weights.flatten().astype(np.float32))


def strict_json(answer):
    return json.dumps(answer.to_dict(), allow_nan=False)


def test_deep_softmax_networks_that_differ_in_their_last_scores_are_different():
    for depth in (4, 6):
        for seed in range(5):
            weights = random_weights(deep_softmax(depth), seed)
            other = random_weights(deep_softmax(depth), seed + 100).layers[-1]
            changed = with_tensors(weights, -1, query=other.query, key=other.key)
            answer = same_function(weights, changed)
            assert answer.verdict == "different"
            assert f"M_{depth}" in answer.reason
            assert fingerprint(weights).hash != fingerprint(changed).hash


def test_a_witness_is_found_where_tokens_are_kept_apart():
    found = 0
    for seed in range(10):
        weights = random_weights(deep_softmax(3), seed)
        other = random_weights(deep_softmax(3), seed + 100).layers[-1]
        answer = same_function(weights, with_tensors(weights, -1, query=other.query))
        found += answer.witness is not None
        assert "random inputs" in answer.tested
    assert found >= 8


def test_outputs_that_agree_are_no_reason():
    """Two heads in depth have no invariants here: equal functions without a known symmetry."""
    architecture = Architecture((2, 2, 2), (1, 1), 2, "softmax", heads=2)
    weights = random_weights(architecture, 0)
    layer = weights.layers[0]
    double = {name: np.repeat(np.asarray(T)[:1], 2, axis=0) for name, T in layer.tensors().items()}
    first = with_tensors(weights, 0, **double)
    halves = double["value"] * np.array([0.25, 1.75])[:, None, None]
    answer = same_function(first, with_tensors(first, 0, value=halves))
    assert answer.verdict == "undecided"
    assert "nothing known here makes the functions equal" in answer.reason


def test_a_tolerance_near_the_size_decides_nothing():
    """Single precision and condition numbers of a million: noise is all there is."""
    for seed in range(5):
        weights = random_weights(Architecture((3, 3, 3), (2, 2), 3), seed)
        moved = single(gauge(weights, seed, 1e6))
        answer = same_function(single(weights), moved)
        assert answer.verdict == "undecided" or answer.error <= 1 / 16
        strict_json(answer)


def test_heads_are_compared_one_by_one():
    """A head a million times smaller than its neighbour, and changed, is a difference."""
    architecture = Architecture((3, 3, 3), (2, 2), 3, "softmax", heads=2)
    weights = random_weights(architecture, 0)
    V = np.array(weights.layers[1].value)
    V[1] *= 1e-9
    first = with_tensors(weights, 1, value=V)
    V = V.copy()
    V[1] *= 1.5
    assert same_function(first, with_tensors(first, 1, value=V)).verdict == "different"


def test_the_order_of_the_arguments_does_not_count():
    for seed in range(2):
        weights = random_weights(deep_softmax(3), seed)
        for other in (gauge(weights, seed, 1e5), random_weights(deep_softmax(3), seed + 50)):
            pair = single(weights), single(other)
            one, two = same_function(*pair), same_function(*pair[::-1])
            assert (one.verdict, one.error) == (two.verdict, pytest.approx(two.error))


def test_temperature_is_part_of_the_comparison():
    warm = random_weights(deep_softmax(2, temperature=2.0), 0)
    cold = Weights(warm.layers, deep_softmax(2))
    assert same_function(warm, cold).verdict == "different"
    assert same_function(warm, scaled(cold, key=0.5)).verdict == "same"
    assert same_function(warm, scaled(cold, key=0.5), exact=True).verdict == "same"
    heads = random_weights(deep_softmax(2, heads=2, temperature=3.0), 0)
    other = Weights(heads.layers, deep_softmax(2, heads=2))
    assert same_function(heads, scaled(other, key=1 / 3)).verdict == "same"
    assert same_function(heads, other).verdict == "different"


@pytest.mark.parametrize("size", [1e-60, 1e60, 1e-200, 1e200])
def test_sizes_do_not_count(size):
    for architecture in (LAYER, Architecture((3, 3, 3), (2, 2), 3), deep_softmax(2)):
        weights, other = random_weights(architecture, 0), random_weights(architecture, 1)
        balanced = scaled(weights, key=size, query=1 / size)
        small = scaled(weights, value=size)
        assert same_function(weights, balanced).verdict == "same"
        assert same_function(small, scaled(balanced, value=size)).verdict == "same"
        answers = [same_function(balanced, other), same_function(small, scaled(other, value=size))]
        answers.append(same_function(weights, small))
        assert [answer.verdict for answer in answers] == ["different"] * 3
        assert [same_function(w, w).verdict for w in (balanced, small)] == ["same"] * 2
        for answer in answers:
            strict_json(answer)
        describe_fiber(small)
        strict_json(describe_fiber(balanced))


@pytest.mark.parametrize("attention", ["lightning", "softmax"])
def test_small_updates_of_a_residual_skip_are_seen(attention):
    for depth in (1, 3):
        architecture = Architecture((3,) * (depth + 1), (2,) * depth, 3, attention, skip="residual")
        weights = scaled(random_weights(architecture, 0), value=1e-60)
        other = scaled(random_weights(architecture, 1), value=1e-60)
        assert same_function(weights, other).verdict == "different"
        assert same_function(weights, gauge(weights, 0, 10.0)).verdict == "same"


def test_only_what_is_exactly_zero_is_zero():
    tiny = scaled(random_weights(LAYER, 0), value=1e-300)
    zero = scaled(random_weights(LAYER, 0), value=0.0)
    assert same_function(tiny, zero).verdict == "different"
    assert same_function(zero, scaled(random_weights(LAYER, 1), key=0.0)).verdict == "same"


def test_random_single_precision_networks_are_not_the_zero_function():
    architecture = Architecture((8,) * 7, (4,) * 6, 3)
    for seed in range(1):
        found = describe_fiber(random_weights(architecture, seed, dtype=np.float32))
        assert "zero" not in found.case
        assert found.dimension.lower <= found.dimension.upper
        assert found.verdict in ("exact", "undecided")


@pytest.mark.statement("thm-3.2")
def test_the_fiber_of_the_zero_layer_is_settled():
    weights = random_weights(Architecture((3, 2), (2,), 2), 0)
    no_values = describe_fiber(scaled(weights, value=0.0)).dimension
    assert no_values.value == 12  # V = 0, keys and queries arbitrary
    no_keys = describe_fiber(scaled(weights, key=0.0)).dimension
    assert no_keys.value == 6 + 6  # V arbitrary, and Q: rank Q = 2 forces K = 0
    nothing = describe_fiber(scaled(weights, key=0.0, query=0.0)).dimension
    assert nothing.value == 6 + 7  # V, and pairs K, Q of rank one with orthogonal columns
    assert nothing.local_rank == nothing.exact_rank == 0
    assert "rounding" not in str(nothing)


def test_behind_a_collapsing_layer_nothing_is_seen():
    architecture = Architecture((3, 3, 3, 3), (2, 3, 2), 3, "softmax")
    weights = random_weights(architecture, 0)
    collapsed = with_tensors(weights, 1, key=np.zeros((1, 3, 3)))
    found = describe_fiber(collapsed)
    assert "layer 2 makes tokens equal: M_3 arbitrary" in found.case
    assert found.points is None
    assert found.dimension.lower > describe_fiber(weights).dimension.lower
    assert found.dimension.lower <= found.dimension.upper
    other = random_weights(architecture, 1).layers[2]
    behind = with_tensors(collapsed, 2, query=other.query)
    for exact in (False, True):
        assert same_function(collapsed, behind, exact=exact).verdict == "same"
        assert (
            same_function(weights, with_tensors(weights, 2, query=other.query), exact=exact).verdict
            == "different"
        )
    assert fingerprint(collapsed).hash == fingerprint(behind).hash is not None
    skew = np.array([[0, 1, -2], [-1, 0, 3], [2, -3, 0.0]])
    two = Architecture((3, 3, 3), (3, 2), 2, "softmax")
    first = with_tensors(random_weights(two, 0), 0, key=np.eye(3)[None], query=skew[None])
    second = with_tensors(first, 1, query=random_weights(two, 1).layers[1].query)
    assert same_function(first, second).verdict == "same"


def test_the_normal_form_checks_itself():
    architecture = Architecture((3, 3, 3), (2, 2), 3)
    weights = random_weights(architecture, 0)
    for small in (1e-9, 1e-12, 1e-200):
        C = np.diag([1.0, 1.0, small])
        second = weights.layers[1]
        stretched = Weights.from_tensors(
            architecture,
            [
                dict(weights.layers[0].tensors()) | {"value": C @ weights.layers[0].value},
                {name: np.asarray(T) / np.diag(C) for name, T in second.tensors().items()},
            ],
        )
        form = canonical_form(stretched)
        assert form.verdict == "numerical"
        assert form.deviation.distance <= 1e-12
        np.testing.assert_allclose(
            form.weights.flatten(), canonical_form(weights).weights.flatten(), atol=1e-10
        )
    doubtful = canonical_form(gauge(weights, 0, 1e12))
    assert doubtful.verdict == "undecided"
    assert "tolerance" in str(doubtful)


def test_the_fingerprint_keeps_its_promise():
    """Along a fiber one hash or none, whatever the condition."""
    equal = 0
    for architecture in (LAYER, Architecture((3, 3, 3), (2, 2), 3), deep_softmax(3)):
        weights = random_weights(architecture, 3)
        own = fingerprint(weights).hash
        assert own is not None
        for condition in (1e2, 1e4, 1e6):
            for seed in range(5):
                there = fingerprint(gauge(weights, seed, condition)).hash
                assert there in (own, None)
                equal += there == own
    assert equal > 25
    heads = random_weights(deep_softmax(2, heads=2), 0)
    assert fingerprint(heads).hash is None
    assert "none" in str(fingerprint(heads))


def test_a_function_below_all_floats_is_not_zero():
    """O V, times the size of A, has factors that vanish in float64 when both share that size."""
    architecture = Architecture((3, 1, 1), (1, 1), 3, value_ranks=(1, 2))
    small = {"query": 1e-2, "key": 1e-116, "value": 1e-115, "output": 1e-140}
    weights = scaled(random_weights(architecture, 0), **small)
    assert same_function(weights, weights).verdict == "same"
    other = with_tensors(weights, 1, query=2.0 * np.asarray(weights.layers[1].query))
    answer = same_function(weights, other)
    assert answer.verdict == "different"
    assert answer.reason != "both functions are zero"


@pytest.mark.parametrize("heads", [1, 2])
def test_sizes_beyond_all_units_are_undecided_and_no_error(heads):
    architecture = Architecture((2,) * 4, (2,) * 3, 2, "softmax", heads=heads, skip="inner")
    weights = scaled(random_weights(architecture, 0), value=1e300, key=1e150, query=1e150)
    assert same_function(weights, weights).reason == "the weights are equal"
    other = with_tensors(weights, 2, query=np.asarray(weights.layers[0].query))
    answer = same_function(weights, other)
    assert (answer.verdict, answer.exact) == ("undecided", False)
    assert "further apart than float64 reaches" in answer.reason
    assert "nan" not in str(same_function(weights, other, exact=True))


def test_a_normal_form_beyond_float64_is_refused_in_a_sentence():
    architecture = Architecture((2, 2), (2,), 2, value_ranks=(2,))
    weights = scaled(random_weights(architecture, 0), output=1e200, value=1e200)
    with pytest.raises(NotCoveredError, match="numbers beyond float64"):
        canonical_form(weights)
    small = scaled(random_weights(Architecture((1, 1), (2,), 1, skip="residual"), 0), key=1e-320)
    assert "rank" in str(describe_fiber(scaled(small, value=1e-300, query=1e-300)))
