"""Float ranks: right where they are called numerical, undecided where floats cannot tell."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import neuromanifold as nm
from neuromanifold.architecture import Architecture
from neuromanifold.certificates.exact import certify
from neuromanifold.certificates.numeric import estimate, numeric_jacobian
from neuromanifold.certificates.spectrum import unit_rows
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.weights import Weights, random_weights, unflatten
from neuromanifold.symmetry.attention import named

SMALL = (
    Architecture((3, 2), (2,), 3),
    Architecture((4, 2, 3), (2, 2), 3),
    Architecture((2, 4, 2), (2, 2), 3),
    Architecture((3, 3), (3,), 3, heads=2),
    Architecture((3, 2, 4), (2, 3), 3, "softmax"),
    Architecture((3, 4), (2,), 3, value_ranks=(2,)),
)
DEEP = (
    pytest.param(Architecture((8,) * 5, (4,) * 4, 3), marks=pytest.mark.slow),
    pytest.param(Architecture((6,) * 6, (2,) * 5, 3), marks=pytest.mark.slow),
    Architecture((4,) * 5, (2,) * 4, 2),
    Architecture((2,) * 6, (2,) * 5, 2),
)


def normal_weights(architecture, seed):
    return unflatten(
        architecture, np.random.default_rng(seed).standard_normal(architecture.parameters)
    )


@pytest.mark.parametrize("architecture", SMALL, ids=str)
def test_small_networks_have_a_clear_rank_and_it_is_the_exact_one(architecture):
    found = estimate(architecture)
    assert found.verdict == "numerical"
    assert found.rank == certify(architecture).lower
    assert found.gap is None or found.gap > 1e8


@pytest.mark.parametrize("readout", ["probabilities", "decisions"])
def test_readouts_have_their_exact_dimension(readout):
    architecture = Architecture((3, 3, 3), (2, 2), 3, "softmax")
    exact = certify(architecture, readout=readout)
    assert (
        estimate(architecture, readout=readout).rank
        == exact.lower
        == 25 - 3 - (readout == "decisions")
    )


@pytest.mark.parametrize("readout", ["probabilities", "decisions"])
def test_one_output_coordinate_has_no_differences(readout):
    found = estimate(Architecture((2, 1), (2,), 2), readout=readout)
    assert (found.rank, found.gap, found.verdict) == (0, None, "numerical")


@pytest.mark.statement("field-rank")
@pytest.mark.parametrize("architecture", DEEP, ids=str)
def test_the_usual_float_rank_of_deep_networks_is_wrong_and_the_exact_one_is_right(architecture):
    exact = certify(architecture)
    assert exact.verdict == "exact"
    J = numeric_jacobian(nm.network(architecture), named(normal_weights(architecture, 0)))
    assert np.linalg.matrix_rank(J) < exact.lower
    assert estimate(architecture, weights=normal_weights(architecture, 0)).verdict == "undecided"


def test_a_gap_of_a_thousand_would_be_believed_wrongly():
    """Here the spectrum has a gap of a million in the wrong place; the empty band refuses it."""
    architecture = Architecture((2,) * 6, (2,) * 5, 2)
    wrong = 0
    for seed in range(20):
        found = estimate(architecture, seed=seed)
        above = sum(value > found.tolerance for value in found.singular_values)
        wrong += above != 19 and (found.gap is None or found.gap > 1e6)
        assert found.rank in (None, 19)
    assert wrong > 0


def test_unit_rows_bring_back_what_the_scale_of_the_rows_buries():
    architecture = Architecture((4,) * 5, (2,) * 4, 2)
    J = numeric_jacobian(nm.network(architecture), named(normal_weights(architecture, 0)))
    scaled = np.linalg.svd(unit_rows(J), compute_uv=False)
    assert np.sum(scaled > 1e-12 * scaled[0]) == certify(architecture).lower
    np.testing.assert_allclose(np.linalg.norm(unit_rows(J), axis=1), 1.0)


def test_the_local_dimension_at_given_weights_is_smaller_at_a_singular_point():
    architecture = Architecture((3, 3), (2,), 3)
    weights = random_weights(architecture, 0)
    layer = {name: tensor.copy() for name, tensor in weights.layers[0].tensors().items()}
    layer["query"][0, 1] = layer["key"][0, 1] = 0.0  # now A has rank 1
    special = Weights.from_tensors(architecture, [layer])
    at_special = estimate(architecture, weights=special)
    assert at_special.at_given_weights
    assert at_special.rank == certify(architecture, weights=special).lower
    assert at_special.rank < estimate(architecture).rank


@pytest.mark.parametrize("seed", range(3))
def test_float32_sees_less_and_does_not_pretend(seed):
    architecture = Architecture((3, 3, 3), (2, 2), 3)
    weights = random_weights(architecture, seed)
    single = numeric_jacobian(
        nm.network(architecture), named(weights), inputs=250, dtype=np.float32
    )
    assert single.dtype == np.float32
    assert np.linalg.matrix_rank(single) < certify(architecture).lower
    found = estimate(architecture, weights=weights, inputs=250, dtype=np.float32)
    assert (found.rank, found.verdict, found.dtype) == (None, "undecided", "float32")


def test_too_few_inputs_show_a_smaller_rank_and_decide_nothing():
    architecture = Architecture((3, 3), (2,), 2)
    few = estimate(architecture, inputs=1)
    assert sum(s > few.tolerance for s in few.singular_values) < estimate(architecture).rank
    assert few.verdict == "undecided"
    assert estimate(architecture, inputs=12).rank == estimate(architecture).rank


def test_a_cell_that_few_inputs_meet_leaves_an_estimate_undecided():
    """All seven weights are seen, six of them at one input in twenty."""

    def f(w, x):
        return w[0] * x[0] ** 2 + jnp.where(jnp.abs(x[1]) < 0.2, w[1:] @ x, 0.0)

    net = nm.network(f, np.zeros(7), np.zeros(6))
    assert {estimate(net, seed=seed).rank for seed in range(5)} <= {None, 7}
    assert estimate(nm.network(f, np.zeros(7), np.zeros(6)), inputs=2000).rank == 7


def test_an_estimate_is_one_sentence_and_the_json_of_dim():
    found = estimate(Architecture((4, 2, 3), (2, 2), 3), seed=5)
    assert str(found).startswith("lightning 4-2-3 ranks 2,2 tokens 3: the dimension is 24 (numer")
    assert "float64, 32 inputs, seed 5" in str(found)
    assert found.to_dict() == {"rank": 24, "gap": found.gap, "verdict": "numerical"}
    assert found == estimate(Architecture((4, 2, 3), (2, 2), 3), seed=5)
    undecided = estimate(Architecture((4,) * 5, (2,) * 4, 2))
    assert "undecided" in str(undecided)
    assert undecided.to_dict()["rank"] is None


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"inputs": 0}, "inputs must be at least 1; got 0"),
        ({"dtype": np.float16}, "dtype must be float32 or float64; got float16"),
        ({"inputs": 10**7}, "too large for an estimate; give fewer inputs"),
        ({"weights": random_weights(Architecture((3, 2), (2,), 3), 0)}, "were wanted; got those"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, text):
    with pytest.raises(ArgumentError, match=text):
        estimate(Architecture((3, 3), (2,), 2), **arguments)


def test_numbers_beyond_the_range_are_refused_or_scaled():
    architecture = Architecture((4,) * 8, (2,) * 7, 3)
    large = unflatten(architecture, 1e10 * random_weights(architecture, 0).flatten())
    with pytest.raises(ArgumentError, match="leaves the range of float64"):
        numeric_jacobian(nm.network(architecture), named(large))
    assert estimate(architecture).verdict == "undecided"


def test_rows_that_underflow_are_scaled_or_make_the_answer_undecided():
    thin = Architecture((1,) * 8, (1,) * 7, 3)
    assert estimate(thin).rank == certify(thin).lower == 1
    causal = Architecture((3, 2, 3, 1, 2, 1, 3, 2), (2,) * 7, 3, mask="causal")
    found = estimate(causal)
    assert (found.rank, found.verdict) == (None, "undecided")
    assert "rows of the Jacobian are zero or lost" in str(found)


def test_saturated_softmax_is_undecided_where_scaling_cannot_help():
    architecture = Architecture((2, 2), (2,), 2, "softmax")
    large = unflatten(architecture, 1e4 * random_weights(architecture, 0).flatten())
    assert estimate(architecture, weights=large).rank == certify(architecture).lower == 8
    deep = Architecture((3, 3, 3), (2, 2), 3, "softmax")
    layers = [dict(layer.tensors()) for layer in random_weights(deep, 0).layers]
    layers[1]["key"] = 1e6 * layers[1]["key"]
    found = estimate(deep, weights=Weights.from_tensors(deep, layers))
    assert (found.rank, found.verdict) == (None, "undecided")
    assert "saturated" in str(found)


def of_numbers(f, count):
    return nm.network(f, {name: np.zeros(()) for name in "abcd"[:count]}, np.zeros(()))


@jax.custom_jvp
def doubled(x):
    return x


doubled.defjvp(lambda at, moved: (at[0], 2 * moved[0] + at[0] ** 2 * moved[0]))


def clipped(w, x):
    return w["second"] @ jnp.clip(w["first"] @ x, -6, 6)


CLIPPED = {"first": np.zeros((3, 4)), "second": np.zeros((2, 3))}


@pytest.mark.parametrize(
    "network",
    [
        of_numbers(lambda w, x: w["c"] * jax.nn.relu6(w["a"] * x + w["b"]) + w["d"], 4),
        of_numbers(lambda w, x: w["a"] * x + w["b"] * jnp.clip(x, -3, 3), 2),
        of_numbers(lambda w, x: w["a"] * x + w["b"] * jax.nn.relu(x - 20), 2),
        nm.network(clipped, CLIPPED, np.zeros(4)),
    ],
)
def test_a_piecewise_function_is_seen_in_the_cells_of_its_certificate(network):
    """Inputs of size one met one cell: 3, 1, 1 and 8 were numerical."""
    found = estimate(network)
    assert (found.rank, found.verdict) == (network.parameters, "numerical")
    assert certify(network).lower == found.rank


def cancelling(w, x):
    return (jnp.sin(w["b"] * x) ** 2 + jnp.cos(w["b"] * x) ** 2) * x


def half(w, x):
    return (w["a"] * w["b"]).astype(jnp.float16) * x + w["a"] * w["b"] * x**2


@pytest.mark.parametrize(
    ("f", "dimension", "why"),
    [
        (lambda w, x: w["a"] * x + 1e-20 * w["b"] * x**2, 2, "but no rounding"),
        (lambda w, x: jnp.stack([w["a"] * x, cancelling(w, x)]), 1, "of 20"),
        (lambda w, x: w["a"] * x + w["b"] * x - jax.lax.stop_gradient(w["b"] * x), 1, "not move"),
        (lambda w, x: w["a"] * x + doubled(w["a"] * x) + 0 * w["b"], 1, "does not move"),
        (half, 1, "does not move"),
    ],
)
def test_rows_that_are_no_derivatives_and_columns_below_rounding_are_undecided(f, dimension, why):
    """They were numerical, most with another rank."""
    network = of_numbers(f, 2)
    found = estimate(network)
    assert (found.rank, found.verdict) == (None, "undecided")
    assert why in str(found)
    assert certify(network).rank == dimension


def test_a_few_rows_that_say_nothing_do_not_make_the_rest_undecided():
    def f(w, x):
        return jnp.stack([w["a"] * x, w["b"] * x**2, w["a"] * x + 1e9])

    assert estimate(of_numbers(f, 2)).rank == 2
    assert estimate(of_numbers(lambda w, x: jax.nn.relu(w["a"] * x), 1)).rank == 1


@pytest.mark.usefixtures("wrong_types")
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"seed": -1}, "seed must be a whole number"),
        ({"inputs": "3"}, "inputs must be at least 1"),
        ({"dtype": "float99"}, "dtype must be float32 or float64; got float99"),
    ],
)
def test_what_is_no_number_is_refused(arguments, text):
    with pytest.raises(ArgumentError, match=text):
        estimate(Architecture((3, 3), (2,), 2), **arguments)
