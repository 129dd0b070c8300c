"""Sensitivity: orders near consensus, what float32 loses, and refusals."""

import jax.numpy as jnp
import numpy as np
import pytest

import neuromanifold as nm
from neuromanifold.architecture import Architecture
from neuromanifold.certificates.sensitivity import sensitivity
from neuromanifold.errors import ArgumentError


@pytest.mark.statement("consensus")
def test_queries_and_keys_are_seen_at_the_predicted_orders():
    found = sensitivity(Architecture((2, 2, 2), (2, 2), 3, "softmax"), spread=0.02)
    orders = {one.tensor: one.order for one in found.tensors}
    assert orders["layers.0.query"] == pytest.approx(2, abs=0.1)
    assert orders["layers.1.key"] == pytest.approx(6, abs=0.3)
    assert orders["layers.0.value"] == pytest.approx(0, abs=0.05)
    assert found.lost == ("layers.1.query", "layers.1.key")
    far = sensitivity(Architecture((2, 2, 2), (2, 2), 3, "softmax"), spread=1.0)
    assert far.lost == ()


@pytest.mark.statement("consensus")
def test_with_the_causal_mask_no_order_is_predicted():
    found = sensitivity(Architecture((2, 2, 2), (1, 1), 2, "softmax", mask="causal"))
    assert {one.predicted for one in found.tensors} == {None}


def test_a_linear_function_is_seen_alike_at_every_spread_and_inputs_must_be_tokens():
    weights = {"W": np.zeros((2, 3))}
    net = nm.network(lambda w, X: jnp.dot(w["W"], X), weights, np.zeros((3, 2)))
    (one,) = sensitivity(net, spread=0.01).tensors
    assert one.order == pytest.approx(0, abs=0.05)
    with pytest.raises(ArgumentError, match="two or more token columns"):
        sensitivity(Architecture((2, 2), (1,), 1, "softmax"))
    tokens = nm.network(lambda w, x: w[x].sum(0), np.zeros((5, 2)), np.full((2, 3), 4))
    with pytest.raises(ArgumentError, match=r"takes \(2, 3\) of whole numbers"):
        sensitivity(tokens)
    with pytest.raises(ArgumentError, match="spread must be above 0"):
        sensitivity(Architecture((2, 2), (1,), 2), spread=0.0)
    with pytest.raises(ArgumentError, match="inputs must be at least 1"):
        sensitivity(Architecture((2, 2), (1,), 2), inputs=0)


@pytest.mark.usefixtures("wrong_types")
def test_what_is_no_number_is_refused():
    with pytest.raises(ArgumentError, match="spread must be above 0 and at most 1; got 'wide'"):
        sensitivity(Architecture((2, 2), (1,), 2), spread="wide")
    with pytest.raises(ArgumentError, match=r"inputs must be at least 1; got 2\.5"):
        sensitivity(Architecture((2, 2), (1,), 2), inputs=2.5)
