"""Dimensions of piecewise functions on the cells of real points."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuromanifold.certificates.cells import branches, real_inputs, with_branches
from neuromanifold.certificates.certificate import Certificate
from neuromanifold.certificates.exact import certify, certify_function
from neuromanifold.certificates.verify import verify
from neuromanifold.errors import ArgumentError
from neuromanifold.symmetry.families import network

Z = np.zeros
SIZES = (Z((3, 2)), Z(3), Z((1, 3)), Z(1))


def relu_network(w, x):
    return w[2] @ jax.nn.relu(w[0] @ x + w[1]) + w[3]


def scaling(k):
    """The k-th neuron's weights and bias times e^s, its outgoing weights times e^−s."""

    def act(s, w):
        up = jnp.exp(s * (jnp.arange(3) == k))
        return w[0] * up[:, None], w[1] * up, w[2] / up, w[3]

    return act


NETWORK = network(relu_network, SIZES, Z(2), symmetries=[scaling(k) for k in range(3)])


@pytest.mark.parametrize(
    "f",
    [
        lambda w, x: w[0] * jnp.max(x) + w[1] * jnp.max(jnp.roll(x, 1)),
        lambda w, x: w[0] * x + w[1] * (jnp.abs(x) - jax.nn.relu(x) - jax.nn.relu(-x)),
        lambda w, x: w[0] * jnp.sort(x) + w[1] * jnp.sort(x[::-1]),
        lambda w, x: w[0] * jnp.sign(x) ** 2 * x + w[1] * x,
    ],
)
def test_dependencies_between_pieces_are_seen(f):
    certificate = certify_function(f, Z(2), Z(3))
    assert (certificate.lower, certificate.verdict) == (1, "probable")
    assert certificate.readings.patterns > 0


def test_the_functional_dimension_of_a_relu_network_depends_on_the_cell():
    # At most parameters − hidden neurons: 13 − 3.
    found = [certify(NETWORK, seed=seed) for seed in (8, 0)]
    assert [c.upper for c in found] == [10, 10]
    assert [c.rank for c in found] == [7, 10]
    assert [c.verdict for c in found] == ["probable", "exact given symmetries"]
    assert "the dimension on these cells is 7 (probable" in str(found[0])
    assert "the dimension is 10 (exact given symmetries" in str(found[1])
    assert Certificate.from_dict(found[1].to_dict()) == found[1]


DEEP = (Z((3, 2)), Z(3), Z((3, 3)), Z(3), Z((1, 3)))


def deep(w, x):
    return (w[4] @ jax.nn.relu(w[2] @ jax.nn.relu(w[0] @ x + w[1]) + w[3]))[0]


def rare(w, x):
    """All weights but the first are seen at few inputs."""
    return w[0] * x[0] ** 2 + jnp.where(jnp.abs(x[1]) < 0.2, w[1:] @ x, 0.0)


TOKENS = network(lambda w, t: w[t] @ w.T, Z((4, 2)), np.array(3))


@pytest.mark.parametrize(("net", "inputs", "dimension"), [(NETWORK, 9, 10), (TOKENS, 5, 7)])
def test_a_cell_is_not_known_by_the_few_rows_that_lie_in_it(net, inputs, dimension):
    """By hand: the function on the cells met, from all their inputs, has more dimensions."""
    certificate = certify(net, inputs=inputs)
    assert certificate.rank < dimension
    assert certificate.verdict == "bounds"


@pytest.mark.parametrize(
    ("net", "seed", "dimension", "verdict"),
    [
        (NETWORK, 4, 10, "exact given symmetries"),
        (network(rare, Z(7), Z(6)), 0, 7, "exact"),
        (network(deep, DEEP, Z(2)), 4, 13, "probable"),
    ],
    ids=["a neuron", "a rare cell", "two layers"],
)
def test_the_cells_met_get_rows_until_they_show_all(net, seed, dimension, verdict):
    certificate = certify(net, seed=seed)
    assert (certificate.rank, certificate.verdict) == (dimension, verdict)
    assert (dimension, True) == dense_rank(net, seed, certificate.readings.cells)
    again = Certificate.from_dict(certificate.to_dict())
    assert verify(again, net).agrees
    assert verify(again, net, prime=8388587).agrees
    with pytest.raises(ArgumentError, match=r"claims 1099511627776 inputs"):
        verify(replace(again, readings=replace(again.readings, cells=2**40)), net)


def dense_rank(net, seed, cells):
    """The rank in floats of the functions of the first cells, at many inputs each, and a gap."""
    found = branches(net, seed, None, cells)
    generator = np.random.default_rng(0)
    weights = net.assemble(generator.standard_normal(net.columns))
    inputs = [generator.standard_normal((cells * 16, *leaf.shape)) for leaf in real_inputs(net)]
    arrays = [np.repeat(np.asarray(x), 16, axis=0) for x in found.arrays]
    with jax.enable_x64(True):
        row = jax.jacrev(lambda w, x, b: with_branches(net).apply(w, (x, b)))
        J = jax.jit(jax.vmap(row, (None, 0, 0)))(dict(weights), inputs, arrays)
    matrix = np.concatenate([np.reshape(J[t.name], (cells * 16, -1)) for t in net.tensors], 1)
    sizes = np.linalg.norm(matrix, axis=1, keepdims=True)
    values = np.linalg.svd(matrix / np.where(sizes, sizes, 1), compute_uv=False)
    rank = int(np.sum(values > 1e-9 * values[0]))
    return rank, bool(np.all(values[rank:] < 1e-13 * values[0]))


def test_an_input_without_a_value_does_not_spoil_the_others():
    """Half of all inputs have none."""

    def largest(w, x):
        return w[0] * jnp.max(jnp.stack([jnp.sqrt(x[0]), x[1]])) + w[1] * x[2]

    def guarded(w, x):
        logarithm = jnp.log(x[0])
        return w[0] * jnp.where(jnp.isfinite(logarithm), logarithm, 0.0) + w[1] * jax.nn.relu(x[2])

    for f in (largest, guarded):
        assert certify_function(f, Z(2), Z(3)).verdict == "exact"


@pytest.mark.parametrize("g", [jax.nn.relu6, lambda z: jnp.clip(z, -3, 2)])
def test_cells_far_from_the_origin_are_met(g):
    """On small inputs it is w_0 w_1 x, with one dimension; where g is constant, w_0 is seen."""
    certificate = certify_function(lambda w, x: w[0] * g(w[1] * x), Z(2), Z(3))
    assert (certificate.lower, certificate.verdict) == (2, "exact")


def test_the_dimension_at_given_weights_is_that_of_their_cell():
    full = (np.array([[1.0, 0.5], [-0.5, 1.0], [0.3, -1.0]]), Z(3), np.ones((1, 3)), Z(1))
    assert certify(NETWORK, weights=full).rank == 10
    # A neuron that is off at all inputs of the seed: its four parameters are not seen.
    off = tuple(x.copy() for x in full)
    off[1][0] = -1e4
    assert certify(NETWORK, weights=off).rank == 10 - 4 + 1


def test_formal_functions_are_checked_for_each_pattern():
    def block(w, x):
        return w[2] @ jax.nn.relu(w[0] @ x @ jax.nn.softmax(x.T @ w[1] @ x, axis=0))

    certificate = certify_function(block, (Z((2, 2)), Z((2, 2)), Z((1, 2))), Z((2, 2)))
    # Two neurons with one scaling each.
    assert certificate.lower == 10 - 2
    assert [o.met for o in certificate.obligations] == [True, True]


def layer(activation):
    """Two inputs, three hidden values and two outputs."""
    return network(
        lambda w, x: w[2] @ activation(w[0] @ x + w[1]), (Z((3, 2)), Z(3), Z((2, 3))), Z(2)
    )


def centred(h):
    return (h - jnp.mean(h)) / jnp.sqrt(jnp.var(h) + 1e-5)


@pytest.mark.parametrize(
    ("activation", "dimension"),
    [
        (lambda x: jax.nn.sigmoid(jnp.clip(x, -5, 5)), 15),
        (lambda x: jnp.minimum(x, 7) * jax.nn.sigmoid(1.702 * jnp.minimum(x, 7)), 15),
        (lambda x: jax.nn.relu(x) / (1e-3 + jnp.linalg.norm(jax.nn.relu(x))), 15),
        (lambda x: centred(jax.nn.relu(x - 3)), 13),  # a constant may be added to the rows of w[2]
    ],
)
def test_cells_in_which_nothing_is_shown_are_passed_over(activation, dimension):
    net = layer(activation)
    certificate = certify(net)
    assert certificate.lower == dimension
    assert f" {len(certificate.readings.passed)} points were passed over" in str(certificate)
    assert certificate.readings.passed
    assert verify(certificate, net).agrees
    assert verify(certificate, net, prime=8388449).agrees


def test_what_is_passed_over_proves_nothing():
    def f(w, x):
        y = jnp.clip(x, -3, 3)
        return (w[0] + w[1] * jnp.exp(y) * jnp.exp(-y)) * x

    certificate = certify_function(f, Z(2), Z(()))
    assert (certificate.lower, certificate.verdict) == (1, "probable")
    assert certificate.readings.passed


def test_a_function_of_which_no_cell_shows_anything_says_so():
    f = lambda w, x: (w[0] + w[1] * jnp.sqrt(x * x)) * jax.nn.relu(x)  # noqa: E731
    certificate = certify_function(f, Z(2), Z(()))
    assert not certificate.lower_is_proved
    assert not certificate.readings.passed


def test_more_points_passed_over_than_are_tried_are_refused():
    net = layer(lambda x: jax.nn.sigmoid(jnp.clip(x, -5, 5)))
    certificate = certify(net)
    forged = replace(certificate, readings=replace(certificate.readings, passed=(2**62,)))
    with pytest.raises(ArgumentError, match=r"passes over point .* at most 256 are tried"):
        verify(forged, net)
