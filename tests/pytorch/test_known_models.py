"""Blocks of Hugging Face have the dimension that their gauge group leaves, and it is found."""

import pytest
import torch
import transformers

import neuromanifold as nm

SMALL = {
    "vocab_size": 5,
    "hidden_size": 8,
    "intermediate_size": 6,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 4,
    "use_cache": False,
    "attention_dropout": 0.0,
}


def block(name):
    """A model of one layer, from two embedded tokens to hidden states."""
    config = getattr(transformers, f"{name}Config")(**SMALL)
    model = getattr(transformers, f"{name}Model")(config).eval()
    inputs = {"inputs_embeds": torch.randn(1, 2, 8), "use_cache": False}
    return nm.from_torch(model, inputs, output=lambda result: result.last_hidden_state)


@pytest.mark.parametrize(
    ("name", "parameters", "rank"),
    [("Llama", 360, 318), ("Qwen2", 376, 334), ("Qwen3", 368, 328)],
)
def test_a_block_has_its_rank_and_every_obligation_is_met(name, parameters, rank):
    certificate = nm.certify(block(name))
    assert (certificate.parameters, certificate.lower) == (parameters, rank)
    assert {o.name for o in certificate.obligations} >= {"exponentials", "square roots"}


def test_all_42_symmetries_of_a_llama_block_are_discovered():
    """4 + 16 + 8 + 8 + 6: rotary commutant, values and outputs, two gains, six gated neurons."""
    found = nm.discover(block("Llama"))
    assert (found.kernel, found.explained, found.unexplained) == (42, 42, 0)
    names = [found_block.name for found_block in found.blocks]
    assert "scalings of 6" in names
    assert names.count("scalings of 8") == 2
    assert found.certificate.verdict == "exact given symmetries"
    assert found.certificate.lower == 318
