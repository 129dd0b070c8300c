"""The audit: counts, spectra, dead parameters and equal heads, and its files."""

import json

import numpy as np
import pytest
from matplotlib.figure import Figure
from models import CONFIGS, make_model, save_model, tensors_of
from test_same_models import moved

from neuromanifold.checkpoints.audits.audit import audit
from neuromanifold.checkpoints.audits.picture import audit_figure, effective_rank
from neuromanifold.checkpoints.audits.spectra import product_distance, product_spectrum
from neuromanifold.checkpoints.checkpoint import open_checkpoint
from neuromanifold.checkpoints.gauge.group import act, random_element
from neuromanifold.checkpoints.readers.contents import BFLOAT16
from neuromanifold.cli import main


def test_spectra_are_those_of_the_products_formed_outright():
    generator = np.random.default_rng(0)
    left, right = generator.normal(size=(4, 30)), generator.normal(size=(4, 20))
    other = generator.normal(size=(4, 30))
    found = product_spectrum(left, right, 1e-16)
    assert np.allclose(found.values, np.linalg.svd(left.T @ right, compute_uv=False)[:4])
    assert (found.rank, found.verdict, found.deficient) == (4, "numerical", False)
    distance = product_distance(left, right, other, right)
    assert np.isclose(distance, np.linalg.norm(left.T @ right - other.T @ right))


def test_a_rank_without_a_clear_gap_is_undecided():
    values = np.diag([1.0, 1e-3, 3e-7, 1e-7])
    found = product_spectrum(values, np.eye(4), np.finfo(np.float32).eps / 2)
    assert (found.rank, found.verdict) == (None, "undecided")
    clear = product_spectrum(np.diag([1.0, 1e-3, 0.0, 0.0]), np.eye(4), 1e-7)
    assert (clear.rank, clear.deficient) == (2, True)


def test_deficient_and_equal_heads_are_found_and_shrink_the_orbit(tmp_path):
    tensors = tensors_of(CONFIGS["bert"])
    at = "bert.encoder.layer.1.attention.self."
    key = tensors[f"{at}key.weight"]
    key[:6] = np.outer(np.arange(6), key[0])  # head 0: rank one
    query, value = tensors[f"{at}query.weight"], tensors[f"{at}value.weight"]
    output = tensors["bert.encoder.layer.1.attention.output.dense.weight"]
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0].astype(np.float32)
    for x in (query, key, value):
        x[18:24] = turn @ x[12:18]  # head 3 is head 2 in another basis
    output[:, 18:24] = output[:, 12:18] @ turn.T
    apart = audit(open_checkpoint(save_model(tmp_path, CONFIGS["bert"], tensors)))
    assert apart.equal_heads == ()  # their queries have other constants
    assert apart.stabiliser == 0  # its queries have full rank: whatever fixes them is the identity
    bias = tensors[f"{at}query.bias"]
    bias[18:24] = turn @ bias[12:18]
    query[:6] = np.outer(np.arange(6), query[0])
    bias[:6] = np.arange(6)
    tensors[f"{at}key.bias"][:6] = np.arange(6)
    found = audit(open_checkpoint(save_model(tmp_path, CONFIGS["bert"], tensors)))
    assert [(h.layer, h.head, h.query_key.rank) for h in found.deficient] == [(1, 0, 1)]
    assert [pair[:3] for pair in found.equal_heads] == [(1, 2, 3)]
    assert found.stabiliser == 25
    assert found.dead[0].count == 2 * 24


def test_planes_that_no_query_or_key_has_shrink_the_orbit_of_rotary_heads(tmp_path):
    """One complex number a plane for each key head; the two query heads of a group share it."""
    tensors = tensors_of(CONFIGS["llama"])
    at = "model.layers.1.self_attn."
    query, key = tensors[f"{at}q_proj.weight"], tensors[f"{at}k_proj.weight"]
    key[[1, 4]] = 0  # plane 1 of key head 0, of size 6
    assert audit(open_checkpoint(save_model(tmp_path, CONFIGS["llama"], tensors))).stabiliser == 0
    query[[1, 4, 7, 10]] = 0
    assert audit(open_checkpoint(save_model(tmp_path, CONFIGS["llama"], tensors))).stabiliser == 2


def test_heads_of_equal_products_that_turn_otherwise_are_not_equal(tmp_path):
    """Under rotary positions and norms of queries and keys more is seen than QᵀK."""
    random = np.random.default_rng(0)
    for name in ("llama", "qwen3", "t5", "llama-bfloat16"):
        kind = name.split("-")[0]
        config = CONFIGS[kind] | ({} if kind == "t5" else {"num_key_value_heads": 4})
        tensors = {k: v.astype(np.float64) for k, v in tensors_of(config).items()}
        at = (
            "encoder.block.0.layer.0.SelfAttention."
            if kind == "t5"
            else "model.layers.0.self_attn."
        )
        end = ".weight" if kind == "t5" else "_proj.weight"
        q, k, v, o = (tensors[f"{at}{word}{end}"] for word in "qkvo")
        n = len(q) // 4

        def equal(
            folder, change, q=q, k=k, v=v, o=o, n=n, config=config, tensors=tensors, name=name
        ):
            q[n : 2 * n], k[n : 2 * n] = np.linalg.inv(change).T @ q[:n], change @ k[:n]
            v[n : 2 * n], o[:, n : 2 * n] = v[:n], o[:, :n]
            dtype = BFLOAT16 if "bfloat16" in name else np.float64
            stored = {key: value.astype(dtype) for key, value in tensors.items()}
            found = audit(open_checkpoint(save_model(tmp_path / name / folder, config, stored)))
            return [pair[:3] for pair in found.equal_heads] == [(0, 0, 1)]

        turn = np.linalg.qr(random.normal(size=(n, n)))[0]
        if kind == "t5":
            table = tensors[f"{at}relative_attention_bias.weight"]
            assert not equal("table", turn)
            table[:, 1] = table[:, 0] + 0.5
            table[16, 1] += 3.0  # no distance has this row
            assert equal("constant", turn)
            continue
        assert equal("same", np.eye(n))
        assert not equal("turned", turn)
        planes = np.kron(np.diag([0.6, -1.5, 2.0, 0.3][: n // 2]), np.eye(2))
        halves = np.arange(n).reshape(2, n // 2).T.ravel()
        planes = planes[np.ix_(np.argsort(halves), np.argsort(halves))]
        assert equal("planes", planes) == (kind == "llama")  # a norm sees the lengths


def test_heads_in_half_precision_are_not_equal_because_they_are_similar(tmp_path):
    config = CONFIGS["gpt2"]
    tensors = tensors_of(config)
    fused, out = (
        tensors["transformer.h.0.attn.c_attn.weight"],
        tensors["transformer.h.0.attn.c_proj.weight"],
    )
    bias = tensors["transformer.h.0.attn.c_attn.bias"]
    noise = np.random.default_rng(1).normal(size=(24, 6)) * 0.05
    for start in (0, 24, 48):
        fused[:, start + 6 : start + 12] = fused[:, start : start + 6] + noise
        bias[start + 6 : start + 12] = bias[start : start + 6]
    out[6:12] = out[:6]
    stored = {key: value.astype(BFLOAT16) for key, value in tensors.items()}
    assert audit(open_checkpoint(save_model(tmp_path, config, stored))).equal_heads == ()


@pytest.mark.parametrize("name", CONFIGS)
def test_every_family_is_audited_and_its_parts_add_up(tmp_path, name):
    config = CONFIGS[name] | {"vocab_size": 300}  # enough for a first MLP that reads only tokens
    found = audit(open_checkpoint(save_model(tmp_path, config, tensors_of(config))))
    assert found.unmet == ()
    assert found.redundant == sum(part.dimension for part in found.parts)
    assert len(found.heads) == found.block.stored_layers * found.block.attention.heads
    assert all(head.balance_query_key >= 1 - 1e-9 for head in found.heads)
    assert not found.deficient
    assert not found.equal_heads


@pytest.mark.parametrize("name", CONFIGS)
def test_no_symmetry_changes_a_spectrum(tmp_path, name):
    model = open_checkpoint(make_model(tmp_path / "m", name, dtype=np.float64))
    element = random_element(model.block, seed=2)
    other = moved(tmp_path, model, act(model.block, element, model.weights()))
    for head, after in zip(audit(model).heads, audit(other).heads, strict=True):
        assert np.allclose(head.query_key.values, after.query_key.values, rtol=1e-9, atol=0)
        assert np.allclose(head.value_output.values, after.value_output.values, rtol=1e-9, atol=0)


def test_the_command_answers_in_json_and_draws(tmp_path, capsys):
    model = make_model(tmp_path / "m", "gpt2")
    page, figure = tmp_path / "a.html", tmp_path / "a.svg"
    line = [
        "checkpoint",
        "audit",
        str(model),
        "--json",
        "--html",
        str(page),
        "--figure",
        str(figure),
    ]
    assert main(line) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["dimension"] == answer["parameters"] - answer["redundant"]
    assert answer["known"] == "upper bound: theorem; equality: conjecture"
    assert "<svg" in page.read_text()
    assert figure.stat().st_size > 1000
    assert main([*line[:3], "--readout", "probabilities", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["redundant"] == answer["redundant"] + 24


def test_outside_the_conditions_there_is_no_number(tmp_path, capsys):
    config = {**CONFIGS["gpt2"], "vocab_size": 20}
    assert main(["checkpoint", "audit", str(save_model(tmp_path, config, tensors_of(config)))]) == 0
    out = capsys.readouterr().out
    assert "the redundancy is not covered: tied head with 20 ≤ d = 24 tokens" in out


def test_the_figure_draws_every_head_into_given_axes(tmp_path):
    found = audit(open_checkpoint(make_model(tmp_path, "gpt2")))
    axes = list(Figure().subplots(1, 2))
    assert audit_figure(found, ax=axes) is axes
    drawn = np.asarray(axes[0].images[0].get_array())
    for head in found.heads:
        assert drawn[head.layer, head.head] == effective_rank(head.query_key.values)
