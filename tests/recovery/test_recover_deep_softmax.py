"""Deep softmax, one layer after the other, where float64 sees nothing of the later layers."""

from fractions import Fraction

import flint
import mpmath
import numpy as np
import pytest

import neuromanifold as nm
from neuromanifold.errors import ArgumentError, NotCoveredError
from neuromanifold.networks.virtual import virtual_weights
from neuromanifold.networks.weights import Layer
from neuromanifold.recovery import PreciseOracle, precise_network_oracle

DEEP = [
    nm.Architecture((2, 2), (2,), 2, "softmax"),
    nm.Architecture((3, 2, 2, 3), (2, 1, 2), 3, "softmax", temperature=0.5),
    nm.Architecture((2, 2, 3, 2), (2, 2, 2), 2, "softmax"),
    nm.Architecture((2, 2, 2, 2, 2), (1, 2, 2, 2), 3, "softmax"),
]


def virtual_error(found, wanted):
    found, wanted = virtual_weights(found), virtual_weights(wanted)
    pairs = zip((*found.forms, found.linear), (*wanted.forms, wanted.linear), strict=True)
    return max(np.linalg.norm(M - N) / np.linalg.norm(N) for M, N in pairs)


@pytest.mark.statement("consensus")
@pytest.mark.statement("softmax-fibers")
@pytest.mark.parametrize("architecture", DEEP, ids=str)
def test_every_form_of_a_deep_network_is_found_to_all_digits(architecture):
    truth = nm.random_weights(architecture, 1)
    recovery = nm.recover(precise_network_oracle(truth), architecture)
    assert recovery.verdict == "identified", recovery
    assert recovery.fit_error <= 1e-18
    assert virtual_error(recovery.weights, truth) <= 1e-13


def mpmath_oracle(weights):
    """The network in mpmath, with no code of ours but the weights."""

    def function(X, digits):
        with mpmath.workdps(digits + 20):
            tokens = mpmath.matrix(
                [[mpmath.mpf(x.numerator) / x.denominator for x in r] for r in X]
            )
            for layer in weights.layers:
                Q, K, V = (
                    mpmath.matrix(np.asarray(T[0]).tolist())
                    for T in (layer.query, layer.key, layer.value)
                )
                powers = ((K * tokens).T * (Q * tokens)).apply(mpmath.exp)
                sums = [sum(powers[:, i]) for i in range(powers.cols)]
                P = mpmath.matrix(
                    [
                        [powers[j, i] / sums[i] for i in range(powers.cols)]
                        for j in range(powers.rows)
                    ]
                )
                tokens = V * tokens * P
            return [[tokens[n, i] for i in range(tokens.cols)] for n in range(tokens.rows)]

    return PreciseOracle(function)


@pytest.mark.statement("softmax-fibers")
def test_an_oracle_of_another_library_is_recovered():
    architecture = nm.Architecture((2, 2, 2, 2), (2, 2, 2), 2, "softmax")
    truth = nm.random_weights(architecture, 2)
    recovery = nm.recover(mpmath_oracle(truth), architecture)
    assert recovery.verdict == "identified", recovery
    assert virtual_error(recovery.weights, truth) <= 1e-13
    X = np.array([[Fraction(1, 3), Fraction(-2, 5)], [Fraction(1, 2), Fraction(3, 4)]])
    ours, theirs = (
        o.function(X, 40) for o in (precise_network_oracle(truth), mpmath_oracle(truth))
    )
    for x, y in zip(np.ravel(ours), np.ravel(theirs), strict=True):
        assert abs(mpmath.mpf(float(x.mid())) - y) <= 1e-15


def test_the_last_form_matters_although_float64_does_not_see_it():
    """Another last form changes float64 outputs by rounding only, and is told apart."""
    architecture = nm.Architecture((2,) * 5, (2,) * 4, 2, "softmax")
    first = nm.random_weights(architecture, 3)
    *rest, last = first.layers
    other = nm.Weights((*rest, Layer(-last.query, last.key, last.value)), architecture)
    X = 0.5 * np.random.default_rng(0).standard_normal((2, 2))
    np.testing.assert_allclose(nm.network_oracle(first)(X), nm.network_oracle(other)(X), rtol=1e-9)
    found = [nm.recover(precise_network_oracle(w), architecture).weights for w in (first, other)]
    M, N = (virtual_weights(weights).forms[-1] for weights in found)
    np.testing.assert_allclose(M, -N, rtol=1e-10)


def test_what_is_no_such_network_is_refused():
    architecture = nm.Architecture((2, 2, 2), (2, 2), 2, "softmax")
    inner = precise_network_oracle(nm.random_weights(architecture, 0))

    def nearly(X, digits):
        output = inner.function(X, digits)
        output[0, 0] += float(X[0, 0]) * flint.arb(10) ** -15
        return output

    for function in (nearly, lambda X, _: X**3):
        recovery = nm.recover(PreciseOracle(function), architecture)
        assert recovery.verdict == "not identified"
        assert recovery.weights is None


@pytest.mark.statement("softmax-fibers")
def test_forms_after_a_collapsing_layer_are_refused():
    architecture = nm.Architecture((2, 2, 2), (2, 2), 2, "softmax")
    first, second = nm.random_weights(architecture, 0).layers
    skew = Layer(np.array([[[0.0, 1.0], [-1.0, 0.0]]]), np.eye(2)[None], first.value)
    recovery = nm.recover(
        precise_network_oracle(nm.Weights((skew, second), architecture)), architecture
    )
    assert recovery.verdict == "not identified"
    assert "skew" in recovery.reason


def test_the_zero_function_and_too_small_ranks_are_named():
    architecture = nm.Architecture((2, 2, 2), (2, 2), 2, "softmax")
    zero = nm.recover(PreciseOracle(lambda X, _: 0 * X), architecture)
    assert zero.verdict == "identified"
    assert "zero function" in zero.reason
    oracle = precise_network_oracle(nm.random_weights(architecture, 0))
    narrow = nm.recover(oracle, nm.Architecture((2, 2, 2), (2, 1), 2, "softmax"))
    assert "the form of layer 2 has rank 2; rank 1 was asked for" in narrow.reason


def test_oracles_that_break_their_promise_are_errors():
    architecture = nm.Architecture((2, 2), (2,), 2, "softmax")
    oracle = precise_network_oracle(nm.random_weights(architecture, 0))
    with pytest.raises(ArgumentError, match=r"must return shape \(2, 2\)"):
        nm.recover(PreciseOracle(lambda X, _: X[:1]), architecture)
    with pytest.raises(ArgumentError, match="must return whole numbers, fractions, or numbers of"):
        nm.recover(PreciseOracle(lambda X, _: X.astype(float)), architecture)
    with pytest.raises(ArgumentError, match="must be correct to 91 digits"):
        nm.recover(PreciseOracle(lambda X, _: oracle.function(X, 5)), architecture)
    assert nm.recover(oracle, architecture, max_calls=3).reason.startswith("the bound of 3")
    with pytest.raises(NotCoveredError, match="precise black boxes are made of softmax"):
        precise_network_oracle(nm.random_weights(nm.Architecture((2, 2), (1,), 2), 0))
