import numpy as np
import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.networks.weights import Layer, Weights, random_weights
from neuromanifold.recovery import network_oracle, recover

ARCHITECTURES = [
    Architecture((4, 3), (2,), 2),
    Architecture((3, 1), (3,), 3),
    Architecture((2, 4), (1,), 2),
    Architecture((1, 2), (1,), 2),
]


def rescaled_error(found, wanted):
    """The relative distance of (A, V) to the rescalings (λA', V'/λ) of what was found."""
    A, V = wanted.layers[0].attention_matrices()[0], wanted.layers[0].value_maps()[0]
    A_found, V_found = found.layers[0].attention_matrices()[0], found.layers[0].value_maps()[0]
    factor = np.sum(A * A_found) / np.sum(A_found**2)
    return max(
        np.linalg.norm(factor * A_found - A) / np.linalg.norm(A),
        np.linalg.norm(V_found / factor - V) / np.linalg.norm(V),
    )


def check_seed(architecture, seed):
    truth = random_weights(architecture, seed)
    recovery = recover(network_oracle(truth), architecture, seed=seed)
    assert recovery.verdict == "identified", recovery
    assert recovery.fit_error <= 1e-9
    points = (recovery.weights, *recovery.alternatives)
    assert min(rescaled_error(point, truth) for point in points) <= 1e-9
    return recovery


@pytest.mark.statement("thm-3.2")
@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_one_layer_is_found_up_to_rescaling(architecture):
    for seed in range(4):
        check_seed(architecture, seed)


@pytest.mark.slow
@pytest.mark.statement("thm-3.2")
@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_one_layer_is_found_up_to_rescaling_over_many_seeds(architecture):
    for seed in range(60):
        check_seed(architecture, seed)


def rank_one_weights(k, q, h, v):
    architecture = Architecture((len(k), len(h)), (1,), 2)
    layer = Layer(query=q[None, None], key=k[None, None], value=np.outer(h, v)[None])
    return Weights((layer,), architecture)


@pytest.mark.statement("thm-3.2")
@pytest.mark.parametrize("outputs", [1, 3])
def test_the_rank_one_case_returns_both_points(outputs):
    generator = np.random.default_rng(1)
    k, q, v = generator.standard_normal((3, 4))
    h = generator.standard_normal(outputs)
    truth, swapped = rank_one_weights(k, q, h, v), rank_one_weights(v, q, h, k)
    recovery = recover(network_oracle(truth), truth.architecture)
    assert recovery.verdict == "identified"
    assert len(recovery.alternatives) == 1
    points = (recovery.weights, *recovery.alternatives)
    for wanted in (truth, swapped):
        assert sorted(rescaled_error(point, wanted) <= 1e-9 for point in points) == [False, True]


@pytest.mark.statement("thm-3.2")
def test_the_two_points_coincide_when_key_and_value_are_parallel():
    generator = np.random.default_rng(2)
    k, q = generator.standard_normal((2, 4))
    truth = rank_one_weights(k, q, generator.standard_normal(3), -2 * k)
    recovery = recover(network_oracle(truth), truth.architecture)
    assert recovery.verdict == "identified"
    assert recovery.alternatives == ()
    assert rescaled_error(recovery.weights, truth) <= 1e-9


@pytest.mark.statement("thm-3.2")
def test_the_zero_function_gives_zero_weights_and_says_so():
    architecture = Architecture((3, 2), (2,), 2)
    recovery = recover(lambda _: np.zeros((2, 2)), architecture)
    assert recovery.verdict == "identified"
    assert not recovery.weights.flatten().any()
    assert "zero function" in str(recovery)


def test_a_layer_close_to_rank_one_is_still_told_from_its_swap():
    """Both maps have a second singular value of 1e-4: one point, with eight digits left."""
    generator = np.random.default_rng(3)
    architecture = Architecture((3, 3), (3,), 2)
    A, V = (
        np.outer(*generator.standard_normal((2, 3))) + 1e-4 * generator.standard_normal((3, 3))
        for _ in range(2)
    )
    truth = Weights((Layer(query=A[None], key=np.eye(3)[None], value=V[None]),), architecture)
    recovery = recover(network_oracle(truth), architecture)
    assert recovery.alternatives == ()
    assert rescaled_error(recovery.weights, truth) <= 1e-9
    assert recovery.conditions["equations for the maps"] > 1e3
