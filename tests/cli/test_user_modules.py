"""Modules of a user on the command line: bad ones are answered in one sentence with exit code 2."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from neuromanifold.certificates.exact import certify_function
from neuromanifold.cli import main
from neuromanifold.errors import NeuromanifoldError

HEAD = """import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
weights = inputs = np.zeros(2)
"""

# The value of f(w, x), and what is said of it; line 7 of the module.
VALUES = {
    "w * x if w[0] > 0 else x": "(mine.py:7) decides by Python's `if`",
    "w * np.tanh(x)": "(mine.py:7) hands values that depend on its arguments to NumPy",
    "w[int(x[0])]": "(mine.py:7) turns values that depend on its arguments into Python numbers",
    "w[x > 0]": "(mine.py:7) indexes by a Boolean array",
    "f(w, x)": "(mine.py:7) calls itself without end",
    "f.__dict__.setdefault('kept', w) * x": "the function keeps values of one call for the next",
    "lax.fori_loop(0, 2, lambda i, s: jnp.outer(s, s), w)": "a loop whose state changes its shape",
    "lax.fori_loop(0, 2, lambda i, s: (s, s), w)": "a loop whose state changes its shape",
    "lax.while_loop(lambda s: s[0] < 3, lambda s: s + x, w)": "`while` (",
    "None": "the function returns no array",
    "[w, 'abc']": "the function returns a value of type str",
    "(part for part in w)": "the function returns a value of type generator",
    "w > 0": "the function returns values of type bool; return real numbers",
    "w * 1j": "type complex128",
    "x": "depends on none of its weights",
    "jax.pure_callback(lambda a: a, w, w) * x": "calls Python, and nothing is known of what it",
    "jnp.linalg.eig(jnp.outer(w, x))[0].real": "eigenvalues of a matrix without symmetry",
    "jnp.linalg.svd(jnp.outer(w, x))[1]": "`svd` (",
    "lax.lgamma(w * x)": "`lgamma` (",
    "w * jax.random.normal(jax.random.key(x[0].astype(int)))": "`random_bits` draws random numbers",
    "w * jax.random.bits(jax.random.key(x[0].astype(int)), (), 'uint32')": "draw random numbers",
    "jnp.zeros((2**15, 2**15)) @ jnp.zeros(2**15) * w[0]": "take smaller shapes",
    "w * x * np.nan": "the function has the constant NaN in `mul`",
    "w * x / 0": "the function divides by a constant 0",
    "w * x + np.array([0, -np.inf])": "entries of the output are minus infinity",
}

# The rest of a module after HEAD, and what is said of it: line 6 is its first.
MODULES = {
    "raise ValueError('no\\nway')": "line 6 raised ValueError: no way",
    "import no_such_module": "line 6 raised ModuleNotFoundError",
    "import sys\nsys.exit(3)": "line 7 raised SystemExit: 3",
    "import sys\nsys.exit(0)": "line 7 raised SystemExit: 0",
    "jax.jit(lambda x: 1 if x else 2)(1.0)": "line 6 raised TracerBoolConversionError",
    "def f(": "raised SyntaxError",
    "f = 3": "'f' must be a function",
    "class f: pass": "'f' is a class; make one of it there, and name that instead",
    "def g(w, x): return w": "has no 'f'",
    "def f(w, x): raise SystemExit": "line 6 raised SystemExit",
    "def f(w, x): raise BaseException('odd')": "line 6 raised BaseException: odd",
    "def f(w, x): assert w.shape == (3,)": "line 6 raised AssertionError: no reason",
    "def f(w, x): return w / len(x[0])": "line 6 raised",
    "def f(w, x): w[0] = 1.0": "line 6 raised TypeError: JAX arrays are immutable",
    "def f(w, x): return w @ jnp.ones((3, 3))": "line 6 raised TypeError: dot_general requires",
    "def f(w): return w": "f() takes 1 positional argument but 2 were given",
    "async def f(w, x): return w": "the function returns a value of type coroutine",
    "weights = 'abc'\ndef f(w, x): return x": "`weights` must be arrays of real numbers; it has",
    "weights = {}\ndef f(w, x): return x": "has no weights",
    "weights = {1: 0.0, 'a': 0.0}\ndef f(w, x): return w[1] * x": "mine.py raised",
    "weights = jax.random.key(0)\ndef f(w, x): return x": "mine.py raised TypeError",
    "weights = np.zeros(2, bool)\ndef f(w, x): return x": "`weights` must be arrays of real",
    "weights = np.zeros(2, complex)\ndef f(w, x): return x": "complex weights, which are not",
    "inputs = np.zeros(2, complex)\ndef f(w, x): return w * x.real": "complex inputs, which are",
    "inputs = np.zeros((), int)\ndef f(w, x): return w * x": "the largest integer",
    "symmetries = 3\ndef f(w, x): return w": "`symmetries` a list of functions",
    "symmetries = [lambda w: w]\ndef f(w, x): return w[:1] * w[1:] * x": "takes 1 positional",
    "symmetries = [lambda s, w: w[:1]]\ndef f(w, x): return w[:1] * w[1:] * x": "same shapes",
    "symmetries = [lambda s, w: w + s]\ndef f(w, x): return w[:1] * w[1:] * x": "'given' changes",
}
MODULES |= {f"def f(w, x):\n    return {value}": said for value, said in VALUES.items()}

# What JAX says about itself, and what no sentence has.
NOISE = ("Traceback", "https://", "----", "while tracing the function", "please report")


def certified(tmp_path, capsys, rest):
    (tmp_path / "mine.py").write_text(f"{HEAD}{rest}\n")
    code = main(["certify", f"{tmp_path / 'mine.py'}:f", "--out", str(tmp_path / "c.json")])
    return code, *capsys.readouterr()


@pytest.mark.parametrize("rest", MODULES)
def test_a_bad_module_is_answered_in_one_sentence(tmp_path, capsys, rest):
    code, out, err = certified(tmp_path, capsys, rest)
    assert (code, out) == (2, ""), err
    assert MODULES[rest] in err
    assert err.startswith("neuromanifold: ")
    assert err.count("\n") == 1
    assert not [noise for noise in NOISE if noise in err]
    assert not (tmp_path / "c.json").exists()


@pytest.mark.parametrize("value", VALUES)
def test_a_bad_function_is_answered_in_python_as_on_the_command_line(value):
    names = {"jax": jax, "jnp": jnp, "np": np, "lax": lax}
    exec(f"def f(w, x):\n    return {value}", names)
    with pytest.raises(NeuromanifoldError) as found:
        certify_function(names["f"], np.zeros(2), np.zeros(2))
    assert VALUES[value].removeprefix("(mine.py:7) ") in str(found.value)
    assert not [noise for noise in NOISE if noise in str(found.value)]


@pytest.mark.parametrize(
    "value",
    [
        "lax.fori_loop(0, 2, lambda i, s: s + w * x, jnp.zeros(2, jnp.float32))",
        "lax.scan(lambda s, a: (s * x + a, a), jnp.zeros(2, jnp.float32), w)[0]",
        "lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1] * w * x + w),"
        " (0, jnp.zeros(2, jnp.float32)))[1]",
    ],
)
def test_a_loop_in_single_precision_works_on_the_command_line(tmp_path, capsys, value):
    code, out, err = certified(tmp_path, capsys, f"def f(w, x):\n    return {value}")
    assert (code, err) == (0, "")
    assert "the dimension is 2 (exact" in out


def test_truth_values_may_be_inputs(tmp_path, capsys):
    rest = "inputs = np.zeros(2, bool)\ndef f(w, x):\n    return w * x"
    code, out, _ = certified(tmp_path, capsys, rest)
    assert code == 0
    assert "all 4 possible inputs" in " ".join(out.split())


def test_weights_in_half_precision_are_weights(tmp_path, capsys):
    rest = "weights = jnp.zeros(2, jnp.bfloat16)\ndef f(w, x):\n    return w * x"
    code, out, _ = certified(tmp_path, capsys, rest)
    assert code == 0
    assert "the dimension is 2 (exact" in out


def test_what_a_module_prints_is_not_in_the_answer(capsys, tmp_path):
    rest = "print('hello')\ndef f(w, x):\n    print('f')\n    return w * x"
    code, out, err = certified(tmp_path, capsys, rest)
    assert code == 0
    assert out.startswith("mine.py:f")
    assert "hello" in err


@pytest.mark.parametrize(
    "command", ["certify", "dim", "discover", "explain", "identifiable", "verify"]
)
def test_the_help_says_that_a_module_is_executed(capsys, command):
    main([command, "--help"])
    assert "is executed" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("readout", ["probabilities", "decisions"])
@pytest.mark.parametrize("command", ["certify", "dim", "discover", "explain", "identifiable"])
def test_a_readout_of_a_function_is_refused(tmp_path, capsys, command, readout):
    """What the coordinates of a token are in the output of a function nobody can know."""
    (tmp_path / "mine.py").write_text(f"{HEAD}def f(w, x): return w * x\n")
    asked = ["norm(weights)"] if command == "identifiable" else []
    more = {"certify": ["--out", str(tmp_path / "proof.json")], "dim": ["--estimate"]}
    options = [*more.get(command, []), "--readout", readout]
    assert main([command, *asked, f"{tmp_path / 'mine.py'}:f", *options]) == 2
    said = capsys.readouterr().err
    assert f"mine.py:f is looked at as it is: let the function itself return what {readout}" in said
    assert not (tmp_path / "proof.json").exists()


def test_the_dimension_of_a_function_has_no_formula_but_what_is_proved_and_measured(
    tmp_path, capsys
):
    (tmp_path / "mine.py").write_text(f"{HEAD}def f(w, x): return w[0] * w[1] * x\n")
    own = ["dim", f"{tmp_path / 'mine.py'}:f", "--certify", "--estimate", "--json"]
    assert main(own) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["architecture"], answer["formula"]["status"]) == (None, "none")
    assert (answer["certificate"]["lower"], answer["estimate"]["rank"]) == (1, 1)
