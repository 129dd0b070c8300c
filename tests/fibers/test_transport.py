"""Transport finds the group element between two weights of one orbit."""

import numpy as np
import pytest

from architectures import ARCHITECTURES
from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError, WeightsError
from neuromanifold.fibers.normal_form.factors import match_factors
from neuromanifold.fibers.transport.transport import transport
from neuromanifold.fibers.units import in_units
from neuromanifold.networks.weights import Weights, random_weights
from neuromanifold.symmetry.group_element import PARTS, GroupElement
from neuromanifold.symmetry.groups import random_invertible

WIDE = tuple(
    Architecture(**fields)
    for fields in (
        {"widths": (2, 4, 2), "ranks": (2, 3), "tokens": 3},
        {"widths": (2, 4, 5, 2), "ranks": (2, 2, 2), "tokens": 3},
        {"widths": (2, 6, 2), "ranks": (1, 1), "tokens": 3},
        {"widths": (1, 4, 1), "ranks": (1, 3), "tokens": 3},
        {"widths": (2, 4, 5, 3), "ranks": (2, 3, 1), "tokens": 2, "attention": "softmax"},
        {"widths": (2, 5, 3), "ranks": (2, 2), "tokens": 2, "value_ranks": (3, 2)},
    )
)
BOTTLENECK = Architecture(widths=(4, 3, 3, 5), ranks=(2, 3, 2), tokens=3)


def moved(architecture, seed, condition=1e3):
    weights = random_weights(architecture, seed)
    g = GroupElement.random(architecture, np.random.default_rng(1000 + seed), condition)
    return weights, g, g.act(weights)


def check_residual(architecture, seed):
    weights, _, target = moved(architecture, seed)
    found = transport(weights, target)
    units = in_units(target)  # rows of size one, by powers of two
    errors = [
        np.linalg.norm(np.ldexp(head, shift) - head_new) / np.linalg.norm(head_new)
        for layer, goal, shifts in zip(
            found.element.act(weights).layers, units.weights.layers, units.shifts, strict=True
        )
        for name, T_new in goal.arrays().items()
        for head, head_new, shift in zip(
            layer.arrays()[name], T_new, np.broadcast_to(shifts[name], T_new.shape), strict=True
        )
    ]
    assert max(errors) <= 1e-9
    assert found.found
    assert max(errors) == pytest.approx(found.residual)


@pytest.mark.statement("lemma-3.1")
@pytest.mark.statement("lemma-3.5")
@pytest.mark.statement("eq-13")
@pytest.mark.parametrize("architecture", ARCHITECTURES + WIDE, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_weights_on_one_orbit_are_carried_to_each_other(architecture, seed):
    check_residual(architecture, seed)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES + WIDE, ids=str)
def test_weights_on_one_orbit_are_carried_to_each_other_for_fifty_seeds(architecture):
    for seed in range(50):
        check_residual(architecture, seed)


@pytest.mark.statement("lemma-3.5")
@pytest.mark.statement("lemma-3.1")
@pytest.mark.statement("eq-13")
@pytest.mark.parametrize(
    "architecture",
    [
        BOTTLENECK,
        Architecture(widths=(4, 2, 3), ranks=(2, 2), tokens=3, attention="softmax"),
        Architecture(widths=(6, 4, 5), ranks=(2, 2), tokens=2, heads=3, value_ranks=(2, 2)),
        Architecture(widths=(3, 3, 3), ranks=(2, 3), tokens=2, skip="residual"),
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", range(3))
def test_behind_a_bottleneck_the_group_element_itself_is_found(architecture, seed):
    weights, g, target = moved(architecture, seed, condition=10.0)
    found = transport(weights, target)
    assert found.unique
    for name in PARTS:
        for part, wanted in zip(getattr(found.element, name), getattr(g, name), strict=True):
            assert np.linalg.norm(part - wanted) <= 1e-8 * max(1.0, np.linalg.norm(wanted))


@pytest.mark.statement("lemma-3.1")
@pytest.mark.parametrize("seed", range(5))
def test_factors_of_full_rank_have_exactly_one_carrier(seed):
    generator = np.random.default_rng(seed)
    K, Q = generator.standard_normal((2, 3, 5))
    C = random_invertible(3, generator, 1e3)
    match = match_factors(K, Q, C @ K, np.linalg.solve(C.T, Q))
    assert match.free == 0
    assert np.linalg.norm(match.matrix - C) <= 1e-12 * np.linalg.norm(C)


@pytest.mark.statement("lemma-3.1")
@pytest.mark.parametrize("ranks", [(2, 2), (1, 3), (3, 1), (0, 2), (2, 4)])
def test_factors_of_lower_rank_leave_the_product_of_the_defects_free(ranks):
    generator = np.random.default_rng(0)
    K, Q = (generator.standard_normal((4, r)) @ generator.standard_normal((r, 5)) for r in ranks)
    C = random_invertible(4, generator, 10.0)
    match = match_factors(K, Q, C @ K, np.linalg.solve(C.T, Q))
    assert match.free == (4 - ranks[0]) * (4 - ranks[1])
    np.testing.assert_allclose(match.matrix @ K, C @ K, atol=1e-10)
    np.testing.assert_allclose(match.matrix.T @ np.linalg.solve(C.T, Q), Q, atol=1e-10)
    assert np.linalg.cond(match.matrix) < 1e4


def test_a_wide_layer_whose_interface_is_not_unique_is_reported():
    weights, _, target = moved(WIDE[2], 0, condition=10.0)
    found = transport(weights, target)
    assert found.found
    assert not found.unique
    assert "inter-layer C_1" in str(found)


@pytest.mark.parametrize("architecture", [ARCHITECTURES[0], BOTTLENECK, WIDE[0]], ids=str)
def test_weights_of_different_functions_are_not_carried(architecture):
    found = transport(random_weights(architecture, 0), random_weights(architecture, 1))
    assert not found.found
    assert "No symmetry was found" in str(found)
    assert found.to_dict()["found"] is False


def test_a_small_change_of_the_weights_is_seen_in_the_residual():
    weights, _, target = moved(BOTTLENECK, 0, condition=10.0)
    layers = [dict(layer.tensors()) for layer in target.layers]
    layers[1]["query"] = layers[1]["query"] * np.array([1 + 1e-6, 1, 1])
    found = transport(weights, Weights.from_tensors(BOTTLENECK, layers))
    assert not found.found


def test_float32_weights_are_carried_within_their_precision():
    weights, _, target = moved(BOTTLENECK, 0, condition=10.0)
    low = [
        Weights.from_tensors(
            BOTTLENECK,
            [{n: T.astype(np.float32) for n, T in layer.tensors().items()} for layer in w.layers],
        )
        for w in (weights, target)
    ]
    found = transport(*low)
    assert found.found
    assert 1e-9 < found.residual < 1e-5


def test_weights_of_two_architectures_are_refused():
    with pytest.raises(ArgumentError, match="two weights of one architecture were wanted"):
        transport(random_weights(ARCHITECTURES[0], 0), random_weights(ARCHITECTURES[1], 0))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_entries_that_are_not_finite_are_refused(wrong):
    weights = random_weights(BOTTLENECK, 0)
    weights.layers[1].key[0, 0, 0] = wrong
    with pytest.raises(WeightsError, match=r"layers\.1\.key has entries that are NaN or infinite"):
        transport(weights, random_weights(BOTTLENECK, 0))
