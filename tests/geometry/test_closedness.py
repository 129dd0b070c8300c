"""Cor A.1 at work: weights diverge, functions converge, the limit has weights."""

import numpy as np
import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError, HypothesisError
from neuromanifold.geometry.classify import classify
from neuromanifold.geometry.closedness import diverging_sequence, limit_of_functions
from neuromanifold.geometry.membership import weights_of_pair
from neuromanifold.geometry.segre import table_norm, table_of
from neuromanifold.networks.weights import random_weights
from single_layers import architecture, float_layer

RANKS = [
    ((3, 2, 2), (2, 2), False),
    ((3, 2, 2), (1, 1), False),
    ((3, 2, 2), (1, 1), True),
    ((2, 1, 2), (2, 1), False),
    ((2, 1, 2), (1, 1), True),
    ((3, 3, 1), (1, 3), False),
]


@pytest.mark.statement("cor-a.1")
@pytest.mark.parametrize(("sizes", "ranks", "parallel"), RANKS)
@pytest.mark.parametrize("escape", ["scaling", "key-query"])
@pytest.mark.parametrize("seed", range(3))
def test_the_limit_is_found_again_by_bounded_weights(sizes, ranks, parallel, escape, seed):
    weights = float_layer(*sizes, *ranks, seed, parallel=parallel)
    found = limit_of_functions(diverging_sequence(weights, escape, seed=seed))
    assert found.weight_norms[-1] > 1e8 * found.weight_norms[0]
    assert found.steps[-1] <= 1e-12 * found.steps[0]
    assert found.membership.member
    expected = table_of(weights)
    assert table_norm(table_of(found.weights) - expected) <= 1e-9 * table_norm(expected)
    assert np.linalg.norm(found.weights.flatten()) <= 10
    assert classify(found.weights, tolerance=1e-7).critical == parallel


@pytest.mark.statement("cor-a.1")
def test_functions_that_vanish_have_the_limit_zero():
    weights = random_weights(architecture(3, 2, 2), 0)
    found = limit_of_functions(diverging_sequence(weights, "vanishing"))
    assert found.weight_norms[-1] > 1e8
    assert found.membership.member
    assert not found.weights.flatten().any()


@pytest.mark.statement("cor-a.1")
def test_a_short_sequence_gives_the_limit_up_to_its_remainder():
    weights = random_weights(architecture(3, 2, 2), 0)
    found = limit_of_functions(diverging_sequence(weights, terms=8))
    miss = table_norm(table_of(found.weights) - table_of(weights))
    assert 1e-7 < miss <= 3 * found.remainder


def test_weights_that_jump_between_the_points_of_a_fiber_have_the_limit_too():
    weights = float_layer(3, 2, 2, 1, 1, 0)
    table = table_of(weights)
    A = weights.layers[0].attention_matrices()[0]
    V = weights.layers[0].value_maps()[0]
    (k, s, q), (h, t, v) = np.linalg.svd(A), np.linalg.svd(V)
    swapped = weights_of_pair(
        s[0] * np.outer(v[0], q[0]), t[0] * np.outer(h[:, 0], k[:, 0]), weights.architecture
    )
    pairs = [diverging_sequence(w, terms=20) for w in (weights, swapped)]
    found = limit_of_functions([pairs[j % 2][j] for j in range(20)])
    assert table_norm(table_of(found.weights) - table) <= 1e-9 * table_norm(table)


def test_functions_that_do_not_converge_are_refused():
    network = architecture(3, 2, 2)
    with pytest.raises(ArgumentError, match="functions that converge were wanted"):
        limit_of_functions(list(reversed(diverging_sequence(random_weights(network, 0)))))


def test_sequences_of_other_things_are_refused():
    weights = random_weights(architecture(3, 2, 2), 0)
    with pytest.raises(ArgumentError, match="at least three weights of one architecture"):
        limit_of_functions([weights, weights])
    with pytest.raises(ArgumentError, match="at least three weights of one architecture"):
        limit_of_functions([weights, weights, random_weights(architecture(2, 2, 2), 0)])
    with pytest.raises(ArgumentError, match="at least 3 terms"):
        diverging_sequence(weights, terms=2)
    with pytest.raises(HypothesisError, match="tokens = 1 < 2"):
        diverging_sequence(random_weights(Architecture((3, 2), (2,), 1), 0))
