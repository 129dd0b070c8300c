"""Columns at the pivots of known kernel vectors are left out, and the rank stays."""

import jax.numpy as jnp
import numpy as np
import pytest

from neuromanifold.algebra.integer_rank import flint_rank
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.architecture import Architecture
from neuromanifold.certificates import jacobian, symmetry_bound
from neuromanifold.certificates.jacobian import jacobian_rank, jacobian_rows
from neuromanifold.certificates.point import at_a_point
from neuromanifold.certificates.symmetry_bound import known_generators, known_kernel
from neuromanifold.symmetry.families import network

FIELD = PrimeField()


def overlapping_symmetries():
    """x ↦ a b c x with three scalings of which one is the product of the others."""
    return network(
        lambda w, x: w["a"] * w["b"] * w["c"] * x,
        {"a": jnp.zeros(()), "b": jnp.zeros(()), "c": jnp.zeros(())},
        jnp.zeros(2),
        symmetries=(
            lambda s, w: {"a": w["a"] * (1 + s), "b": w["b"] / (1 + s), "c": w["c"]},
            lambda s, w: {"a": w["a"], "b": w["b"] * (1 + s), "c": w["c"] / (1 + s)},
            lambda s, w: {"a": w["a"] * (1 + s), "b": w["b"], "c": w["c"] / (1 + s)},
        ),
    )


NETWORKS = {
    "three layers": lambda: network(Architecture((2, 3, 3, 2), (2, 2, 2), 2)),
    "softmax": lambda: network(Architecture((3, 2, 3), (2, 2), 3, "softmax")),
    "head mixing": lambda: network(Architecture((2, 2), (2,), 2, heads=3, value_ranks=(2,))),
    "decisions": lambda: network(Architecture((3, 2, 3), (2, 2), 3), readout="decisions"),
    "residual": lambda: network(Architecture((2, 2, 2), (1, 1), 2, skip="residual")),
    "user's own": overlapping_symmetries,
}


@pytest.fixture(params=NETWORKS)
def at(request):
    """A network, a point, and what is known of the kernel there."""
    net = NETWORKS[request.param]()
    point = at_a_point(net, FIELD, 0, lambda point: point)
    return net, point, known_kernel(net, net.assemble(point.weights), FIELD, 0)


def test_pivots_are_as_many_as_the_tangent_vectors_are_independent(at):
    net, point, kernel = at
    blocks = known_generators(net, net.assemble(point.weights), FIELD)
    dense = np.concatenate([net.dense(block) for block in blocks])
    independent = flint_rank(dense, FIELD.modulus)
    assert independent > 0
    assert sum(family.dimension for family in kernel.families) == independent
    assert len(set(kernel.pivots.tolist())) == len(kernel.pivots) == independent
    assert flint_rank(dense[:, kernel.pivots], FIELD.modulus) == independent


@pytest.mark.parametrize("slab", [1, 3])
def test_tangent_vectors_that_come_in_slabs_have_the_same_pivots(at, slab, monkeypatch):
    net, point, kernel = at
    monkeypatch.setattr(symmetry_bound, "_SLAB", slab)
    again = known_kernel(net, net.assemble(point.weights), FIELD, 0)
    assert again.families == kernel.families
    assert np.array_equal(again.pivots, kernel.pivots)


def test_the_rank_stays_without_those_columns(at):
    net, point, kernel = at
    upper = net.parameters - len(kernel.pivots)
    rows = np.concatenate(list(jacobian_rows(net, point, upper + 8)))
    expected = flint_rank(rows, FIELD.modulus)
    assert flint_rank(np.delete(rows, kernel.pivots, axis=1), FIELD.modulus) == expected
    checks = kernel.checks
    found = jacobian_rank(net, point, upper, checks, without=kernel.pivots)
    assert (found.rank, found.kernel_holds) == (expected, (True,) * checks.shape[1])
    assert found.row_space.columns == net.columns - len(kernel.pivots)


def test_a_rank_without_other_columns_is_still_a_lower_bound(at):
    net, point, kernel = at
    upper = net.parameters - len(kernel.pivots)
    everything = jacobian_rank(net, point, upper, kernel.checks)
    others = np.delete(np.arange(net.columns), kernel.pivots)
    few = jacobian_rank(net, point, upper, kernel.checks, without=others)
    assert few.rank <= min(everything.rank, len(kernel.pivots))


def test_no_more_rows_are_sampled_than_the_upper_bound_calls_for(monkeypatch):
    monkeypatch.setattr(jacobian, "SPARE_ROWS", -2)
    monkeypatch.setattr(jacobian, "BATCH", 2)
    net = network(Architecture((2, 2), (2,), 2))
    point = at_a_point(net, FIELD, 0, lambda point: point)
    nothing = np.zeros((net.columns, 0))
    upper = 7
    found = jacobian_rank(net, point, upper, nothing)
    assert (found.rank, found.inputs) == (7, 8)
    assert jacobian_rank(net, point, upper + 1, nothing).inputs == 12
