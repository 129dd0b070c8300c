"""However a command ends, the exit code says how, and a crash never looks like a refutation."""

import importlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from commands import MAIN, run, start

NETWORK = ["--widths", "4,2,3", "--ranks", "2,2", "--tokens", "3"]


def broken(error):
    def raise_it(*_arguments, **_options):
        raise error

    return raise_it


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (ValueError("a sign\nwas \x1b[31mlost"), 3, "ValueError: a sign was \\x1b[31mlost"),
        (RecursionError("too deep"), 3, "please report it"),
        (MemoryError(), 2, "there is not enough memory"),
        (PermissionError(13, "Permission denied", "w.safetensors"), 2, "w.safetensors: Permission"),
        (KeyboardInterrupt(), 130, "interrupted; nothing was written"),
    ],
)
def test_an_error_has_its_code_and_one_line(error, code, sentence, capsys, monkeypatch):
    monkeypatch.setattr("neuromanifold.formula.formula.dimension_formula", broken(error))
    found, out, err = run(capsys, "dim", *NETWORK)
    assert (found, out) == (code, "")
    assert sentence in err
    assert err.startswith("neuromanifold: ")
    assert err.count("\n") == 1
    found, out, err = run(capsys, "dim", *NETWORK, "--debug")
    assert found == code
    assert ("Traceback" in err) == (code != 130)


@pytest.mark.parametrize("words", ["statements", "--help", "dim --help", "dim --version"])
def test_a_reader_who_leaves_is_no_error(words):
    process = subprocess.run(
        f"{sys.executable} -c '{MAIN}' {words} | head -n 0; exit ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
    )
    assert (process.returncode, process.stderr) == (0, "")


@pytest.mark.parametrize(
    ("command", "code"), [("statements >&-", 0), ("dim --bad 2>&-", 2), ("dim --bad >&- 2>&-", 2)]
)
def test_a_stream_that_is_closed_from_the_start_changes_no_code(command, code):
    process = subprocess.run(
        f"{sys.executable} -c '{MAIN}' {command}", shell=True, capture_output=True, text=True
    )
    assert (process.returncode, process.stdout) == (code, "")
    assert "error of the program" not in process.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("words", [["--help"], NETWORK, [*NETWORK, "--json"]])
def test_a_terminal_without_greek_gets_escapes(encoding, words):
    process = subprocess.run(
        [sys.executable, "-c", MAIN, "redundancy", *words],
        env=os.environ | {"PYTHONIOENCODING": encoding},
        capture_output=True,
    )
    assert (process.returncode, process.stderr) == (0, b"")
    text = process.stdout.decode(encoding)
    if "--json" in words:
        assert "(λA, V/λ)" in json.loads(text)["shares"][2]["meaning"]


def interrupted(arguments, after, presses=1):
    """The end of a command whose whole group of processes gets Ctrl-C `after` seconds."""
    process = start(*arguments)
    time.sleep(after)
    for _ in range(presses):
        os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    return process.returncode, err


class Finalised:
    """An object in whose finaliser Ctrl-C is pressed; Python drops what is raised there."""

    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)


def test_ctrl_c_inside_a_finaliser_is_not_lost(capsys, monkeypatch):
    def slow(*_arguments, **_options):
        Finalised()
        time.sleep(5)
        pytest.fail("the interrupt was lost")

    monkeypatch.setattr("neuromanifold.formula.formula.dimension_formula", slow)
    code, out, err = run(capsys, "dim", *NETWORK)
    assert (code, out, err) == (130, "", "neuromanifold: interrupted; nothing was written\n")


def test_ctrl_c_waits_for_a_module_that_is_loading(capsys, monkeypatch, tmp_path):
    (tmp_path / "loading_slowly.py").write_text(
        "import os, signal, time\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "time.sleep(0.2)\n"
        "loaded = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def slow(*_arguments, **_options):
        assert importlib.import_module("loading_slowly").loaded
        time.sleep(5)
        pytest.fail("the interrupt was lost")

    monkeypatch.setattr("neuromanifold.formula.formula.dimension_formula", slow)
    code, out, err = run(capsys, "dim", *NETWORK)
    assert (code, out, err) == (130, "", "neuromanifold: interrupted; nothing was written\n")
    assert sys.modules.pop("loading_slowly").loaded


def test_ctrl_c_ends_a_computation_with_its_sentence():
    long = ["dim", "--widths", "20,20", "--ranks", "10", "--tokens", "64", "--certify"]
    for after in (0.7, 2.5):
        code, err = interrupted([*long, "--attention", "softmax"], after)
        assert (code, "Traceback" in err) == (130, False), err
        assert err.endswith("neuromanifold: interrupted; nothing was written\n")


def test_ctrl_c_ends_a_sweep_with_its_workers_and_its_sentence(tmp_path):
    grid, out = tmp_path / "g.toml", tmp_path / "a.sqlite"
    grid.write_text(
        '[architecture]\nwidths = { each = "1..3" }\nranks = [1]\ntokens = 2\n[tasks]\nseeds = 400'
    )
    for after in (1.2, 4.0):
        code, err = interrupted(["atlas", "run", grid, "--out", out, "--yes"], after)
        assert (code, "Traceback" in err) == (130, False), err
        assert err.endswith("the same command goes on from there\n")
