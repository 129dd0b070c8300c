"""Distances that gauge does not change, alignment along the fiber, fingerprints."""

import json

import ml_dtypes
import numpy as np
import pytest
from matplotlib.figure import Figure

import neuromanifold as nm
from checkpoints.models import CONFIGS, make_model, save_model, tensors_of
from neuromanifold.checkpoints.checkpoint import open_checkpoint
from neuromanifold.checkpoints.distance.align import Aligned, align, weight_distance
from neuromanifold.checkpoints.distance.compare import compare
from neuromanifold.checkpoints.distance.fingerprint import model_fingerprint
from neuromanifold.checkpoints.distance.heatmap import compare_figure
from neuromanifold.checkpoints.distance.matching import head_products
from neuromanifold.checkpoints.distance.nearest import nearest_basis, nearest_scale
from neuromanifold.checkpoints.forms import Heads
from neuromanifold.checkpoints.gauge.group import act, random_element
from neuromanifold.checkpoints.normal_form.canonical import Canonical
from neuromanifold.checkpoints.normal_form.frame import permute_heads, permute_neurons
from neuromanifold.cli import main
from neuromanifold.errors import ArgumentError
from neuromanifold.style import figure_of


@pytest.fixture
def model(tmp_path):
    """From the name of a family and a seed to an open model in float64."""
    return lambda name, seed=0: open_checkpoint(
        make_model(tmp_path / f"{name}-{seed}", name, seed, np.float64)
    )


def saved(checkpoint, folder, weights, dtype=None):
    """The folder of a model with other tensors."""
    folder.mkdir()
    checkpoint.write(folder / "model.safetensors", weights, dtype=dtype)
    config = (checkpoint.path / "config.json").read_text()
    (folder / "config.json").write_text(config)
    return folder


def sibling(checkpoint, seed=5, size=0.02):
    """The tensors with noise."""
    random = np.random.default_rng(seed)
    return {
        name: value + size * random.normal(size=value.shape) * np.abs(value).mean()
        for name, value in checkpoint.weights().items()
    }


def largest(found):
    return max([layer.largest for layer in found.layers] + list(found.outer.values()))


def families(*quick):
    """These families, and the others in the slow suite."""
    others = [pytest.param(name, marks=pytest.mark.slow) for name in CONFIGS if name not in quick]
    return [*quick, *others]


@pytest.mark.parametrize("name", families("gpt2-untied", "albert", "gemma2"))
def test_no_continuous_symmetry_changes_distances_or_fingerprints(name, model, tmp_path):
    a = model(name)
    moved = saved(a, tmp_path / "b", act(a.block, random_element(a.block, 1), a.weights()))
    found = compare(a, moved)
    assert largest(found) < 1e-13
    assert str(found).endswith("no difference beyond rounding in any layer, table or head.")
    ours, theirs = model_fingerprint(a), model_fingerprint(moved)
    assert ours.distance(theirs) < 1e-12
    assert ours.hash == theirs.hash
    other = model(name, 7)
    unrelated = compare(a, other)
    assert 1.2 < unrelated.median < 1.45
    assert not unrelated.unchanged
    assert ours.distance(model_fingerprint(other)) > 0.05


def test_rows_that_nothing_reads_are_in_no_distance_fingerprint_or_normal_form(model, tmp_path):
    """RoBERTa's first position is row 2 of its table, and padding has row 1."""
    a = model("roberta")
    weights = a.weights()
    weights["positions"][0] += np.random.default_rng(0).normal(size=24)
    b = open_checkpoint(saved(a, tmp_path / "b", weights))
    assert largest(compare(a, b)) < 1e-13
    assert model_fingerprint(a).hash == model_fingerprint(b).hash
    forms = [Canonical(one).outer() for one in (a, b)]
    for name, value in forms[0].items():
        assert np.allclose(value, forms[1][name], atol=1e-12), name


def rearranged(checkpoint, seed=3):
    """The tensors with heads, groups and neurons of every layer in another order."""
    block, random = checkpoint.block, np.random.default_rng(seed)
    weights, a = checkpoint.weights(), checkpoint.block.attention
    orders = []
    for layer in range(block.stored_layers):
        at = f"layers.{layer}."
        tensors = {name: weights[at + name] for name in block.layer_shapes}
        groups = random.permutation(a.groups)
        heads = np.concatenate([g * a.sharing + random.permutation(a.sharing) for g in groups])
        permute_heads(block, tensors, heads)
        permute_neurons(tensors, random.permutation(block.mlp.size))
        weights |= {at + name: value for name, value in tensors.items()}
        orders.append(heads)
    return weights, orders


@pytest.mark.parametrize("name", ["gpt2", "qwen3"])
def test_other_orders_of_heads_and_neurons_are_found(name, model, tmp_path):
    a = model(name)
    weights, orders = rearranged(a)
    b = saved(a, tmp_path / "b", weights)
    found = compare(a, b)
    assert largest(found) < 1e-13
    for layer, order in zip(found.layers, orders, strict=True):
        np.testing.assert_array_equal(order[list(layer.heads)], np.arange(len(order)))
        assert layer.neurons > 10
    assert model_fingerprint(a).distance(model_fingerprint(b)) < 1e-12
    assert weight_distance(a, Aligned(a, open_checkpoint(b))) < 1e-13


def test_a_signed_permutation_of_the_stream_of_a_tied_model_is_found(model, tmp_path):
    a = model("llama-tied")
    random, weights = np.random.default_rng(0), a.weights()
    d = a.block.width
    P = np.eye(d)[random.permutation(d)] * random.choice([-1.0, 1.0], d)
    for name, value in weights.items():
        word = name.split(".")[-1]
        if word in ("query", "key", "value", "up", "gate", "tokens"):
            weights[name] = value @ P.T
        elif word in ("output", "down"):
            weights[name] = P @ value
        else:
            weights[name] = np.abs(P) @ value
    b = saved(a, tmp_path / "b", weights)
    found = compare(a, b)
    assert found.stream == "permutation"
    assert largest(found) < 1e-13
    assert weight_distance(a, Aligned(a, open_checkpoint(b))) < 1e-13
    assert model_fingerprint(a).distance(model_fingerprint(b)) < 1e-12


def test_distances_are_those_of_the_dense_products(model, tmp_path):
    """Against forms written out as d × d matrices, for plain and for rotary heads."""
    for name in ("gpt2", "llama"):
        a = model(name)
        weights = a.weights()
        random = np.random.default_rng(0)
        moved = dict(weights)
        for word in ("query", "output"):
            value = weights[f"layers.1.{word}"]
            moved[f"layers.1.{word}"] = value + 0.1 * random.normal(size=value.shape)
        found = compare(a, saved(a, tmp_path / name, moved)).layers[1]
        block, at = a.block, "layers.1."
        gamma = weights[f"{at}attention_norm"] + block.norm.offset
        beta = weights.get(f"{at}attention_norm_shift", np.zeros(block.width))
        centre = np.eye(block.width) - (1 / block.width if block.centred else 0)
        share = block.attention.sharing

        def dense(tensors, h, g, at=at, gamma=gamma, beta=beta, centre=centre, a=a, share=share):
            Q, K = tensors[f"{at}query"][g, h % share], tensors[f"{at}key"][g]
            q0 = Q @ beta + tensors.get(f"{at}query_bias", np.zeros((9, 9, len(Q))))[g, h % share]
            Q = np.hstack([Q * gamma @ centre, q0[:, None]])
            K = np.hstack([K * gamma @ centre, np.zeros((len(K), 1))])
            if a.block.attention.rotary is None:
                return Q.T @ K
            x, y = np.array(a.block.attention.rotary.planes).T
            return np.einsum("pe,pf->pef", (Q[x] + 1j * Q[y]).conj(), K[x] + 1j * K[y])

        for h in range(block.attention.heads):
            g = h // share
            M, N = dense(weights, h, g), dense(moved, h, g)
            expected = np.linalg.norm(M - N) / max(np.linalg.norm(M), np.linalg.norm(N))
            assert found.scores[h] == pytest.approx(expected, rel=1e-10)
            V = weights[f"{at}value"][g] * gamma @ centre
            writes = centre if block.centred else np.eye(block.width)
            O, P = (writes @ t[f"{at}output"][g, h % share] @ V for t in (weights, moved))
            expected = np.linalg.norm(O - P) / max(np.linalg.norm(O), np.linalg.norm(P))
            assert found.writes[h] == pytest.approx(expected, rel=1e-10)


def test_inner_products_of_heads_are_those_of_the_dense_forms():
    random = np.random.default_rng(0)

    def heads():
        q, k, o, v = (random.normal(size=(n, 2, 5)) for n in (4, 2, 4, 2))
        planes = [
            random.normal(size=(n, 3, 5)) + 1j * random.normal(size=(n, 3, 5)) for n in (4, 2)
        ]
        return Heads(q, k, *planes, q[:, :0], k[:, :0], o, v)

    def dense(x, h):
        planes = np.einsum("pe,pf->pef", x.query_planes[h].conj(), x.key_planes[h // 2])
        return x.query[h].T @ x.key[h // 2], planes, x.output[h].T @ x.value[h // 2]

    a, b = heads(), heads()
    scores, writes = head_products(a, b)
    for i in range(4):
        for j in range(4):
            (x, p, o), (y, q, w) = dense(a, i), dense(b, j)
            assert scores[i, j] == pytest.approx(np.sum(x * y) + np.vdot(p, q).real)
            assert writes[i, j] == pytest.approx(np.sum(o * w))


def test_a_changed_head_is_found_behind_a_gauge_and_rounding(model, tmp_path):
    a = model("llama")
    weights = a.weights()
    weights["layers.1.query"][1, 0] *= 1.5
    moved = act(a.block, random_element(a.block, 2), weights)
    b = saved(a, tmp_path / "b", moved, np.dtype(np.float32))
    found = compare(a, b)
    assert found.unchanged == [0]
    layer = found.layers[1]
    assert layer.scores[2] == pytest.approx(1 / 3, abs=1e-5)
    others = np.delete([*layer.scores], 2)
    assert others.max() < max(layer.score_rounding) < 1e-4
    assert max(layer.writes) < max(layer.write_rounding) < 1e-4
    assert found.most_moved()[0][:2] == (1, 2)
    assert "layers unchanged: 0; heads that moved most: 1.2" in str(found)


def test_a_head_that_rounding_hides_hides_nothing_else(model, tmp_path):
    """Head 0 writes ten million times less than its factors let it."""
    a = model("gpt2")
    weights = a.weights()
    weights["layers.0.value"][0, 1:] *= 1e-7
    weights["layers.0.output"][0, 0][:, np.arange(6) != 1] *= 1e-7
    before = saved(a, tmp_path / "before", weights, np.dtype(np.float32))
    for name, part in (("down", "neuron"), ("query", "scores"), ("output_bias", "vectors")):
        changed = {**weights, f"layers.0.{name}": 1.2 * weights[f"layers.0.{name}"]}
        found = compare(before, saved(a, tmp_path / name, changed, np.dtype(np.float32)))
        assert max(found.layers[0].write_rounding) > 1, part
        assert found.unchanged == [1], part


def test_a_single_row_beyond_rounding_is_seen_among_thousands(tmp_path):
    """In bfloat16 the whole table may move by more than one row of it is long."""
    config = {**CONFIGS["llama-tied"], "vocab_size": 4000, "intermediate_size": 4000}
    tensors = tensors_of(config, dtype=ml_dtypes.bfloat16)
    base = save_model(tmp_path / "base", config, tensors)
    down, tokens = "model.layers.1.mlp.down_proj.weight", "model.embed_tokens.weight"
    spoiled = {down: tensors[down].copy(), tokens: tensors[tokens].copy()}
    spoiled[down][:, 7] = tensors[down][:, 8]
    spoiled[tokens][7] = tensors[tokens][8]
    neuron, row = (
        compare(base, save_model(tmp_path / name[-12:], config, {**tensors, name: value}))
        for name, value in spoiled.items()
    )
    assert neuron.layers[1].mlp < row.rounding
    assert neuron.unchanged == [0]
    assert row.outer["tokens"] < row.rounding
    assert "tokens changed" in str(row)


def test_models_of_different_shapes_are_refused(model, tmp_path):
    with pytest.raises(ArgumentError, match="models of one shape"):
        compare(model("gpt2"), model("llama"))
    with pytest.raises(ArgumentError, match="different shapes"):
        model_fingerprint(model("gpt2")).distance(model_fingerprint(model("llama")))


def test_the_heat_map_draws_into_given_axes(model):
    found = compare(model("gpt2"), model("gpt2", 1))
    figure = Figure()
    axes = [figure.add_subplot(1, 2, i) for i in (1, 2)]
    assert compare_figure(found, ax=axes) is axes
    drawn = np.asarray(axes[0].images[0].get_array())
    np.testing.assert_allclose(drawn, [layer.scores for layer in found.layers])
    assert len(figure_of(compare_figure(found)[0]).axes) == 3


@pytest.mark.parametrize("name", families("albert", "llama", "gpt2-relu2"))
def test_aligning_undoes_a_random_gauge(name, model, tmp_path):
    a = model(name)
    element = random_element(a.block, 1)
    b = open_checkpoint(saved(a, tmp_path / "b", act(a.block, element, a.weights())))
    assert weight_distance(a, b) > 0.1
    assert weight_distance(a, Aligned(a, b)) < 1e-12
    near = saved(a, tmp_path / "near", sibling(a))
    far = open_checkpoint(saved(a, tmp_path / "far", act(a.block, element, sibling(a))))
    before, after = weight_distance(a, open_checkpoint(near)), weight_distance(a, Aligned(a, far))
    # GPT-J's queries and keys have no bias, and take a shift of the norm up by a quotient
    assert after < (3.0 if name == "gptj" else 1.7) * before
    assert after < 0.2 * weight_distance(a, far)


def test_aligning_keeps_the_function_and_lowers_the_barrier(model, tmp_path):
    a = model("llama")
    far = saved(a, tmp_path / "far", act(a.block, random_element(a.block, 1), sibling(a)))
    out = tmp_path / "aligned.safetensors"
    report = align(a, far, out)
    assert report.deviation < 1e-12
    assert report.barrier[1] < 0.3 * report.barrier[0]
    assert report.distance[1] < 0.2 * report.distance[0]
    near = align(a, saved(a, tmp_path / "near", sibling(a)))
    assert report.barrier[1] == pytest.approx(near.barrier[0], rel=0.05)
    written = open_checkpoint(out, config=tmp_path / "far" / "config.json")
    assert largest(compare(far, written)) < 1e-13
    assert weight_distance(a, written) == pytest.approx(report.distance[1], rel=1e-6)


def test_aligning_undoes_a_gauge_of_condition_a_million(model, tmp_path):
    a = model("gpt2")
    weights, at = {n: v.copy() for n, v in a.weights().items()}, "layers.0."
    change = np.diag(np.logspace(-3, 3, a.block.attention.value_size))
    weights[f"{at}value"] = change @ weights[f"{at}value"]
    weights[f"{at}value_bias"] = weights[f"{at}value_bias"] @ change
    weights[f"{at}output"] = weights[f"{at}output"] @ np.linalg.inv(change)
    report = align(a, saved(a, tmp_path / "b", weights))
    assert report.distance[0] > 10
    assert report.distance[1] < 1e-6


def test_aligning_never_leads_away(model, tmp_path):
    a = model("llama")
    weights = {n: v.copy() for n, v in a.weights().items()}
    for name, value in weights.items():
        if name.endswith("norm"):
            value[::3] = 0.0
    report = align(a, saved(a, tmp_path / "b", weights))
    assert report.distance[1] <= report.distance[0]


def test_the_nearest_scale_is_that_of_a_fine_search():
    random = np.random.default_rng(0)
    x, y, x2, y2 = (random.normal(size=(20, 6)) for _ in range(4))
    grid = np.concatenate([np.geomspace(1e-2, 1e2, 40001), -np.geomspace(1e-2, 1e2, 40001)])

    def cost(c, i):
        return np.sum((c * x2[i] - x[i]) ** 2) + np.sum((y2[i] / c - y[i]) ** 2)

    for i, c in enumerate(nearest_scale(x, y, x2, y2)):
        assert cost(c, i) <= min(cost(g, i) for g in grid[::40]) + 1e-9
    for i, c in enumerate(nearest_scale(x, y, x2, y2, signed=False)):
        assert c > 0
        assert cost(c, i) <= min(cost(g, i) for g in grid[:40001:40]) + 1e-9
    z, w = (random.normal(size=(5, 4)) + 1j * random.normal(size=(5, 4)) for _ in range(2))
    c0 = np.array([0.3 + 2j, -1.0, 1j, 5.0, 1 - 1j])
    np.testing.assert_allclose(nearest_scale(c0[:, None] * z, w / c0.conj()[:, None], z, w), c0)
    assert nearest_scale(0 * x, y, x2, y2)[0] == 1


def test_the_nearest_basis_is_a_minimum_and_exact_on_orbits():
    random = np.random.default_rng(0)
    L, R = random.normal(size=(4, 9)), random.normal(size=(4, 7))
    C = random.normal(size=(4, 4))
    moved = np.linalg.solve(C.T, L), C @ R
    np.testing.assert_allclose(nearest_basis(*moved, L, R), C, atol=1e-10)
    L2, R2 = L + 0.3 * random.normal(size=L.shape), R + 0.3 * random.normal(size=R.shape)

    def cost(C):
        return np.sum((C @ R2 - R) ** 2) + np.sum((np.linalg.solve(C.T, L2) - L) ** 2)

    best = nearest_basis(L, R, L2, R2)
    assert cost(best) <= cost(np.eye(4))
    for _ in range(20):
        assert cost(best) <= cost(best @ (np.eye(4) + 1e-3 * random.normal(size=(4, 4)))) + 1e-8
    np.testing.assert_array_equal(nearest_basis(L, R, 0 * L, R), np.eye(4))


def test_commands(model, tmp_path, capsys):
    a = model("gpt2").path
    b = saved(model("gpt2", 1), tmp_path / "b", sibling(open_checkpoint(a)))
    figure = tmp_path / "moved.svg"

    def run(*words):
        code = main(["checkpoint", *map(str, words)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    code, out, _ = run("compare", a, b, "--figure", figure)
    assert code == 0
    assert "median distance of heads" in out
    assert figure.read_text().startswith("<?xml")
    answer = json.loads(run("compare", a, b, "--json")[1])
    assert len(answer["layers"]) == 2
    assert answer["layers"][0]["heads"] == [0, 1, 2, 3]
    code, out, _ = run("align", a, b, "--out", tmp_path / "c.safetensors", "--json")
    assert json.loads(out)["deviation"] < 1e-12
    assert (tmp_path / "c.safetensors").exists()
    answer = json.loads(run("fingerprint", a, "--json")[1])
    assert answer["hash"] in run("fingerprint", a)[1]
    for words, sentence in (
        (("compare", a, model("llama").path), "models of one shape"),
        (("compare", a, tmp_path / "x"), "does not exist"),
        (("compare", a, b, "--figure", tmp_path / "x.txt"), ".png, .svg or .pdf"),
        (("align", a, b, "--out", tmp_path / "c.safetensors"), "exists"),
        (("fingerprint", tmp_path / "x"), "does not exist"),
    ):
        code, out, error = run(*words)
        assert (code, out) == (2, "")
        assert sentence in error
        assert error.count("\n") == 1


def test_the_public_face(model):
    a, b = model("gpt2").path, model("gpt2", 1).path
    opened = nm.checkpoint(a)
    assert opened.compare(b) == compare(a, b)
    assert opened.align(a).distance == (0.0, pytest.approx(0.0, abs=1e-12))
    assert opened.fingerprint().hash == model_fingerprint(a).hash
    assert nm.compare is compare
    assert nm.align is align
    assert nm.model_fingerprint is model_fingerprint
