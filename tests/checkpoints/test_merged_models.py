"""`same` with an adapter: the right merge is the same, every wrong one is not."""

import json

import ml_dtypes
import numpy as np
import pytest
from models import CONFIGS, save_model, tensors_of

import neuromanifold as nm
from checkpoints.peft_files import write_adapter
from neuromanifold.cli import main
from neuromanifold.errors import ArgumentError, NotCoveredError

MODULES = {
    "llama": ("self_attn.q_proj", "self_attn.v_proj", "mlp.down_proj"),
    "gpt2": ("attn.c_attn", "attn.c_proj"),
}
AT = {"llama": "model.layers.{}.", "gpt2": "transformer.h.{}."}
RANK, ALPHA = 3, 6.0


def pairs_of(name, tensors, size=0.1, seed=4):
    """Random factors of two layers' modules; GPT-2 keeps its weights (in, out)."""
    random, pairs = np.random.default_rng(seed), {}
    for layer in range(2):
        for word in MODULES[name]:
            module = AT[name].format(layer) + word
            shape = tensors[f"{module}.weight"].shape
            out, into = shape[::-1] if name == "gpt2" else shape
            B, A = random.normal(size=(out, RANK)), random.normal(size=(RANK, into))
            pairs[module] = (size * B).astype(np.float32), A.astype(np.float32)
    return pairs


def merge(name, tensors, pairs, scale=ALPHA / RANK):
    """W + s B A by hand."""
    merged = dict(tensors)
    for module, (B, A) in pairs.items():
        update = scale * (B.astype(np.float64) @ A.astype(np.float64))
        weight = merged[f"{module}.weight"]
        merged[f"{module}.weight"] = (weight + (update.T if name == "gpt2" else update)).astype(
            weight.dtype
        )
    return merged


@pytest.fixture
def made(tmp_path, request):
    """A base, its adapter and factors, and a function that writes another model."""
    name, dtype, size = getattr(request, "param", ("llama", np.float32, 0.1))
    tensors = tensors_of(CONFIGS[name], dtype=dtype)
    pairs = pairs_of(name, tensors, size)
    base = save_model(tmp_path / "base", CONFIGS[name], tensors)
    prefixed = {f"base_model.model.{module}": pair for module, pair in pairs.items()}
    adapter = write_adapter(tmp_path / "adapter", prefixed, lora_alpha=ALPHA)

    def other(merged):
        return save_model(tmp_path / "merged", CONFIGS[name], merged)

    return name, base, adapter, tensors, pairs, other


@pytest.mark.parametrize(
    "made", [("llama", np.float32, 0.1), ("gpt2", np.float32, 0.1)], indirect=True
)
def test_a_right_merge_is_the_same_and_the_base_alone_is_not(made):
    name, base, adapter, tensors, pairs, other = made
    merged = other(merge(name, tensors, pairs))
    found = nm.checkpoint(base).same(merged, adapter=adapter)
    assert (found.verdict, found.level) == ("same", "equal to rounding"), found
    assert "half of any update, more or less, would show" in found.reason
    assert nm.checkpoint(base).same(merged).verdict == "different"
    assert nm.checkpoint(base).same(base, adapter=adapter).verdict == "different"


def _wrong_alpha(pairs):
    return {module: (B / 2, A) for module, (B, A) in pairs.items()}, 0, "holds 0.5 times"


def _one_wrong_sign(pairs):
    module = "model.layers.1.mlp.down_proj"
    return {**pairs, module: (-pairs[module][0], pairs[module][1])}, 1, "holds -1 times"


def _missing_module(pairs):
    left = dict(pairs)
    del left["model.layers.1.self_attn.v_proj"]
    return left, 1, "holds 0 times"


def _rows_exchanged(pairs):
    module = "model.layers.0.self_attn.q_proj"
    return {**pairs, module: (pairs[module][0][::-1], pairs[module][1])}, 0, "query–key"


@pytest.mark.parametrize(
    ("wrong", "part"),
    [
        (_wrong_alpha, "query–key"),
        (_one_wrong_sign, "MLP"),
        (_missing_module, "value–output"),
        (_rows_exchanged, "query–key"),
    ],
)
def test_a_wrong_merge_is_caught_where_it_is(made, wrong, part):
    name, base, adapter, tensors, pairs, other = made
    spoiled, layer, words = wrong(pairs)
    merged = other(merge(name, tensors, spoiled))
    found = nm.checkpoint(base).same(merged, adapter=adapter)
    assert (found.verdict, found.level) == ("different", "different"), found
    assert words in found.reason
    assert any(d.layer == layer and part in d.part for d in found.differences)
    assert {d.layer for d in found.differences} == ({0, 1} if wrong is _wrong_alpha else {layer})
    assert found.witness is not None


@pytest.mark.parametrize("made", [("llama", ml_dtypes.bfloat16, 2e-5)], indirect=True)
@pytest.mark.parametrize("scale", [ALPHA / RANK, -ALPHA / RANK, 0.0])
def test_an_update_below_the_rounding_is_undecided_whatever_the_file_holds(made, scale):
    name, base, adapter, tensors, pairs, other = made
    merged = other(merge(name, tensors, pairs, scale))
    found = nm.checkpoint(base).same(merged, adapter=adapter)
    assert (found.verdict, found.level) == ("undecided", None), found
    assert "too small to show" in found.reason


@pytest.mark.parametrize("made", [("llama", ml_dtypes.bfloat16, 1.0)], indirect=True)
@pytest.mark.parametrize(("size", "times"), [(0.0056, 2.0), (0.01, 1.5), (0.018, 0.5)])
def test_too_much_of_an_update_near_the_rounding_never_passes(made, tmp_path, size, times):
    name, base, _, tensors, pairs, other = made
    module = "model.layers.1.self_attn.v_proj"
    pairs = {module: (np.float32(size) * pairs[module][0], pairs[module][1])}
    adapter = write_adapter(tmp_path / "one", pairs, lora_alpha=ALPHA)
    merged = other(merge(name, tensors, pairs, times * ALPHA / RANK))
    assert nm.checkpoint(base).same(merged, adapter=adapter).verdict != "same"


def test_one_small_update_among_large_ones_leaves_it_undecided(made, tmp_path):
    name, base, _, tensors, pairs, other = made
    small = "model.layers.1.self_attn.v_proj"
    pairs = {**pairs, small: (np.float32(1e-9) * pairs[small][0], pairs[small][1])}
    adapter = write_adapter(tmp_path / "uneven", pairs, lora_alpha=ALPHA)
    left = {module: pair for module, pair in pairs.items() if module != small}
    found = nm.checkpoint(base).same(other(merge(name, tensors, left)), adapter=adapter)
    assert found.verdict == "undecided"
    assert small in found.reason


def test_a_fresh_adapter_changes_nothing_and_whole_tensors_are_replaced(made, tmp_path):
    _, base, _, tensors, pairs, other = made
    fresh = {module: (0 * B, A) for module, (B, A) in pairs.items()}
    head = np.random.default_rng(0).normal(size=tensors["lm_head.weight"].shape)
    others = {"base_model.model.lm_head.weight": head.astype(np.float32)}
    adapter = write_adapter(tmp_path / "fresh", fresh, others)
    replaced = other({**tensors, "lm_head.weight": head.astype(np.float32)})
    found = nm.checkpoint(base).same(replaced, adapter=adapter)
    assert (found.verdict, found.level) == ("same", "equal to rounding"), found
    assert nm.checkpoint(base).same(base, adapter=adapter).verdict == "different"


def test_the_command_answers_with_its_exit_code(made, capsys):
    name, base, adapter, tensors, pairs, other = made
    merged = other(merge(name, tensors, pairs))
    words = ["checkpoint", "same", str(base), str(merged), "--json"]
    assert main([*words, "--adapter", str(adapter)]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "same"
    assert main(words) == 1
    capsys.readouterr()
    assert main([*words, "--adapter", str(base)]) == 2
    assert "no adapter_config.json" in capsys.readouterr().err


def test_an_adapter_of_another_model_is_refused(made, tmp_path):
    _, base, _, tensors, pairs, _ = made
    model = nm.checkpoint(base)
    module, (B, A) = next(iter(pairs.items()))
    cases = {
        "name": {module.replace("q_proj", "c_attn"): (B, A)},
        "shape": {module: (B[1:], A)},
        "twice": {module: (B, A), module.removeprefix("model."): (B, A)},
        "many": {"q_proj": (B, A)},
    }
    sentences = ("has 0 tensors", "for another model", "both change", "has 2 tensors")
    for (word, wrong), sentence in zip(cases.items(), sentences, strict=True):
        with pytest.raises(ArgumentError, match=sentence):
            model.same(base, adapter=write_adapter(tmp_path / word, wrong))
    tied = nm.checkpoint(
        save_model(tmp_path / "tied", CONFIGS["llama-tied"], tensors_of(CONFIGS["llama-tied"]))
    )
    table = tensors["model.embed_tokens.weight"]
    wrong = {"model.embed_tokens": (table[:, :2], table[:2])}
    with pytest.raises(NotCoveredError, match="untie the model first"):
        tied.same(tied, adapter=write_adapter(tmp_path / "tokens", wrong))
