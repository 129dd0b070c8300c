"""`neuromanifold paper`: what it writes, and its exit codes."""

import json

import pytest

from neuromanifold.cli import main
from neuromanifold.formula import all_widths
from neuromanifold.paper.checks import run
from neuromanifold.paper.checks.exact_dimensions import certified


@pytest.fixture(autouse=True)
def no_progress_lines(monkeypatch):
    monkeypatch.setattr("neuromanifold.waiting._PATIENCE", 3600.0)


def paper(capsys, *arguments):
    code = main(["paper", "--quick", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_one_statement_is_checked_and_reported(capsys, tmp_path):
    out = tmp_path / "new" / "report"
    code, text, err = paper(capsys, "--out", out, "--only", "lemma-3.1")
    assert (code, err) == (0, "")
    assert text.splitlines() == ["1 holds", f"open {out / 'index.html'}"]
    (entry,) = json.loads((out / "results.json").read_text())["statements"]
    assert entry["id"] == "lemma-3.1"
    assert (out / "evidence" / "lemma-3.1.json").is_file()


def test_the_answer_as_json(capsys, tmp_path):
    code, text, _ = paper(capsys, "--out", tmp_path, "--only", "def-3", "--json")
    answer = json.loads(text)
    assert code == 0
    assert answer["failed"] == []
    assert answer["statements"][0]["verdict"] == "corrected"


def test_a_broken_formula_exits_with_one_and_names_the_statement(capsys, tmp_path, monkeypatch):
    right = all_widths.virtual_dimension
    monkeypatch.setattr(all_widths, "virtual_dimension", lambda *given: right(*given) - 1)
    certified.cache_clear()
    code, out, err = paper(capsys, "--out", tmp_path, "--only", "cor-3.3")
    certified.cache_clear()
    assert code == 1
    assert "fails: cor-3.3" in out.splitlines()
    assert "cor-3.3 fails: " in err


def test_an_interruption_keeps_what_is_done(capsys, tmp_path, monkeypatch):
    def interrupt(trial):
        raise KeyboardInterrupt

    monkeypatch.setitem(run.CHECKS, "eq-2", interrupt)
    code, _, err = paper(capsys, "--out", tmp_path)
    assert code == 130
    assert f"interrupted after 2 of {len(run.CHECKS)} checks" in err
    assert {file.stem for file in (tmp_path / "evidence").iterdir()} == {"def-1", "eq-1"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--only", "thm-9"], "got 'thm-9': `neuromanifold statements` lists all"),
        (["--out", "{file}/report"], "cannot be made"),
    ],
)
def test_misuse_is_one_sentence(capsys, tmp_path, arguments, sentence):
    file = tmp_path / "file"
    file.write_text("")
    code, _, err = paper(capsys, *(part.format(file=file) for part in arguments))
    assert code == 2
    assert sentence in err
    assert err.count("\n") == 1


def test_the_command_has_help_with_an_example(capsys):
    assert main(["paper", "--help"]) == 0
    assert "Example: neuromanifold paper" in capsys.readouterr().out
