"""The command line answers, in JSON as agreed, and bad input is one sentence and exit code 2."""

import json
import subprocess
import sys

import pytest

from commands import run
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.networks.files import load_weights
from neuromanifold.networks.weights import random_weights

NETWORK = ["--widths", "4,2,3", "--ranks", "2,2", "--tokens", "3"]


def options(architecture):
    """The command-line words of a network."""
    words = []
    for field, value in architecture.to_dict().items():
        if value is not None:
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            words += [f"--{field.replace('_', '-')}", text]
    return words


def test_dim_answers_every_network_with_the_agreed_keys(architecture, capsys):
    code, out, err = run(capsys, "dim", *options(architecture), "--json")
    answer, formula = json.loads(out), dimension_formula(architecture)
    assert (code, err) == (0, "")
    assert answer == {
        "architecture": architecture.to_dict(),
        "readout": "logits",
        "parameters": architecture.parameters,
        "formula": {
            "dimension": formula.dimension,
            "status": formula.status,
            "statement": formula.statement,
            "unmet": list(formula.unmet),
        },
        "certificate": None,
        "estimate": None,
    }


def test_dim_prints_a_sentence(capsys):
    code, out, _ = run(capsys, "dim", *NETWORK)
    assert code == 0
    assert "24" in out
    assert "theorem" in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["dim"], "--widths is missing"),
        (["dim", "--widths", "4,2,3", "--tokens", "3"], "--ranks is missing"),
        (["dim", "--widths", "4,0,3", *NETWORK[2:]], "widths[1] must be at least 1; got 0"),
        (["dim", "--widths", "4,-2,3", *NETWORK[2:]], "widths[1] must be at least 1; got -2"),
        (["dim", "--widths", "4;2", *NETWORK[2:]], "whole numbers with commas"),
        (["dim", *NETWORK[:2], "--ranks", "2", "--tokens", "3"], "for each of the 2 layers"),
        (["dim", *NETWORK, "--attention", "linear"], "--attention"),
        (["dim", *NETWORK, "--readout", "loss"], "--readout"),
        (["dim", *NETWORK, "--heads", "two"], "--heads must be a whole number; got 'two'"),
        (["dim", *NETWORK, "--temperature", "x"], "--temperature must be a number; got 'x'"),
        (["dim", *NETWORK, "--heads", "1.5"], "--heads must be a whole number; got '1.5'"),
        (["dim", *NETWORK, "--certify", "--seed", "0.5"], "--seed must be a whole number"),
        (["dim", *NETWORK, "--certify", "--inputs", "40.5"], "--inputs must be a whole number"),
        (["dim", *NETWORK, "--value-ranks", ""], "whole numbers with commas"),
        (["dim", *NETWORK, "--colour", "red"], "--colour"),
        (["dim", "--widths", "-4,2"], "one that begins with a hyphen is written --widths=-4,2"),
        (
            ["dim", "--widths"],
            "--widths needs a value (`neuromanifold dim --help` lists what there is",
        ),
        (["fiber", "same", "a"], "neuromanifold: fiber same needs SECOND"),
        (["fiber", "same", "a", "b", "c"], "fiber same takes fewer words; 'c' is left over"),
        (["certify", *NETWORK], "neuromanifold: certify needs --out"),
        (["--json", "dim", *NETWORK], "options come after the command; '--json' came before it"),
        (["dim", "--heads", "--certify"], "--heads needs a value (`neuromanifold dim --help`"),
        (["dim", "2", *NETWORK], "'2' is left over: a built-in network is described by options"),
        (["dim", *NETWORK, "--inputs", "5"], "--inputs is for a rank; add --certify or --estimate"),
        (["dim", *NETWORK, "--prime", "8388593"], "--prime is for a rank over a prime field"),
        (["certify", *NETWORK, "--reading", "balls", "--out", "c"], "give --weights, or a module"),
        (["statements", "thm 3.7"], "like thm-3.7 or "),
        (["undo"], 'Unknown command "undo"'),
        (["undo"], "fiber, ... (`neuromanifold --help` lists what there is)"),
        (["fiber", "undo"], "describe, count (`neuromanifold fiber --help` lists what there is)"),
        (["dim", *NETWORK, "--certify", "--prime", "8388592"], "prime"),
        (["dim", *NETWORK, "--certify", "--inputs", "0"], "inputs must be at least 1"),
        (["verify", "no-such-file"], "no-such-file is not a file"),
        (["certify", "mine.py:f", "--out", "c.json"], "module.py:function, with an existing file"),
        (["weights", "show", "no-such-file"], "no-such-file is not a file"),
        (
            ["weights", "init", *NETWORK, "--out", "w", "--seed", "-1"],
            '"-1" for --seed. Must be >= 0',
        ),
        (["paper", "--only", "thm-3.2", "--seed", "-1"], '"-1" for --seed. Must be >= 0'),
        (["fiber", "same", "a", "b", "--seed", "-1"], '"-1" for --seed. Must be >= 0'),
        (["fiber", "sample", "a", "--out-dir", "b", "--count", "0"], "--count. Must be >= 1"),
        (["classify", "a", "--tolerance", "nan"], "--tolerance. Must be < 1"),
        (["classify", "a", "--tolerance", "-1"], "--tolerance. Must be >= 0"),
        (["dim", "--weights", "a", "--attention", "softmax"], "brings its own architecture"),
        (["certify", "a.py:f", "--heads", "2", "--out", "c"], "is a network with weights of its"),
        (["explain", "a.py:f", "--weights", "b"], "is a network with weights of its own"),
        (["discover", "a.py:f", "--mask", "causal"], "is a network with weights of its own"),
    ],
)
def test_misuse_is_one_sentence_and_exit_code_two(
    arguments, sentence, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert sentence in err
    assert err.startswith("neuromanifold: ")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_weights_init_writes_what_show_reads(architecture, capsys, tmp_path):
    path = str(tmp_path / "w.safetensors")
    code, _, _ = run(
        capsys, "weights", "init", *options(architecture), "--seed", "7", "--out", path
    )
    assert code == 0
    assert load_weights(path).architecture == architecture
    assert (load_weights(path).flatten() == random_weights(architecture, 7).flatten()).all()
    code, out, _ = run(capsys, "weights", "show", path, "--json")
    answer = json.loads(out)
    assert answer["parameters"] == architecture.parameters
    assert answer["tensors"][0]["shape"] == list(architecture.shapes[0]["query"])
    assert run(capsys, "weights", "show", path)[0] == 0


def test_weights_init_does_not_overwrite_without_force(capsys, tmp_path):
    path = tmp_path / "w"
    path.write_text("mine")
    arguments = ["weights", "init", *NETWORK, "--out", str(path)]
    assert run(capsys, *arguments)[0] == 2
    assert path.read_text() == "mine"
    assert run(capsys, *arguments, "--force")[0] == 0


CERTIFICATE_KEYS = {
    "lower", "upper", "verdict", "exact", "unexplained", "prime", "seed", "inputs", "symmetries",
    "independence", "rank", "obligations",
}  # fmt: skip


def test_dim_certifies_in_the_agreed_form(capsys):
    code, out, _ = run(capsys, "dim", *NETWORK, "--attention", "softmax", "--certify", "--json")
    certificate = json.loads(out)["certificate"]
    assert code == 0
    assert set(certificate) == CERTIFICATE_KEYS
    assert certificate["exact"]
    assert certificate["lower"] == certificate["upper"] == 26
    assert certificate["symmetries"][0] == {"name": "key-query", "dimension": 8}
    assert certificate["independence"] == {"columns": 12, "rank": 12}


def test_dim_answers_at_given_weights(capsys, tmp_path):
    path = str(tmp_path / "w")
    run(capsys, "weights", "init", *NETWORK, "--out", path)
    code, out, _ = run(capsys, "dim", "--weights", path, "--certify", "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["certificate"]["lower"] == 24
    assert answer["formula"]["dimension"] is None
    code, _, err = run(capsys, "dim", "--weights", path, *NETWORK)
    assert code == 2
    assert "brings its own architecture" in err


def test_a_certificate_is_written_once_and_verified(capsys, tmp_path):
    path = tmp_path / "c.json"
    assert run(capsys, "certify", *NETWORK, "--out", str(path))[0] == 0
    before = path.read_bytes()
    assert run(capsys, "certify", *NETWORK, "--out", str(path))[0] == 2
    assert path.read_bytes() == before
    code, out, _ = run(capsys, "verify", str(path), "--json")
    assert code == 0
    assert json.loads(out)["agrees"]
    path.write_bytes(before[:-20])
    assert run(capsys, "verify", str(path))[0] == 2


def test_verify_exits_with_one_when_a_value_does_not_hold(capsys, tmp_path):
    from dataclasses import replace

    from neuromanifold.architecture import Architecture
    from neuromanifold.certificates.exact import certify

    false = replace(certify(Architecture((3, 2), (2,), 3)), rank=12)
    false.save(tmp_path / "false.json")
    code, out, _ = run(capsys, "verify", str(tmp_path / "false.json"))
    assert code == 1
    assert "rank 12, recomputed 13" in out


MODULE = """
import jax
import jax.numpy as jnp
weights = (jnp.zeros(()), jnp.zeros(()))
inputs = jnp.zeros(())
symmetries = [lambda s, w: (jnp.exp(s) * w[0], jnp.exp(-s) * w[1])]
def product(w, X):
    return w[0] * w[1] * X
def gamma(w, X):
    return jax.lax.lgamma(w[0] * w[1] * X)
"""


def test_a_function_of_the_users_own_is_certified_and_verified(capsys, tmp_path):
    module, out = tmp_path / "mine.py", tmp_path / "c.json"
    module.write_text(MODULE)
    code, printed, _ = run(capsys, "certify", f"{module}:product", "--out", str(out))
    assert code == 0
    assert "mine.py:product: the dimension is 1 (exact given symmetries" in printed
    assert run(capsys, "verify", str(out), "--function", f"{module}:product")[0] == 0
    for name, sentence in (("gamma", "lgamma"), ("none", "has no 'none'")):
        refused = tmp_path / "refused.json"
        code, _, err = run(capsys, "certify", f"{module}:{name}", "--out", str(refused))
        assert code == 2
        assert sentence in err
        assert err.count("\n") == 1
        assert not refused.exists()


@pytest.fixture
def two_points(capsys, tmp_path):
    """A weights file, a file on its fiber and a file with another function."""
    first, other = tmp_path / "a.safetensors", tmp_path / "c.safetensors"
    run(capsys, "weights", "init", *NETWORK, "--seed", "1", "--out", str(first))
    run(capsys, "weights", "init", *NETWORK, "--seed", "2", "--out", str(other))
    code, _, _ = run(capsys, "fiber", "sample", str(first), "--out-dir", str(tmp_path / "points"))
    assert code == 0
    return str(first), str(tmp_path / "points" / "point-000.safetensors"), str(other)


def test_fiber_same_in_the_agreed_form(capsys, two_points):
    first, moved, other = two_points
    for second, verdict, code in ((moved, "same", 0), (other, "different", 1)):
        found, out, _ = run(capsys, "fiber", "same", first, second, "--json")
        answer = json.loads(out)
        assert (found, answer["verdict"]) == (code, verdict)
        assert {"verdict", "reason", "error", "tolerance", "witness"} <= set(answer)
        assert (answer["witness"] is None) == (verdict == "same")
        assert run(capsys, "fiber", "same", first, second)[0] == code


def test_fiber_transport_and_walk_lead_from_one_to_the_other(capsys, two_points, tmp_path):
    first, moved, other = two_points
    element = tmp_path / "g.safetensors"
    code, out, _ = run(capsys, "fiber", "transport", first, moved, "--out", str(element), "--json")
    assert code == 0
    assert json.loads(out)["residual"] < 1e-9
    assert element.exists()
    code, out, _ = run(capsys, "fiber", "transport", first, other, "--out", str(tmp_path / "no"))
    assert code == 1
    assert not (tmp_path / "no").exists()
    code, out, _ = run(capsys, "fiber", "walk", first, first, "--steps", "2", "--json")
    assert code == 0
    assert json.loads(out)["steps"] == 2


def test_fiber_canonical_is_the_same_file_for_both(capsys, two_points, tmp_path):
    first, moved, _ = two_points
    forms, marks = [], []
    for number, file in enumerate((first, moved)):
        out = tmp_path / f"normal-{number}"
        code, printed, _ = run(capsys, "fiber", "canonical", file, "--out", str(out), "--json")
        assert code == 0
        marks.append(json.loads(printed)["fingerprint"])
        forms.append(load_weights(out).flatten())
    assert marks[0] == marks[1]
    assert abs(forms[0] - forms[1]).max() < 1e-8
    balanced = str(tmp_path / "balanced")
    assert run(capsys, "fiber", "canonical", first, "--out", balanced, "--form", "balanced")[0] == 0
    assert run(capsys, "fiber", "canonical", first, "--out", balanced + "2", "--form", "x")[0] == 2


def test_sensitivity_draws_a_figure(capsys, tmp_path):
    sizes = ("--widths", "2,2", "--ranks", "1", "--tokens", "2", "--attention", "softmax")
    picture = tmp_path / "seen.png"
    code, out, _ = run(capsys, "sensitivity", *sizes, "--figure", str(picture), "--json")
    assert code == 0
    assert [(one["layer"], one["family"]) for one in json.loads(out)["tensors"]] == [
        (1, "query"),
        (1, "key"),
        (1, "value"),
    ]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert run(capsys, "sensitivity", *sizes, "--figure", str(picture))[0] == 2
    assert run(capsys, "sensitivity", *sizes, "--figure", str(tmp_path / "seen.txt"))[0] == 2


def test_fiber_count_gives_the_number_and_how_it_is_known(capsys):
    sizes = ("--widths", "2,1", "--ranks", "1", "--tokens", "2")
    code, out, _ = run(capsys, "fiber", "count", *sizes, "--json")
    assert (code, json.loads(out)["value"], json.loads(out)["verdict"]) == (0, 2, "exact")
    assert run(capsys, "fiber", "count", *sizes, "--monomials", "0")[0] == 2


def test_fiber_describe_gives_the_statement_and_the_dimension(capsys, two_points):
    code, out, _ = run(capsys, "fiber", "describe", two_points[0], "--json")
    assert code == 0
    assert json.loads(out)["statement"] == "thm-3.7"
    assert "thm-3.7" in run(capsys, "fiber", "describe", two_points[0])[1]


def test_recover_compares_with_the_truth(capsys, two_points, tmp_path):
    out = tmp_path / "found.safetensors"
    code, printed, _ = run(capsys, "recover", two_points[0], "--out", str(out), "--json")
    answer = json.loads(printed)
    assert code == 0
    assert answer["verdict"] == "identified"
    assert answer["comparison"]["verdict"] == "same"
    assert answer["fit_error"] < 1e-6
    assert load_weights(out).architecture == load_weights(two_points[0]).architecture


def test_classify_in_the_agreed_form(capsys, tmp_path):
    path = str(tmp_path / "layer")
    run(
        capsys, "weights", "init", "--widths", "3,2", "--ranks", "2", "--tokens", "3", "--out", path
    )
    code, out, _ = run(capsys, "classify", path, "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["differential_rank"] == {"AV": 14, "QKV": 13}
    assert set(answer) == {
        "rank_A", "rank_V", "critical", "boundary", "singular", "reasons", "differential_rank",
        "fiber_points", "verdict", "gap", "distance", "tolerance",
    }  # fmt: skip
    assert "smooth" in run(capsys, "classify", path)[1]


def test_explain_adds_up_and_names_head_mixing(capsys):
    heads = ["--widths", "3,3", "--ranks", "3", "--tokens", "3", "--heads", "2"]
    code, out, _ = run(capsys, "explain", *heads, "--json")
    answer = json.loads(out)
    lines = {line["name"]: line["dimension"] for line in answer["lines"]}
    assert code == 0
    assert sum(lines.values()) == answer["parameters"] == 54
    assert lines["head mixing"] == 2
    assert answer["unexplained"] == 0
    wide = ["--widths", "2,4,2", "--ranks", "2,2", "--tokens", "3"]
    assert "Directions that no symmetry group explains" in run(capsys, "explain", *wide)[1]


def test_identifiable_says_which_symmetry_moves_a_quantity(capsys, tmp_path):
    layer = ["--widths", "3,2", "--ranks", "2", "--tokens", "3"]
    code, out, _ = run(capsys, "identifiable", "layers.0.query[0,0,1]", *layer, "--json")
    answer = json.loads(out)
    assert (code, answer["identifiable"]) == (0, "no")
    assert "key-query" in answer["moved_by"]
    code, out, _ = run(capsys, "identifiable", "A.0[0,0,1]/A.0[0,1,0]", *layer, "--json")
    assert json.loads(out)["identifiable"] == "yes"
    path = str(tmp_path / "w")
    run(capsys, "weights", "init", *layer, "--out", path)
    code, out, _ = run(capsys, "identifiable", "A.0[0,0,1]", "--weights", path)
    assert code == 0
    assert "not determined to first order at the given weights by the function" in out


def test_identifiable_of_a_network_alone_says_that_a_quantity_comes_first(capsys):
    code, _, error = run(capsys, "identifiable", "model.py:mlp")
    assert code == 2
    assert "a quantity comes before the network" in error


def test_dim_estimates_in_the_agreed_form(capsys):
    code, out, _ = run(capsys, "dim", *NETWORK, "--estimate", "--json")
    estimate = json.loads(out)["estimate"]
    assert code == 0
    assert set(estimate) == {"rank", "gap", "verdict"}
    assert (estimate["rank"], estimate["verdict"]) == (24, "numerical")


def test_redundancy_adds_up(capsys):
    code, out, _ = run(capsys, "redundancy", *NETWORK, "--json")
    answer = json.loads(out)
    assert code == 0
    shares = sum(share["dimension"] for share in answer["shares"])
    assert answer["parameters"] - answer["dimension"] == shares > 0
    assert run(capsys, "redundancy", *NETWORK)[0] == 0


def test_a_statement_says_once_that_it_is_a_theorem(capsys):
    assert "networks (theorem; Theorem 3.7)" in run(capsys, "statements", "thm-3.7")[1]
    assert "(conjecture, theorem; " in run(capsys, "statements", "conj-3.10")[1]


def test_statements_lists_the_registry(capsys):
    from neuromanifold.statements import STATEMENTS

    assert [entry["id"] for entry in json.loads(run(capsys, "statements", "--json")[1])] == [
        statement.id for statement in STATEMENTS
    ]
    assert "fiber" in run(capsys, "statements", "thm-3.7")[1]


@pytest.mark.parametrize(
    "call",
    [
        "import neuromanifold",
        "import neuromanifold.cli; neuromanifold.cli.main(['--help'])",
        "import neuromanifold.cli; neuromanifold.cli.main(['dim', '--help'])",
        "import neuromanifold.cli; neuromanifold.cli.main("
        "['dim', '--widths', '2,2', '--ranks', '1', '--tokens', '2'])",
    ],
)
def test_what_must_be_fast_does_not_import_arrays(call):
    code = f"{call}\nimport sys\nsys.exit(any(m in sys.modules for m in ('jax', 'numpy', 'scipy')))"
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL).returncode == 0


COMMANDS = [
    [*group, name]
    for group, names in (
        ([], "dim explain identifiable certify verify redundancy classify recover statements"),
        (["weights"], "init show"),
        (["fiber"], "same transport canonical sample walk describe count"),
        (["checkpoint"], "audit canonical compare align fingerprint"),
        (["checkpoint", "adapter"], "audit canonical merge compare shrink"),
    )
    for name in names.split()
]


def test_every_command_has_help_with_an_example(capsys):
    for command in COMMANDS:
        code, out, _ = run(capsys, *command, "--help")
        assert code == 0
        assert f"Example: neuromanifold {' '.join(command)}" in out


def test_a_paragraph_of_the_help_is_as_wide_as_the_terminal(capsys):
    _, out, _ = run(capsys, "verify", "--help")
    paragraph = next(text for text in out.split("\n\n") if text.startswith("Exits with 1"))
    *full, _last = paragraph.splitlines()
    assert full
    assert all(len(line) > 60 for line in full)


RECOVERED = {
    "causal": ("--widths", "2,2", "--ranks", "1", "--tokens", "2", "--mask", "causal"),
    "deep softmax": (
        *("--widths", "2,2,2,2", "--ranks", "2,2,2", "--tokens", "2", "--attention", "softmax"),
    ),
}


@pytest.mark.parametrize("sizes", RECOVERED.values(), ids=RECOVERED.keys())
def test_recover_takes_the_oracle_that_the_network_needs(capsys, tmp_path, sizes):
    file = str(tmp_path / "w.safetensors")
    run(capsys, "weights", "init", *sizes, "--out", file)
    code, printed, _ = run(capsys, "recover", file, "--json")
    answer = json.loads(printed)
    assert (code, answer["verdict"], answer["noise"]) == (0, "identified", None)
    assert answer["comparison"]["verdict"] == "same"


def test_recover_with_noise_prints_error_bars(capsys, two_points):
    code, printed, _ = run(capsys, "recover", two_points[0], "--noise", "1e-6", "--json")
    answer = json.loads(printed)
    assert (code, answer["verdict"], answer["noise"]) == (0, "identified", 1e-6)
    assert 1e-7 < max(answer["error_bars"].values()) < 1e-2
    assert answer["comparison"]["error"] <= max(answer["error_bars"].values())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--max-calls", "0"), "max_calls must be a whole number, 1 or larger; got 0"),
        (("--noise", "2"), "noise must be a relative error between 0 and 1; got 2.0"),
    ],
)
def test_recover_refuses_impossible_bounds(capsys, two_points, options, sentence):
    code, _, error = run(capsys, "recover", two_points[0], *options)
    assert code == 2
    assert sentence in error
