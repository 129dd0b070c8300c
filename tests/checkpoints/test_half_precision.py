"""In float16 and bfloat16 a broken edit is caught, and rounding alone is never called one."""

import ml_dtypes
import numpy as np
import pytest
from models import CONFIGS, make_model, save_model, tensors_of
from test_same_models import (
    _exchange_heads_against_keys,
    _one_sign,
    _rotate_values_only,
    _transpose_output,
    moved,
)

from neuromanifold.checkpoints.checkpoint import open_checkpoint
from neuromanifold.checkpoints.equality.same import same
from neuromanifold.checkpoints.gauge.group import act, random_element

FAMILIES = (
    *("gpt2", "bert", "roberta", "albert", "vit", "neox"),
    *("llama", "qwen2", "qwen3", "gemma2", "phi", "t5"),
)
QUICK = ("gpt2", "llama")
DTYPES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]


def _small_sign_of_a_neuron(w, block):
    up = w["layers.0.up"].reshape(-1)
    up[np.argsort(np.abs(up))[len(up) // 4]] *= -1


def _two_rows_of_a_value(w, block):
    w["layers.0.value"][0, [0, 1]] = w["layers.0.value"][0, [1, 0]]


def _token_that_few_inputs_have(w, block):
    if "tokens" in w:
        w["tokens"][3, 4] *= -1
    else:
        w["class_token"][4] *= -1


EDITS = (
    _one_sign,
    _exchange_heads_against_keys,
    _rotate_values_only,
    _transpose_output,
    _small_sign_of_a_neuron,
    _two_rows_of_a_value,
    _token_that_few_inputs_have,
)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in FAMILIES],
)
def test_every_family_has_its_broken_edits_caught(tmp_path, dtype, name):
    full = open_checkpoint(make_model(tmp_path / name, name))
    half = moved(tmp_path, full, full.stored, dtype, f"{name} half")
    assert same(full, half).verdict == "same"
    for edit in EDITS:
        weights = {key: value.copy() for key, value in half.weights().items()}
        edit(weights, full.block)
        other = moved(tmp_path, full, weights, dtype, f"{name} {edit.__name__}")
        for first in (half, full) if edit is _one_sign else (half,):
            found = same(first, other)
            assert (found.verdict, found.level) == ("different", "different"), edit
            assert found.witness is not None
            assert found.witness.first != found.witness.second


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("amount", [3e-4, 3e-3, 3e-2])
def test_a_symmetry_as_small_as_rounding_is_no_difference(tmp_path, dtype, amount):
    for name in ("gpt2", "vit", "llama", "t5"):
        tensors = tensors_of(CONFIGS[name], dtype=np.float64)
        tensors = {n: v * 1e-4 if v.ndim > 1 else v for n, v in tensors.items()}  # constants cancel
        first = open_checkpoint(save_model(tmp_path / name, CONFIGS[name], tensors))
        element = random_element(first.block, seed=1)
        small = {part: {k: amount * v for k, v in one.items()} for part, one in element.items()}
        weights = act(first.block, small, first.weights())
        pair = [
            moved(tmp_path, first, w, dtype, f"{name} {i}")
            for i, w in enumerate((first.weights(), weights))
        ]
        assert same(*pair).verdict != "different", name
        assert same(first, pair[1]).verdict != "different", name


def test_a_file_that_was_rounded_and_widened_again_is_undecided(tmp_path):
    first = open_checkpoint(make_model(tmp_path / "first", "llama"))
    for dtype in DTYPES:
        half = moved(tmp_path, first, first.stored, dtype, f"{dtype}")
        wide = np.dtype(np.float32)
        back = moved(tmp_path, first, half.weights(), wide, f"{dtype} back")
        found = same(first, back)
        assert found.verdict == "undecided"
        assert f"fit {dtype}" in found.reason
        assert same(first, back, rtol=2.0**-8).verdict == "same"
        weights = {name: value.copy() for name, value in half.weights().items()}
        _one_sign(weights, first.block)
        wrong = same(first, moved(tmp_path, first, weights, wide, f"{dtype} wrong"))
        assert wrong.verdict == "different"
        assert {(d.part, d.layer) for d in wrong.differences} == {("query–key, head", 1)}


def test_what_lies_outside_the_block_may_be_rounded_too(tmp_path):
    tensors = tensors_of(CONFIGS["bert"])
    pooler = np.random.default_rng(0).normal(size=(24, 24)).astype(np.float32)
    tensors["bert.pooler.dense.weight"] = pooler
    first = open_checkpoint(save_model(tmp_path / "a", CONFIGS["bert"], tensors))
    half = {n: v.astype(np.float16) for n, v in tensors.items()}
    second = open_checkpoint(save_model(tmp_path / "b", CONFIGS["bert"], half))
    assert (same(first, second).verdict, same(first, second).level) == ("same", "equal to rounding")
    exact = tensors | {"bert.pooler.dense.weight": np.nextafter(pooler, np.float32(9))}
    third = open_checkpoint(save_model(tmp_path / "c", CONFIGS["bert"], exact))
    assert same(first, third).level == "equal to rounding"


def test_a_head_that_decides_nothing_is_not_hidden_by_the_others(tmp_path):
    first = open_checkpoint(make_model(tmp_path / "first", "gpt2"))
    weights = {name: value.copy() for name, value in first.weights().items()}
    k = first.block.attention.key_size
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(k, k)))[0]
    C = turn @ np.diag(np.logspace(-4, 4, k)) @ turn.T
    at, inverse = "layers.0.", np.linalg.inv(C)
    weights[f"{at}key"][1] = C @ weights[f"{at}key"][1]
    weights[f"{at}query"][1] = inverse.T @ weights[f"{at}query"][1]
    weights[f"{at}query_bias"][1] = weights[f"{at}query_bias"][1] @ inverse
    second = moved(tmp_path, first, weights, DTYPES[1])
    assert same(first, second).verdict == "undecided"


def test_rounding_below_the_range_of_float16_is_no_difference(tmp_path):
    config = CONFIGS["llama"]
    small = {
        n: v * np.float32(1e-6)
        if n.endswith(("o_proj.weight", "down_proj.weight", "tokens.weight"))
        else v
        for n, v in tensors_of(config).items()
    }
    half = {n: v.astype(np.float16) for n, v in small.items()}
    first = open_checkpoint(save_model(tmp_path / "a", config, small))
    found = same(first, open_checkpoint(save_model(tmp_path / "b", config, half)))
    assert found.verdict == "undecided", found
    assert "too small for their dtype" in found.reason
    half["model.embed_tokens.weight"][5] *= -1
    found = same(first, open_checkpoint(save_model(tmp_path / "c", config, half)))
    assert found.verdict == "different", found
