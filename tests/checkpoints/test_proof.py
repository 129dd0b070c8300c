"""The gauge group is proved to be all there is, for a small block of every family."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest
from models import CONFIGS, block_of, make_model, save_model, tensors_of

import neuromanifold as nm
from neuromanifold.algebra.linear import FloatingPoint
from neuromanifold.checkpoints.diagram import block_network, without_symmetries
from neuromanifold.checkpoints.gauge.group import redundancy, unmet
from neuromanifold.checkpoints.proof import certify_block, small_block
from neuromanifold.cli import main
from neuromanifold.symmetry.families import families_of

REFUSED = ("vit",)  # a norm of the class token: a square root of weights beside those of inputs


def tiny(name):
    """The smallest block of a family: one head of size one."""
    block = small_block(block_of(CONFIGS[name]))
    return replace(
        block, attention=replace(block.attention, heads=1, groups=1, key_size=1, value_size=1)
    )


def test_exactly_the_gauge_group_is_redundant_in_a_tiny_block():
    block = tiny("t5-gated")
    certificate = nm.certify(block_network(block))
    assert (certificate.verdict, certificate.unexplained) == ("exact", 0)
    found = {s.name: s.dimension for s in certificate.symmetries}
    assert found == redundancy(block)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_exactly_the_gauge_group_is_redundant_in_a_small_block(name):
    block = block_of(CONFIGS[name])
    proof = certify_block(block)
    if name in REFUSED:
        assert proof.certificate is None
        assert str(proof).startswith("Not proved that nothing else is redundant")
        return
    assert proof.is_exact, proof
    assert proof.certificate.unexplained == 0
    found = {s.name: s.dimension for s in proof.certificate.symmetries if s.dimension}
    assert found == redundancy(proof.block)
    assert set(found) == set(redundancy(block))


@pytest.mark.parametrize("name", CONFIGS)
def test_a_small_block_has_the_parts_of_the_large_one(name):
    block = block_of(CONFIGS[name])
    small = small_block(block)
    assert unmet(small) == ()
    assert small.parameters < 200
    assert set(redundancy(small)) == set(redundancy(block))


@pytest.mark.parametrize(
    "name",
    ["t5-gated", *(pytest.param(n, marks=pytest.mark.slow) for n in ("gpt2", "llama", "albert"))],
)
def test_the_families_of_the_diagram_leave_the_function_alone(name):
    net = block_network(small_block(block_of(CONFIGS[name])))
    weights, generator = net.draw(0), np.random.default_rng(1)
    inputs = {k: generator.normal(size=leaf.shape) for k, leaf in net.sample.items()}
    with jax.enable_x64(True):
        before = np.asarray(net.apply(weights, inputs))
        for family in families_of(net):
            moved = family.act(family.random(generator, 2.0), weights)
            after = np.asarray(net.apply(moved, inputs))
            assert np.allclose(before, after, rtol=0, atol=1e-9 * np.abs(before).max()), family.name
            found = family.generators(weights, FloatingPoint())
            assert sum(block.count for block in found) == family.dimension


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kernel"), [("llama-tied", 14), ("t5-gated", 28)])
def test_discover_finds_the_same_dimension_by_itself(name, kernel):
    net = without_symmetries(block_network(small_block(block_of(CONFIGS[name]))))
    found = nm.discover(net)
    assert (found.kernel, found.explained, found.unexplained) == (kernel, kernel, 0)


def test_a_formula_that_is_too_large_is_caught():
    """The engine refuses a part that is no symmetry: a scaling of a neuron that is not gated."""
    block = tiny("t5")
    wrong = replace(block, mlp=replace(block.mlp, activation="gelu_tanh"))
    net = replace(block_network(block), apply=block_network(wrong).apply)
    with pytest.raises(RuntimeError, match="MLP scale"):
        nm.certify(net)


def test_outside_its_conditions_nothing_is_certified(tmp_path, capsys):
    config = {**CONFIGS["gpt2"], "vocab_size": 20}
    model = save_model(tmp_path, config, tensors_of(config))
    assert main(["checkpoint", "audit", str(model), "--certify", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["known"] == "not covered"
    assert answer["proof"]["verdict"] == "not proved"
    assert "tied head with 20 ≤ d = 24 tokens" in answer["proof"]["sentence"]


@pytest.mark.slow
def test_the_command_certifies(tmp_path, capsys):
    model = make_model(tmp_path, "t5-gated")
    assert main(["checkpoint", "audit", str(model), "--certify"]) == 0
    out = capsys.readouterr().out
    assert "(exact for a small network of this kind)" in out
    assert "exactly 28 are redundant, those of the gauge group" in out
