"""The ledger: every parameter is accounted for, and what no symmetry explains is shown."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest

import neuromanifold as nm
from neuromanifold.architecture import Architecture
from neuromanifold.certificates.exact import certify
from neuromanifold.certificates.kernel import hidden_kernel
from neuromanifold.certificates.ledger import UNEXPLAINED, UNSHOWN, explain
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.weights import random_weights, unflatten

TWO_HEADS = Architecture((3, 3), (3,), 3, heads=2)
WIDE = Architecture((2, 4, 2), (2, 2), 3)
UNSEEN = "not seen by the virtual weights"


def dimensions(ledger):
    return {line.name: line.dimension for line in ledger.lines}


@pytest.mark.statement("redundancy")
def test_lines_add_up_to_the_parameters(architecture):
    check_sum(explain(architecture))


@pytest.mark.statement("readouts")
@pytest.mark.parametrize("readout", ["probabilities", "decisions"])
@pytest.mark.parametrize(
    "network",
    [
        Architecture((1, 1), (1,), 1),
        Architecture((2, 3, 1), (2, 2), 2, "softmax"),
        Architecture((3, 3, 3), (1, 2), 3),
        Architecture((2, 2), (2,), 2, heads=2, skip="residual"),
        WIDE,
    ],
    ids=str,
)
def test_lines_add_up_for_every_readout(network, readout):
    check_sum(explain(network, readout=readout))


def check_sum(ledger):
    architecture = ledger.certificate.architecture
    assert sum(line.dimension for line in ledger.lines) == architecture.parameters
    assert all(line.dimension >= 0 for line in ledger.lines)
    assert ledger.lines[0].dimension == ledger.certificate.lower
    shown = 0 if ledger.kernel is None else len(ledger.kernel.directions)
    assert shown == ledger.hidden


@pytest.mark.statement("head-mixing")
@pytest.mark.parametrize(
    ("architecture", "dimension", "mixing"),
    [
        (TWO_HEADS, 32, 2),
        (Architecture((4, 4), (4,), 3, heads=3), 87, 6),
        (Architecture((4, 4), (3,), 3, heads=3), 87, 3),
    ],
    ids=str,
)
def test_several_heads_show_up_as_head_mixing(architecture, dimension, mixing):
    ledger = explain(architecture)
    found = dimensions(ledger)
    assert (found["dimension"], found["head mixing"], found[UNEXPLAINED]) == (dimension, mixing, 0)
    assert ledger.certificate.verdict == "exact"
    assert ledger.kernel is None


def without(network, line):
    """The network without one line of its ledger, and without the bounds of theory."""
    tensors = []
    known = {}
    for tensor in network.tensors:
        axes = []
        for axis in tensor.axes:
            space = axis.space
            group = None if space.family == line else space.group
            over = tuple(known[base] for base in space.over)
            known.setdefault(space, replace(space, group=group, over=over))
            axes.append(replace(axis, space=known[space]))
        tensors.append(nm.Tensor(tensor.name, tuple(axes)))
    families = tuple(family for family in network.families if family.name != line)
    return replace(network, tensors=tuple(tensors), families=families, bound=None)


@pytest.mark.statement("head-mixing")
def test_a_symmetry_that_nobody_told_of_shows_up_as_unexplained():
    ledger = explain(without(nm.network(TWO_HEADS), "head mixing"))
    assert "head mixing" not in dimensions(ledger)
    assert ledger.unexplained == 2
    assert ledger.kernel is not None
    assert ledger.kernel.error < 1e-10
    assert len(ledger.kernel.directions) == 2
    for direction in ledger.kernel.directions:
        assert set(direction) == {"layers.0.query", "layers.0.key", "layers.0.value"}
        assert all(length > 0.05 for length in direction.values())
        assert sum(length**2 for length in direction.values()) == pytest.approx(1)


def test_a_hidden_symmetry_of_one_layer_leaves_the_others_alone():
    """Without key-query symmetry in the list, its directions sort themselves by layer."""
    architecture = Architecture((3, 3, 3), (1, 1), 3, skip="residual", attention="softmax")
    ledger = explain(without(nm.network(architecture), "key-query"))
    assert ledger.unexplained == 2
    first, second = ledger.kernel.directions
    assert max(length for name, length in first.items() if name.startswith("layers.1")) < 1e-6
    assert max(length for name, length in second.items() if name.startswith("layers.0")) < 1e-6
    assert first["layers.0.value"] < 1e-6


@pytest.mark.statement("virtual-bound")
def test_wide_layers_have_directions_that_the_virtual_weights_do_not_see():
    ledger = explain(WIDE)
    assert dimensions(ledger) == {
        "dimension": 10,
        "key-query": 8,
        "inter-layer": 16,
        "scaling": 2,
        UNSEEN: 4,
        UNSHOWN: 0,
        UNEXPLAINED: 0,
    }
    assert ledger.certificate.verdict == "exact"
    assert len(ledger.kernel.directions) == 4


@pytest.mark.statement("virtual-bound")
def test_a_layer_of_rank_one_hides_part_of_the_virtual_weights():
    found = dimensions(explain(Architecture((3, 3, 3), (1, 2), 3)))
    assert (found["dimension"], found[UNSEEN], found[UNSHOWN]) == (18, 0, 2)


def test_every_line_has_its_statement():
    ledger = explain(Architecture((3, 4, 3), (2, 2), 3, value_ranks=(3, 3)), readout="decisions")
    statements = {line.name: line.statement for line in ledger.lines}
    assert statements == {
        "dimension": "field-rank",
        "key-query": "lemma-3.1",
        "value-output": "lemma-3.1",
        "inter-layer": "eq-9",
        "scaling": "eq-13",
        "output shift": "readouts",
        "output scaling": "readouts",
        UNSEEN: "virtual-bound",
        UNSHOWN: "virtual-bound",
        UNEXPLAINED: None,
    }


def test_at_given_weights_the_drop_of_the_rank_is_unexplained():
    weights = random_weights(WIDE, 0)
    zero = unflatten(WIDE, 0 * weights.flatten())
    ledger = explain(WIDE, weights=zero)
    assert dimensions(ledger)["dimension"] == 0
    assert sum(line.dimension for line in ledger.lines) == WIDE.parameters
    assert len(ledger.kernel.directions) == WIDE.parameters


def test_a_large_network_says_why_it_shows_no_directions():
    ledger = explain(Architecture((8, 16, 8), (8, 8), 2))
    assert ledger.hidden > 0
    assert ledger.kernel is None
    assert "at most 600 parameters; this network has 640" in ledger.remark
    with pytest.raises(ArgumentError, match="at most 600 parameters"):
        hidden_kernel(ledger.certificate, nm.network(ledger.certificate.architecture))


def test_a_ledger_is_one_sentence_and_json():
    ledger = explain(TWO_HEADS, seed=3)
    assert str(ledger) == (
        "lightning 3-3 ranks 3 tokens 3 heads 2: 54 parameters = 32 dimension + 18 key-query + "
        "2 scaling + 2 head mixing + 0 unexplained (exact; prime 8388593, seed 3)."
    )
    data = json.loads(json.dumps(ledger.to_dict()))
    assert data["parameters"] == sum(line["dimension"] for line in data["lines"]) == 54
    assert data["certificate"] == json.loads(json.dumps(certify(TWO_HEADS, seed=3).summary()))


def test_a_piecewise_function_has_a_ledger_of_its_cell():
    # w₁ relu(w₀ x) entry by entry: two products of weights, two scalings that no one has given.
    f = lambda w, x: w[1] * jax.nn.relu(w[0] * x)  # noqa: E731
    two = np.zeros(2)
    ledger = nm.explain(nm.network(f, (two, two), two))
    assert (ledger.parameters, ledger.unexplained) == (4, 2)
    assert str(ledger).startswith("<lambda>: 4 parameters = 2 dimension + 2 unexplained (probable")


def test_directions_of_a_piecewise_network_are_not_those_of_its_cells():
    """The inputs of the certificate and those of the float Jacobian lie in different cells."""
    ledger = explain(
        nm.network(lambda w, x: w[0] * jax.nn.relu(w[1] * x), np.zeros(2), np.zeros(1))
    )
    assert (ledger.hidden, ledger.kernel) == (1, None)
    assert "piecewise" in ledger.remark
