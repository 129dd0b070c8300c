"""The gauge group is proved to be all there is, for a small block of every family."""

import json
from dataclasses import replace
from math import atan2

import jax
import numpy as np
import pytest
from models import CONFIGS, block_of, make_model, save_model, tensors_of

import neuromanifold as nm
from neuromanifold.algebra.linear import FloatingPoint
from neuromanifold.checkpoints.audits.proof import certify_block, small_block
from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.block.diagram import block_network
from neuromanifold.checkpoints.block.parts import Attention, Rotary
from neuromanifold.checkpoints.gauge.group import redundancy, unmet
from neuromanifold.cli import main
from neuromanifold.symmetry.families import families_of

QUICK = ("roberta",)


def tiny(**fields):
    """One head that reads the tables and writes what is seen: no norms, no MLP."""
    attention = Attention(heads=1, groups=1, key_size=2, value_size=1, **fields)
    return Block(width=2, layers=1, attention=attention, tables=(("tokens", 3),))


def test_exactly_the_gauge_group_is_redundant_in_a_tiny_block():
    block = tiny(value_bias=True, output_bias=True)
    certificate = nm.certify(block_network(block))
    assert (certificate.verdict, certificate.unexplained) == ("exact", 0)
    found = {s.name: s.dimension for s in certificate.symmetries}
    assert found == redundancy(block) == {"query–key": 4, "value–output": 1, "value bias": 1}


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_exactly_the_gauge_group_is_redundant_in_a_small_block(name):
    """Of a model with tokens enough for a first MLP that reads nothing else."""
    proof = certify_block(block_of(CONFIGS[name] | {"vocab_size": 300}))
    assert proof.is_exact, proof
    assert proof.certificate.unexplained == 0
    found = {s.name: s.dimension for s in proof.certificate.symmetries if s.dimension}
    assert found == redundancy(proof.block)


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CONFIGS],
)
def test_discovery_finds_the_gauge_group_by_itself(name):
    block = small_block(block_of(CONFIGS[name]))
    found, parts = nm.discover(block_network(block)), redundancy(block)
    assert found.kernel == sum(parts.values())
    assert found.unexplained == 0
    assert sum(b.dimension for b in found.blocks) == found.explained
    shears = [b.dimension for b in found.blocks if b.name.startswith("shears")]
    assert shears == [parts[part] for part in ("shear",) if part in parts]


@pytest.mark.slow
def test_norms_of_queries_and_keys_of_several_groups_are_certified():
    """Fourteen square roots of the two tokens of an input, with nothing between them."""
    small = small_block(block_of(CONFIGS["qwen3"]))
    assert (small.attention.heads, small.attention.groups) == (2, 1)
    block = replace(small, attention=replace(small.attention, heads=4, groups=2))
    found = nm.certify(block_network(block))
    assert (found.verdict, found.unexplained) == ("exact", 0)
    assert found.upper == block.parameters - sum(redundancy(block).values()) == 104


@pytest.mark.parametrize("name", CONFIGS)
def test_a_small_block_has_the_parts_of_the_large_one(name):
    block = block_of(CONFIGS[name])
    small = small_block(block)
    assert unmet(small) == ()
    assert small.parameters < 200
    # Rows of a table that nothing reads are redundant without a proof, and are left out.
    assert set(redundancy(small)) == set(redundancy(block)) - {"unused positions", "padding"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "llama", "albert", "gemma2", "t5-gated"])
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


def test_a_formula_that_is_too_large_is_caught():
    """Rotary positions do not allow every change of basis of the keys."""
    turning = Rotary(size=2, layout="half", frequencies=(atan2(4, 3),))
    net = replace(block_network(tiny()), apply=block_network(tiny(rotary=turning)).apply)
    with pytest.raises(RuntimeError, match="query–key"):
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
