"""What is too large is refused at once, with the estimate and the option that lifts the limit."""

import json
import time

import pytest

from commands import run
from neuromanifold import cost
from neuromanifold.architecture import Architecture
from neuromanifold.cli.run import RunOptions
from neuromanifold.errors import ArgumentError

SMALL = ["--widths", "4,2,3", "--ranks", "2,2", "--tokens", "3"]


def sizes(widths, ranks, tokens, *more):
    return ["--widths", widths, "--ranks", ranks, "--tokens", tokens, *more]


LARGE = [
    sizes("100000,100000", "100000", "3"),
    sizes("4,4", "1000000000", "3"),
    sizes("4,4", "2", "1000000000", "--attention", "softmax"),
    sizes("4,4", "2", "1000000000"),
    sizes("4,4", "2", "3", "--heads", "1000000"),
    sizes("3000,3000", "3000", "4"),
    sizes("1000000000000,1000000000000", "1000000000000", "1000000000000"),
]
COMMANDS = [
    ["dim", "--certify"],
    ["dim", "--estimate"],
    ["explain"],
    ["identifiable", "A.0[0,0,0]"],
    ["certify", "--out", "c.json"],
    ["discover"],
    ["sensitivity"],
]


def test_large_networks_are_refused_at_once(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    started = time.process_time()
    for network in LARGE:
        for command in COMMANDS:
            code, out, err = run(capsys, *command, *network, "--max-memory", "4GB")
            assert (code, out, err.count("\n")) == (2, "", 1), (command, network, err)
            assert "--max-memory" in err
            assert "would take about" in err
        assert run(capsys, "dim", *network)[0] == 0
        assert run(capsys, "redundancy", *network)[0] == 0
    for network in (LARGE[0], LARGE[1], LARGE[4], LARGE[6]):
        code, _, err = run(capsys, "weights", "init", *network, "--out", "w", "--max-memory", "1GB")
        assert (code, "drawing weights would take" in err) == (2, True)
    assert list(tmp_path.iterdir()) == []
    assert time.process_time() - started < 10


def test_a_limit_is_kept_and_lifted(capsys):
    for option, amount in (("--max-memory", "1MB"), ("--max-time", "0.01s")):
        code, _, err = run(capsys, "dim", *SMALL, "--certify", option, amount)
        assert code == 2
        assert option in err
    code, out, _ = run(capsys, "dim", *SMALL, "--certify", "--max-memory", "2GB", "--json")
    assert code == 0
    assert json.loads(out)["certificate"]["lower"] == 24


def test_a_weights_file_too_large_to_hold_is_not_read(capsys, tmp_path):
    file = tmp_path / "w.safetensors"
    with file.open("wb") as handle:
        handle.truncate(2**32)  # a hole: four gigabytes that take no room
    for command in (["weights", "show"], ["classify"], ["fiber", "describe"], ["recover"]):
        code, _, err = run(capsys, *command, file, "--max-memory", "2GB")
        assert (code, "reading" in err, "--max-memory" in err) == (2, True, True), err


@pytest.mark.parametrize(
    ("text", "amount"),
    [("8GB", 8 * 2**30), ("512m", 2**29), ("1.5 GiB", 1.5 * 2**30), ("1000", 1000), ("2T", 2**41)],
)
def test_amounts_of_memory(text, amount):
    assert RunOptions(max_memory=text).limits.bytes == amount


def test_amounts_of_time_and_what_is_none():
    assert RunOptions(max_time="20min").limits.seconds == 1200
    assert RunOptions(max_time="90").limits.seconds == 90
    assert RunOptions().limits.bytes <= cost.free_memory()
    for wrong in ("much", "-1GB", "1e9", "9" * 400, "1 PB", "nan"):
        with pytest.raises(ArgumentError, match="must be an amount"):
            _ = RunOptions(max_memory=wrong).limits


def test_costs_grow_with_every_size():
    base = {"widths": (8, 8, 8), "ranks": (4, 4), "tokens": 4, "attention": "softmax", "heads": 2}
    larger = [
        {"widths": (16, 16, 16)},
        {"ranks": (8, 8)},
        {"tokens": 8},
        {"heads": 4},
        {"widths": (8,) * 5, "ranks": (4,) * 4},
    ]
    small = cost.sizes_of(Architecture(**base))
    models = (cost.certifying, cost.verifying, cost.estimating, cost.transforming)
    for model in (*models, lambda sizes: cost.sensing(sizes, 4)):
        for change in larger:
            large = cost.sizes_of(Architecture(**{**base, **change}))
            assert model(large).bytes > model(small).bytes
            assert model(large).seconds > model(small).seconds


def test_no_estimate_says_that_it_takes_no_time():
    for seconds, said in ((0.0, "0.1 s"), (0.04, "0.1 s"), (2.0, "2.0 s"), (7200, "2.0 h")):
        assert str(cost.Cost(2**30, seconds)) == f"about 1 GB of memory and {said}"


def test_known_symmetries_make_a_rank_cheaper():
    thirty_thousand = cost.sizes_of(Architecture((50,) * 5, (50,) * 4, 3))
    assert thirty_thousand.parameters == 30_000
    assert thirty_thousand.kernel == 17_500
    assert cost.certifying(thirty_thousand).bytes < 3 * 2**30
