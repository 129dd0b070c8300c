import numpy as np
import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.fibers.same import same_function
from neuromanifold.networks.virtual import virtual_weights
from neuromanifold.networks.weights import Layer, Weights, random_weights
from neuromanifold.recovery import network_oracle, recover

ARCHITECTURES = [
    Architecture((3, 3, 3), (2, 2), 3),
    Architecture((5, 2, 4), (2, 2), 3),
    Architecture((3, 5, 1), (3, 2), 3),
]
MANY = [
    *ARCHITECTURES,
    Architecture((2, 2, 2), (2, 2), 3),
    Architecture((4, 4, 1), (2, 2), 3),
    Architecture((5, 5, 5), (5, 5), 3),
    Architecture((4, 6, 3), (2, 3), 2),
]


def aligned_error(found, wanted):
    """How far M_1, M_2, L are, relatively, from multiples of those found (eq-13)."""
    errors = []
    for M, M_found in zip(
        (*wanted.forms, wanted.linear), (*found.forms, found.linear), strict=True
    ):
        factor = np.sum(M * M_found) / np.sum(M_found**2)
        errors.append(np.linalg.norm(factor * M_found - M) / np.linalg.norm(M))
    return max(errors)


@pytest.mark.statement("thm-3.7")
@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_two_layers_are_found_up_to_rescaling(architecture):
    for seed in range(3):
        truth = random_weights(architecture, seed)
        recovery = recover(network_oracle(truth), architecture, seed=seed)
        assert recovery.verdict == "identified", recovery
        assert recovery.fit_error <= 1e-9
        assert aligned_error(virtual_weights(recovery.weights), virtual_weights(truth)) <= 1e-7


@pytest.mark.slow
@pytest.mark.statement("thm-3.7")
@pytest.mark.parametrize("architecture", MANY, ids=str)
def test_two_layers_are_found_or_refused_over_many_seeds(architecture):
    found = 0
    for seed in range(50):
        truth = random_weights(architecture, seed)
        recovery = recover(network_oracle(truth), architecture, seed=seed)
        assert (recovery.weights is None) == (recovery.verdict == "not identified")
        found += recovery.verdict == "identified" and recovery.fit_error <= 1e-6
    assert found >= 48


@pytest.mark.statement("thm-3.7")
def test_a_first_form_of_rank_one_is_refused():
    architecture = Architecture((3, 3, 3), (1, 2), 3)
    recovery = recover(network_oracle(random_weights(architecture, 0)), architecture)
    assert recovery.verdict == "not identified"
    assert recovery.weights is None
    assert "rank one" in recovery.reason


@pytest.mark.statement("thm-3.7")
def test_with_a_skew_second_form_nothing_but_the_function_itself_is_identified():
    """Outside thm-3.7 the table leads nowhere; a descent from there may still end at a fit."""
    architecture, refused = Architecture((3, 3, 3), (3, 3), 3), 0
    for seed in range(3):
        generator = np.random.default_rng(seed)
        skew = generator.standard_normal((3, 3))
        layers = [
            Layer(query=A[None], key=np.eye(3)[None], value=generator.standard_normal((1, 3, 3)))
            for A in (generator.standard_normal((3, 3)), skew - skew.T)
        ]
        truth = Weights(tuple(layers), architecture)
        recovery = recover(network_oracle(truth), architecture)
        refused += recovery.verdict == "not identified"
        if recovery.weights is not None:
            assert same_function(truth, recovery.weights).verdict == "same"
    assert refused


@pytest.mark.statement("thm-3.2")
def test_after_the_first_layer_the_rank_one_case_has_two_points_too():
    """Rank L = rank M_2 = 1: (M_2, L) is the pair of a single layer, with its swap."""
    architecture = Architecture((3, 3, 1), (2, 1), 3)
    truth = random_weights(architecture, 4)
    recovery = recover(network_oracle(truth), architecture)
    assert recovery.verdict == "identified"
    assert len(recovery.alternatives) == 1
    points = (recovery.weights, *recovery.alternatives)
    errors = [aligned_error(virtual_weights(w), virtual_weights(truth)) for w in points]
    assert min(errors) <= 1e-7
    assert max(errors) > 1e-2


def test_width_one_is_found():
    architecture = Architecture((1, 1, 2), (1, 1), 2)
    recovery = recover(network_oracle(random_weights(architecture, 0)), architecture)
    assert recovery.verdict == "identified"
    assert recovery.fit_error <= 1e-9
