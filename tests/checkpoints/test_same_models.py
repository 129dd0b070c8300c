"""`same` sees through every symmetry of every family, and catches every broken edit."""

import ml_dtypes
import numpy as np
import pytest
from models import CONFIGS, block_of, make_model, save_model, tensors_of

from neuromanifold.checkpoints.checkpoint import open_checkpoint
from neuromanifold.checkpoints.equality.same import same
from neuromanifold.checkpoints.forms import folded
from neuromanifold.checkpoints.gauge.group import act, random_element
from neuromanifold.errors import ArgumentError

QUICK = ("gpt2", "bert", "llama", "gemma2", "t5")


def families(*names):
    return pytest.mark.parametrize(
        "name",
        [pytest.param(n, marks=() if n in names else pytest.mark.slow) for n in CONFIGS],
    )


def moved(tmp_path, checkpoint, weights, dtype=None, name="moved"):
    """Another file of the same model, with these tensors of the block."""
    folder = tmp_path / name
    folder.mkdir()
    (folder / "config.json").write_bytes((checkpoint.path / "config.json").read_bytes())
    checkpoint.write(folder / "model.safetensors", weights, dtype=dtype)
    return open_checkpoint(folder)


@families(*QUICK)
def test_same_sees_through_every_continuous_symmetry(tmp_path, name):
    first = open_checkpoint(make_model(tmp_path / "first", name))
    element = random_element(first.block, seed=1)
    second = moved(tmp_path, first, act(first.block, element, first.weights()))
    found = same(first, second)
    assert (found.verdict, found.level) == ("same", "equal to rounding"), found
    assert found.error <= 30 * found.noise
    again = same(first, first)
    assert (again.level, again.primes) == ("exact", 0)


def permuted(block, weights, seed):
    """Groups, heads inside them, neurons, and the stream's coordinates in another order."""
    generator, a = np.random.default_rng(seed), block.attention
    weights = dict(weights)
    fixed = generator.permutation(a.groups), generator.permutation(a.sharing)
    for layer in range(block.stored_layers):
        at = f"layers.{layer}."
        groups, heads = fixed
        if a.relative is None:  # a table of score biases ties the heads of all layers together
            groups, heads = generator.permutation(a.groups), generator.permutation(a.sharing)
        for n in ("query", "query_bias", "output"):
            if at + n in weights:
                weights[at + n] = weights[at + n][groups][:, heads]
        for n in ("key", "key_bias", "value", "value_bias"):
            if at + n in weights:
                weights[at + n] = weights[at + n][groups]
        neurons = generator.permutation(block.mlp.size)
        for n in ("up", "up_bias", "gate"):
            if at + n in weights:
                weights[at + n] = weights[at + n][neurons]
        weights[f"{at}down"] = weights[f"{at}down"][:, neurons]
    if a.relative is not None:
        order = np.arange(a.heads).reshape(a.groups, a.sharing)[fixed[0]][:, fixed[1]].ravel()
        weights["score_table"] = weights["score_table"][:, order]
    return weights


@families("llama", "gpt2")
def test_same_sees_through_permutations_of_heads_and_neurons_and_names_them(tmp_path, name):
    first = open_checkpoint(make_model(tmp_path / "first", name))
    second = moved(tmp_path, first, permuted(first.block, first.weights(), seed=3))
    found = same(first, second)
    assert (found.verdict, found.level) == ("same", "exact"), found
    assert {"heads permuted", "neurons permuted"} <= set(found.symmetries)
    weights = {k: np.array(v) for k, v in second.weights().items()}
    weights["layers.0.value"][0, 0, 0] *= 1 + 2.0**-23
    nearly = same(first, moved(tmp_path, second, weights, name="nearly"))
    assert (nearly.verdict, nearly.level) == ("same", "equal to rounding"), nearly
    assert "no worst-case bound" in nearly.to_dict()["evidence"]
    where = next(key for key in found.element if key.endswith(".heads"))
    name = where.replace("heads", "query")
    mine, theirs = first.tensor(name), second.tensor(name)
    for head, other in enumerate(found.element[where]):
        share = first.block.attention.sharing
        assert np.allclose(mine[divmod(head, share)], theirs[divmod(int(other), share)])


def test_a_tied_model_may_have_its_stream_permuted_with_signs_and_not_rotated(tmp_path):
    first = open_checkpoint(make_model(tmp_path / "first", "llama-tied"))
    generator = np.random.default_rng(0)
    d = first.block.width
    signs = generator.choice([-1.0, 1.0], d)
    R = np.eye(d)[generator.permutation(d)] * signs
    angle = np.eye(d)
    angle[:2, :2] = [[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]]
    for turn, verdict in ((R, "same"), (angle, "different")):
        weights = first.weights()
        for name, value in weights.items():
            last = name.split(".")[-1]
            if last in ("query", "key", "value", "up", "gate", "tokens"):
                weights[name] = value @ turn.T
            elif last.endswith("norm"):
                weights[name] = np.abs(turn) @ value if verdict == "same" else value
            else:
                weights[name] = turn @ value
        found = same(first, moved(tmp_path, first, weights, name=verdict))
        assert found.verdict == verdict, found


def test_same_sees_through_a_change_of_dtype(tmp_path):
    first = open_checkpoint(make_model(tmp_path / "first", "llama"))
    for dtype in (np.float16, ml_dtypes.bfloat16):
        second = moved(tmp_path, first, first.stored, np.dtype(dtype), str(np.dtype(dtype)))
        found = same(first, second)
        assert (found.verdict, found.level) == ("same", "equal to rounding"), found
        assert same(first, second, rtol=1e-7).verdict == "different"


def _one_sign(w, block):
    w[f"layers.{block.stored_layers - 1}.key"][0, 2, 5] *= -1


def _exchange_heads_against_keys(w, block):
    a, b = (0, 0), (-1, -1)
    for name in ("layers.0.query", "layers.0.output"):
        w[name][a], w[name][b] = w[name][b].copy(), w[name][a].copy()


def _exchange_queries_only(w, block):
    query = w["layers.0.query"]
    query[0, 0], query[-1, -1] = query[-1, -1].copy(), query[0, 0].copy()


def _rotate_values_only(w, block):
    v = block.attention.value_size
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(v, v)))[0]
    name = f"layers.{block.stored_layers - 1}.value"
    w[name] = turn @ w[name]


def _general_linear_despite_rotation(w, block):
    k = block.attention.key_size
    C = np.eye(k) + 0.2 * np.random.default_rng(0).normal(size=(k, k))
    w["layers.0.key"] = C @ w["layers.0.key"]
    w["layers.0.query"] = np.linalg.inv(C).T @ w["layers.0.query"]


def _transpose_output(w, block):
    output = w["layers.0.output"]
    flat = output.transpose(2, 0, 1, 3).reshape(block.width, -1)
    a = block.attention
    shape = (block.width, a.groups, a.sharing, a.value_size)
    w["layers.0.output"] = flat.T.reshape(shape).transpose(1, 2, 0, 3)


def _permute_groups_alone(w, block):
    w["layers.0.key"] = w["layers.0.key"][::-1].copy()


def _layout_of_queries_only(w, block):
    k = block.attention.key_size
    order = np.arange(k).reshape(2, k // 2).T.ravel()
    w["layers.0.query"] = w["layers.0.query"][:, :, order]


def _centre_embeddings(w, block):
    w["tokens"] = w["tokens"] - w["tokens"].mean(axis=1, keepdims=True)


def _fuse_the_final_norm_into_a_tied_table(w, block):
    w["tokens"] = w["tokens"] * w["final_norm"]
    w["final_norm"] = np.ones_like(w["final_norm"])


def _swap_two_tokens(w, block):
    w["tokens"][[3, 7]] = w["tokens"][[7, 3]]


def _swap_two_neurons_on_one_side(w, block):
    w["layers.1.down"][:, [0, 1]] = w["layers.1.down"][:, [1, 0]]


BROKEN = [
    ("llama", _one_sign, 1, "query–key"),
    ("llama", _exchange_heads_against_keys, 0, "query–key"),
    ("llama", _exchange_queries_only, 0, "query–key"),
    ("llama", _rotate_values_only, 1, "value–output"),
    ("llama", _general_linear_despite_rotation, 0, "query–key"),
    ("llama", _transpose_output, 0, "value–output"),
    ("llama", _permute_groups_alone, 0, "query–key"),
    ("llama", _layout_of_queries_only, 0, "query–key"),
    ("llama-tied", _centre_embeddings, None, "tokens"),
    ("llama-tied", _fuse_the_final_norm_into_a_tied_table, None, ""),
    ("llama-tied", _swap_two_tokens, None, "tokens"),
    ("llama", _swap_two_neurons_on_one_side, 1, "MLP"),
    ("gpt2", _one_sign, 1, "query–key"),
    ("gpt2", _rotate_values_only, 1, "value–output"),
    ("bert", _one_sign, 1, "query–key"),
    ("bert", _transpose_output, 0, "value–output"),
]


@pytest.mark.parametrize(("name", "edit", "layer", "part"), BROKEN)
def test_a_broken_edit_is_caught_where_it_is(tmp_path, name, edit, layer, part):
    first = open_checkpoint(make_model(tmp_path / "first", name))
    weights = first.weights()
    edit(weights, first.block)
    second = moved(tmp_path, first, weights)
    found = same(first, second)
    assert (found.verdict, found.level) == ("different", "different"), found
    blamed = [d for d in found.differences if part in d.part]
    assert any(d.layer == layer for d in blamed)
    assert found.witness is not None
    assert found.witness.first != found.witness.second
    assert found.error > 30 * found.noise


@pytest.mark.parametrize(
    ("edit", "layer"),
    [
        (_one_sign, -1),
        (_exchange_heads_against_keys, 0),
        (_rotate_values_only, -1),
        (_transpose_output, 0),
    ],
)
@families("albert")
def test_every_family_has_its_broken_edits_caught_where_they_are(tmp_path, name, edit, layer):
    first = open_checkpoint(make_model(tmp_path / "first", name))
    weights = first.weights()
    edit(weights, first.block)
    found = same(first, moved(tmp_path, first, weights))
    assert found.verdict == "different", found
    assert {d.layer for d in found.differences} == {range(first.block.stored_layers)[layer]}
    assert found.witness is not None


def test_a_broken_edit_hidden_behind_symmetries_is_caught(tmp_path):
    first = open_checkpoint(make_model(tmp_path / "first", "llama"))
    weights = act(first.block, random_element(first.block, seed=5), first.weights())
    weights = {name: np.array(value) for name, value in permuted(first.block, weights, 1).items()}
    assert same(first, moved(tmp_path, first, weights, name="right")).verdict == "same"
    weights["layers.1.up"][3, 4] *= -1
    found = same(first, moved(tmp_path, first, weights, name="wrong"))
    assert found.verdict == "different"
    assert [d.part for d in found.differences] == ["MLP, neuron"]


def test_a_gauge_too_wild_for_the_dtype_is_undecided_and_never_different(tmp_path):
    first = open_checkpoint(make_model(tmp_path / "first", "gpt2"))
    weights = first.weights()
    k = first.block.attention.key_size
    C = (
        np.diag(np.logspace(-4, 4, k))
        @ np.linalg.qr(np.random.default_rng(0).normal(size=(k, k)))[0]
    )
    C = np.linalg.qr(np.random.default_rng(1).normal(size=(k, k)))[0] @ C
    weights["layers.0.key"] = C @ weights["layers.0.key"]
    weights["layers.0.key_bias"] = weights["layers.0.key_bias"] @ C.T
    weights["layers.0.query"] = np.linalg.inv(C).T @ weights["layers.0.query"]
    weights["layers.0.query_bias"] = weights["layers.0.query_bias"] @ np.linalg.inv(C)
    second = moved(tmp_path, first, weights, np.dtype(ml_dtypes.bfloat16))
    assert same(first, second).verdict == "undecided"


def test_models_of_different_sizes_or_kinds_are_refused(tmp_path):
    llama = open_checkpoint(make_model(tmp_path / "llama", "llama"))
    for other in ("gpt2", "qwen2", "gemma2"):
        second = open_checkpoint(make_model(tmp_path / other, other))
        with pytest.raises(ArgumentError, match="are models of different kinds"):
            same(llama, second)
    config = {**CONFIGS["llama"], "rms_norm_eps": 1e-5}
    again = save_model(tmp_path / "eps", config, tensors_of(config))
    with pytest.raises(ArgumentError, match="norm eps 1e-06 and 1e-05"):
        same(llama, open_checkpoint(again))


def test_a_model_with_heads_and_neurons_of_zeros_is_itself_without_a_symmetry(tmp_path):
    first = open_checkpoint(make_model(tmp_path / "first", "gpt2"))
    weights = {n: v.copy() for n, v in first.weights().items()}
    for name in ("query", "key", "value", "output", "up"):
        weights[f"layers.0.{name}"][0] = 0.0
    found = same(*[moved(tmp_path, first, weights, name=n) for n in ("one", "two")])
    assert (found.level, found.symmetries, found.element) == ("exact", (), {})
    assert found.reason == "the stored numbers are equal"


def test_what_lies_outside_the_block_is_not_passed_over(tmp_path):
    tensors = tensors_of(CONFIGS["bert"])
    tensors["bert.pooler.dense.weight"] = np.eye(24, dtype=np.float32)
    first = open_checkpoint(save_model(tmp_path / "a", CONFIGS["bert"], tensors))
    tensors["bert.pooler.dense.weight"] = 2 * np.eye(24, dtype=np.float32)
    second = open_checkpoint(save_model(tmp_path / "b", CONFIGS["bert"], tensors))
    found = same(first, second)
    assert found.verdict == "undecided"
    assert "bert.pooler.dense.weight outside it" in found.reason


@pytest.mark.parametrize("name", ["gpt2", "qwen3", "t5-gated-relu", "albert"])
def test_the_element_carries_one_folded_model_to_the_other(tmp_path, name):
    a = block_of(CONFIGS[name]).attention
    whole = open_checkpoint(make_model(tmp_path / "whole", name, dtype=np.float64))
    weights = {key: np.array(value) for key, value in whole.weights().items()}
    weights["layers.0.key"][0, 1] = 2 * weights["layers.0.key"][0, 0]  # it lacks rank
    first = moved(tmp_path, whole, weights, name="first")
    second = moved(tmp_path, first, act(first.block, random_element(first.block, 5), weights))
    element = same(first, second).element
    forms, R = (folded(first), folded(second)), element.get("stream", np.eye(first.block.width))
    mine, theirs = (form.layer(0) for form in forms)
    C = np.eye(a.key_size) if a.qk_norm else element["layers.0.key"][:, None]
    D = element["layers.0.value"][:, None]
    wanted = {
        "key": (C @ mine["key"][:, None])[:, 0] @ R,
        "query": np.linalg.inv(C).mT @ mine["query"] @ R,
        "value": (D @ mine["value"][:, None])[:, 0] @ R,
        "output": R.T @ mine["output"] @ np.linalg.inv(D),
    }
    for part in (part for part in ("up", "gate", "query_norm", "key_norm") if part in mine):
        scale = element.get(f"layers.0.{part.replace('key', 'query')}", np.ones(len(mine[part])))
        scale = 1 / scale if part == "key_norm" else scale
        rows = (scale * mine[part].T).T
        wanted[part] = rows @ R if part in ("up", "gate") else rows
    for part, value in wanted.items():
        assert np.allclose(value, theirs[part], rtol=0, atol=1e-9 * np.abs(value).max()), part
    if name == "albert":
        mine, theirs = (form.outer() for form in forms)
        assert np.allclose(mine["tokens"] @ element["tables"], theirs["tokens"], atol=1e-9)
