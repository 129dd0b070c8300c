import itertools

import jax
import numpy as np
import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.attention import attention
from neuromanifold.networks.weights import random_weights
from neuromanifold.recovery import ExactOracle, exact_network_oracle, network_oracle, recover

ARCHITECTURE = Architecture((3, 2), (2,), 2)
SOFTMAX = Architecture((3, 2), (2,), 2, "softmax")


def counted(function):
    def call(X):
        call.calls += 1
        return function(X)

    call.calls = 0
    return call


@pytest.mark.parametrize("architecture", [ARCHITECTURE, SOFTMAX], ids=str)
def test_calls_are_counted(architecture):
    oracle = counted(network_oracle(random_weights(architecture, 0)))
    recovery = recover(oracle, architecture)
    assert recovery.verdict == "identified"
    assert recovery.calls == oracle.calls
    assert f"{oracle.calls} calls" in str(recovery)


def test_the_answer_prints_as_one_sentence():
    recovery = recover(network_oracle(random_weights(ARCHITECTURE, 0)), ARCHITECTURE, seed=7)
    assert str(recovery).startswith(
        "lightning 3-2 ranks 2 tokens 2: identified with relative error"
    )
    assert str(recovery).endswith(
        f"on 20 fresh inputs (one lightning layer in float64, {recovery.calls} calls, seed 7)"
    )


@pytest.mark.parametrize("bound", [1, 30])
def test_the_bound_on_calls_is_kept(bound):
    oracle = counted(network_oracle(random_weights(ARCHITECTURE, 0)))
    recovery = recover(oracle, ARCHITECTURE, max_calls=bound)
    assert recovery.verdict == "not identified"
    assert recovery.reason == f"the bound of {bound} oracle calls is used up"
    assert recovery.calls == oracle.calls == bound


def test_the_calls_needed_are_enough():
    oracle = network_oracle(random_weights(ARCHITECTURE, 0))
    needed = recover(oracle, ARCHITECTURE).calls
    assert recover(oracle, ARCHITECTURE, max_calls=needed).verdict == "identified"
    assert recover(oracle, ARCHITECTURE, max_calls=needed - 1).verdict == "not identified"


def test_a_wrong_shape_is_an_error():
    with pytest.raises(ArgumentError, match=r"must return shape \(2, 2\).*got \(3, 2\)"):
        recover(lambda X: X, ARCHITECTURE)


def test_an_answer_that_is_no_array_is_an_error():
    with pytest.raises(ArgumentError, match="must return a matrix"):
        recover(lambda _: [[1.0], [1.0, 2.0]], ARCHITECTURE)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_are_errors(value):
    with pytest.raises(ArgumentError, match="NaN or infinity"):
        recover(lambda _: np.full((2, 2), value), ARCHITECTURE)


def test_random_answers_are_an_error():
    generator = np.random.default_rng(0)
    oracle = counted(lambda X: X[:2] + generator.standard_normal((2, 2)))
    with pytest.raises(ArgumentError, match="deterministic"):
        recover(oracle, ARCHITECTURE)
    assert oracle.calls == 2


def test_an_oracle_that_drifts_is_an_error():
    """The first two answers agree; the first input asked for again at the end does not."""
    exact, calls = network_oracle(random_weights(ARCHITECTURE, 0)), itertools.count()
    with pytest.raises(ArgumentError, match="deterministic"):
        recover(lambda X: exact(X) * (1 + 1e-3 * (next(calls) > 10)), ARCHITECTURE)


def test_single_precision_without_a_noise_is_an_error():
    weights = jax.tree.map(np.float32, random_weights(ARCHITECTURE, 0))
    with pytest.raises(ArgumentError, match=r"float64; it returned float32.*state its error with"):
        recover(lambda X: attention(weights, X.astype(np.float32)), ARCHITECTURE)


def test_an_oracle_that_answers_in_one_buffer_is_read_at_once():
    exact, buffer = network_oracle(random_weights(ARCHITECTURE, 0)), np.empty((2, 2))

    def reusing(X):
        buffer[:] = exact(X)
        return buffer

    assert recover(reusing, ARCHITECTURE).verdict == "identified"


def test_an_exact_oracle_that_answers_in_one_buffer_is_read_at_once():
    architecture = Architecture((2, 2), (2,), 2)
    inner, buffer = exact_network_oracle(random_weights(architecture, 0)), np.empty((2, 2), object)

    def reusing(X):
        buffer[:] = inner.function(X)
        return buffer

    assert recover(ExactOracle(reusing), architecture).fit_error == 0


def test_an_oracle_that_overwrites_its_input_does_no_harm():
    exact = network_oracle(random_weights(ARCHITECTURE, 0))

    def careless(X):
        output = exact(X)
        X[:] = 0
        return output

    assert recover(careless, ARCHITECTURE).verdict == "identified"
