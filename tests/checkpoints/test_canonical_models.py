"""The normal form: the same function, constant on orbits, idempotent, and good under rounding."""

import ml_dtypes
import numpy as np
import pytest
from models import CONFIGS, make_model, save_model, tensors_of
from test_same_models import families, moved, permuted

from neuromanifold.checkpoints.checkpoint import open_checkpoint
from neuromanifold.checkpoints.distance.align import align
from neuromanifold.checkpoints.equality.same import same
from neuromanifold.checkpoints.gauge.group import act, random_element
from neuromanifold.checkpoints.normal_form.canonical import Canonical, Steps, write_canonical
from neuromanifold.checkpoints.running import deviation, random_inputs, run
from neuromanifold.errors import NotCoveredError


def largest(first, second):
    return max(
        float(np.abs(first[name] - second[name]).max() / max(np.abs(first[name]).max(), 1e-300))
        for name in first
    )


@families("gpt2-untied", "llama", "bert", "phi", "t5")
def test_it_keeps_the_function_and_is_constant_on_orbits(tmp_path, name):
    first = open_checkpoint(make_model(tmp_path / "first", name, dtype=np.float64))
    weights = act(first.block, random_element(first.block, seed=3), first.weights())
    second = moved(tmp_path, first, permuted(first.block, weights, seed=4))
    form, other = Canonical(first), Canonical(second)
    assert largest(form.weights(), other.weights()) < 1e-9
    half = np.dtype(np.float16)
    files = [
        moved(tmp_path, first, f.tensor, half, w).model for f, w in ((form, "a"), (other, "b"))
    ]
    for tensor in files[0].names:
        x, y = (file.tensor(tensor).astype(float) for file in files)
        assert np.all(np.abs(x - y) <= 2.0**-10 * np.abs(x) + 1e-9 * np.abs(x).max()), tensor
    inputs = random_inputs(first.block, 0)
    assert deviation(run(first, inputs).outputs, run(form, inputs).outputs) < 1e-12


def test_every_family_has_one_normal_form_on_an_orbit_and_it_is_its_own(tmp_path):
    for name in CONFIGS:
        first = open_checkpoint(make_model(tmp_path / name, name, dtype=np.float64))
        weights = act(first.block, random_element(first.block, seed=3), first.weights())
        weights = permuted(first.block, weights, seed=4)
        second = moved(tmp_path, first, weights, name=f"{name} moved")
        found = same(first, second)
        assert (found.verdict, found.level) == ("same", "equal to rounding"), (name, found)
        form = Canonical(first).weights()
        assert largest(form, Canonical(second).weights()) < 1e-9, name
        again = Canonical(moved(tmp_path, first, form, name=f"{name} form")).weights()
        assert largest(form, again) < 1e-9, name


def test_the_file_loads_where_the_original_did_and_reports_what_rounding_did(tmp_path):
    model = open_checkpoint(make_model(tmp_path / "m", "llama", dtype=ml_dtypes.bfloat16))
    folder = tmp_path / "normal"
    folder.mkdir()
    (folder / "config.json").write_bytes((model.path / "config.json").read_bytes())
    report = write_canonical(model, folder / "model.safetensors")
    assert report.float64 < 1e-12
    assert 1e-6 < report.stored < 0.1
    assert len(report.layers) == 2
    written = open_checkpoint(folder)
    assert written.dtype("layers.0.key") == np.dtype(ml_dtypes.bfloat16)
    assert deviation(
        run(written, random_inputs(model.block, 0)).outputs,
        run(model, random_inputs(model.block, 0)).outputs,
    ) == pytest.approx(report.stored, rel=0.3)


def test_balanced_factors_survive_rounding_as_well_as_the_original_and_wild_ones_do_not(tmp_path):
    first = open_checkpoint(make_model(tmp_path / "m", "gpt2", dtype=np.float64))
    weights = dict(first.weights())
    k = first.block.attention.key_size
    generator = np.random.default_rng(0)
    for layer in range(2):
        ends = [np.linalg.qr(generator.normal(size=(k, k)))[0] for _ in range(2)]
        C = ends[0] @ np.diag(np.logspace(-1.5, 1.5, k)) @ ends[1]
        inverse = np.linalg.inv(C)
        at = f"layers.{layer}."
        weights[f"{at}key"] = C @ weights[f"{at}key"]
        weights[f"{at}query"] = inverse.T @ weights[f"{at}query"]
        weights[f"{at}query_bias"] = weights[f"{at}query_bias"] @ inverse
        weights[f"{at}key_bias"] = weights[f"{at}key_bias"] @ C.T
    wild = moved(tmp_path, first, weights)
    balanced = Steps(fold=False, drop_dead=False, balance=True, order=False)
    half = np.dtype(ml_dtypes.bfloat16)
    errors = {}
    for name, model, steps in (
        ("original", first, None),
        ("wild", wild, None),
        ("balanced", wild, balanced),
    ):
        form = model if steps is None else Canonical(model, steps)
        rounded = moved(tmp_path, first, form.tensor, half, name)
        inputs = random_inputs(first.block, 1)
        errors[name] = deviation(run(first, inputs).outputs, run(rounded, inputs).outputs)
    assert errors["balanced"] < 3 * errors["original"]
    assert errors["wild"] > 5 * errors["balanced"]


def test_each_step_alone_keeps_the_function(tmp_path):
    model = open_checkpoint(make_model(tmp_path, "gpt2", dtype=np.float64))
    inputs = random_inputs(model.block, 0)
    before = run(model, inputs).outputs
    off = {"fold": False, "drop_dead": False, "balance": False, "order": False}
    for step in off:
        form = Canonical(model, Steps(**{**off, step: True}))
        assert deviation(before, run(form, inputs).outputs) < 1e-12


@pytest.mark.parametrize("name", ["bert", "albert"])
def test_a_token_table_that_a_head_outside_reads_stays_as_it_is(tmp_path, name):
    bias = {"cls.predictions.bias": np.ones(60, np.float32)}
    models = [
        open_checkpoint(save_model(tmp_path / f"{seed}", config, tensors_of(config, seed) | bias))
        for config in [CONFIGS[name]]
        for seed in (0, 1)
    ]
    model, inputs = models[0], random_inputs(models[0].block, 0)
    files = [tmp_path / "normal.safetensors", tmp_path / "aligned.safetensors"]
    report = write_canonical(model, files[0])
    align(models[1], model, files[1])
    hidden = run(model, inputs).outputs
    for file in files:
        written = open_checkpoint(file, config=model.path / "config.json")
        assert np.array_equal(written.stored("tokens"), model.stored("tokens")), file
        assert deviation(hidden, run(written, inputs).outputs) < 1e-6, file
    assert 0 < report.stored < 1e-6


def test_parts_that_read_the_hidden_states_beside_a_head_are_refused(tmp_path):
    config = CONFIGS["vit"]
    pooler = {"vit.pooler.dense.bias": np.ones(24, np.float32)}
    model = open_checkpoint(save_model(tmp_path / "m", config, tensors_of(config) | pooler))
    with pytest.raises(NotCoveredError, match=r"vit\.pooler\.dense\.bias"):
        write_canonical(model, tmp_path / "normal.safetensors")
