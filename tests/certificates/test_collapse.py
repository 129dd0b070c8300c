"""Behind a softmax layer that makes all tokens equal nothing is seen, at the floats as they are."""

from dataclasses import replace

import numpy as np
import pytest

import neuromanifold as nm
from neuromanifold.algebra.prime_field import DEFAULT_PRIME
from neuromanifold.architecture import Architecture
from neuromanifold.certificates.exact import certify, weights_hash
from neuromanifold.certificates.identifiable import identifiable
from neuromanifold.certificates.ledger import explain
from neuromanifold.certificates.quantity import parse_quantity
from neuromanifold.certificates.verify import verify
from neuromanifold.certificates.virtual_rank import at_weights
from neuromanifold.networks.attention import attention
from neuromanifold.networks.weights import Weights, random_weights
from neuromanifold.symmetry.attention import attention_network, named

TWO = Architecture((2, 2, 2), (2, 2), 2, "softmax")
THREE = replace(TWO, tokens=3)
DEEP = Architecture((2, 2, 2, 2), (2, 2, 2), 2, "softmax")
SKEW = np.array([[0.0, 1.5], [-1.5, 0.0]])
ZERO = np.zeros((2, 2))
LINE = "scores behind a collapse"


def with_scores(architecture, i, A):
    """Random weights whose attention matrix of layer i is A."""
    layers = [dict(layer.tensors()) for layer in random_weights(architecture, 0).layers]
    heads = architecture.heads
    layers[i] |= {"key": np.stack([np.eye(2)] * heads), "query": np.stack([A] * heads)}
    return Weights.from_tensors(architecture, layers)


def free(architecture, weights):
    """The first layer, from 0, whose queries and keys are free at these weights; None without."""
    network = attention_network(architecture)
    found = [f for f in at_weights(network, weights).families if f not in network.families]
    return found[0].first if found else None


@pytest.mark.statement("softmax-fibers")
@pytest.mark.parametrize(
    ("architecture", "i", "A", "dimension", "behind"),
    [
        (TWO, 0, SKEW, 8, 4),
        (TWO, 0, ZERO, 8, 4),
        (THREE, 0, ZERO, 8, 4),
        (DEEP, 1, SKEW, 12, 4),
        (DEEP, 0, SKEW, 8, 8),
        (THREE, 0, SKEW, 12, 0),
        (TWO, 1, SKEW, 12, 0),
    ],
    ids=["skew", "zero", "zero t3", "skew second", "skew first", "skew t3", "skew last"],
)
def test_a_ledger_at_collapsing_weights_explains_all(architecture, i, A, dimension, behind):
    """The dimension is that of (M_1, …, M_j, L), four each; the rest of Q and K is key-query."""
    weights = with_scores(architecture, i, A)
    ledger = explain(architecture, weights=weights)
    lines = {line.name: line for line in ledger.lines}
    assert (ledger.unexplained, ledger.certificate.verdict) == (0, "exact")
    assert ledger.certificate.lower == dimension
    assert (LINE in lines) == bool(behind)
    if behind:
        assert (lines[LINE].dimension, lines[LINE].statement) == (behind, "softmax-fibers")


@pytest.mark.statement("softmax-fibers")
def test_whether_a_form_collapses_is_decided_for_the_floats_as_they_are():
    assert free(DEEP, with_scores(DEEP, 0, SKEW)) == 1
    assert free(DEEP, with_scores(DEEP, 1, SKEW)) == 2
    assert free(DEEP, with_scores(DEEP, 2, SKEW)) is None
    assert free(DEEP, random_weights(DEEP, 0)) is None
    almost = SKEW + np.array([[0.0, np.spacing(1.5)], [0.0, 0.0]])
    assert free(TWO, with_scores(TWO, 0, almost)) is None
    assert free(TWO, with_scores(TWO, 0, np.eye(2) * 5e-324)) is None
    assert free(TWO, with_scores(TWO, 0, np.eye(2) * DEFAULT_PRIME)) is None


def test_a_form_may_vanish_though_the_attention_matrix_does_not():
    layers = [dict(layer.tensors()) for layer in random_weights(DEEP, 0).layers]
    layers[0]["value"] = np.array([[[1.0, 2.0], [0.0, 0.0]]])
    layers[1] |= {"key": np.eye(2)[None], "query": np.array([[[0.0, 1.0], [2.0, 3.0]]])}
    weights = Weights.from_tensors(DEEP, layers)
    assert free(DEEP, weights) == 2
    assert LINE in {family.name for family in certify(DEEP, weights=weights).symmetries}


@pytest.mark.parametrize(
    "other",
    [
        {"attention": "lightning"},
        {"mask": "causal"},
        {"skip": "inner"},
        {"skip": "residual"},
        {"heads": 2},
    ],
    ids=str,
)
def test_other_networks_have_nothing_free_behind_a_zero_form(other):
    architecture = replace(TWO, **other)
    assert free(architecture, with_scores(architecture, 0, ZERO)) is None


def test_generic_weights_and_rounded_ones_are_as_before():
    assert LINE not in {line.name for line in explain(TWO).lines}
    almost = with_scores(TWO, 0, SKEW + np.array([[0.0, 2.0**-30], [0.0, 0.0]]))
    certificate = certify(TWO, weights=almost)
    assert (certificate.lower, certificate.verdict) == (12, "exact")
    assert LINE not in {family.name for family in certificate.symmetries}


def test_what_is_free_leaves_the_function_alone():
    weights = with_scores(DEEP, 1, SKEW)
    network = at_weights(attention_network(DEEP), weights)
    family = network.families[-1]
    generator = np.random.default_rng(0)
    g, h = family.random(generator), family.random(generator)
    X = generator.standard_normal((2, 2)).astype(np.float32)
    moved = network.rebuilt(family.act(family.compose(g, h), named(weights)))
    assert np.abs(np.asarray(moved.layers[2].query) - weights.layers[2].query).max() > 0.1
    np.testing.assert_allclose(attention(moved, X), attention(weights, X), rtol=1e-4, atol=1e-5)
    still = family.act(family.identity(), named(weights))
    assert all(np.array_equal(still[name], tensor) for name, tensor in named(weights).items())


@pytest.mark.statement("softmax-fibers")
@pytest.mark.parametrize(("i", "A"), [(0, ZERO), (1, SKEW)], ids=["zero", "skew"])
def test_verification_finds_what_is_free_again(i, A):
    weights = with_scores(DEEP, i, A)
    found = verify(certify(DEEP, weights=weights), weights=weights, prime=1048583)
    assert found.agrees, str(found)


@pytest.mark.statement("softmax-fibers")
def test_a_forged_certificate_does_not_pass():
    skew = with_scores(TWO, 0, SKEW)
    almost = with_scores(TWO, 0, SKEW + np.array([[0.0, 2.0**-30], [0.0, 0.0]]))
    honest = certify(TWO, weights=skew)
    assert verify(honest, weights=skew).agrees
    moved = replace(honest, weights=weights_hash(attention_network(TWO), almost))
    wrong = {check.name for check in verify(moved, weights=almost).checks if not check.agrees}
    assert {"upper", "symmetries"} <= wrong
    *others, last = honest.symmetries
    more = replace(honest, symmetries=(*others, replace(last, dimension=5)), upper=7)
    assert not verify(more, weights=skew).agrees
    hidden = replace(honest, symmetries=tuple(others), upper=12)
    assert not verify(hidden, weights=skew).agrees


@pytest.mark.statement("softmax-fibers")
@pytest.mark.parametrize(
    ("architecture", "A", "text", "answer"),
    [
        (TWO, SKEW, "M.1[0,1]", "no"),
        (TWO, SKEW, "M.0[0,1]", "yes"),
        (TWO, SKEW, "M.0[0,0]", "yes"),
        (TWO, SKEW, "L[0,1]", "yes"),
        (THREE, ZERO, "M.1[0,1]", "no"),
        (THREE, ZERO, "M.0[0,1]", "yes"),
        (THREE, SKEW, "M.1[0,1]", "yes"),
    ],
)
def test_what_is_determined_to_first_order_at_given_weights(architecture, A, text, answer):
    name, quantity = parse_quantity(text, architecture)
    weights = with_scores(architecture, 0, A)
    found = identifiable(architecture, quantity, name=name, weights=weights)
    assert (found.answer, found.proved) == (answer, answer == "no")
    assert found.moved_by == ((LINE,) if answer == "no" else ())
    assert "to first order at the given weights" in str(found)
    assert found.to_dict()["weights"] == weights_hash(attention_network(architecture), weights)
    assert identifiable(architecture, quantity).answer == "yes"


def test_what_another_network_does_not_see_at_given_weights():
    """Where A = 0 a lightning layer does not see V: no symmetry says so, the ranks do."""
    layer = Architecture((2, 2), (2,), 3)
    weights = with_scores(layer, 0, ZERO)
    name, quantity = parse_quantity("V.0[0,0,1]", layer)
    found = nm.identifiable(layer, quantity, name=name, weights=weights)
    assert (found.answer, found.rank_with) == ("no", found.rank + 1)
    assert "not determined to first order at the given weights" in str(found)
