"""Noise: the answer says how far it can be trusted, and what the noise leaves open is undecided."""

import jax
import numpy as np
import pytest

import neuromanifold as nm
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.attention import attention
from neuromanifold.networks.virtual import virtual_weights

LIGHTNING = nm.Architecture((3, 2), (2,), 2)
SOFTMAX = nm.Architecture((3, 2), (2,), 2, "softmax")
TWO_LIGHTNING = nm.Architecture((3, 2, 2), (2, 2), 3)
TWO_SOFTMAX = nm.Architecture((3, 3, 2), (2, 2), 3, "softmax")
ALL = [LIGHTNING, SOFTMAX, TWO_LIGHTNING, TWO_SOFTMAX]


def noisy(function, noise, seed=0):
    """Outputs with a fresh error of relative size `noise` at every call."""
    generator = np.random.default_rng(seed)

    def answer(X):
        output = function(X)
        error = generator.standard_normal(output.shape)
        return output + noise * np.linalg.norm(output) / np.linalg.norm(error) * error

    return answer


def distances(found, wanted):
    """Relative distances of the forms and of L, after the best rescaling of each (eq-13)."""
    softmax = wanted.architecture.attention == "softmax"
    found, wanted = virtual_weights(found), virtual_weights(wanted)
    for M, N in zip((*wanted.forms, wanted.linear), (*found.forms, found.linear), strict=True):
        factor = 1.0 if softmax else np.sum(M * N) / np.sum(N**2)
        yield np.linalg.norm(factor * N - M) / np.linalg.norm(M)


@pytest.mark.parametrize("architecture", ALL, ids=str)
def test_error_bars_cover_the_truth_and_are_not_idle(architecture):
    for seed, noise in enumerate((1e-8, 1e-6, 1e-4)):
        truth = nm.random_weights(architecture, seed)
        recovery = nm.recover(
            noisy(nm.network_oracle(truth), noise), architecture, seed=seed, noise=noise
        )
        assert recovery.verdict == "identified", recovery
        *bars, of_function = recovery.error_bars.values()
        errors = list(distances(recovery.weights, truth))
        assert all(error <= bar for error, bar in zip(errors, bars, strict=True))
        assert max(bars) <= 1e4 * max(errors)
        assert recovery.fit_error <= 20 * noise + of_function
        assert "to within" in str(recovery)


@pytest.mark.parametrize("architecture", ALL, ids=str)
def test_single_precision_is_taken_with_its_noise(architecture):
    weights = jax.tree.map(np.float32, nm.random_weights(architecture, 0))
    recovery = nm.recover(
        lambda X: attention(weights, X.astype(np.float32)), architecture, noise=2e-6
    )
    assert recovery.verdict == "identified", recovery
    assert max(distances(recovery.weights, weights)) <= max(recovery.error_bars.values()) <= 1e-2


def test_noise_that_is_not_stated_is_not_called_a_rank():
    exact = nm.network_oracle(nm.random_weights(LIGHTNING, 0))
    recovery = nm.recover(lambda X: exact(X) * (1 + 1e-5 * np.sin(1e6 * X.sum())), LIGHTNING)
    assert recovery.verdict == "not identified"
    assert "rank" not in recovery.reason.replace(LIGHTNING.name, "")
    assert "state `noise`" in recovery.reason


def test_more_noise_than_stated_is_an_error_when_answers_differ():
    exact = nm.network_oracle(nm.random_weights(LIGHTNING, 0))
    with pytest.raises(ArgumentError, match=r"stated as 1\.0e-06.*state a larger noise"):
        nm.recover(noisy(exact, 1e-3), LIGHTNING, noise=1e-6)


def with_small_form(size):
    """A form of rank 3 whose third singular value is `size`."""
    architecture = nm.Architecture((3, 3), (3,), 2)
    generator = np.random.default_rng(1)
    U, W = (np.linalg.qr(generator.standard_normal((3, 3)))[0] for _ in range(2))
    layer = {
        "query": ((U * [1.0, 0.5, size]) @ W)[None],
        "key": np.eye(3)[None],
        "value": np.linalg.qr(generator.standard_normal((3, 3)))[0][None],
    }
    return nm.Weights.from_tensors(architecture, [layer])


def test_a_rank_is_found_undecided_or_refused_by_its_size_over_the_noise():
    noise, asked = 1e-5, nm.Architecture((3, 3), (2,), 2)
    verdicts = {}
    for size in (1e-7, 1e-4, 1e-1):
        recovery = nm.recover(
            noisy(nm.network_oracle(with_small_form(size)), noise), asked, noise=noise
        )
        verdicts[size] = recovery.verdict
        if size == 1e-4:
            assert "not decided at this noise" in recovery.reason
            assert "times its error bar" in recovery.reason
        if size == 1e-1:
            assert "has rank 3; rank 2 was asked for" in recovery.reason
    assert list(verdicts.values()) == ["identified", "undecided", "not identified"]


def test_a_form_below_the_noise_is_undecided():
    recovery = nm.recover(
        noisy(nm.network_oracle(nm.random_weights(TWO_SOFTMAX, 0)), 3e-2), TWO_SOFTMAX, noise=3e-2
    )
    assert recovery.verdict == "undecided"
    assert recovery.weights is None
    assert "undetermined" in recovery.reason


def test_another_network_is_undecided_in_noise_and_says_how_far_off_it_is():
    heads = nm.network_oracle(nm.random_weights(nm.Architecture((3, 2), (2,), 2, heads=2), 0))
    recovery = nm.recover(noisy(heads, 1e-4), LIGHTNING, noise=1e-4)
    assert recovery.verdict == "undecided"
    assert recovery.weights is None
    assert "which a noise of 1.0e-04 may cause" in recovery.reason


@pytest.mark.parametrize(
    "architecture",
    [
        TWO_LIGHTNING,
        nm.Architecture((2, 2, 2), (2, 2), 3, mask="causal"),
        nm.Architecture((2, 2), (2,), 3, skip="residual"),
    ],
    ids=str,
)
def test_a_network_that_noise_hides_is_not_called_another_one(architecture):
    """The noise of these draws hides the first form of one network, and its fit of others."""
    verdicts = set()
    for seed in (5, 6, 7):
        exact = nm.network_oracle(nm.random_weights(architecture, seed))
        wave = np.arange(exact(np.zeros(_shape(architecture))).size)

        def answer(X, exact=exact, wave=wave):
            output = exact(X)
            return output * (1 + 1e-3 * np.sin(1e6 * X.sum() + wave.reshape(output.shape)))

        verdicts.add(nm.recover(answer, architecture, noise=3e-3).verdict)
    assert "undecided" in verdicts
    assert "not identified" not in verdicts


def _shape(architecture):
    return architecture.widths[0], architecture.tokens
