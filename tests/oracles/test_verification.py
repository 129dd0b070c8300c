"""The naive twin gives the same Jacobian entry by entry, and verification can say no."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import neuromanifold as nm
from neuromanifold.algebra.modular import FormalElements, Obligation
from neuromanifold.algebra.prime_field import PrimeField, ZeroResidueError
from neuromanifold.architecture import Architecture
from neuromanifold.certificates.certificate import Function
from neuromanifold.certificates.exact import certify, certify_function
from neuromanifold.certificates.jacobian import Readings, jacobian_rows
from neuromanifold.certificates.point import at_a_point
from neuromanifold.certificates.twin import Twin, TwinExponentials
from neuromanifold.certificates.verify import twin_rows, verify
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.weights import random_weights

OTHER_PRIME = 8388587


@pytest.mark.statement("field-rank")
@pytest.mark.statement("softmax-exact")
@pytest.mark.parametrize("readout", ["logits", "decisions"])
def test_the_twin_and_the_traced_network_have_one_jacobian(some_architecture, readout):
    architecture = some_architecture
    certificate = certify(architecture, readout=readout, seed=2)
    network = nm.network(architecture, readout=readout)

    def both(point):
        rows = np.concatenate(list(jacobian_rows(network, point, certificate.inputs)))
        traced = np.mod(rows[: certificate.inputs], point.field.modulus)
        return traced, twin_rows(network, point, certificate.inputs)

    traced, twin = at_a_point(network, PrimeField(), 2, both)
    np.testing.assert_array_equal(traced, twin)


def test_true_certificates_are_confirmed_with_either_prime(some_architecture):
    certificate = certify(some_architecture, readout="probabilities", seed=3)
    for prime in (None, OTHER_PRIME):
        verification = verify(certificate, prime=prime)
        assert verification.agrees, str(verification)


@pytest.mark.parametrize(
    "change",
    [
        {"rank": 20},
        {"upper": 24},
        {"symmetries": ()},
        {"obligations": (Obligation("exponentials", 11, 11), Obligation("maxima", 2, 2))},
        {"upper_source": "symmetries"},
        {"obligations": ()},
        {"parameters": 99},
        {"kernel_checks": 0},
        {"function": Function("f", "0" * 64)},
        {"user_symmetries": True},
        {"readings": Readings((0.1,), (), ())},
        {"inputs": 5},
    ],
)
def test_false_certificates_are_refuted(change):
    true = certify(Architecture((3, 2, 4), (2, 3), 3, "softmax"))
    verification = verify(replace(true, **change))
    assert not verification.agrees
    assert "does not hold" in str(verification)


def test_local_certificates_need_their_weights():
    network = Architecture((3, 2), (2,), 3)
    weights = random_weights(network, 0)
    certificate = certify(network, weights=weights)
    assert verify(certificate, weights=weights).agrees
    with pytest.raises(ArgumentError, match="give the weights file"):
        verify(certificate)
    with pytest.raises(ArgumentError, match="not the weights that"):
        verify(certificate, weights=random_weights(network, 1))
    with pytest.raises(ArgumentError, match="leave the weights out"):
        verify(certify(network), weights=weights)


def test_a_users_function_is_verified_with_the_function_itself():
    def f(w, X):
        return jnp.exp(w[0] * X) * w[1]

    shapes = (jnp.zeros(2), jnp.zeros(()))
    certificate = certify_function(f, *shapes)
    assert verify(certificate, nm.network(f, *shapes), prime=OTHER_PRIME).agrees
    with pytest.raises(ArgumentError, match="another function or other shapes"):
        verify(certificate, nm.network(lambda w, X: w[0] * X, *shapes))
    with pytest.raises(ArgumentError, match="give the network itself"):
        verify(certificate)


def test_the_twin_has_the_same_exponentials():
    field = PrimeField()
    arguments = field.random(0, "arguments", (200,))
    ours = FormalElements(field, 7, "label")(arguments)
    twin = TwinExponentials.of(field.modulus, 7, "label")
    assert [twin(int(a) % field.modulus) for a in arguments] == [
        int(e) % field.modulus for e in ours
    ]


def test_a_rank_that_proves_nothing_cannot_be_passed_off_as_a_proof():
    """exp(w₀X + w₁) and w₂ are two parameters, for the formal exponentials three."""

    def f(w, X):
        return w[0] * jnp.exp(w[1] * X) * jnp.exp(w[2] * X)

    shapes = (jnp.zeros(3), jnp.zeros(()))
    true = certify_function(f, *shapes)
    assert verify(true, nm.network(f, *shapes)).agrees
    forged = replace(true, obligations=(), rank=true.upper)
    assert forged.verdict == "exact"
    verification = verify(forged, nm.network(f, *shapes))
    assert not verification.agrees
    assert {"rank", "verdict"} & {c.name for c in verification.checks if not c.agrees}


def test_given_symmetries_cannot_be_called_proved():
    def f(w, X):
        return w[0] * w[1] * X

    shapes = (jnp.zeros(2), jnp.zeros(()))
    scaling = [lambda s, w: w * jnp.exp(s * jnp.array([1.0, -1.0]))]
    true = certify_function(f, *shapes, symmetries=scaling)
    assert true.verdict == "exact given symmetries"
    network = nm.network(f, *shapes, symmetries=scaling)
    assert verify(true, network).agrees
    forged = replace(true, user_symmetries=False)
    assert forged.verdict == "exact"
    assert not verify(forged, network).agrees


def test_a_genuine_certificate_is_confirmed_where_the_twin_divides_by_zero(monkeypatch):
    certificate = certify(Architecture((2, 2), (1,), 2, "softmax"))
    rows, calls = Twin.arguments, []

    def sometimes(self, weights, X):
        calls.append(1)
        if len(calls) == 3:
            raise ZeroResidueError("0")
        return rows(self, weights, X)

    monkeypatch.setattr(Twin, "arguments", sometimes)
    assert verify(certificate).agrees
    assert len(calls) > 3
    monkeypatch.setattr(Twin, "jacobian", lambda *_: (_ for _ in ()).throw(ZeroResidueError("0")))
    assert verify(certificate).agrees
