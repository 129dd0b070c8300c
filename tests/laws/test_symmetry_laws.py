"""The laws of a group action that keeps the function, for every family and every network."""

from functools import cache

import jax
import numpy as np
import pytest

from diagrams import NETWORKS
from neuromanifold.algebra.linear import FloatingPoint
from neuromanifold.networks.weights import conditioned_weights
from neuromanifold.symmetry.attention import named
from neuromanifold.symmetry.families import families_of

CASES = [
    pytest.param(network, family, id=f"{family.name} | {network.name}")
    for network in NETWORKS
    for family in families_of(network)
]
ACTING = [case for case in CASES if case.values[1].is_group]
SEEDS = range(2)


def weights_of(network, seed):
    """Weights far from every singularity."""
    if network.architecture is not None:
        return named(conditioned_weights(network.architecture, seed))
    return network.draw(seed)


def inputs_of(network, seed, count=3):
    generator = np.random.default_rng(seed)
    return [
        jax.tree.map(lambda leaf: generator.standard_normal(leaf.shape), network.sample)
        for _ in range(count)
    ]


def outputs(network, weights, seed):
    """The function at a few random inputs."""
    with jax.enable_x64(True):
        return np.stack([np.asarray(network.apply(weights, X)) for X in inputs_of(network, seed)])


@pytest.mark.parametrize(("network", "family"), ACTING)
def test_the_identity_moves_nothing(network, family):
    weights = weights_of(network, 0)
    moved = family.act(family.identity(), weights)
    np.testing.assert_allclose(network.flatten(moved), network.flatten(weights), rtol=0, atol=1e-15)


@pytest.mark.parametrize(("network", "family"), ACTING)
def test_acting_twice_is_acting_with_the_product(network, family):
    for seed in SEEDS:
        weights, generator = weights_of(network, seed), np.random.default_rng(seed)
        g, h = (family.random(generator) for _ in range(2))
        twice = network.flatten(family.act(g, family.act(h, weights)))
        once = network.flatten(family.act(family.compose(g, h), weights))
        assert np.linalg.norm(twice - once) <= 1e-11 * np.linalg.norm(twice)


@pytest.mark.statement("lemma-3.1")
@pytest.mark.statement("eq-9")
@pytest.mark.statement("eq-6")
@pytest.mark.statement("head-mixing")
@pytest.mark.parametrize(("network", "family"), ACTING)
def test_the_function_is_constant_on_orbits(network, family):
    for seed in SEEDS:
        weights = weights_of(network, seed)
        moved = family.act(family.random(np.random.default_rng(seed)), weights)
        before, after = outputs(network, weights, seed), outputs(network, moved, seed)
        assert np.linalg.norm(after - before) <= 1e-10 * np.linalg.norm(before)
        if family.dimension:
            assert not np.allclose(network.flatten(moved), network.flatten(weights))


@cache
def jacobian(network, seed):
    """The Jacobian of the outputs at one input, one column a parameter."""
    X = inputs_of(network, 1, seed)[0]
    with jax.enable_x64(True):
        slope = jax.jit(jax.jacfwd(lambda w: network.apply(w, X).ravel()))
        blocks = slope(network.assemble(network.flatten(weights_of(network, seed))))
    named = [blocks[tensor.name] for tensor in network.tensors]
    return np.concatenate([block.reshape(len(block), -1) for block in named], axis=1)


def tangent_vectors(network, family, weights):
    """The generators of one family as rows."""
    blocks = family.generators(weights, FloatingPoint())
    return np.concatenate([np.zeros((0, network.columns)), *map(network.dense, blocks)])


@pytest.mark.statement("head-mixing")
@pytest.mark.parametrize(("network", "family"), CASES)
def test_generators_lie_in_the_kernel_of_the_jacobian(network, family):
    weights = weights_of(network, 1)
    rows = tangent_vectors(network, family, weights)
    assert len(rows) == family.dimension
    if not len(rows):
        return
    moved = rows @ jacobian(network, 1).T
    assert np.abs(moved).max() <= 1e-11 * max(1.0, np.abs(outputs(network, weights, 1)).max())


@pytest.mark.parametrize(("network", "family"), ACTING)
def test_generators_are_tangent_to_the_orbits(network, family):
    """A small step along the orbit lies in the span of the generators, up to its square."""
    if family.dimension == 0:
        return
    weights = weights_of(network, 3)
    span = tangent_vectors(network, family, weights)
    one, other = family.identity(), family.random(np.random.default_rng(3), 2.0)
    step = tuple(
        e + 1e-5 * (g - e if e.ndim < 2 or _is_connected(family) else _tangent(g, e))
        for e, g in zip(one, other, strict=True)
    )
    moved = network.flatten(family.act(step, weights)) - network.flatten(weights)
    residual = moved - np.linalg.lstsq(span.T, moved)[0] @ span
    assert np.linalg.norm(moved) > 1e-7
    assert np.linalg.norm(residual) <= 1e-3 * np.linalg.norm(moved)


def _is_connected(family):
    """Whether a straight line from the identity to an element begins in the group."""
    groups = [space.group for space in getattr(family, "spaces", ())]
    return not any(getattr(group, "permute", False) for group in groups)


def _tangent(g, e):
    """Of a scaling and permutation, the scaling alone."""
    return np.abs(g).sum(-1)[..., None] * e - e
