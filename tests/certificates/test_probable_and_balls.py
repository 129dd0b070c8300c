"""Where the bounds do not meet: the same rank at further points; and ranks proved in balls."""

import itertools
import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import neuromanifold as nm
from neuromanifold.algebra.modular import FormalElements, rows_over_prime_field
from neuromanifold.algebra.modular.degrees import Degrees, Roots
from neuromanifold.algebra.prime_field import PrimeField, ZeroResidueError
from neuromanifold.certificates import probable as module
from neuromanifold.certificates.certificate import Certificate
from neuromanifold.cli import main
from neuromanifold.errors import ArgumentError, NotCoveredError

TWO = {"a": np.zeros((2, 3)), "b": np.zeros((2, 2))}


def _product(w, x):
    return w["b"] @ w["a"] @ x


def _gelu(w, x):
    return w["b"] @ jax.nn.gelu(w["a"] @ x, approximate=False)


def _values(shapes, seed=0):
    generator = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: generator.standard_normal(leaf.shape), shapes)


@pytest.mark.parametrize(
    ("f", "numerator", "denominator"),
    [
        (lambda w, x: w * x, 2, 0),  # u x
        (lambda w, x: w**3 * x, 4, 0),  # 3 w² x u
        (lambda w, x: w * jnp.exp(x), 2, 0),  # u e
        (lambda w, x: w / x, 1, 1),  # u / x
        (lambda w, x: x / w, 2, 2),  # −u x / w²
        (lambda w, x: w / x + w / (x + 1), 2, 2),  # u (1/x + 1/(x + 1))
    ],
)
def test_degrees_are_those_of_small_fractions(f, numerator, denominator):
    found = Degrees(rows_over_prime_field(f, np.zeros(()), np.zeros(()), 4), 4).row()
    assert found == (numerator, denominator)


SMALL = PrimeField(61)


def _roots_at(*numbers):
    """A polynomial in y that vanishes at these numbers."""
    return lambda y: jnp.prod(y - np.array(numbers, float))


def _nested(w, x):
    return w * _roots_at(2, 3, 4, 5, 6)(jnp.sqrt(1 + jnp.sqrt(x)))


def _solution(w, x):
    system = jnp.array([[0.0, 1.0, 3.0], [1.0, 0.0, 5.0], [2.0, 1.0, 0.0]]) + x * jnp.eye(3)
    return w * jnp.linalg.solve(system, jnp.array([1.0, 1.0, 3.0]))[0]


@pytest.mark.parametrize(
    ("f", "zeros", "roots"),
    [
        (lambda w, x: w * _roots_at(1, 2, 3, 4, 5, 6)(jnp.sqrt(x)), 6 * 61, Roots(0, 1, 0)),
        (lambda w, x: w * jnp.sqrt(w) * (x - 1) * (x - 2), None, Roots(1, 0, 0)),
        (lambda w, x: w * _roots_at(1, 2, 3, 4)(jnp.sqrt(w + x)), None, Roots(0, 0, 1)),
        (lambda w, x: w / (jnp.sqrt(x) - 1) + w * jnp.sqrt(x) - 3 * w, None, Roots(0, 1, 0)),
        (_nested, None, Roots(0, 2, 0)),
        (_solution, None, Roots(0, 0, 0)),
    ],
)
def test_no_more_points_are_zeros_than_degrees_and_conjugates_allow(f, zeros, roots):
    """All points over a small prime; √x − 1, …, √x − 6 have exactly as many zeros as they may."""
    program = rows_over_prime_field(f, np.zeros(()), np.zeros(()), 1)
    degrees = Degrees(program, 1, frozenset({2}))
    assert degrees.roots == roots
    elements, found, usable = FormalElements(SMALL, 0), 0, 0
    for w, x in itertools.product(np.arange(61.0) - 30, repeat=2):
        try:
            row = program(SMALL, np.array(w), np.full(1, x), np.ones(1), elements=elements)
        except ZeroResidueError:
            continue
        found, usable = found + (row[0] == 0), usable + 1
    conjugates = 2 ** (roots.weights + roots.samples + roots.mixed)
    assert 0 < found <= conjugates * degrees.row()[0] * 61
    assert zeros in (None, found)
    if zeros is not None:
        assert found == conjugates * degrees.row()[0] * 61
    assert usable < 61**2 - 61


@pytest.mark.parametrize(
    ("matrix", "degree"),
    [
        # A⁻¹ = adj A / det A of a triangle; U and L have leading minors below.
        (lambda x: jax.lax.linalg.triangular_solve(x, jnp.eye(3), left_side=True), (2, 3)),
        (
            lambda x: jax.lax.linalg.triangular_solve(
                x, jnp.eye(3), left_side=True, unit_diagonal=True
            ),
            (2, 0),
        ),
        (lambda x: jax.lax.linalg.lu(x)[0], (7, 6)),
    ],
)
def test_linear_systems_have_the_degrees_of_minors(matrix, degree):
    program = rows_over_prime_field(
        lambda w, x: jnp.sum(w * matrix(x)), np.zeros((3, 3)), np.zeros((3, 3)), 2
    )
    assert Degrees(program, 2, frozenset({2})).row() == degree


def test_roots_of_inputs_alone_leave_a_bound():
    def f(w, x):
        return w["b"] @ w["a"] @ (x / jnp.sqrt(x @ x))

    shapes = {"a": np.zeros((1, 2)), "b": np.zeros((1, 1))}
    found = nm.certify(nm.network(f, shapes, np.zeros(2), name="product"))
    assert found.verdict == "probable"
    assert 0 < found.probable.error < 1e-2


def test_roots_of_weights_and_inputs_multiply_with_the_rows():
    assert Roots(1, 2, 0).conjugates(9) == 2 + 4
    assert Roots(1, 2, 1).conjugates(2) == 2 ** (1 + 2 * 3)
    f = lambda w, x: w["b"] @ (w["a"] @ x / jnp.sqrt(jnp.sum((w["a"] @ x) ** 2)))  # noqa: E731
    found = nm.certify(nm.network(f, TWO, np.zeros(3), name="norm"))
    assert (found.verdict, found.probable.error) == ("probable", None)


def test_the_same_rank_at_further_points_is_probable():
    network = nm.network(_product, TWO, np.zeros(3), name="product")
    found = nm.certify(network)
    assert (found.verdict, found.lower, found.upper) == ("probable", 6, 10)
    # Degree 3 an entry, so 21 for a minor of 7 rows: (21 / p)³.
    assert 1e-17 < found.probable.error < 2e-17
    assert "the dimension is 6 (probable: 3 points, 2 primes, error below 1e-16)" in str(found)
    assert nm.verify(found, network).agrees
    assert nm.verify(found, network, prime=8388449).agrees
    forged = replace(found, probable=replace(found.probable, error=1e-30))
    assert not nm.verify(forged, network).agrees
    assert Certificate.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_points_that_disagree_are_not_probable(monkeypatch):
    monkeypatch.setattr(module, "_rank", lambda *_: 7)
    found = nm.certify(nm.network(_product, TWO, np.zeros(3), name="product"))
    assert (found.verdict, found.probable) == ("bounds", None)


def test_what_is_not_proved_is_not_probable_either():
    f = lambda w, x: w[0] * jnp.sqrt(4 * x) + w[1] * jnp.sqrt(x) + w[2] - w[2]  # noqa: E731
    assert nm.certify(nm.network(f, np.zeros(3), np.zeros(()), name="f")).verdict == "bounds"


def test_balls_prove_the_rank_at_given_weights():
    shapes = {"a": np.zeros((2, 2)), "b": np.zeros((2, 2))}
    network = nm.network(_gelu, shapes, np.zeros(2), name="gelu")
    values = _values(shapes)
    found = nm.certify(network, weights=values, reading="balls")
    assert (found.verdict, found.lower, found.reading) == ("exact", 8, "balls")
    assert found.obligations == ()
    assert "in balls" in str(found)
    assert nm.verify(found, network, weights=values).agrees
    assert not nm.verify(replace(found, rank=7), network, weights=values).agrees
    dead = {**values, "b": np.zeros((2, 2))}
    assert nm.certify(network, weights=dead, reading="balls").lower == 4


def test_balls_know_functions_that_residues_do_not():
    network = nm.network(lambda w, x: jnp.arctan(w * x), np.zeros(2), np.zeros(2), name="atan")
    with pytest.raises(NotCoveredError, match="atan"):
        nm.certify(network)
    assert nm.certify(network, weights=np.ones(2), reading="balls").lower == 2


def test_balls_of_a_built_in_network_meet_its_symmetries():
    architecture = nm.Architecture((2, 2), (1,), 2, "softmax")
    values = nm.network(architecture).draw(0)
    found = nm.certify(architecture, weights=values, reading="balls")
    assert found.verdict == "exact"
    assert found.rank == nm.certify(architecture, weights=values).rank
    assert nm.verify(found, weights=values).agrees


def test_balls_say_which_constants_are_floats():
    net = nm.network(lambda w, x: np.pi * w[0] * x + 0.5 * w[1], np.zeros(2), np.zeros(()))
    found = nm.certify(net, weights=np.ones(2), reading="balls")
    assert found.readings.dyadic == (np.pi,)
    assert "1 constant was taken as the exact value of its float" in str(found)
    assert nm.verify(found, net, weights=np.ones(2)).agrees


@pytest.mark.parametrize(
    ("f", "size", "rank"),
    [
        (lambda w, x: (w[0] + w[1] * x) ** 2, 1e300, 2),
        (lambda w, x: x / w[0] + x * x / w[1], 1e-200, 2),
    ],
)
def test_balls_take_slopes_that_no_float_holds(f, size, rank):
    net = nm.network(f, np.zeros(2), np.zeros(()))
    found = nm.certify(net, weights=size * np.array([1.0, 2.0]), reading="balls")
    assert found.lower == rank


@pytest.mark.parametrize("power", [lambda w: w**3, lambda w: jnp.power(w, 2.0), lambda w: w**4])
def test_balls_take_powers_of_weights_that_are_zero(power):
    net = nm.network(lambda w, x: power(w[0]) * x + w[1], np.zeros(2), np.zeros(()))
    assert nm.certify(net, weights=np.zeros(2), reading="balls").lower == 1


def test_balls_at_the_edge_of_where_there_is_a_value_are_refused():
    net = nm.network(lambda w, x: jnp.sqrt(w[0]) * x + w[1], np.zeros(2), np.zeros(()))
    with pytest.raises(ArgumentError, match="undefined at these weights or close by"):
        nm.certify(net, weights=np.zeros(2), reading="balls")


def test_balls_need_weights():
    with pytest.raises(ArgumentError, match="give weights="):
        nm.certify(nm.network(_product, TWO, np.zeros(3)), reading="balls")


def test_balls_on_the_command_line(tmp_path, capsys):
    file, out = tmp_path / "mine.py", tmp_path / "proof.json"
    file.write_text(
        "import jax.numpy as jnp\n"
        "def f(w, x):\n    return jnp.arctan(w * x)\n"
        "weights, inputs = jnp.ones(2), jnp.zeros(2)\n"
    )
    assert main(["certify", f"{file}:f", "--reading", "balls", "--out", str(out)]) == 0
    assert "is 2 (exact; in balls" in capsys.readouterr().out
    assert main(["verify", str(out), "--function", f"{file}:f"]) == 0
