"""Modules of a user on the command line: odd ones are answered in one sentence with exit code 2."""

import pytest

from neuromanifold.cli import main

HEAD = "import jax.numpy as jnp\nimport numpy as np\ndef f(w, x):\n    return {body}\n"


def _certified(tmp_path, capsys, body, rest):
    (tmp_path / "mine.py").write_text(HEAD.format(body=body) + rest)
    code = main(["certify", f"{tmp_path / 'mine.py'}:f", "--out", str(tmp_path / "c.json")])
    return code, *capsys.readouterr()


@pytest.mark.parametrize(
    ("body", "rest", "said"),
    [
        (
            "w[1] * x",
            "weights, inputs = {1: np.zeros(2), 'a': np.zeros(2)}, np.zeros(2)",
            "mine.py",
        ),
        ("w * x", "weights, inputs = np.zeros(2, bool), np.zeros(2)", "arrays of real numbers"),
        ("w * x", "weights, inputs = np.zeros(2), np.zeros((), int)", "the largest integer"),
        ("w[7] / 0", "weights, inputs = (np.zeros(2),), np.zeros(2)", "mine.py, line 4"),
    ],
)
def test_bad_modules_are_one_sentence(tmp_path, capsys, body, rest, said):
    code, out, err = _certified(tmp_path, capsys, body, rest)
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())
    assert "Traceback" not in err


def test_truth_values_may_be_inputs(tmp_path, capsys):
    rest = "weights, inputs = np.zeros(2), np.zeros(2, bool)"
    code, out, _ = _certified(tmp_path, capsys, "w * x", rest)
    assert code == 0
    assert "all 4 possible inputs" in " ".join(out.split())
