"""Every family: bits kept in a round trip, every tensor accounted for or refused by name."""

import json
import os
import re

import ml_dtypes
import numpy as np
import pytest
from models import CONFIGS, make_model, save_model, tensors_of

from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.checkpoint import open_checkpoint
from neuromanifold.checkpoints.reading import open_model
from neuromanifold.cli import main
from neuromanifold.errors import FileFormatError, NeuromanifoldError


@pytest.mark.parametrize("name", CONFIGS)
def test_a_round_trip_through_the_block_keeps_every_bit(tmp_path, name):
    dtype = ml_dtypes.bfloat16 if name in ("llama", "gpt2") else np.float32
    folder = make_model(tmp_path / "model", name, dtype=dtype)
    checkpoint = open_checkpoint(folder)
    out = tmp_path / "again.safetensors"
    checkpoint.write(out, checkpoint.stored)
    before, after = open_model(folder), open_model(out)
    assert set(before.names) == set(after.names)
    for file in before.names:
        assert before.dtype(file) == after.dtype(file)
        assert before.tensor(file).tobytes() == after.tensor(file).tobytes()


@pytest.mark.parametrize("name", CONFIGS)
def test_a_block_is_json_and_back(tmp_path, name):
    block = open_checkpoint(make_model(tmp_path, name)).block
    assert Block.from_dict(json.loads(json.dumps(block.to_dict()))) == block


def test_fused_transposed_and_interleaved_layouts_are_where_they_should_be(tmp_path):
    """Independent index arithmetic for the three layouts that people get wrong."""
    d, H, k = 24, 4, 6
    gpt2 = tensors_of(CONFIGS["gpt2"])
    found = open_checkpoint(save_model(tmp_path / "gpt2", CONFIGS["gpt2"], gpt2))
    fused = gpt2["transformer.h.1.attn.c_attn.weight"]  # (in, out), out = query | key | value
    assert np.array_equal(found.stored("layers.1.key")[2], fused[:, d + 2 * k : d + 3 * k].T)
    output = gpt2["transformer.h.1.attn.c_proj.weight"]
    assert np.array_equal(found.stored("layers.1.output")[3, 0], output[3 * k : 4 * k].T)
    neox = tensors_of(CONFIGS["neox"])
    found = open_checkpoint(save_model(tmp_path / "neox", CONFIGS["neox"], neox))
    rows = neox["gpt_neox.layers.0.attention.query_key_value.weight"].reshape(H, 3, k, d)
    assert np.array_equal(found.stored("layers.0.value")[1], rows[1, 2])
    llama = tensors_of(CONFIGS["llama"])
    found = open_checkpoint(save_model(tmp_path / "llama", CONFIGS["llama"], llama))
    query = llama["model.layers.0.self_attn.q_proj.weight"]
    assert np.array_equal(found.stored("layers.0.query")[1, 0], query[2 * k : 3 * k])


def test_buffers_pooler_prefix_and_old_names_are_known(tmp_path):
    config, tensors = CONFIGS["bert"], tensors_of(CONFIGS["bert"])
    bare = {name.removeprefix("bert."): value for name, value in tensors.items()}
    bare = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): v
        for name, v in bare.items()
    }
    bare["embeddings.position_ids"] = np.arange(16)
    bare["pooler.dense.weight"] = np.ones((24, 24), np.float32)
    found = open_checkpoint(save_model(tmp_path, config, bare))
    assert found.found.outside == ("pooler.dense.weight",)
    assert found.found.buffers == ("embeddings.position_ids",)
    assert found.block.parameters == sum(v.size for v in tensors.values())


def _broken(tmp_path, change=None, config=None, name="llama"):
    tensors = tensors_of(CONFIGS[name])
    if change is not None:
        change(tensors)
    return save_model(tmp_path / "broken", CONFIGS[name] if config is None else config, tensors)


@pytest.mark.parametrize(
    ("change", "config", "sentence"),
    [
        (lambda t: t.pop("model.norm.weight"), None, "has no tensor model.norm.weight"),
        (lambda t: t.update(strange=np.ones(3)), None, "strange .* is no tensor of a model"),
        (
            lambda t: t.update({"model.norm.weight": np.ones(23, np.float32)}),
            None,
            r"model.norm.weight has shape \(23,\), and the configuration asks for \(24,\)",
        ),
        (None, {**CONFIGS["llama"], "num_key_value_heads": 3}, "4 query heads cannot share 3"),
        (None, {**CONFIGS["llama"], "num_attention_heads": None}, "no 'num_attention_heads'"),
        (None, {**CONFIGS["llama"], "model_type": "mamba"}, "models of type 'mamba' are not known"),
        (None, {**CONFIGS["llama"], "model_type": None}, "names its model_type"),
        (None, {**CONFIGS["llama"], "tie_word_embeddings": True}, "their values differ"),
        (None, {**CONFIGS["llama"], "hidden_act": "prelu"}, "activation 'prelu' is not covered"),
        (None, {**CONFIGS["llama"], "hidden_size": "24"}, "hidden_size must be a whole number"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(tmp_path, change, config, sentence, capsys):
    folder = _broken(tmp_path, change, config)
    with pytest.raises(NeuromanifoldError, match=sentence):
        open_checkpoint(folder)
    assert main(["checkpoint", "audit", str(folder)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


_LLAMA3 = {"rope_type": "llama3", "factor": 8, "original_max_position_embeddings": 64}


@pytest.mark.parametrize(
    ("name", "key", "value", "sentence"),
    [
        ("llama", "rope_theta", 0, "rope_theta must be a number from 1e-30"),
        ("llama", "rope_theta", -1.0, "rope_theta must be a number from 1e-30"),
        ("llama", "rope_theta", float("nan"), "rope_theta must be a number from 1e-30"),
        ("llama", "rope_scaling", {"rope_type": "linear", "factor": 0}, "factor must be a number"),
        (
            "llama",
            "rope_scaling",
            {**_LLAMA3, "low_freq_factor": 4, "high_freq_factor": 1},
            "low_freq_factor must be below",
        ),
        (
            "llama",
            "rope_parameters",
            {"rope_type": "yarn", "factor": 4, "rope_theta": 1},
            "rope_theta above 1",
        ),
        ("llama", "head_dim", 10**30, "head_dim must be a whole number from 1 to"),
        ("llama", "head_dim", 2**31, "rotary positions on 2147483648 coordinates"),
        ("llama", "partial_rotary_factor", float("inf"), "partial_rotary_factor must be a number"),
        ("llama", "partial_rotary_factor", 1e20, "rotary positions on"),
        ("llama", "num_hidden_layers", 10**9, "num_hidden_layers must be .* to 10000"),
        ("gpt2", "n_layer", 10**9, "n_layer must be .* to 10000"),
        ("t5", "num_layers", 10**9, "num_layers must be .* to 10000"),
        ("gpt2", "n_head", 0, "n_head must be a whole number from 1"),
        ("gpt2", "n_head", 10**6, "key_size must be a positive whole number; got 0"),
        ("gemma2", "query_pre_attn_scalar", -1, "query_pre_attn_scalar must be a number"),
        ("roberta", "pad_token_id", -3, "pad_token_id must be a whole number from 0"),
    ],
)
def test_numbers_that_no_model_has_are_refused_before_anything_is_made_of_them(
    tmp_path, name, key, value, sentence, capsys
):
    config = {**CONFIGS[name], key: value}
    folder = save_model(tmp_path / "broken", config, tensors_of(CONFIGS[name]))
    with pytest.raises(NeuromanifoldError, match=sentence):
        open_checkpoint(folder)
    assert main(["checkpoint", "audit", str(folder)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_what_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "model.safetensors")
    with pytest.raises(NeuromanifoldError, match="is no file"):
        open_checkpoint(tmp_path / "model.safetensors")


def test_entries_that_are_not_finite_are_refused_when_they_are_read(tmp_path, capsys):
    def spoil(tensors):
        tensors["model.layers.1.mlp.up_proj.weight"][0, 0] = np.nan

    checkpoint = open_checkpoint(_broken(tmp_path, spoil))
    checkpoint.layer(0)
    with pytest.raises(FileFormatError, match=r"up_proj\.weight has entries that are NaN"):
        checkpoint.layer(1)
    assert main(["checkpoint", "audit", str(checkpoint.path)]) == 2
    assert "up_proj.weight has entries that are NaN" in capsys.readouterr().err


def test_a_stored_copy_of_a_tied_head_is_a_copy_and_stays_one(tmp_path):
    tensors = tensors_of(CONFIGS["llama-tied"])
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
    checkpoint = open_checkpoint(save_model(tmp_path / "m", CONFIGS["llama-tied"], tensors))
    assert checkpoint.block.head.kind == "tied"
    out = tmp_path / "doubled.safetensors"
    checkpoint.write(out, lambda name: 2 * checkpoint.stored(name))
    written = open_model(out)
    doubled = 2 * tensors["lm_head.weight"]
    assert np.array_equal(written.tensor("lm_head.weight"), doubled)
    assert np.array_equal(written.tensor("model.embed_tokens.weight"), doubled)


def test_heads_come_from_the_configuration_or_the_caller_never_from_a_guess(tmp_path):
    config = {**CONFIGS["bert"], "num_attention_heads": None}
    folder = save_model(tmp_path, config, tensors_of(CONFIGS["bert"]))
    with pytest.raises(FileFormatError, match="no 'num_attention_heads'"):
        open_checkpoint(folder)
    assert open_checkpoint(folder, heads=4).block.attention.key_size == 6


def test_a_described_family_reads_what_no_family_knows(tmp_path):
    """The layout of `torch.nn.MultiheadAttention`, whose files say nothing about heads."""
    tensors = tensors_of(CONFIGS["gpt2"])
    checkpoint = open_checkpoint(save_model(tmp_path / "gpt2", CONFIGS["gpt2"], tensors))
    block = checkpoint.block
    names = {"up": "linear1", "down": "linear2", "output": "self_attn.out_proj"}
    plain = [n for n in block.layer_shapes if not n.startswith(("query", "key", "value"))]
    entries = [
        {
            "file": f"layers.{{L}}.self_attn.in_proj_{kind}",
            "holds": [f"layers.{{L}}.{n}{end}" for n in ("query", "key", "value")],
        }
        for kind, end in (("weight", ""), ("bias", "_bias"))
    ]
    entries += [
        {"file": f"layers.{{L}}.{names.get(n, n)}", "holds": [f"layers.{{L}}.{n}"]} for n in plain
    ]
    entries += [{"file": name, "holds": [name]} for name in block.global_shapes]
    description = tmp_path / "family.json"
    description.write_text(json.dumps({"block": block.to_dict(), "tensors": entries}))
    stored = {name: checkpoint.stored(name) for name in block.global_shapes}
    for layer in range(block.layers):
        at = f"layers.{layer}."
        fused = [checkpoint.stored(f"{at}{n}").reshape(24, 24) for n in ("query", "key", "value")]
        stored[f"{at}self_attn.in_proj_weight"] = np.concatenate(fused)
        biases = [checkpoint.stored(f"{at}{n}_bias").ravel() for n in ("query", "key", "value")]
        stored[f"{at}self_attn.in_proj_bias"] = np.concatenate(biases)
        for n in plain:
            value = checkpoint.stored(at + n)
            if n == "output":
                value = value[:, 0].transpose(1, 0, 2).reshape(24, 24)
            stored[f"{at}{names.get(n, n)}"] = value
    other = save_model(tmp_path / "other", {}, stored)
    found = open_checkpoint(other, family=description)
    for name in block.shapes:
        assert np.array_equal(found.stored(name), checkpoint.stored(name))


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("attention", None, "a record of the fields of Attention was wanted for attention"),
        ("attention.scale", "1", "scale must be of float; got '1'"),
        ("attention.scale", 0, "scale must be a positive number"),
        ("attention.softcap", float("nan"), "softcap must be of float; got nan"),
        ("attention.query_bias", 1, "query_bias must be of bool; got 1"),
        ("attention.query_bias", True, "layers.0.query_bias lies in 0 tensors of the file"),
        ("attention.windows", [0, 1], "window 0 must be a positive whole number"),
        ("attention.rotary.frequencies", [1, "x"], "frequencies must be of float; got 'x'"),
        ("norm.offset", float("inf"), "offset must be of float; got inf"),
        ("layers", 10**9, "at most 10000 layers"),
        ("position_offset", 5, "no position from row 5 on"),
        ("tables", [["tokens"]], "tables must be of"),
        ("tables", 3, "tables must be of"),
        ("head", None, "a record of the fields of Head was wanted"),
        ("embed_width", [1, 2], "embed_width must be of int"),
        ("strange", 1, "Block has no field 'strange'"),
    ],
)
def test_a_description_is_checked_field_by_field(tmp_path, path, value, sentence):
    folder = make_model(tmp_path / "model", "gemma2")
    found = open_checkpoint(folder)
    block = json.loads(json.dumps(found.block.to_dict()))
    entries = [
        {"file": slot.file, "holds": [part.name for part in slot.parts]}
        for slot in found.found.slots
        if not slot.copy
    ]
    description = tmp_path / "family.json"

    def opened(tensors):
        description.write_text(json.dumps({"block": block, "tensors": tensors}))
        return open_checkpoint(folder / "model.safetensors", family=description)

    assert opened(entries).block == found.block
    twice = [e | {"holds": [e["holds"][0].replace("mlp_norm", "attention_norm")]} for e in entries]
    with pytest.raises(FileFormatError, match="attention_norm lies in 2 tensors"):
        opened(twice)
    *outer, last = path.split(".")
    record = block
    for key in outer:
        record = record[key]
    record[last] = value
    with pytest.raises(NeuromanifoldError, match=re.escape(sentence)):
        opened(entries)
