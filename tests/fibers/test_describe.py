"""What the fiber is at given weights: the cases of the theorems, and their edges."""

import numpy as np
import pytest

from architectures import ARCHITECTURES
from neuromanifold.architecture import Architecture
from neuromanifold.fibers.describe import describe_fiber
from neuromanifold.fibers.same import same_function
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.networks.weights import Weights, random_weights

DEEP = Architecture(widths=(3, 3, 3), ranks=(2, 2), tokens=3)


def layer_weights(A, V, *, tokens=2, attention="lightning"):
    """One layer with given A and V and as many keys as A has rows."""
    d = len(A)
    architecture = Architecture((d, len(V)), (d,), tokens, attention)
    tensors = {"key": np.eye(d)[None], "query": A[None], "value": V[None]}
    return Weights.from_tensors(architecture, [tensors])


def vectors(seed):
    generator = np.random.default_rng(seed)
    return generator.standard_normal((4, 3))


@pytest.mark.statement("thm-3.2")
@pytest.mark.parametrize("seed", range(3))
def test_two_points_when_both_ranks_are_one(seed):
    k, q, h, v = vectors(seed)
    weights = layer_weights(np.outer(k, q), np.outer(h, v))
    found = describe_fiber(weights)
    assert (found.statement, found.unmet, found.points) == ("thm-3.2", (), 2)
    assert found.swapped is not None
    assert same_function(weights, found.swapped).verdict == "same"
    swapped_A = found.swapped.layers[0].key[0].T @ found.swapped.layers[0].query[0]
    assert np.linalg.norm(swapped_A - np.outer(k, q)) > 0.1
    again = describe_fiber(found.swapped).swapped
    assert again is not None
    np.testing.assert_allclose(
        again.layers[0].value_maps()[0], np.outer(h, v) * _scale(again, h, v), atol=1e-12
    )


def _scale(weights, h, v):
    return np.vdot(weights.layers[0].value_maps()[0], np.outer(h, v)) / (h @ h) / (v @ v)


@pytest.mark.statement("thm-3.2")
def test_the_two_points_coincide_when_key_and_value_vectors_are_parallel():
    k, q, h, _ = vectors(0)
    found = describe_fiber(layer_weights(np.outer(k, q), np.outer(h, -2 * k)))
    assert found.points == 1
    assert found.swapped is None


@pytest.mark.statement("thm-3.2")
def test_the_zero_function_has_the_fiber_of_pairs_with_a_zero():
    k, q, h, v = vectors(1)
    for A, V in ((np.zeros((3, 3)), np.outer(h, v)), (np.outer(k, q), np.zeros((3, 3)))):
        found = describe_fiber(layer_weights(A, V))
        assert "A = 0 or V = 0" in found.case
        assert found.points is None


@pytest.mark.statement("thm-3.2")
def test_otherwise_the_fiber_is_one_point_up_to_rescaling():
    k, q, h, v = vectors(2)
    found = describe_fiber(layer_weights(np.outer(k, q), np.outer(h, v) + np.outer(v, h)))
    assert found.points == 1
    assert "rescalings" in found.case


@pytest.mark.statement("thm-3.2")
def test_one_token_is_outside_the_theorem():
    k, q, h, v = vectors(0)
    found = describe_fiber(layer_weights(np.outer(k, q), np.outer(h, v), tokens=1))
    assert found.unmet == ("tokens = 1 < 2",)
    assert found.points is None
    swapped_roles = layer_weights(np.outer(q, k), np.outer(h, v), tokens=1)
    first = layer_weights(np.outer(k, q), np.outer(h, v), tokens=1)
    assert same_function(first, swapped_roles).statement == "one-token"


@pytest.mark.statement("softmax-fibers")
@pytest.mark.parametrize(("tokens", "points"), [(2, None), (3, 1)])
def test_a_skew_form_hides_later_layers_with_two_tokens(tokens, points):
    network = Architecture((2, 2, 2), (2, 2), tokens, "softmax")
    one = np.eye(2)[None]
    layers = [{"key": one, "query": np.array([[[0.0, 1.0], [-1.0, 0.0]]]), "value": one}]
    layers.append({"key": one, "query": np.array([[[1.0, 2.0], [0.0, 1.0]]]), "value": one})
    found = describe_fiber(Weights.from_tensors(network, layers))
    assert (found.statement, found.unmet, found.points) == ("softmax-fibers", (), points)
    assert ("layer 1 makes tokens equal" in found.case) == (tokens == 2)


@pytest.mark.statement("thm-3.9")
def test_a_softmax_layer_is_one_point_or_zero():
    generator = np.random.default_rng(0)
    A, V = generator.standard_normal((2, 3, 3))
    found = describe_fiber(layer_weights(A, V, attention="softmax"))
    assert (found.statement, found.unmet, found.points) == ("thm-3.9", (), 1)
    zero = describe_fiber(layer_weights(A, 0 * V, attention="softmax"))
    assert zero.unmet == ("rank V_1 = 0 < 1",)
    assert "V = 0 and A arbitrary" in zero.case
    scaled = layer_weights(2 * A, V / 2, attention="softmax")
    assert same_function(layer_weights(A, V, attention="softmax"), scaled).verdict == "different"


@pytest.mark.statement("thm-3.7")
def test_a_deep_lightning_fiber_is_the_rescalings():
    found = describe_fiber(random_weights(DEEP, 0))
    assert (found.statement, found.unmet, found.points) == ("thm-3.7", (), 1)


@pytest.mark.statement("thm-3.7")
def test_each_unmet_hypothesis_of_the_deep_theorem_is_named():
    skew = np.array([[0, 1, 2], [-1, 0, 3], [-2, -3, 0.0]])
    full = Architecture(widths=(3, 3, 3), ranks=(3, 3), tokens=3)
    base = [dict(layer.tensors()) for layer in random_weights(full, 0).layers]
    A, V = random_weights(full, 1).layers[0], np.eye(3)[None]
    cases = {
        "M_2 is skew-symmetric": [
            base[0] | {"value": V},
            base[1] | {"key": np.eye(3)[None], "query": skew[None]},
        ],
        "rank M_1 = 1 < 2": [
            base[0] | {"key": np.eye(3)[None], "query": np.outer([1.0, 2, 3], [3.0, 1, 2])[None]},
            base[1],
        ],
        "rank L = 0 < 1": [dict(A.tensors()), base[1] | {"value": np.zeros((1, 3, 3))}],
    }
    for failure, layers in cases.items():
        found = describe_fiber(Weights.from_tensors(full, layers))
        assert failure in found.unmet
        assert failure in str(found)
        assert found.points is None


@pytest.mark.parametrize("architecture", ARCHITECTURES[:11:2], ids=str)
def test_at_generic_weights_the_fiber_has_the_generic_dimension(architecture):
    found = describe_fiber(random_weights(architecture, 0)).dimension
    expected = dimension_formula(architecture).dimension
    assert found.generic == architecture.parameters - expected
    assert found.value == found.generic
    assert found.lower <= found.generic


def test_at_special_weights_the_dimension_is_larger_or_between_bounds():
    k, q, h, _ = vectors(0)
    generic = describe_fiber(layer_weights(*np.random.default_rng(0).standard_normal((2, 3, 3))))
    critical = describe_fiber(layer_weights(np.outer(k, q), np.outer(h, k)))
    assert critical.dimension.upper > generic.dimension.upper
    assert critical.dimension.lower <= critical.dimension.upper


def test_the_exact_rank_and_that_to_within_rounding_are_told_apart():
    own = describe_fiber(random_weights(DEEP, 0)).to_dict()["dimension"]
    assert own["local_rank"] == own["exact_rank"] == dimension_formula(DEEP).dimension
    k, q, h = np.array([1.0, 2, 3]), np.array([1.0, -1, 2]), np.array([2.0, 1, 1])
    whole = describe_fiber(layer_weights(np.outer(k, q), np.outer(h, k)))
    assert whole.dimension.exact_rank == whole.dimension.local_rank
    k, q, h, _ = vectors(0)
    rounded = describe_fiber(layer_weights(np.outer(k, q), np.outer(h, k)))
    assert rounded.dimension.exact_rank > rounded.dimension.local_rank
    assert "at the floats as they are" in str(rounded)


@pytest.mark.statement("softmax-inner-fibers")
def test_two_tokens_under_the_inner_skip_see_forms_that_are_no_multiples_of_each_other():
    """N_1 = M_1 against N_2 = 2 M_2 = ± M_1: (N, −N/2) ~ (0, N/2) for skew N."""
    net = Architecture((2, 2, 2), (2, 2), 2, "softmax", skip="inner")
    skew, one = np.array([[0.0, 1.0], [-1.0, 0.0]]), np.eye(2)[None]
    for factor, is_point in ((1.0, False), (-1.0, False), (1 + 1e-14, False), (1.001, True)):
        layers = [{"query": M[None], "key": one, "value": one} for M in (skew, factor * skew / 2)]
        said = str(describe_fiber(Weights.from_tensors(net, layers)))
        assert ("one point (M, L)" in said) == is_point
        assert ("M_1 = ± 2 M_2 to within rounding" in said) != is_point
