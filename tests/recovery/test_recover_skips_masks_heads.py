"""Networks with skips, masks and several heads: the weights are on the fiber of the truth."""

import pytest

import neuromanifold as nm

DIRECT = [
    nm.Architecture((3, 2), (2,), 3, mask="causal"),
    nm.Architecture((3, 3, 2), (2, 2), 3, mask="causal"),
    nm.Architecture((3, 3), (2,), 2, skip="residual"),
    nm.Architecture((2, 2), (1,), 3, skip="residual", mask="causal"),
    nm.Architecture((3, 3), (2,), 3, "softmax", mask="causal", temperature=2.0),
    nm.Architecture((3, 3), (2,), 2, "softmax", skip="residual"),
    nm.Architecture((2, 2), (1,), 3, "softmax", skip="residual", mask="causal"),
]
SEARCHED = [
    nm.Architecture((2, 2), (1,), 2, skip="inner"),
    nm.Architecture((2, 2), (1,), 2, "softmax", skip="inner"),
    nm.Architecture((2, 2, 2), (2, 2), 2, "softmax", mask="causal"),
    nm.Architecture((2, 2, 2), (2, 2), 2, "softmax", skip="residual"),
    nm.Architecture((2, 2, 2), (1, 2), 3, skip="residual", mask="causal"),
    nm.Architecture((2, 2), (2,), 2, "softmax", heads=2),
    nm.Architecture((3, 3), (1,), 2, heads=2),
]
LONG = [
    nm.Architecture((3, 3, 3), (2, 2), 2, skip="residual"),
    nm.Architecture((3, 3, 2), (2, 2), 3, "softmax", mask="causal"),
    nm.Architecture((2, 2, 2), (2, 2), 3, "softmax", skip="inner", mask="causal"),
    nm.Architecture((3, 3), (2,), 3, "softmax", heads=2, skip="residual"),
]


def check(architecture, seed):
    truth = nm.random_weights(architecture, seed)
    recovery = nm.recover(nm.network_oracle(truth), architecture, seed=seed)
    assert recovery.verdict == "identified", recovery
    assert recovery.fit_error <= 1e-11
    assert max(recovery.error_bars.values()) <= 1e-8
    exact = nm.network_oracle(truth), nm.network_oracle(recovery.weights)
    return nm.same_function(truth, recovery.weights), exact


@pytest.mark.statement("causal-mask")
@pytest.mark.statement("residual-skip")
@pytest.mark.parametrize("architecture", DIRECT, ids=str)
def test_one_and_two_layers_with_mask_or_skip_are_found(architecture):
    for seed in range(2):
        assert check(architecture, seed)[0].verdict == "same"


@pytest.mark.parametrize("architecture", SEARCHED, ids=str)
def test_networks_without_a_formula_are_found_by_descent(architecture):
    assert check(architecture, 0)[0].verdict == "same"


@pytest.mark.slow
@pytest.mark.parametrize("architecture", [*SEARCHED, *LONG], ids=str)
def test_networks_without_a_formula_are_found_or_refused_over_many_seeds(architecture):
    found = 0
    for seed in range(10):
        truth = nm.random_weights(architecture, seed)
        recovery = nm.recover(nm.network_oracle(truth), architecture, seed=seed)
        assert (recovery.weights is None) == (recovery.verdict == "not identified")
        if recovery.weights is not None:
            assert recovery.fit_error <= 1e-8
            found += 1
    assert found >= 7


def test_a_mask_or_skip_that_is_not_there_is_refused():
    plain = nm.random_weights(nm.Architecture((2, 2), (2,), 3, "softmax"), 0)
    for asked in (
        nm.Architecture((2, 2), (2,), 3, "softmax", mask="causal"),
        nm.Architecture((2, 2), (2,), 3, "softmax", skip="residual"),
    ):
        recovery = nm.recover(nm.network_oracle(plain), asked)
        assert recovery.verdict == "not identified"


def test_the_identity_is_a_residual_network_without_values():
    architecture = nm.Architecture((2, 2), (2,), 2, "softmax", skip="residual")
    recovery = nm.recover(lambda X: X, architecture)
    assert recovery.verdict == "identified"
    assert "the identity" in recovery.reason
    assert not recovery.weights.layers[0].value.any()
