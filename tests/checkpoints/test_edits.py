"""Edits keep the function, and `same` sees through them."""

import json

import numpy as np
import pytest
from models import CONFIGS, make_model, save_model, tensors_of

from neuromanifold.checkpoints.checkpoint import open_checkpoint
from neuromanifold.checkpoints.edit import fold_norms
from neuromanifold.checkpoints.equality.same import same
from neuromanifold.checkpoints.reading import open_model
from neuromanifold.cli import main


def test_convert_rope_and_back_keeps_every_bit_and_same_names_the_layout(tmp_path, capsys):
    source, there, back = make_model(tmp_path / "m", "qwen3"), tmp_path / "there", tmp_path / "back"
    assert main(["checkpoint", "convert-rope", str(source), str(there), "--to", "interleaved"]) == 0
    assert main(["checkpoint", "convert-rope", str(there), str(back), "--to", "half"]) == 0
    before, after = open_model(source), open_model(back)
    for name in before.names:
        assert np.array_equal(before.tensor(name), after.tensor(name))
    query = "model.layers.0.self_attn.q_proj.weight"  # rows of a head: 0, 4, 1, 5, …
    rows, turned = before.tensor(query).reshape(4, 8, 24), open_model(there).tensor(query)
    assert np.array_equal(turned.reshape(4, 8, 24)[1], rows[1][[0, 4, 1, 5, 2, 6, 3, 7]])
    capsys.readouterr()
    assert main(["checkpoint", "same", str(source), str(there), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["level"], answer["symmetries"]) == ("exact", ["rotary layout"])


def test_a_forgotten_layout_flag_is_caught(tmp_path):
    source = make_model(tmp_path / "m", "llama")
    main(["checkpoint", "convert-rope", str(source), str(tmp_path / "o"), "--to", "interleaved"])
    (tmp_path / "o" / "config.json").write_text(json.dumps(CONFIGS["llama"]))
    found = same(open_checkpoint(source), open_checkpoint(tmp_path / "o"))
    assert found.verdict == "different"


def test_folded_norms_are_the_same_function_and_an_untied_head_too(tmp_path, capsys):
    source = make_model(tmp_path / "m", "llama-tied")
    assert main(["checkpoint", "fold-norms", str(source), str(tmp_path / "f"), "--untie"]) == 0
    folded = open_checkpoint(tmp_path / "f")
    assert np.array_equal(folded.tensor("final_norm"), np.ones(24))
    assert np.array_equal(folded.tensor("layers.1.mlp_norm"), np.ones(24))
    element = tmp_path / "g.safetensors"
    line = ["checkpoint", "same", str(source), str(tmp_path / "f"), "--element-out", str(element)]
    assert main(line) == 0
    assert "untied head, norm gains" in capsys.readouterr().out
    assert element.exists()


@pytest.mark.parametrize(("name", "table"), [("llama", "tokens"), ("gpt2", "positions")])
def test_a_wrong_row_of_a_table_that_random_text_does_not_meet_is_shown_beside_folded_norms(
    tmp_path, name, table
):
    config = CONFIGS[name] | {"vocab_size": 600, "n_positions": 40}
    first = open_checkpoint(save_model(tmp_path / "m", config, tensors_of(config)))
    fold_norms(first, tmp_path / "f")
    folded = open_checkpoint(tmp_path / "f")
    assert same(first, folded).verdict == "same"
    weights = {key: value.copy() for key, value in folded.weights().items()}
    weights[table][-1, np.abs(weights[table][-1]).argmax()] *= -1
    folded.write(tmp_path / "f" / "model.safetensors", weights, force=True)
    found = same(first, open_checkpoint(tmp_path / "f"))
    assert found.verdict == "different", found
    assert f"{table} {len(weights[table]) - 1}" in found.reason


@pytest.mark.parametrize(
    "line",
    [
        ["canonical", "llama", "--out", "normal"],
        ["canonical", "llama", "--out", "normal.bin", "--force"],
        ["align", "llama", "llama", "--out", "aligned"],
        ["same", "llama", "llama", "--element-out", "element.json"],
    ],
)
def test_a_file_that_no_reader_would_take_is_refused_before_any_work(
    tmp_path, monkeypatch, capsys, line
):
    monkeypatch.chdir(tmp_path)
    make_model(tmp_path / "llama", "llama")
    assert main(["checkpoint", *line]) == 2
    said = capsys.readouterr().err
    assert "must end in .safetensors" in said
    assert said.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["llama"]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (["convert-rope", "gpt2", "out", "--to", "half"], "has no rotary positions"),
        (["fold-norms", "llama", "out", "--untie"], "has no tied head"),
        (["fold-norms", "llama", "llama"], "exists; give the name of a folder"),
        (["same", "llama", "llama", "--rtol", "2"], "--rtol lies between 0 and 1"),
        (["same", "llama", "nothing"], "does not exist"),
        (["audit", "gpt2", "--figure", "a.xyz"], "writes .png, .svg or .pdf"),
        (["canonical", "llama", "--out", "llama/model.safetensors"], "exists"),
        *(
            ([*words, "--max-memory", "1MB"], "1 MB are allowed: give smaller sizes, or a higher")
            for words in (
                ["audit", "gpt2"],
                ["canonical", "llama", "--out", "x.safetensors"],
                ["same", "gpt2", "gpt2"],
                ["compare", "gpt2", "gpt2"],
                ["align", "gpt2", "gpt2", "--out", "x.safetensors"],
                ["fingerprint", "gpt2"],
                ["convert-rope", "llama", "x", "--to", "interleaved"],
                ["fold-norms", "llama", "x"],
            )
        ),
    ],
)
def test_bad_requests_get_one_sentence_and_write_nothing(
    tmp_path, monkeypatch, capsys, line, sentence
):
    for name in ("gpt2", "llama"):
        make_model(tmp_path / name, name)
    monkeypatch.chdir(tmp_path)
    assert main(["checkpoint", *line]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gpt2", "llama"]


def test_a_broken_file_leaves_nothing_half_written(tmp_path):
    tensors = tensors_of(CONFIGS["llama"])
    source = make_model(tmp_path / "m", "llama")
    whole = (source / "model.safetensors").read_bytes()
    (source / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    assert len(tensors) > 10
    assert main(["checkpoint", "fold-norms", str(source), str(tmp_path / "f")]) == 2
    assert not (tmp_path / "f").exists()
