"""The laws of a group action that keeps the function, for every family and every network."""

import jax
import numpy as np
import pytest

from architectures import ARCHITECTURES
from neuromanifold.algebra.linear import FloatingPoint
from neuromanifold.networks.attention import attention
from neuromanifold.networks.weights import Weights, conditioned_weights
from neuromanifold.symmetry.families import families_of
from neuromanifold.symmetry.head_mixing import HeadMixing

CASES = [
    pytest.param(architecture, family, id=f"{family.name} | {architecture.name}")
    for architecture in ARCHITECTURES
    for family in families_of(architecture)
]
ACTING = [
    case
    for case in CASES
    if not isinstance(case.values[1], HeadMixing) or case.values[1].integrates(case.values[0])
]
SEEDS = range(2)

at_inputs = jax.jit(jax.vmap(attention, in_axes=(None, 0)))


@jax.jit
def images(weights, tangents, X):
    """The differential of W ↦ φ_W(X), applied to each of the tangent vectors."""
    return jax.vmap(lambda v: jax.jvp(lambda w: attention(w, X), (weights,), (v,))[1])(tangents)


def outputs(weights, seed):
    """φ_W at a few random inputs."""
    architecture = weights.architecture
    inputs = np.random.default_rng(seed).standard_normal(
        (3, architecture.widths[0], architecture.tokens)
    )
    with jax.enable_x64(True):
        return np.asarray(at_inputs(weights, inputs))


@pytest.mark.parametrize(("architecture", "family"), ACTING)
def test_the_identity_moves_nothing(architecture, family):
    weights = conditioned_weights(architecture, 0)
    moved = family.act(family.identity(architecture), weights)
    np.testing.assert_allclose(moved.flatten(), weights.flatten(), rtol=0, atol=1e-15)


@pytest.mark.parametrize(("architecture", "family"), ACTING)
@pytest.mark.parametrize("seed", SEEDS)
def test_acting_twice_is_acting_with_the_product(architecture, family, seed):
    weights = conditioned_weights(architecture, seed)
    generator = np.random.default_rng(seed)
    g, h = (family.random(architecture, generator) for _ in range(2))
    twice = family.act(g, family.act(h, weights)).flatten()
    once = family.act(family.compose(g, h), weights).flatten()
    assert np.linalg.norm(twice - once) <= 1e-11 * np.linalg.norm(twice)


@pytest.mark.statement("lemma-3.1")
@pytest.mark.statement("eq-9")
@pytest.mark.statement("eq-6")
@pytest.mark.statement("head-mixing")
@pytest.mark.parametrize(("architecture", "family"), ACTING)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_function_is_constant_on_orbits(architecture, family, seed):
    weights = conditioned_weights(architecture, seed)
    moved = family.act(family.random(architecture, np.random.default_rng(seed)), weights)
    before, after = outputs(weights, seed), outputs(moved, seed)
    assert np.linalg.norm(after - before) <= 1e-10 * np.linalg.norm(before)
    if family.dimension(architecture):
        assert not np.allclose(moved.flatten(), weights.flatten())


def tangent_vectors(weights, family):
    """The generators of one family, each as weights."""
    for block in family.generators(weights, FloatingPoint()):
        for k in range(block.count):
            layers = [
                {name: np.zeros_like(tensor) for name, tensor in layer.tensors().items()}
                for layer in weights.layers
            ]
            for slot, moved in block.moves.items():
                layers[slot.layer][slot.tensor][slot.head] = moved[k]
            yield Weights.from_tensors(weights.architecture, layers)


@pytest.mark.statement("head-mixing")
@pytest.mark.parametrize(("architecture", "family"), CASES)
def test_generators_lie_in_the_kernel_of_the_jacobian(architecture, family):
    weights = conditioned_weights(architecture, 1)
    X = np.random.default_rng(1).standard_normal((architecture.widths[0], architecture.tokens))
    tangents = list(tangent_vectors(weights, family))
    if not tangents:
        assert family.dimension(architecture) == 0
        return
    with jax.enable_x64(True):
        stacked = jax.tree.map(lambda *parts: np.stack(parts), *tangents)
        moved = np.asarray(images(weights, stacked, X))
    assert np.abs(moved).max() <= 1e-11 * max(1.0, np.abs(outputs(weights, 1)).max())


@pytest.mark.parametrize(("architecture", "family"), CASES)
def test_the_number_of_generators_is_the_dimension_of_the_group(architecture, family):
    weights = conditioned_weights(architecture, 2)
    blocks = family.generators(weights, FloatingPoint())
    assert sum(block.count for block in blocks) == family.dimension(architecture)


@pytest.mark.parametrize(("architecture", "family"), ACTING)
def test_generators_are_tangent_to_the_orbits(architecture, family):
    """A small step along the orbit lies in the span of the generators, up to its square."""
    if family.dimension(architecture) == 0:
        return
    weights = conditioned_weights(architecture, 3)
    span = np.stack([v.flatten() for v in tangent_vectors(weights, family)])
    one = family.identity(architecture)
    other = family.random(architecture, np.random.default_rng(3), 2.0)
    step = tuple(e + 1e-5 * (g - e) for e, g in zip(one, other, strict=True))
    moved = family.act(step, weights).flatten() - weights.flatten()
    residual = moved - np.linalg.lstsq(span.T, moved)[0] @ span
    assert np.linalg.norm(moved) > 1e-7
    assert np.linalg.norm(residual) <= 1e-3 * np.linalg.norm(moved)
