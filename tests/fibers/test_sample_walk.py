"""Points of a fiber and paths along it."""

from itertools import pairwise

import numpy as np
import pytest

from architectures import ARCHITECTURES
from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError, WeightsError
from neuromanifold.fibers.normal_form.canonical import canonical_form
from neuromanifold.fibers.outputs import function_deviation
from neuromanifold.fibers.same import same_function
from neuromanifold.fibers.sample import sample_fiber
from neuromanifold.fibers.transport.transport import transport
from neuromanifold.fibers.walk import walk
from neuromanifold.networks.weights import Weights, random_weights
from neuromanifold.symmetry.group_element import GroupElement

DEEP = Architecture(widths=(4, 2, 3), ranks=(2, 2), tokens=3)
LAYER = Architecture(widths=(3, 3), ranks=(2,), tokens=2)


@pytest.mark.statement("eq-6")
@pytest.mark.parametrize("architecture", ARCHITECTURES[1::5], ids=str)
def test_samples_have_the_function_and_are_different_weights(architecture):
    weights = random_weights(architecture, 0)
    found = sample_fiber(weights, 3, seed=1)
    assert found.deviation <= 1e-9
    measured = max(function_deviation(weights, point, seed=7) for point in found.points)
    assert measured <= 1e-9
    vectors = [weights.flatten(), *(point.flatten() for point in found.points)]
    for i, one in enumerate(vectors):
        for other in vectors[:i]:
            assert np.linalg.norm(one - other) > 1e-3 * np.linalg.norm(one)


@pytest.mark.usefixtures("wrong_types")
@pytest.mark.parametrize("seed", [-4, 0.5, True])
def test_a_seed_that_is_none_is_refused(seed):
    weights = random_weights(DEEP, 0)
    for question in (
        lambda: sample_fiber(weights, 1, seed=seed),
        lambda: same_function(weights, weights, seed=seed),
    ):
        with pytest.raises(ArgumentError, match="seed must be a whole number"):
            question()


def test_samples_are_repeated_by_their_seed():
    weights = random_weights(DEEP, 0)
    one, again, other = (sample_fiber(weights, 1, seed=s).points[0] for s in (3, 3, 4))
    np.testing.assert_array_equal(one.flatten(), again.flatten())
    assert not np.array_equal(one.flatten(), other.flatten())


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"count": 0}, "count must be at least 1; got 0"),
        ({"count": 1, "condition": 0.5}, r"condition must be from 1 to 1e\+12, since"),
        ({"count": 1, "condition": 1e300}, r"condition must be from 1 to 1e\+12, since"),
    ],
)
def test_a_sample_of_nothing_is_refused(arguments, text):
    with pytest.raises(ArgumentError, match=text):
        sample_fiber(random_weights(LAYER, 0), **arguments)


@pytest.mark.usefixtures("wrong_types")
@pytest.mark.parametrize("wrong", [None, LAYER, "w.safetensors"])
@pytest.mark.parametrize("pair", [same_function, transport, walk])
def test_what_is_no_weights_is_refused_with_its_type(pair, wrong):
    weights = random_weights(LAYER, 0)
    text = f"Weights were wanted; got {type(wrong).__name__}: take them from random_weights, "
    for arguments in ((weights, wrong), (wrong, weights)):
        with pytest.raises(WeightsError, match=text):
            pair(*arguments)
    for one in (canonical_form, lambda wrong: sample_fiber(wrong, 1)):
        with pytest.raises(WeightsError, match=text):
            one(wrong)


def test_outputs_that_cancel_are_no_reason_to_refuse_a_point():
    """Layer 1 reads what layer 0 never writes, so all outputs are rounding errors."""
    named = dict(random_weights(Architecture((3, 3, 3), (2, 2), 3), 0).named_tensors())
    named = {name: np.array(tensor) for name, tensor in named.items()}
    named["layers.0.value"][:, 2:] = 0
    named["layers.1.value"][:, :, :2] = 0
    weights = Weights.from_named(Architecture((3, 3, 3), (2, 2), 3), named)
    for condition in (1.0, 100.0):
        assert sample_fiber(weights, 1, condition=condition).count == 1


def test_points_that_rounding_carries_off_the_fiber_are_refused():
    weights = random_weights(Architecture((3, 2, 4), (2, 2), 3), 0)
    with pytest.raises(ArgumentError, match=r"differ from the function by .*: take a smaller"):
        sample_fiber(weights, 2, condition=1e10)


def test_one_point_is_one_point():
    found = sample_fiber(random_weights(LAYER, 0), 1)
    assert str(found).startswith("1 point of the fiber, moved by ")


def connected(architecture, seed, condition=100.0):
    """A random element of the identity component: squares of the matrices of a random one."""
    g = GroupElement.random(architecture, np.random.default_rng(seed), condition**0.5)
    still = tuple(np.arange(len(order)) for order in g.head_permutation)
    g = GroupElement(
        architecture,
        head_permutation=still,
        inter_layer=g.inter_layer,
        scaling=g.scaling,
        value_output=g.value_output,
        key_query=g.key_query,
    )
    return g.compose(g)


@pytest.mark.parametrize("architecture", ARCHITECTURES[::5], ids=str)
def test_the_function_is_constant_along_a_path(architecture):
    weights = random_weights(architecture, 0)
    target = connected(architecture, 0).act(weights)
    path = walk(weights, target, steps=6)
    assert path.obstruction is None
    assert len(path.points) == 7
    np.testing.assert_array_equal(path.points[0].flatten(), weights.flatten())
    np.testing.assert_array_equal(path.points[-1].flatten(), target.flatten())
    assert max(function_deviation(weights, p, seed=9) for p in path.points) <= 1e-9
    assert path.deviation <= 1e-9


def test_a_path_with_more_steps_has_smaller_ones():
    weights = random_weights(DEEP, 0)
    target = connected(DEEP, 0, 10.0).act(weights)
    jumps = []
    for steps in (8, 64):
        points = [p.flatten() for p in walk(weights, target, steps=steps).points]
        jumps.append(max(np.linalg.norm(b - a) for a, b in pairwise(points)))
    assert jumps[1] < jumps[0] / 4


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"key_query": (np.diag([1.0, -1.0])[None],)}, "key-query matrix of layer 0 head 0"),
        ({"scaling": (np.array([-1.0]),)}, "the scaling of layer 0 head 0 is negative"),
    ],
)
def test_another_component_is_named(change, text):
    weights = random_weights(LAYER, 0)
    target = GroupElement(LAYER, **change).act(weights)
    path = walk(weights, target)
    assert path.points == ()
    assert text in str(path)
    assert "the only symmetry between them lies in another component" in str(path)


def test_spare_keys_let_a_path_go_round_the_determinant():
    architecture = Architecture(widths=(2, 2), ranks=(4,), tokens=2)
    weights = random_weights(architecture, 0)
    reflection = GroupElement(architecture, key_query=(np.diag([1.0, 1, 1, -1])[None],))
    path = walk(weights, reflection.act(weights))
    assert path.obstruction is None
    assert path.deviation <= 1e-9


@pytest.mark.parametrize("attention", ["lightning", "softmax"])
def test_unseen_coordinates_let_a_path_go_round_the_determinant(attention):
    architecture = Architecture((2, 4, 2), (2, 2), 3, attention)
    weights = random_weights(architecture, 0)
    reflection = GroupElement(architecture, inter_layer=(np.diag([1.0, 1, 1, -1]),))
    target = reflection.act(weights)
    path = walk(weights, target, steps=10)
    assert path.obstruction is None
    assert len(path.points) == 11
    np.testing.assert_array_equal(path.points[-1].flatten(), target.flatten())
    assert max(function_deviation(weights, p, seed=9) for p in path.points) <= 1e-9
    vectors = [p.flatten() for p in walk(weights, target, steps=90).points]
    assert max(np.linalg.norm(b - a) for a, b in pairwise(vectors)) <= 0.2


def test_a_layer_without_unseen_coordinates_keeps_the_obstruction():
    target = GroupElement(DEEP, inter_layer=(np.diag([1.0, -1.0]),)).act(random_weights(DEEP, 0))
    path = walk(random_weights(DEEP, 0), target)
    assert "the matrix between layers 0 and 1 has determinant < 0" in str(path)


def test_weights_of_different_functions_have_no_path():
    path = walk(random_weights(DEEP, 0), random_weights(DEEP, 1))
    assert "no symmetry carries one to the other" in str(path)


def test_a_path_of_no_steps_is_refused():
    with pytest.raises(ArgumentError, match="at least one step; got 0"):
        walk(random_weights(LAYER, 0), random_weights(LAYER, 0), steps=0)


@pytest.mark.statement("head-mixing")
@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("factored", [False, True])
def test_heads_mix_only_where_their_factors_can_take_it_up(rank, factored):
    """A singular key has no room for the change of its form, nor a singular O for that of V."""
    value_ranks = (2,) if factored else None
    architecture = Architecture((2, 2), (rank,), 2, heads=2, value_ranks=value_ranks)
    layer = random_weights(architecture, 0).layers[0].arrays()
    assert "head mixing" in sample_fiber(random_weights(architecture, 0), 1).families
    for name in ("key", *(["output"] if factored else [])):
        singular = layer | {name: layer[name].copy()}
        singular[name][0] = np.outer(singular[name][0, :, 0], [1.0, 2.0])
        weights = Weights.from_tensors(architecture, [singular])
        found = sample_fiber(weights, 2)
        assert "head mixing" not in found.families
        assert all(same_function(weights, point).verdict == "same" for point in found.points)


def test_a_walk_behind_a_layer_without_values():
    architecture = Architecture((2, 2, 3, 3), (3, 2, 2), 2)
    weights = random_weights(architecture, 0)
    layers = [dict(layer.tensors()) for layer in weights.layers]
    layers[0]["value"] = np.zeros((1, 2, 2))
    zero = Weights.from_tensors(architecture, layers)
    assert str(walk(zero, random_weights(architecture, 1)))
    assert walk(zero, zero).obstruction is None
