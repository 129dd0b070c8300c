"""`neuromanifold checkpoint adapter`: answers, files, and sentences for bad input."""

import json

import numpy as np

from checkpoints.peft_files import factors, regauged, write_adapter
from neuromanifold.checkpoints.adapters.compare import adapter_distance
from neuromanifold.checkpoints.adapters.peft import load_adapter
from neuromanifold.cli import main


def run(capsys, *arguments):
    code = main(["checkpoint", "adapter", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_audit(tmp_path, capsys):
    a = write_adapter(tmp_path / "a", factors())
    code, out, _ = run(capsys, "audit", a)
    assert code == 0
    assert "4 modules, 304 parameters, inner sizes 4, true ranks 4" in out
    answer = json.loads(run(capsys, "audit", a, "--json")[1])
    assert answer["needed"] == 304
    assert answer["redundant"] == 64
    assert answer["modules"][0]["verdict"] == "exact"
    assert len(answer["modules"][0]["singular_values"]) == 4


def test_canonical_merge_and_shrink_write_adapters(tmp_path, capsys):
    a = write_adapter(tmp_path / "a", factors())
    b = write_adapter(tmp_path / "b", factors(1))
    code, out, _ = run(capsys, "canonical", a, "--out", tmp_path / "c")
    assert code == 0
    assert "Written to" in out
    assert adapter_distance(a, tmp_path / "c").level == "equal to rounding"
    arguments = ("merge", a, b, "--weights", "1,-2", "--out", tmp_path / "m", "--json")
    code, out, _ = run(capsys, *arguments)
    assert json.loads(out)["relative"] < 1e-6
    name = next(iter(load_adapter(a).modules))
    made, x, y = (load_adapter(folder).update(name).dense for folder in (tmp_path / "m", a, b))
    np.testing.assert_allclose(made, x - 2 * y, atol=1e-5)
    code, out, _ = run(
        capsys, "shrink", a, "--rank", "2", "--dtype", "bfloat16", "--out", tmp_path / "s", "--json"
    )
    answer = json.loads(out)
    assert {module["rank"] for module in answer["modules"]} == {2}
    assert str(load_adapter(tmp_path / "s").update(name).dtype) == "bfloat16"


def test_compare_finds_duplicates(tmp_path, capsys):
    pairs = factors(dtype=np.float64)
    folders = [
        write_adapter(tmp_path / "a", pairs),
        write_adapter(tmp_path / "b", regauged(pairs)),
        write_adapter(tmp_path / "c", factors(1)),
    ]
    code, out, _ = run(capsys, "compare", *folders)
    assert code == 0
    assert f"The same adapter: {folders[0]}, {folders[1]}." in out
    answer = json.loads(run(capsys, "compare", *folders, "--json")[1])
    assert [pair["level"] for pair in answer["pairs"]] == [
        "equal to rounding",
        "different",
        "different",
    ]
    assert answer["duplicates"] == [[str(folders[0]), str(folders[1])]]


def test_bad_input_is_one_sentence(tmp_path, capsys):
    a = write_adapter(tmp_path / "a", factors())
    out = tmp_path / "out"
    for arguments, sentence in (
        (("audit", tmp_path), "no adapter_config.json"),
        (("audit", tmp_path / "nothing"), "nothing does not exist; give the folder of an adapter"),
        (("compare", a), "at least two"),
        (("merge", a, a, "--weights", "1;2", "--out", out), "numbers with commas"),
        (("merge", a, a, "--weights", "1", "--out", out), "one weight an adapter"),
        (("merge", "--out", out), "one weight an adapter"),
        (("shrink", a, "--rank", "0", "--out", out), "at least 1"),
        (("canonical", a, "--out", a), "exists"),
        (("canonical", a, "--dtype", "int8", "--out", out), "dtype"),
    ):
        code, text, error = run(capsys, *arguments)
        assert (code, text) == (2, "")
        assert sentence in error
        assert error.count("\n") == 1
    assert not out.exists()


def test_adapters_too_large_to_hold_are_refused_before_they_are_read(tmp_path, capsys):
    a = write_adapter(tmp_path / "a", factors())
    out = ("--out", tmp_path / "x")
    for words in (["audit", a], ["canonical", a, *out], ["merge", a, a, *out], ["shrink", a, *out]):
        code, _, err = run(capsys, *words, "--max-memory", "1MB")
        assert (code, "a higher --max-memory" in err) == (2, True), err
    assert run(capsys, "compare", a, a, "--max-time", "0.1s")[0] == 2
    assert not (tmp_path / "x").exists()
