"""Pairs of files that nearly hold the same function: none of them may be proved the same."""

import json

import numpy as np
import pytest
from models import CONFIGS, save_model, tensors_of
from test_proved_same import as_they_are, dyadic_model
from test_same_models import moved

from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.checkpoint import open_checkpoint
from neuromanifold.checkpoints.distance.align import align
from neuromanifold.checkpoints.distance.compare import compare
from neuromanifold.checkpoints.distance.fingerprint import model_fingerprint
from neuromanifold.checkpoints.edit import convert_rope
from neuromanifold.checkpoints.equality.exact import proved_same
from neuromanifold.checkpoints.equality.same import same
from neuromanifold.checkpoints.normal_form.canonical import Canonical
from neuromanifold.errors import (
    ArchitectureError,
    ArgumentError,
    NeuromanifoldError,
    NotCoveredError,
)

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
ABSENT = "absent"
SAYINGS = {
    "the class's default activation": ("albert", {}, {"hidden_act": "gelu"}),
    "the class's default eps": ("phi3", {"rms_norm_eps": ABSENT}, {"rms_norm_eps": 1e-6}),
    "no cap, and the default one": (
        "gemma2",
        {"attn_logit_softcapping": ABSENT},
        {"attn_logit_softcapping": None},
    ),
    "no cap of logits, and the default one": (
        "gemma2",
        {"final_logit_softcapping": ABSENT},
        {"final_logit_softcapping": None},
    ),
    "no window, and the default one": (
        "gemma2",
        {"sliding_window": ABSENT},
        {"sliding_window": None},
    ),
    "no scale, and the default one": (
        "gemma2",
        {"query_pre_attn_scalar": ABSENT},
        {"query_pre_attn_scalar": 8},
    ),
    "an activation under another family's key": (
        "llama",
        {"hidden_activation": "gelu", "hidden_act": "silu"},
        {"hidden_activation": "gelu", "hidden_act": "relu"},
    ),
    "a factor of YaRN": (
        "llama",
        {"rope_scaling": YARN},
        {"rope_scaling": {**YARN, "mscale": 1.0, "mscale_all_dim": 0.5}},
    ),
    "a share of rotated coordinates": (
        "qwen3",
        {"rope_parameters": {"rope_theta": 1e4}},
        {"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.5}},
    ),
    "frequencies by kind of layer": (
        "llama",
        {},
        {"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 2.0}}},
    ),
    "where windows begin": (
        "qwen2",
        {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 0},
        {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1},
    ),
    "a word nobody reads": ("llama", {}, {"clip_qkv": 1.0}),
    "a word for a part outside": ("t5", {}, {"tie_word_embeddings": False}),
    "buckets that no distance fits": ("t5", {}, {"relative_attention_max_distance": 3}),
    "half the heads": ("gpt2", {}, {"n_head": 2}),
    "half the key heads' base": ("llama", {}, {"rope_theta": 5e3}),
    "the rotary layout": ("llama", {}, {"rope_layout": "interleaved"}),
    "eps": ("bert", {}, {"layer_norm_eps": 1e-11}),
    "the mask": ("bert", {}, {"is_decoder": True}),
    "the first position": ("roberta", {}, {"pad_token_id": 0}),
    "the scale of scores": ("gpt2", {}, {"scale_attn_weights": False}),
    "ten digits of √(2/π)": ("gpt2", {}, {"activation_function": "gelu_fast"}),
    "a base that its own class ignores": ("gptj", {}, {"rope_theta": 5e3}),
    "a parallel residual": ("neox", {}, {"use_parallel_residual": False}),
}


def as_said(folder, name, more):
    """The tensors of a family with a configuration that says something else."""
    config = {k: v for k, v in {**CONFIGS[name], **more}.items() if v != ABSENT}
    return save_model(folder, config, tensors_of(CONFIGS[name]))


@pytest.mark.parametrize("what", SAYINGS)
def test_equal_tensors_under_configurations_that_differ_are_not_proved_the_same(tmp_path, what):
    name, one, other = SAYINGS[what]
    folders = as_said(tmp_path / "a", name, one), as_said(tmp_path / "b", name, other)
    try:
        found = same(*map(open_checkpoint, folders))
    except NeuromanifoldError:
        return
    assert found.verdict != "same", found


def test_words_that_change_no_function_do_not_matter(tmp_path):
    idle = {"torch_dtype": "float16", "attention_dropout": 0.1, "pad_token_id": 3}
    folders = as_said(tmp_path / "a", "llama", {}), as_said(tmp_path / "b", "llama", idle)
    assert same(*map(open_checkpoint, folders)).level == "exact"
    heads = open_checkpoint(folders[0], heads=4)
    assert same(heads, open_checkpoint(folders[1])).level == "exact"


def test_a_gain_is_compared_as_it_is_stored_without_its_offset(tmp_path):
    first = dyadic_model(tmp_path / "first", "gemma2")
    weights = first.weights()
    weights["layers.0.attention_norm"][0] = 2.0**-60
    one = moved(tmp_path, first, weights, name="one")
    weights["layers.0.attention_norm"][0] = 0.0
    assert same(one, moved(tmp_path, first, weights, name="two")).level == "equal to rounding"


def described(folder, name, norm, **fields):
    """A family like this one with other norms, and its tensors under their names in the block."""
    first = dyadic_model(folder / "like", name)
    record = first.block.to_dict() | fields
    record["norm"] |= norm
    block = Block.from_dict(json.loads(json.dumps(record)))
    tensors = [{"file": n, "holds": [n]} for n in block.shapes]
    path = folder / "family.json"
    path.write_text(json.dumps({"block": record, "tensors": tensors}))
    return path, block, {n: first.tensor(n) for n in block.shapes}


def opened(folder, family, block, weights):
    stored = {}
    for name, value in weights.items():
        last = name.split(".")[-1]
        if last == "output":
            value = value.transpose(2, 0, 1, 3).reshape(block.width, -1)
        elif last in ("query", "key", "value"):
            value = value.reshape(-1, block.width)
        elif last in ("query_bias", "key_bias", "value_bias"):
            value = value.ravel()
        stored[name] = value
    return open_checkpoint(save_model(folder, {}, stored), family=family)


def test_what_centring_hides_after_the_sum_depends_on_the_gain_and_its_offset(tmp_path):
    family, block, weights = described(tmp_path, "bert", {"offset": 1.0})
    weights["embed_norm"] = np.resize([1.0, -0.5, 3.0, 0.0], block.width)
    first = opened(tmp_path / "first", family, block, weights)
    for offset, proved in ((1.0, True), (2.0, False)):
        other = {n: v.copy() for n, v in weights.items()}
        gain = offset + weights["embed_norm"]
        unseen = np.lcm.reduce((2 * gain).astype(int)) / gain  # 1/γ up to a factor, in whole halves
        other["layers.0.query"][0, 0, 0] += unseen
        shift = weights["embed_norm_shift"]
        other["layers.0.query_bias"][0, 0, 0] -= unseen @ shift
        second = opened(tmp_path / f"{offset}", family, block, other)
        found = proved_same(first, second, None, as_they_are(block))
        assert (found is not None) == proved, offset


@pytest.mark.parametrize("name", ["vit", "bert", "t5"])
def test_parts_outside_see_hidden_states_and_some_the_token_table(tmp_path, name):
    config = CONFIGS[name]
    tensors = {n: np.rint(64 * v) / 64 for n, v in tensors_of(config).items()}
    more = {
        "vit": "vit.pooler.dense.weight",
        "bert": "cls.predictions.bias",
        "t5": "lm_head.weight",
    }
    edited = {n: v.copy() for n, v in tensors.items()}
    if name == "vit":
        edited["vit.layernorm.weight"] *= 2
        edited["vit.layernorm.bias"] *= 2
        edited["classifier.weight"] /= 2
    elif name == "bert":
        edited["bert.embeddings.word_embeddings.weight"] += np.arange(60.0)[:, None] / 4
    alone = [
        open_checkpoint(save_model(tmp_path / f"{i}", config, t))
        for i, t in enumerate((tensors, edited))
    ]
    assert same(*alone).level == "exact"
    outside = {more[name]: np.ones(5, np.float32)}
    both = [
        open_checkpoint(save_model(tmp_path / f"{i} more", config, t | outside))
        for i, t in enumerate((tensors, edited))
    ]
    assert same(*both).level == ("exact" if name == "t5" else None)


def test_constants_that_two_files_store_differently_are_no_proof(tmp_path):
    config, name = CONFIGS["llama"], "model.layers.0.self_attn.rotary_emb.inv_freq"
    files = [
        save_model(tmp_path / f"{x}", config, {**tensors_of(config), name: np.full(3, x)})
        for x in (1.0, 2.0)
    ]
    assert same(*map(open_checkpoint, files)).verdict == "undecided"


def test_numbers_that_overflow_are_refused_and_whole_numbers_too(tmp_path):
    config = CONFIGS["llama"]
    tensors = {n: 1e200 * v for n, v in tensors_of(config, dtype=np.float64).items()}
    large = open_checkpoint(save_model(tmp_path / "large", config, tensors))
    with pytest.raises(NotCoveredError, match="float64 overflows"):
        same(large, large)
    tensors = tensors_of(config) | {"model.norm.weight": np.full(24, 2**53 + 1)}
    with pytest.raises(NeuromanifoldError, match="weights are floating-point numbers"):
        open_checkpoint(save_model(tmp_path / "whole", config, tensors))


def test_patches_with_a_table_that_nothing_would_compare_are_no_block(tmp_path):
    record = dyadic_model(tmp_path / "vit", "vit").block.to_dict()
    record["tables"] = [["positions", 5], ["types", 2]]
    with pytest.raises(ArchitectureError, match="one table, positions"):
        Block.from_dict(record)


def test_tables_that_a_layer_reads_without_a_norm_are_seen_along_one(tmp_path):
    family, block, weights = described(tmp_path, "bert", {}, embed_norm=False)
    first = opened(tmp_path / "first", family, block, weights)
    assert same(first, first).level == "exact"
    weights["tokens"] = weights["tokens"] + 2.0**-40
    second = opened(tmp_path / "second", family, block, weights)
    assert proved_same(first, second, None, as_they_are(block)) is None


def along_one(block, weights):
    """Large multiples of 1 on what norms centre, and the direction that a reader does not see."""
    for name in ("positions", "layers.0.down"):
        weights[name] = weights[name] + 2.0**32
    g = 2.0**32 / weights["layers.0.mlp_norm"]
    weights["layers.0.up"] = weights["layers.0.up"] + g
    constant = g @ weights["layers.0.mlp_norm_shift"]
    weights["layers.0.up_bias"] = weights["layers.0.up_bias"] - constant


def steep(block, weights):
    """A change of basis of the values that float64 hardly sees through."""
    change = np.eye(block.attention.value_size)
    change[0, 1] = 2.0**18
    weights["layers.0.value"] = change @ weights["layers.0.value"]
    weights["layers.0.value_bias"] = weights["layers.0.value_bias"] @ change.T
    weights["layers.0.output"] = weights["layers.0.output"] @ (2 * np.eye(len(change)) - change)


@pytest.mark.parametrize("edit", [along_one, steep])
def test_exact_edits_are_proved_however_large_the_numbers_that_cancel(tmp_path, edit):
    first = dyadic_model(tmp_path / "first", "gpt2")
    weights = first.weights()
    edit(first.block, weights)
    found = same(first, moved(tmp_path, first, weights))
    assert (found.verdict, found.level) == ("same", "exact"), found


def test_rounding_of_large_numbers_that_cancel_is_no_difference(tmp_path):
    first = dyadic_model(tmp_path / "first", "gpt2")
    weights = {n: v + 0.01 for n, v in first.weights().items()}
    one = moved(tmp_path, first, weights, name="one")
    along_one(first.block, weights)
    assert same(one, moved(tmp_path, first, weights, name="two")).verdict != "different"


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_numbers_out_of_the_range_of_products_are_refused_by_every_command(tmp_path, name):
    config = CONFIGS[name]
    for size, word in ((1e-150, "underflows"), (1e150, "overflows")):
        tensors = {
            n: v * size if v.ndim > 1 else v for n, v in tensors_of(config, 0, np.float64).items()
        }
        first = open_checkpoint(save_model(tmp_path / f"{size}", config, tensors))
        weights = {n: v.copy() for n, v in first.weights().items()}
        weights["layers.0.value"][0, 0] *= -1  # a product of zeros and one of zeros agree
        second = moved(tmp_path, first, weights, name=f"{size} wrong")
        for ask in (same, compare, align):
            with pytest.raises(NotCoveredError, match=f"float64 {word}"):
                ask(first, second)
        with pytest.raises(NotCoveredError, match=f"float64 {word}"):
            model_fingerprint(first)


def test_a_layer_that_writes_nothing_is_the_same_in_every_basis_of_its_queries(tmp_path):
    first = open_checkpoint(
        save_model(tmp_path / "a", CONFIGS["llama"], tensors_of(CONFIGS["llama"]))
    )
    weights = {n: v.copy() for n, v in first.weights().items()}
    weights["layers.0.value"][:] = 0.0
    silent = moved(tmp_path, first, weights, name="silent")
    weights["layers.0.up"] *= 3.0
    weights["layers.0.down"] /= 3.0
    assert same(silent, moved(tmp_path, first, weights, name="moved")).verdict == "same"


def test_a_head_that_lacks_rank_has_one_normal_form(tmp_path):
    first = open_checkpoint(
        save_model(tmp_path / "a", CONFIGS["gpt2"], tensors_of(CONFIGS["gpt2"], 0, np.float64))
    )
    weights = {n: v.copy() for n, v in first.weights().items()}
    for part in ("value", "value_bias"):
        weights[f"layers.0.{part}"][0, 1] = weights[f"layers.0.{part}"][0, 0]
    one = moved(tmp_path, first, weights, name="one")
    v = first.block.attention.value_size
    C = np.eye(v) + 0.3 * np.random.default_rng(0).normal(size=(v, v))
    weights["layers.0.value"] = C @ weights["layers.0.value"]
    weights["layers.0.value_bias"] = weights["layers.0.value_bias"] @ C.T
    weights["layers.0.output"] = weights["layers.0.output"] @ np.linalg.inv(C)
    two = moved(tmp_path, first, weights, name="two")
    for part in ("value", "output"):
        forms = [Canonical(model).tensor(f"layers.0.{part}") for model in (one, two)]
        assert np.abs(forms[0] - forms[1]).max() < 1e-9


def test_models_that_differ_in_their_configuration_are_not_said_to_be_without_difference(tmp_path):
    first = open_checkpoint(as_said(tmp_path / "a", "llama", {}))
    for what, value in {"rms_norm_eps": 1e-5, "rope_theta": 5e5, "hidden_act": "gelu"}.items():
        second = open_checkpoint(as_said(tmp_path / what, "llama", {what: value}))
        found = compare(first, second)
        assert "The configurations differ" in str(found)
        with pytest.raises(ArgumentError, match="models of different kinds"):
            align(first, second)


def test_a_converted_rotary_layout_is_no_distance(tmp_path):
    first = open_checkpoint(as_said(tmp_path / "a", "llama", {}))
    convert_rope(first, tmp_path / "b", "interleaved")
    second = open_checkpoint(tmp_path / "b")
    found = compare(first, second)
    assert found.unchanged == [0, 1]
    assert max(max(layer.scores) for layer in found.layers) < 1e-12
    with pytest.raises(ArgumentError, match="convert-rope"):
        align(first, second)


@pytest.mark.parametrize("name", ["bert", "albert"])
def test_gains_of_zero_are_no_division(tmp_path, name):
    first = open_checkpoint(save_model(tmp_path / "a", CONFIGS[name], tensors_of(CONFIGS[name])))
    weights = {n: v.copy() for n, v in first.weights().items()}
    for gain in (n for n in weights if n.endswith(("attention_norm", "mlp_norm"))):
        weights[gain][0] = 0.0
    second = moved(tmp_path, first, weights)
    assert same(second, second).level == "exact"
    assert align(second, second).deviation < 1e-9
    assert np.isfinite(Canonical(second).tensor("layers.0.query")).all()


def test_a_few_gains_moved_into_the_maps_that_read_them_are_the_same(tmp_path):
    config = CONFIGS["llama"]
    tensors, edited = tensors_of(config), tensors_of(config)
    at = "model.layers.0."
    edited[f"{at}input_layernorm.weight"][:3] *= np.float32(0.3)
    for name in "qkv":
        edited[f"{at}self_attn.{name}_proj.weight"][:, :3] /= np.float32(0.3)
    models = [
        open_checkpoint(save_model(tmp_path / f"{i}", config, t))
        for i, t in enumerate((tensors, edited))
    ]
    assert same(*models).level == "equal to rounding"
