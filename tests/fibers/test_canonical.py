"""Normal forms: idempotent, constant on orbits, same function; balanced factors."""

import numpy as np
import pytest

from architectures import ARCHITECTURES
from neuromanifold.architecture import Architecture
from neuromanifold.fibers.fingerprint import fingerprint
from neuromanifold.fibers.normal_form.balanced import balanced
from neuromanifold.fibers.normal_form.canonical import canonical_form
from neuromanifold.fibers.outputs import function_deviation
from neuromanifold.networks.weights import Weights, random_weights
from neuromanifold.symmetry.group_element import GroupElement

every_network = pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)


def distance(first, second):
    """The largest relative distance between tensors."""
    return max(
        np.linalg.norm(T - T_new) / (np.linalg.norm(T_new) or 1.0)
        for (_, T), (_, T_new) in zip(first.named_tensors(), second.named_tensors(), strict=True)
    )


def check_constant(architecture, seed, condition):
    weights = random_weights(architecture, seed)
    g = GroupElement.random(architecture, np.random.default_rng(1000 + seed), condition)
    form = canonical_form(weights)
    assert distance(canonical_form(g.act(weights)).weights, form.weights) <= 1e-8
    assert distance(canonical_form(form.weights).weights, form.weights) <= 1e-12
    other = canonical_form(random_weights(architecture, seed + 1))
    assert distance(other.weights, form.weights) > 1e-3


@every_network
@pytest.mark.parametrize("seed", range(3))
def test_the_normal_form_is_idempotent_and_constant_on_orbits(architecture, seed):
    if max(architecture.widths) > 1:
        check_constant(architecture, seed, 1e3)


@pytest.mark.slow
@every_network
def test_the_normal_form_is_constant_on_orbits_for_fifty_seeds(architecture):
    if max(architecture.widths) > 1:
        for seed in range(50):
            check_constant(architecture, seed, 1e3)


@pytest.mark.statement("eq-6")
@every_network
def test_the_normal_form_has_the_same_function(architecture):
    weights = random_weights(architecture, 0)
    assert function_deviation(weights, canonical_form(weights).weights, seed=0) <= 1e-11


@every_network
def test_balanced_weights_have_equal_diagonal_grams_and_the_same_forms(architecture):
    weights = random_weights(architecture, 1)
    form = balanced(weights)
    for layer, before in zip(form.layers, weights.layers, strict=True):
        for h in range(architecture.heads):
            gram = layer.query[h] @ layer.query[h].T
            np.testing.assert_allclose(gram, layer.key[h] @ layer.key[h].T, atol=1e-13)
            np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-13)
            assert (np.diff(np.diag(gram)) <= 1e-13).all()
            A, A_before = layer.key[h].T @ layer.query[h], before.key[h].T @ before.query[h]
            np.testing.assert_allclose(A, A_before, atol=1e-13)
        np.testing.assert_array_equal(layer.value, before.value)


@pytest.mark.parametrize("seed", range(5))
def test_balanced_weights_are_the_smallest_under_the_key_query_symmetry(seed):
    architecture = Architecture(widths=(4, 3), ranks=(3,), tokens=2)
    weights = random_weights(architecture, seed)
    g = GroupElement.random(architecture, np.random.default_rng(seed), 3.0)
    keys_only = GroupElement(architecture, key_query=g.key_query)
    form = balanced(weights)
    for other in (weights, keys_only.act(weights), keys_only.act(form)):
        assert np.linalg.norm(form.flatten()) < np.linalg.norm(other.flatten())


def weights_from_form(A, V):
    """One layer with given A and V and as many keys as A has rows."""
    d = len(A)
    architecture = Architecture(widths=(d, len(V)), ranks=(d,), tokens=2)
    layer = {"key": np.eye(d)[None], "query": A[None], "value": V[None]}
    return Weights.from_tensors(architecture, [layer])


@pytest.mark.parametrize(
    ("values", "remark"),
    [
        ((2.0, 2.0, 1.0), "a singular value repeated 2 times"),
        ((3.0, 3.0, 3.0), "a singular value repeated 3 times"),
        ((3.0, 1.0, 0.0), "1 singular values zero"),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_repeated_and_zero_singular_values_are_blocks(values, remark, seed):
    generator = np.random.default_rng(seed)
    U, W = (np.linalg.qr(generator.standard_normal((3, 3)))[0] for _ in range(2))
    weights = weights_from_form((U * values) @ W, generator.standard_normal((2, 3)))
    form = canonical_form(weights)
    assert remark in str(form)
    for k in range(3):
        g = GroupElement.random(weights.architecture, np.random.default_rng(k), 100.0)
        assert distance(canonical_form(g.act(weights)).weights, form.weights) <= 1e-8
    assert distance(canonical_form(form.weights).weights, form.weights) <= 1e-12
    assert function_deviation(weights, form.weights, seed=0) <= 1e-12


def test_an_idle_head_and_unused_coordinates_are_reported():
    architecture = Architecture(widths=(2, 4, 2), ranks=(2, 2), tokens=3, heads=2)
    weights = random_weights(architecture, 0)
    weights.layers[0].key[1] = 0.0
    form = canonical_form(weights)
    assert "the head is idle" in str(form)
    assert "only 2 of 4 coordinates are used" in str(form)
    assert function_deviation(weights, form.weights, seed=0) <= 1e-12


def test_the_fingerprint_is_one_on_a_fiber_and_another_off_it():
    for architecture in ARCHITECTURES[::4]:
        weights = random_weights(architecture, 0)
        here = fingerprint(weights)
        several = architecture.depth > 1 and (architecture.heads > 1 or architecture.skip != "none")
        assert (here.hash is None) == several
        g = GroupElement.random(architecture, np.random.default_rng(0), 100.0)
        there = fingerprint(g.act(weights))
        assert here.hash == there.hash
        np.testing.assert_allclose(here.values, there.values, atol=1e-9)
        if here.hash is not None:
            assert fingerprint(random_weights(architecture, 1)).hash != here.hash
            assert here.hash in str(here)


def test_two_zero_functions_have_one_fingerprint():
    architecture = Architecture(widths=(3, 2), ranks=(2,), tokens=3)
    first, second = random_weights(architecture, 0), random_weights(architecture, 1)
    first.layers[0].key[:] = 0.0
    second.layers[0].key[0, 1] = 0.0
    second.layers[0].query[0, 0] = 0.0
    assert fingerprint(first).hash == fingerprint(second).hash is not None
