import re

import numpy as np
import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError, NotCoveredError
from neuromanifold.networks.weights import random_weights
from neuromanifold.recovery import ExactOracle, PreciseOracle, network_oracle, recover

ONE = Architecture((3, 2), (2,), 2)
TWO = Architecture((3, 3, 2), (2, 2), 3)
SOFT = Architecture((3, 2), (2,), 2, "softmax")
SOFT_TWO = Architecture((3, 3, 2), (2, 2), 3, "softmax")


def cubic(X):
    """Cubic, the same for every token, and no lightning layer: the cubes of the entries."""
    return X[:2] ** 3


def sines(X):
    return np.sin(X[:2] + X[:2].mean(axis=1, keepdims=True))


@pytest.mark.statement("thm-3.2")
@pytest.mark.parametrize("architecture", [ONE, TWO, SOFT, SOFT_TWO], ids=str)
@pytest.mark.parametrize("function", [cubic, sines])
def test_a_map_that_is_no_attention_network_is_refused(architecture, function):
    recovery = recover(function, architecture)
    assert recovery.verdict == "not identified"
    assert recovery.weights is None
    assert recovery.reason
    assert "not identified" in str(recovery)


OTHERS = {
    "two heads": (Architecture((3, 2), (2,), 2, heads=2), ONE),
    "causal": (Architecture((3, 2), (2,), 2, mask="causal"), ONE),
    "softmax for lightning": (SOFT, ONE),
    "lightning for softmax": (ONE, SOFT),
    "two layers for one": (Architecture((3, 3, 2), (2, 2), 2), ONE),
    "two softmax layers for one": (Architecture((3, 3, 2), (2, 2), 2, "softmax"), SOFT),
    "one layer for two": (Architecture((3, 2), (2,), 3), TWO),
    "three softmax layers for two": (
        Architecture((3, 3, 3, 2), (2, 2, 2), 3, "softmax"),
        SOFT_TWO,
    ),
}


@pytest.mark.parametrize(("truth", "asked"), OTHERS.values(), ids=OTHERS.keys())
def test_a_network_of_another_architecture_is_refused(truth, asked):
    recovery = recover(network_oracle(random_weights(truth, 1)), asked)
    assert recovery.verdict == "not identified"
    assert recovery.weights is None


def test_a_larger_rank_or_width_than_asked_for_is_named():
    oracle = network_oracle(random_weights(Architecture((4, 3, 3), (3, 2), 3), 0))
    narrow_rank = recover(oracle, Architecture((4, 3, 3), (2, 2), 3))
    assert "the form of layer 1 has rank 3; rank 2 was asked for" in narrow_rank.reason
    narrow_width = recover(oracle, Architecture((4, 2, 3), (3, 2), 3))
    assert "needs width 3 or more after layer 1; 2 was asked for" in narrow_width.reason


def test_a_wider_network_than_needed_is_found():
    oracle = network_oracle(random_weights(Architecture((3, 2, 3), (2, 2), 3), 0))
    recovery = recover(oracle, Architecture((3, 5, 3), (3, 4), 3))
    assert recovery.verdict == "identified"


@pytest.mark.parametrize("architecture", [ONE, SOFT], ids=str)
def test_noise_that_repeats_itself_is_refused(architecture):
    exact = network_oracle(random_weights(architecture, 0))
    recovery = recover(lambda X: exact(X) * (1 + 1e-6 * np.sin(1e6 * X.sum())), architecture)
    assert recovery.verdict == "not identified"
    assert recovery.weights is None


@pytest.mark.parametrize(
    "architecture",
    [
        Architecture((2, 2), (1,), 1),
        Architecture((2, 2, 2), (2, 2), 1),
        Architecture((2, 2), (1,), 1, "softmax"),
    ],
    ids=str,
)
def test_one_token_does_not_identify(architecture):
    recovery = recover(network_oracle(random_weights(architecture, 0)), architecture)
    assert recovery.verdict == "not identified"
    assert "one token" in recovery.reason


NOT_COVERED = {
    "give an `ExactOracle`": (Architecture((2, 2, 2, 2), (1, 1, 1), 2), None),
    "give a `PreciseOracle`": (Architecture((2, 2, 2, 2), (1, 1, 1), 2, "softmax"), None),
    "several heads in one layer only": (Architecture((2, 2, 2), (1, 1), 2, heads=2), None),
    "they mix": (Architecture((2, 2), (2,), 2, heads=2), None),
    "unfactored values only": (Architecture((2, 2), (1,), 2, value_ranks=(1,)), None),
    "lightning of depth 1 to 3 with one head and no skip": (
        Architecture((2, 2), (1,), 2, mask="causal"),
        ExactOracle,
    ),
    "softmax of any depth with one head and no skip": (
        Architecture((2, 2), (1,), 2, "softmax", skip="residual"),
        PreciseOracle,
    ),
}


@pytest.mark.parametrize("sentence", NOT_COVERED)
def test_what_is_not_covered_is_said(sentence):
    architecture, kind = NOT_COVERED[sentence]
    with pytest.raises(NotCoveredError, match=re.escape(sentence)) as error:
        recover(kind(lambda X: X) if kind else lambda X: X, architecture)
    assert architecture.name in str(error.value)


def test_the_answer_depends_on_the_seed_only():
    oracle = network_oracle(random_weights(ONE, 0))
    first, second = (recover(oracle, ONE, seed=3) for _ in range(2))
    assert np.array_equal(first.weights.flatten(), second.weights.flatten())
    assert first.seed == 3


@pytest.mark.parametrize("bad", [{"seed": -1}, {"seed": True}, {"max_calls": 0}])
def test_bad_arguments_are_errors(bad):
    with pytest.raises(ArgumentError, match="must be a whole number"):
        recover(lambda X: X[:2], ONE, **bad)


@pytest.mark.parametrize("noise", [0.0, 1.0, -1e-3, np.nan, np.inf])
def test_a_noise_that_is_no_relative_error_is_an_error(noise):
    with pytest.raises(ArgumentError, match="noise must be a relative error between 0 and 1"):
        recover(lambda X: X[:2], ONE, noise=noise)


def test_exact_oracles_have_no_noise():
    with pytest.raises(ArgumentError, match="noise belongs to an oracle in floats"):
        recover(ExactOracle(lambda X: X[:2]), ONE, noise=1e-3)
