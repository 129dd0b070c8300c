import json
import struct

import gguf
import numpy as np
import pytest
from gguf.quants import dequantize, quantize
from models import CONFIGS, make_model, save_model, tensors_of

import neuromanifold as nm
from neuromanifold.checkpoints.reading import open_model
from neuromanifold.cli import main
from neuromanifold.errors import FileFormatError

RANDOM = np.random.default_rng(0)
FULL = RANDOM.normal(size=(6, 64)).astype(np.float32)
Q8 = gguf.GGMLQuantizationType.Q8_0


@pytest.fixture
def content(tmp_path):
    """A small file by the reference writer: float32, float16 and quantised tensors."""
    path = tmp_path / "written.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_rope_freq_base(1e5)
    writer.add_token_list([f"token {i}" for i in range(5000)])
    writer.add_array("numbers", [1, 2, 3])
    writer.add_tensor("full", FULL)
    writer.add_tensor("half", FULL.astype(np.float16))
    writer.add_tensor("quantised", quantize(FULL, Q8), raw_dtype=Q8)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


def refusal(tmp_path, content):
    (tmp_path / "model.gguf").write_bytes(content)
    with pytest.raises(FileFormatError) as error:
        open_model(tmp_path / "model.gguf")
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_file_of_the_reference_writer_is_read_as_its_reader_reads_it(tmp_path, content):
    model = open_model(tmp_path / "written.gguf")
    assert model.config["llama.block_count"] == 2
    assert model.config["llama.rope.freq_base"] == 1e5
    assert model.config["numbers"] == [1, 2, 3]
    assert "tokenizer.ggml.tokens" not in model.config
    assert model.notes == ("tensors in Q8_0 are dequantised to float32",)
    np.testing.assert_array_equal(model.tensor("full"), FULL)
    np.testing.assert_array_equal(model.tensor("half"), FULL.astype(np.float16))
    for tensor in gguf.GGUFReader(tmp_path / "written.gguf").tensors:
        expected = dequantize(tensor.data, tensor.tensor_type).reshape(6, 64)
        np.testing.assert_array_equal(model.tensor(tensor.name), expected)
    assert 0 < np.abs(model.tensor("quantised") - FULL).max() < 0.02
    assert model.stored("quantised").encoding == "Q8_0"


def test_cut_files_are_refused(tmp_path, content):
    for length in [*range(4, 400, 7), len(content) // 2, len(content) - 40]:
        refusal(tmp_path, content[:length])


def number(value, size=8):
    return value.to_bytes(size, "little")


def text(word):
    return number(len(word)) + word.encode()


def header(tensors, fields, body):
    return b"GGUF" + number(3, 4) + number(tensors) + number(fields) + body


def test_forged_headers_end_with_a_sentence(tmp_path):
    huge = 1 << 60
    tensor = text("w") + number(2, 4) + number(4) + number(4)
    cases = {
        "version 1": b"GGUF" + number(1, 4) + bytes(16),
        "an endless array": header(0, 1, text("a") + number(9, 4) + number(0, 4) + number(huge)),
        "endless strings": header(0, 1, text("a") + number(9, 4) + number(8, 4) + number(huge)),
        "arrays in arrays": header(0, 1, text("a") + number(9, 4) + number(9, 4) + number(1)),
        "endless fields": header(0, huge, b""),
        "endless tensors": header(huge, 0, b""),
        "a kind": header(0, 1, text("a") + number(77, 4)),
        "a field twice": header(0, 2, 2 * (text("a") + number(0, 4) + b"\1")),
        "a tensor twice": header(2, 0, 2 * (tensor + number(0, 4) + number(0)) + bytes(200)),
        "many axes": header(1, 0, text("w") + number(9, 4)),
        "an encoding": header(1, 0, tensor + number(4, 4) + number(0) + bytes(200)),
        "an offset": header(1, 0, tensor + number(0, 4) + number(huge)),
        "a block": header(1, 0, tensor + number(8, 4) + number(0) + bytes(200)),
        "a shape": header(
            1, 0, text("w") + number(2, 4) + 2 * number(huge) + number(0, 4) + number(0)
        ),
        "alignment": header(0, 1, text("general.alignment") + number(4, 4) + struct.pack("<I", 0)),
    }
    for content in cases.values():
        refusal(tmp_path, content)


def test_random_damage_gives_a_sentence_or_a_model(tmp_path, content):
    random = np.random.default_rng(1)
    refused = 0
    for _ in range(100):
        damaged = bytearray(content)
        for _ in range(3):
            damaged[random.integers(400)] = random.integers(256)
        (tmp_path / "model.gguf").write_bytes(damaged)
        try:
            model = open_model(tmp_path / "model.gguf")
            for name in model.names:
                model.stored(name).read().sum()
        except FileFormatError:
            refused += 1
    assert refused > 30


WORDS = {
    "model.": "",
    "embed_tokens": "token_embd",
    "layers": "blk",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.o_proj": "attn_output",
    **{f"self_attn.{word}_proj": f"attn_{word}" for word in "qkv"},
    **{f"mlp.{word}_proj": f"ffn_{word}" for word in ("gate", "up", "down")},
}


def converted(folder, path):
    """A tied Llama as GGUF by the reference writer, its queries and keys interleaved."""
    config, model = json.loads((folder / "config.json").read_text()), open_model(folder)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_freq_base(config.get("rope_theta", 10000.0))
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_expert_count(0)
    size = config["hidden_size"] // config["num_attention_heads"]
    for name in model.names:
        tensor, new = model.tensor(name), name
        for word, other in WORDS.items():
            new = new.replace(word, other)
        if new.endswith(("attn_q.weight", "attn_k.weight")):
            halves = tensor.reshape(-1, 2, size // 2, tensor.shape[-1])
            tensor = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(tensor.shape)
        writer.add_tensor("output_norm.weight" if new == "norm.weight" else new, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_conversion_to_gguf_is_proved_and_its_folded_norms_are_read_again(tmp_path, capsys):
    source = make_model(tmp_path / "m", "llama-tied")
    path = converted(source, tmp_path / "m.gguf")
    found = nm.checkpoint(source).same(path)
    assert (found.verdict, found.level, found.symmetries) == ("same", "exact", ("rotary layout",))
    assert main(["checkpoint", "fold-norms", str(path), str(tmp_path / "folded")]) == 0
    assert "Note: names and configuration are still GGUF's" in capsys.readouterr().out
    assert nm.checkpoint(path).same(tmp_path / "folded").symmetries == ("norm gains",)


def test_what_a_llama_configuration_says_of_biases_is_read_off_the_tensors(tmp_path):
    """GGUF does not say it; a class that is told there are none would drop those of the file."""
    config = CONFIGS["llama-tied"]
    tensors = tensors_of(config)
    said = {"attention_bias": False, "mlp_bias": False, "rope_interleaved": False}
    source = save_model(tmp_path / "m", {**config, **said}, tensors)
    found = nm.checkpoint(source).same(converted(source, tmp_path / "m.gguf"))
    assert (found.verdict, found.level) == ("same", "exact"), found
    biases = {f"model.layers.{i}.self_attn.q_proj.bias": np.ones(24, np.float32) for i in range(2)}
    spoiled = save_model(tmp_path / "biased", {**config, **said}, tensors | biases)
    with pytest.raises(FileFormatError, match="attention_bias is false, and the file has a query"):
        nm.checkpoint(spoiled)
