"""Head mixing takes part in everything a family takes part in, as far as it can."""

from dataclasses import replace

import numpy as np
import pytest

import neuromanifold as nm
from architectures import ARCHITECTURES
from neuromanifold.errors import ArgumentError
from neuromanifold.fibers.transport.path import path_to
from neuromanifold.networks.weights import Weights, conditioned_weights
from neuromanifold.symmetry.attention import named
from neuromanifold.symmetry.group_element import GroupElement, parts_of
from neuromanifold.symmetry.heads import HeadMixing

SQUARE = nm.Architecture((3, 3, 2), (3, 3), 3, heads=2)
INNER = nm.Architecture((3, 3), (3,), 3, heads=3, skip="inner")
FACTORED = nm.Architecture((3, 2, 3), (3, 2), 3, heads=2, value_ranks=(2, 3))
MIXING = pytest.mark.parametrize("architecture", [SQUARE, INNER, FACTORED], ids=str)


def of(architecture):
    return HeadMixing(architecture, architecture.skip == "inner")


def test_it_is_a_part_of_an_element_where_keys_are_square():
    with_it = [net for net in ARCHITECTURES if "head_mixing" in parts_of(net)]
    assert with_it == [
        net
        for net in ARCHITECTURES
        if net.heads > 1
        and net.attention == "lightning"
        and net.ranks == net.widths[:-1]
        and net.value_ranks in (None, net.widths[1:])
    ]
    assert len(with_it) >= 3


@pytest.mark.statement("head-mixing")
@MIXING
def test_transport_finds_mixed_heads(architecture):
    for seed in range(2):
        W = conditioned_weights(architecture, seed)
        g = GroupElement.random(architecture, np.random.default_rng(seed), 4.0, mixed=True)
        found = nm.transport(W, g.act(W))
        assert found.found
        assert found.unique
        assert found.element.mixes_heads
        answer = nm.same_function(W, g.act(W))
        assert (answer.verdict, answer.statement) == ("same", "head-mixing")


@pytest.mark.statement("head-mixing")
@MIXING
def test_a_path_mixes_heads_and_keeps_the_function(architecture):
    W = conditioned_weights(architecture, 0)
    g = GroupElement.random(architecture, np.random.default_rng(0), 2.0, mixed=True)
    squares = {  # of positive determinant
        name: tuple(C @ C for C in getattr(g, name))
        for name in ("head_mixing", "inter_layer", "value_output", "key_query")
    }
    W_new = replace(GroupElement.identity(architecture), **squares).act(W)
    path = nm.walk(W, W_new, steps=4)
    assert path.obstruction is None
    assert path.transport.element.mixes_heads
    assert path.deviation < 1e-10
    middle = path.points[2].flatten()
    assert min(np.linalg.norm(middle - end.flatten()) for end in (W, W_new)) > 0.1


def test_heads_that_changed_places_are_seen_as_mixed():
    """An order of heads is no path's end; the mixing that does the same may be, by its sign."""
    W = conditioned_weights(SQUARE, 0)
    order = np.array([1, 0])
    swapped = replace(
        GroupElement.identity(SQUARE), head_permutation=(order, order), scaling=(np.ones(2),) * 2
    )
    W_new = swapped.act(W)
    found = nm.walk(W, W_new, steps=3)
    assert found.transport.element.mixes_heads
    # det g = −1 for two heads that change places, whatever else is done
    assert "mixing of the heads of layer 0 has determinant < 0" in found.obstruction


def test_with_the_inner_skip_every_step_fixes_the_sum_of_the_values():
    g = of(INNER).random(np.random.default_rng(1), 3.0)[0]
    shear = np.eye(3) + np.outer([1.0, -2.0, 0.5], [1.0, -1.0, 0.0])
    g = g @ g @ shear
    assert np.linalg.det(g) > 0
    element = replace(GroupElement.identity(INNER), head_mixing=(g,))
    for step in path_to(element, 5):
        np.testing.assert_allclose(step.head_mixing[0].sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(path_to(element, 5)[-1].head_mixing[0], g, atol=1e-12)


def test_singular_keys_do_not_mix():
    """Where a key is singular the mixed products cannot be had, not even nearly.

    The third coordinate, which the first key does not read, is faint in the second head: so the
    weights after g are near those that g ought to give, and their function is not the same.
    """
    net = nm.Architecture((3, 3), (3,), 3, heads=2)
    tensors = {name: np.array(T) for name, T in named(conditioned_weights(net, 0)).items()}
    tensors["layers.0.key"][0, :, 2] = 0.0
    tensors["layers.0.key"][1, :, 2] *= 1e-8
    W = Weights.from_named(net, tensors)
    moved = of(net).act((np.array([[1.0, 0.7], [0.0, 1.0]]),), tensors)
    W_new = Weights.from_named(net, moved)
    assert not nm.transport(W, W_new).found
    assert nm.same_function(W, W_new).verdict == "different"


@pytest.mark.statement("head-mixing")
def test_for_larger_ranks_mixing_does_not_commute_with_changes_of_basis():
    """The obstruction for a > d: which query gives the mixed product depends on the basis."""
    for a, commutes in ((3, True), (4, False)):
        net = nm.Architecture((3, 3), (a,), 3, heads=2)
        W, generator = named(conditioned_weights(net, 0)), np.random.default_rng(0)
        mixing, keys = of(net), parts_of(net)["key_query"]
        assert mixing.is_group
        assert mixing.composes is commutes
        g, C = mixing.random(generator), keys.random(generator)
        one = mixing.act(g, keys.act(C, W))
        other = keys.act(C, mixing.act(g, W))
        distance = np.linalg.norm(one["layers.0.query"] - other["layers.0.query"])
        assert bool(distance < 1e-9) is commutes
        # both have the mixed products; they differ by a change of basis of the keys alone
        for left, right in zip(
            *(x["layers.0.key"].mT @ x["layers.0.query"] for x in (one, other)), strict=True
        ):
            np.testing.assert_allclose(left, right, atol=1e-9)


def test_the_query_that_is_carried_along_is_lost_where_a_product_becomes_singular():
    """Q A^{-1} A' commutes for a > d too, but no inverse leads back from a singular A'."""
    generator = np.random.default_rng(0)
    K, Q, B = (generator.standard_normal((2, a, 3)) for a in (4, 4, 3))
    Q[1] = np.linalg.pinv(K[1].T) @ (K[0].T @ Q[0] + np.outer(B[0, 0], B[0, 1]))
    A = K.mT @ Q
    g = np.array([[1.0, 0.0], [-1.0, 1.0]])
    mixed = np.einsum("hk,kij->hij", g, A)
    assert np.linalg.matrix_rank(A[1]) == 3
    assert np.linalg.matrix_rank(mixed[1], rtol=1e-12) == 1
    carried = Q[1] @ np.linalg.solve(A[1], mixed[1])
    back = carried @ np.linalg.pinv(mixed[1], rtol=1e-12) @ A[1]
    assert np.linalg.norm(back - Q[1]) > 0.1 * np.linalg.norm(Q[1])


@pytest.mark.parametrize("tensor", ["key", "output"])
def test_singular_factors_allow_no_mixing_that_leaves_their_image(tensor):
    W = named(conditioned_weights(FACTORED, 0))
    W[f"layers.0.{tensor}"][0] = 0.0
    W[f"layers.0.{tensor}"][0, 0, 0] = 1.0
    one, g = np.eye(2), np.array([[1.0, 0.5], [0.2, 1.0]])
    kept = of(FACTORED).act((one, one), W)
    assert all(np.array_equal(kept[name], W[name]) for name in W)
    with pytest.raises(ArgumentError, match="s of layer 0 are singular and do not allow"):
        of(FACTORED).act((g, one), W)
    with pytest.raises(ArgumentError, match="an invertible matrix; got a singular one"):
        of(FACTORED).act((np.ones((2, 2)), one), W)
