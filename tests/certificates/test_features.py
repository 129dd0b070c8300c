"""Functions of the inputs alone that the engine does not read, as free variables."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy import special

import neuromanifold as nm
from formal_ranks import float_rank
from neuromanifold.algebra.features import Features, features
from neuromanifold.certificates.exact import certify_function
from neuromanifold.certificates.features import NAME
from neuromanifold.errors import NotCoveredError

atan = jnp.arctan


def layered(w, x):
    return w["out"] @ jnp.tanh(w["in"] @ jnp.cbrt(x))


def powers(w, x):
    """One feature in a polynomial, an exponential and a root."""
    y = atan(x)
    return w[0] * y + w[1] * jnp.exp(y) + w[2] * jnp.sqrt(y * y + 1.0) + w[3] * (y + 1) ** 2


def angles(w, x):
    """Polar coordinates, and a raw input beside them."""
    angle, size = jnp.arctan2(x[0], x[1]), jnp.hypot(x[0], x[1])
    return w[0] * jnp.sin(w[1] * angle) + w[2] * size * x[2] + w[3]


CASES = {
    "layers": (layered, {"in": (2, 3), "out": (2, 2)}, (3,), 10),
    "one in many": (powers, (4,), (), 4),
    "polar": (angles, (4,), (3,), 4),
    "sum": (lambda w, x: w[0] * (atan(x) + x) + w[1] * (atan(x) + x) ** 2, (2,), (), 2),
    "sum of one": (lambda w, x: w[0] * atan(jnp.sum(x)[None]) + w[1], (2,), (1,), 2),
    "twice": (lambda w, x: w[0] * atan(x) + w[1] * atan(x) * 1, (2,), (), 1),
    "lgamma": (lambda w, x: w[0] * special.gammaln(x) + w[1], (2,), (3,), 2),
    "digamma": (lambda w, x: w[0] * special.digamma(x) ** 2 + w[1], (2,), (3,), 2),
    "bessel": (lambda w, x: w[0] * (special.i0e(x) * special.i1e(x[::-1])) + w[1], (2,), (2,), 2),
    "piecewise before": (lambda w, x: w * jnp.cbrt(jax.nn.relu(x) + jnp.floor(x)), (3,), (3,), 3),
}


@pytest.mark.parametrize("name", CASES)
def test_ranks_are_those_of_floats(name):
    f, weights, sample, found = CASES[name]
    shapes = jax.tree.map(np.zeros, weights, is_leaf=lambda x: isinstance(x, tuple))
    network = nm.network(f, shapes, np.zeros(sample))
    certificate = nm.certify(network)
    assert certificate.obligations[0].name == NAME
    assert all(obligation.met for obligation in certificate.obligations)
    assert certificate.lower == found == float_rank(f, shapes, np.zeros(sample))
    assert nm.verify(certificate, network).agrees


@pytest.mark.parametrize(
    ("f", "entries", "why"),
    [
        (lambda w, x: w[0] * atan(x) + w[1] * x, 1, "1 real numbers, and 2 reach the weights"),
        (lambda w, x: w[0] * atan(x) + w[1] * atan(1 / x), 1, "and 2 reach the weights"),
        (lambda w, x: w[0] * atan(x) + w[1] * atan(2 * x), 1, "and 2 reach the weights"),
        (
            lambda w, x: w[0] * atan(x[0] * x[1]) + w[1] * atan(x[1] / (1 / x[0])),
            2,
            "of 2 only 1 were shown to be",
        ),
        # 0.1 is 1/10, also where it is a float that is not.
        (
            lambda w, x: w[0] * atan(0.1 * x[0] + x[1]) + w[1] * atan(x[0] / 10 + x[1]),
            2,
            "of 2 only 1 were shown to be",
        ),
        # √2 as a float is no number that a proof may lean on.
        (
            lambda w, x: (
                w[0] * atan(np.sqrt(2.0) * x[0] + x[1])
                + w[1] * atan(np.nextafter(np.sqrt(2.0), 2.0) * x[0] + x[1])
            ),
            2,
            "of 2 only 1 were shown to be",
        ),
        # No real input has a value here, whatever the derivative says.
        (lambda w, x: w[0] * (jnp.log(-1 - x * x) + jnp.cbrt(x)), 1, "of 1 only 0 were shown"),
        (lambda w, x: w[0] * jnp.sqrt(atan(x) - 2) + w[1], 1, "of 1 only 0 were shown"),
        # This one has values where w₀ = x₀: inputs and weights are drawn apart.
        (
            lambda w, x: w[0] * jnp.sqrt(-((w[0] - x[0]) ** 2)) ** 2 + w[1] * atan(x[1]),
            2,
            "of 2 only 0 were shown",
        ),
        (lambda w, x: w[0] * jnp.floor(atan(x)), 1, "of 1 only 0 were shown to be|branches"),
        (lambda w, x: jax.nn.relu(w[0] * atan(x)) + w[1], 1, "here they decide branches"),
        (lambda w, x: w[0] * jnp.cbrt(x) + w[1], 300, "there are 300, and at most 256 are tried"),
        (
            lambda w, x: w[0] * jnp.linalg.cholesky(jnp.diag(x * x + 1)).sum() + w[1],
            2,
            "`cholesky` cannot be evaluated in balls",
        ),
    ],
)
def test_what_is_not_independent_is_refused_with_the_reason(f, entries, why):
    with pytest.raises(NotCoveredError, match=rf"cannot be evaluated over a prime.*({why})"):
        certify_function(f, np.zeros(2), np.zeros(entries))


def test_an_unread_function_of_weights_is_refused_as_ever():
    with pytest.raises(NotCoveredError, match=r"^`atan` .*masks of the arguments can; write the"):
        certify_function(lambda w, x: atan(w * atan(x)), np.zeros(2), np.zeros(2))


@pytest.mark.parametrize(
    ("f", "entries", "shapes"),
    [
        (lambda w, x: w[0] * jnp.sum(atan(x)), 3, [()]),
        (lambda w, x: w[0] * atan(x) * jnp.exp(atan(x)), 3, [(3,)]),
        (lambda w, x: w[0] * atan(x[0]) * x[1:], 3, [(), (2,)]),
        (lambda w, x: w[0] * jnp.concatenate([atan(x), x]), 3, [(3,), (3,)]),
        (lambda w, x: w[0] * atan(jnp.exp(atan(x[:2]))).sum() + w[1] * x[2], 3, [(), (1,)]),
        (lambda w, x: w[0] * jnp.where(x > 0, atan(x), x * x), 3, [(3,)]),
    ],
)
def test_the_fewest_values_are_taken(f, entries, shapes):
    found = features(f, np.zeros(2), np.zeros(entries))
    assert found is not None
    assert sorted(found.shapes) == sorted(shapes)
    generator = np.random.default_rng(0)
    with jax.enable_x64(True):
        w, x = generator.normal(size=2), generator.normal(size=entries)
        (whole,) = found.rest(w, *found.values(x))
        np.testing.assert_allclose(whole, f(w, x), rtol=1e-12)


def test_what_is_read_has_no_features():
    assert features(lambda w, x: w * jnp.exp(x), np.zeros(2), np.zeros(2)) is None
    assert features(lambda w, x: w * x[0], np.zeros(2), np.zeros(2, int)) is None


def test_verification_shows_the_independence_again(monkeypatch):
    network = nm.network(layered, {"in": np.zeros((2, 3)), "out": np.zeros((2, 2))}, np.zeros(3))
    certificate = nm.certify(network)
    first, *others = certificate.obligations
    assert (first.name, first.columns, first.rank) == (NAME, 3, 3)
    assert not nm.verify(replace(certificate, obligations=tuple(others)), network).agrees
    assert not nm.verify(
        replace(certificate, obligations=(replace(first, columns=2, rank=2), *others)), network
    ).agrees
    monkeypatch.setattr(Features, "rank", lambda self, _: self.count - 1)
    assert not nm.verify(certificate, network).agrees


def test_symmetries_are_discovered_behind_features():
    f = lambda w, x: w["out"] @ (w["in"] @ jnp.cbrt(x))  # noqa: E731
    network = nm.network(f, {"in": np.zeros((2, 3)), "out": np.zeros((2, 2))}, np.zeros(3))
    found = nm.discover(network)
    assert found.unexplained == 0
    assert "GL_2" in str(found)
