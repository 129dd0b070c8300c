"""At given weights the rank is at most that of the virtual weights that are seen there."""

from dataclasses import replace
from itertools import product

import flint
import jax
import numpy as np
import pytest

from neuromanifold.algebra.dyadic import Dyadic
from neuromanifold.algebra.integer_rank import LARGEST_PRIME, integer_rank
from neuromanifold.architecture import READOUTS, Architecture
from neuromanifold.certificates import virtual_rank
from neuromanifold.certificates.exact import certify
from neuromanifold.certificates.ledger import explain
from neuromanifold.certificates.verify import verify
from neuromanifold.certificates.virtual_rank import at_weights
from neuromanifold.networks.exact_virtual import VirtualDifferential
from neuromanifold.networks.virtual import virtual_weights
from neuromanifold.networks.weights import Weights, random_weights
from neuromanifold.paper.checks.virtual_weights import SPECIAL, with_zeros
from neuromanifold.symmetry.attention import attention_network


def whole(*rows):
    return np.array(rows, dtype=object)


def test_the_rank_over_the_rationals_agrees_with_elimination():
    rng = np.random.default_rng(0)
    for _ in range(200):
        rows, columns = rng.integers(1, 8, 2)
        k, size = rng.integers(0, min(rows, columns) + 1), int(rng.choice([1, 5, 10**9]))
        draw = [
            rng.integers(-size, size + 1, shape).astype(object)
            for shape in ((rows, k), (k, columns))
        ]
        matrix = draw[0] @ draw[1] if k else np.zeros((rows, columns), dtype=object)
        expected = flint.fmpz_mat(matrix.tolist()).rank()
        assert integer_rank(matrix) == expected


def test_a_prime_that_divides_minors_does_not_lower_a_rank():
    q = LARGEST_PRIME
    assert integer_rank(whole([q + 1, 1], [1, 1])) == 2
    assert integer_rank(whole([1, 0, q], [0, 1, 0], [0, 0, 0])) == 2
    assert integer_rank(whole([q**3 + 1, 1], [1, 1])) == 2
    assert integer_rank(np.zeros((0, 3), dtype=object)) == 0


@pytest.mark.statement("eq-8")
@pytest.mark.parametrize("value_ranks", [None, (2, 1, 2)])
def test_the_differential_in_whole_numbers_is_the_derivative_up_to_a_power_of_two(value_ranks):
    architecture = Architecture((3, 2, 4, 2), (2, 1, 3), 2, value_ranks=value_ranks)
    weights = random_weights(architecture, 0)
    found = VirtualDifferential(weights)
    with jax.enable_x64(True):
        expected = jax.jacobian(virtual_weights)(weights)
    for part, by_weights in zip(
        (*found.forms, found.linear), (*expected.forms, expected.linear), strict=True
    ):
        mine, theirs = [], []
        for i, layer in enumerate(by_weights.layers):
            for name, J in layer.tensors().items():
                T = weights.layers[i].tensors()[name]
                J = np.asarray(J).reshape(-1, T.size)
                whole_numbers = part.get(f"layers.{i}.{name}", np.zeros(J.shape)).astype(float)
                mine.append(whole_numbers * 2.0 ** -Dyadic.of(T).exponent)
                theirs.append(J)
        mine, theirs = np.concatenate(mine, axis=1), np.concatenate(theirs, axis=1)
        scale = np.round(np.log2(np.abs(mine).max() / np.abs(theirs).max()))
        np.testing.assert_allclose(mine * 2.0**-scale, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.statement("virtual-rank")
@pytest.mark.parametrize(("network", "zeros", "dimension"), SPECIAL, ids=str)
def test_local_dimensions_where_weights_vanish(network, zeros, dimension):
    weights = with_zeros(network, zeros, seed=1)
    found = certify(network, weights=weights)
    assert (found.lower, found.upper, found.verdict) == (dimension, dimension, "exact")
    assert verify(found, weights=weights, prime=1048583).agrees


@pytest.mark.statement("virtual-rank")
@pytest.mark.statement("readouts")
@pytest.mark.parametrize(("readout", "dimension"), [("probabilities", 1), ("decisions", 0)])
def test_differences_of_equal_rows_show_only_how_they_part(readout, dimension):
    """With equal rows of V_2 and V_1 of rank one d(E L) = (E dV_2) V_1: one number times a row."""
    architecture = Architecture((2, 2, 2), (2, 2), 3, "softmax")
    layers = [dict(layer.tensors()) for layer in random_weights(architecture, 0).layers]
    layers[0]["value"] = np.array([[[1.0, 2.0], [2.0, 4.0]]])
    layers[1]["value"] = np.array([[[1.0, 3.0], [1.0, 3.0]]])
    weights = Weights.from_tensors(architecture, layers)
    found = certify(architecture, weights=weights, readout=readout)
    assert (found.lower, found.upper, found.verdict) == (dimension, dimension, "exact")


@pytest.mark.statement("virtual-rank")
def test_no_rank_at_special_weights_exceeds_the_bound():
    """Rows repeated, entries zero or ±1: softmax without skip and mask is exact at all of them."""
    rng = np.random.default_rng(3)
    kinds = product(
        ("softmax", "lightning"), ("none", "inner"), ("none", "causal"), (1, 2), READOUTS
    )
    for attention, skip, mask, tokens, readout in kinds:
        architecture = Architecture((2, 3, 2), (1, 2), tokens, attention, skip=skip, mask=mask)
        layers = [dict(layer.tensors()) for layer in random_weights(architecture, 0).layers]
        for layer, name in product(layers, ("query", "key", "value")):
            T = np.asarray(layer[name])
            changes = (T, 0 * T, np.sign(np.round(T)), T * (rng.random(T.shape) < 0.5))
            layer[name] = changes[rng.integers(4)]
        weights = Weights.from_tensors(architecture, layers)
        found = certify(architecture, weights=weights, readout=readout)
        assert found.rank <= found.upper, found
        if attention == "softmax" and skip == mask == "none":
            assert found.verdict == "exact", found


@pytest.mark.statement("virtual-rank")
def test_a_ledger_says_what_virtual_weights_do_not_see_at_these_weights():
    network, zeros, dimension = SPECIAL[0]
    ledger = explain(network, weights=with_zeros(network, zeros, seed=0))
    lines = {line.name: (line.dimension, line.statement) for line in ledger.lines}
    assert lines["dimension"][0] == dimension
    assert lines["not seen by the virtual weights here"][1] == "virtual-rank"
    assert ledger.unexplained == 0


def test_weights_like_generic_ones_and_large_networks_keep_the_generic_bound(monkeypatch):
    network, zeros, _ = SPECIAL[0]
    net = attention_network(network)
    assert at_weights(net, random_weights(network, 0)) is net
    assert at_weights(net, None) is net
    special = with_zeros(network, zeros, seed=2)
    assert at_weights(net, special).bound.name == "virtual weights here"
    assert at_weights(at_weights(net, special), special) is at_weights(net, special)
    monkeypatch.setattr(virtual_rank, "LARGEST_DIFFERENTIAL", 10)
    other = with_zeros(network, zeros, seed=4)
    assert at_weights(net, other).bound == net.bound
    two = replace(network, heads=2)
    assert at_weights(attention_network(two), random_weights(two, 0)) is attention_network(two)
