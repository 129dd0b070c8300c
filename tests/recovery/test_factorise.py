"""(M, L) → weights: the same virtual weights, in the widths and ranks asked for."""

from fractions import Fraction

import numpy as np
import pytest

from neuromanifold.algebra.exact_field import ExactField
from neuromanifold.architecture import Architecture
from neuromanifold.networks.virtual import virtual_weights
from neuromanifold.networks.weights import random_weights
from neuromanifold.recovery.factorise import ExactVirtual, factorise, factorise_exact
from neuromanifold.recovery.fit import Point
from neuromanifold.recovery.result import Refusal

ARCHITECTURES = [
    Architecture((4, 2, 3), (2, 1), 3),
    Architecture((3, 5, 2), (2, 4), 3),
    Architecture((5, 3, 2, 4), (1, 3, 2), 3),
    Architecture((2, 4, 3, 6, 1), (2, 1, 3, 2), 3),
    Architecture((5, 4, 1), (2, 1), 3),
    Architecture((3, 2), (5,), 2),
]


def factorise_virtual(virtual):
    point = Point.virtual(virtual.forms, virtual.linear, virtual.architecture)
    return factorise(point, (0.0,) * (len(virtual.forms) + 1))


@pytest.mark.statement("eq-8")
@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_weights_of_the_asked_sizes_have_the_virtual_weights(architecture):
    wanted = virtual_weights(random_weights(architecture, 0))
    weights = factorise_virtual(wanted)
    assert weights.architecture == architecture
    found = virtual_weights(weights)
    for M, M_wanted in zip(
        (*found.forms, found.linear), (*wanted.forms, wanted.linear), strict=True
    ):
        np.testing.assert_allclose(M, M_wanted, rtol=0, atol=1e-13 * np.linalg.norm(M_wanted))


def test_queries_and_keys_are_balanced():
    weights = factorise_virtual(
        virtual_weights(random_weights(Architecture((4, 4, 4), (2, 3), 3), 0))
    )
    for layer in weights.layers:
        Q, K = layer.query[0], layer.key[0]
        np.testing.assert_allclose(Q @ Q.T, K @ K.T, atol=1e-12)


def exact_virtual(architecture, field, seed):
    """Exact virtual weights of whole-number weights, multiplied out layer by layer."""
    generator = np.random.default_rng(seed)
    L = field.read(np.eye(architecture.widths[0], dtype=int))
    forms = []
    for layer in architecture.shapes:
        Q, K, V = (
            field.read(generator.integers(-5, 6, layer[name][1:]).astype(object))
            for name in ("query", "key", "value")
        )
        forms.append(field.product(L.T, K.T, Q, L))
        L = field.product(V, L)
    return ExactVirtual(tuple(forms), L, field)


@pytest.mark.statement("eq-8")
@pytest.mark.parametrize("prime", [None, 8388593], ids=["Q", "GF(p)"])
@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_exact_weights_of_the_asked_sizes_have_the_virtual_weights(architecture, prime):
    field = ExactField(prime)
    wanted = exact_virtual(architecture, field, 1)
    L = field.read(np.eye(architecture.widths[0], dtype=int))
    for layer, form in zip(factorise_exact(wanted, architecture).layers, wanted.forms, strict=True):
        Q, K, V = layer.query[0], layer.key[0], layer.value[0]
        assert np.array_equal(field.product(L.T, K.T, Q, L), form)
        L = field.product(V, L)
    assert np.array_equal(L, wanted.linear)


def test_too_small_sizes_are_refused_with_what_is_needed():
    field = ExactField()
    virtual = exact_virtual(Architecture((4, 3, 3), (3, 2), 3), field, 0)
    with pytest.raises(Refusal, match="needs width 3 or more after layer 1; 2 was asked for"):
        factorise_exact(virtual, Architecture((4, 2, 3), (3, 2), 3))
    with pytest.raises(Refusal, match="the form of layer 2 has rank 2; rank 1 was asked for"):
        factorise_exact(virtual, Architecture((4, 3, 3), (3, 1), 3))


def test_exact_numbers_stay_exact():
    field = ExactField()
    weights = factorise_exact(exact_virtual(ARCHITECTURES[0], field, 0), ARCHITECTURES[0])
    for _, tensor in weights.named_tensors():
        assert all(type(entry) is Fraction for entry in tensor.ravel())
