"""Any JAX function is certified: classical varieties, a user's network, and clear refusals."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import neuromanifold as nm
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.certificates.exact import certify_function
from neuromanifold.certificates.jacobian import jacobian_rows
from neuromanifold.certificates.point import at_a_point
from neuromanifold.certificates.verify import twin_rows
from neuromanifold.errors import ArgumentError, DiagramError, NotCoveredError

relu = jax.nn.relu


def values(*shape):
    return jnp.zeros(shape)


def contracted(tensor, X):
    """A generic linear functional of a tensor: the sample X has its shape."""
    return jnp.sum(tensor * X)


def segre(w, X):
    return contracted(jnp.einsum("i,j,k->ijk", *w), X)


def veronese(w, X):
    return jnp.dot(w, X) ** 3


def determinantal(w, X):
    return contracted(w[0] @ w[1], X)


def plucker(w, X):
    minors = w[0][:, None] * w[1][None, :] - w[1][:, None] * w[0][None, :]
    return contracted(minors, X)


def rank_two_tensors(w, X):
    return contracted(jnp.einsum("ri,rj,rk->ijk", *w), X)


@pytest.mark.statement("field-rank")
@pytest.mark.parametrize(
    ("function", "weights", "sample", "dimension"),
    [
        (segre, (values(2), values(3), values(4)), values(2, 3, 4), 2 + 3 + 4 - 2),
        (veronese, values(4), values(4), 4),
        (determinantal, (values(5, 2), values(2, 4)), values(5, 4), 2 * (5 + 4 - 2)),
        (plucker, (values(5), values(5)), values(5, 5), 2 * (5 - 2) + 1),
        (rank_two_tensors, (values(2, 3),) * 3, values(3, 3, 3), 2 * 7),
    ],
)
def test_classical_varieties_have_their_dimension(function, weights, sample, dimension):
    certificate = certify_function(function, weights, sample)
    assert certificate.lower == dimension
    assert certificate.function.name == function.__name__


def test_symmetries_of_a_user_close_the_gap_and_are_named_as_given():
    def scale(s, w):
        return jnp.exp(s) * w[0], jnp.exp(-s) * w[1]

    def product(w, X):
        return w[0] * w[1] * X

    shapes = ((values(), values()), values())
    assert certify_function(product, *shapes).verdict == "probable"
    certificate = certify_function(product, *shapes, symmetries=[scale])
    assert (certificate.lower, certificate.upper) == (1, 1)
    assert certificate.verdict == "exact given symmetries"
    assert not certificate.summary()["exact"]


def test_a_false_symmetry_is_refused():
    with pytest.raises(DiagramError, match="'given' changes <lambda>"):
        certify_function(
            lambda w, X: w[0] * w[1] * X,
            (values(), values()),
            values(),
            symmetries=[lambda s, w: (w[0] + s, w[1])],
        )


@pytest.mark.statement("softmax-exact")
def test_a_users_own_softmax_network():
    """One head of softmax attention as a user writes it: the dimension of thm-3.9."""

    def network(w, X):
        return w["V"] @ X @ jax.nn.softmax(X.T @ w["A"] @ X, axis=0)

    weights = {"A": values(3, 3), "V": values(2, 3)}
    certificate = certify_function(network, weights, values(3, 4), name="mine")
    assert (certificate.lower, certificate.verdict) == (15, "exact")
    assert certificate.independence.met
    assert str(certificate).startswith("mine: the dimension is 15 (exact;")


@pytest.mark.parametrize(
    ("function", "weights", "error", "sentence"),
    [
        (lambda w, X: jnp.arctan(w * X), values(), NotCoveredError, "atan"),
        (lambda w, X: w * X * jnp.nan, values(), ArgumentError, "NaN"),
        (lambda w, X: w * X * jnp.inf, values(), ArgumentError, "inf"),
        (lambda _, X: X, values(), ArgumentError, "depends on none of its weights"),
        (lambda w, X: w * X, np.zeros(2, dtype=int), ArgumentError, "one real array"),
        (lambda w, X: w * X, np.zeros(2, dtype=complex), ArgumentError, "complex weights"),
        (lambda _, X: X, (), ArgumentError, "has no weights"),
    ],
)
def test_functions_that_cannot_be_certified_are_named(function, weights, error, sentence):
    with pytest.raises(error, match=sentence):
        certify_function(function, weights, values())


def straight_through(w, X):
    rounded = w[0] * X[0]
    return w[1] * X[1] + rounded + jax.lax.stop_gradient(-rounded)


@pytest.mark.parametrize(
    ("f", "dimension"),
    [
        (lambda w, X: w[0] * X[0] + w[1] * X[0] ** 2 - jax.lax.stop_gradient(w[1] * X[0] ** 2), 1),
        (straight_through, 1),
        (lambda w, X: w[0] * jnp.sqrt(X[0] ** 2) + w[1] * X[0], None),
        (lambda w, X: w[0] * jnp.sqrt(4 * X[0]) + w[1] * jnp.sqrt(X[0]), None),
        # The two exponentials are equal, and must stay so when roots have one drawn again.
        (lambda w, X: w[0] * jnp.sqrt(4 * jnp.exp2(X[0])) + w[1] * jnp.sqrt(jnp.exp2(X[0])), None),
        # The relation holds in every cell, and not for every number in place of a branch: only the
        # cells in which the neuron is off are shown.
        (lambda w, X: w[0] * jnp.exp(relu(X[0])) + w[1] / jnp.exp(-relu(X[0])), 1),
        (lambda w, X: w[0] * jnp.tanh(X[0]) + w[1] * (2 * jax.nn.sigmoid(2 * X[0]) - 1), 1),
        (lambda w, X: w[0] * jnp.log(X[0] * X[1]) + w[1] * (jnp.log(X[0]) + jnp.log(X[1])), 1),
    ],
)
def test_traps_do_not_become_exact(f, dimension):
    certificate = certify_function(f, values(2), values(2))
    assert certificate.verdict == ("bounds" if dimension is None else "probable")
    assert certificate.lower == (dimension or 0)
    again = nm.verify(certificate, nm.network(f, values(2), values(2)))
    assert again.agrees, str(again)


def test_a_false_obligation_is_refuted():
    f = lambda w, X: w[0] * jnp.sqrt(4 * X) + w[1] * jnp.sqrt(X)  # noqa: E731
    true = certify_function(f, values(2), values())
    (roots,) = true.obligations
    forged = replace(true, obligations=(replace(roots, rank=2),))
    assert forged.verdict == "exact"
    assert not nm.verify(forged, nm.network(f, values(2), values())).agrees


def test_how_constants_were_read_is_told():
    fourier = np.real(np.exp(2j * np.pi * np.outer(np.arange(4), np.arange(4)) / 4))
    noisy = certify_function(lambda w, X: (w * X) @ fourier, values(4), values(4), name="noisy")
    assert noisy.readings.suspects
    assert "may be rounding noise" in str(noisy)
    left = certify_function(lambda w, X: w * X * (0.1 + 0.2 - 0.3), values(), values())
    assert "may be rounding noise: 5.6e-17" in str(left)
    mask = np.array([[0.0, -10000.0], [0.0, 0.0]])

    def masked(w, X):
        return w[0] * X @ jax.nn.softmax(w[1] * X.T @ X + mask, axis=0)

    assert "Masks of -10000 were taken as minus infinity" in str(
        certify_function(masked, values(2), values(1, 2))
    )


@pytest.mark.parametrize(
    "f",
    [
        lambda w, x: w[0] * jnp.sqrt(-1 - x * x),
        lambda w, x: w[0] * jnp.sqrt(-1 - x * x) ** 2,
        lambda w, x: x * jnp.sqrt(-1 - w[0] ** 2) ** 2,
        lambda w, x: x * jnp.sqrt(-((w[0] - x) ** 2)) ** 2,
        lambda w, x: w[0] * jnp.log(-1 - x * x),
        lambda w, x: w[0] * jnp.arccosh(-1 - x * x),
        lambda w, x: w[0] * (-1 - x * x) ** 1.5,
    ],
)
def test_a_function_without_real_values_has_no_proved_dimension(f):
    net = nm.network(f, np.zeros(1), np.zeros(1))
    found = nm.certify(net)
    assert found.lower == 0
    assert "no real point was found at which it has a value" in str(found)
    assert nm.verify(found, net).agrees


@pytest.mark.parametrize(
    "f",
    [
        lambda w, x: w[0] * jnp.sqrt(1 - jnp.sum(x**2)) + w[1],
        lambda w, x: w[0] * jnp.arccosh(x[0]) * jnp.arctanh(x[1]) + w[1],
        lambda w, x: w[0] * jnp.sqrt(x[0]) * jnp.sqrt(-x[1]) * jnp.log(-x[2]) + w[1],
    ],
)
def test_a_small_domain_is_met(f):
    found = certify_function(f, np.zeros(2), np.zeros(8))
    assert (found.verdict, found.lower) == ("exact", 2)


def test_given_weights_need_a_value_themselves():
    net = nm.network(lambda w, x: x * jnp.sqrt(w) ** 2, np.zeros(1), np.zeros(1))
    assert nm.certify(net, weights=np.array([2.0])).lower == 1
    assert nm.certify(net, weights=np.array([-2.0])).lower == 0


@pytest.mark.parametrize(
    ("f", "dimension"),
    [
        (lambda w, x: jnp.var(w * x), 3),  # NaN for an empty array
        (lambda w, x: jnp.take(w, np.array([0, 7]), mode="fill", fill_value=2.0) @ x[:2], 1),
        (lambda w, x: jnp.take(w, np.array([0, 7]), mode="fill", fill_value=9.0) @ x[:2] ** 2, 1),
        (lambda w, x: jnp.take(w, np.array([1, 0])) @ x[:2], 2),
    ],
)
def test_the_twin_reads_fillings_and_what_is_selected_nowhere(f, dimension):
    net = nm.network(f, np.zeros(3), np.zeros(3))
    found = nm.certify(net)
    assert found.rank == dimension

    def both(point):
        rows = np.concatenate(list(jacobian_rows(net, point, found.inputs)))[: found.inputs]
        return np.mod(rows, found.prime), twin_rows(net, point, found.inputs)

    np.testing.assert_array_equal(*at_a_point(net, PrimeField(found.prime), found.seed, both))
    assert nm.verify(found, net).agrees
