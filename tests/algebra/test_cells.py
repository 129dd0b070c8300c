"""Piecewise functions: with the branches of a point they are the function around it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from neuromanifold.algebra.cells import Piecewise, piecewise
from neuromanifold.algebra.cells.decisions import Reads
from neuromanifold.algebra.cells.points import BranchReader, normal
from neuromanifold.algebra.cells.proof import Decided
from neuromanifold.algebra.cells.rules import _windows
from neuromanifold.errors import ArgumentError, NotCoveredError

CAUSAL = np.tril(np.ones((3, 3), dtype=bool))

PIECEWISE = {
    "relu": (lambda x: jax.nn.relu(x) ** 2, (5,)),
    "leaky relu": (lambda x: jax.nn.leaky_relu(x) ** 2, (4,)),
    "elu": (lambda x: jax.nn.elu(x) ** 2, (4,)),
    "abs": (lambda x: jnp.abs(x) * x[::-1], (5,)),
    "max of two": (lambda x: jnp.maximum(x, x[::-1] ** 2), (5,)),
    "max along axes": (lambda x: jnp.max(x, axis=(0, 2)) * x[0, :, 0], (2, 3, 2)),
    "min": (lambda x: jnp.minimum(x, 0.3) * jnp.min(x), (3, 4)),
    "clip": (lambda x: jnp.clip(x, -0.5, 0.5) * x, (8,)),
    "sign": (lambda x: jnp.sign(x) * x**2, (4,)),
    "where": (lambda x: jnp.where(x > 0.2, x**2, jnp.exp(x)), (8,)),
    "truth as number": (lambda x: (x > 0) * x**2, (4,)),
    "sort": (lambda x: jnp.sort(x, axis=0) * x, (4, 3)),
    "argsort": (lambda x: x[jnp.argsort(x[::-1])] * x, (6,)),
    "top k": (lambda x: x[0][lax.top_k(x[1], 3)[1]] * lax.top_k(x[1], 3)[0], (2, 8)),
    "top k along another axis": (
        lambda x: jnp.take_along_axis(x**2, lax.top_k(x, 2, axis=0)[1], 0) * lax.top_k(x.T, 2)[0].T,
        (3, 3),
    ),
    "argmax": (lambda x: x[0][jnp.argmax(x[1])] * x, (2, 8)),
    "one-hot": (lambda x: jax.nn.one_hot(jnp.argmax(x), 4) * x, (4,)),
    "median": (lambda x: jnp.median(x) * x, (5,)),
    "floor": (lambda x: jnp.floor(3 * x) * x, (8,)),
    "round": (lambda x: (x - jnp.round(x)) ** 2, (8,)),
    "remainder": (lambda x: ((10 * x) % 3.0) ** 2, (8,)),
    "min pooling": (
        lambda x: lax.reduce_window(x, jnp.inf, lax.min, (2, 3), (2, 1), "SAME") ** 2,
        (5, 4),
    ),
    "max pooling": (
        lambda x: lax.reduce_window(
            jax.nn.relu(x), -jnp.inf, lax.max, (2, 2), (2, 2), "SAME"
        ) ** 2,
        (5, 4),
    ),
    "cond": (lambda x: lax.cond(x[0] > 0, lambda y: y**2, lambda y: 3 * y, x), (4,)),
    "switch": (
        lambda x: lax.switch(
            (3 * jnp.abs(x[0])).astype(int), [lambda y: y**2, lambda y: 3 * y, lambda y: y**3], x
        ),
        (4,),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PIECEWISE)
def test_value_and_derivative_are_those_of_the_function(name):
    f, shape = PIECEWISE[name]
    function = piecewise(f, np.zeros(shape))
    with jax.enable_x64(True):
        x = jnp.asarray(normal(1, name, shape))
        branches = jax.jit(lambda x: function.read([x]).branches)(x)
        assert branches
        assert all(jnp.all(b == jnp.rint(b)) for b in branches)
        along = jnp.asarray(normal(2, name, shape))
        fixed = lambda y: function.fixed([y], branches)  # noqa: E731
        both = jax.jit(lambda y, v: (jax.jvp(fixed, (y,), (v,)), jax.jvp(f, (y,), (v,))))
        found, expected = both(x, along)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x @ x,
        lambda x: jax.nn.softmax(x) * x,
        lambda x: jax.nn.log_softmax(x) * x,
        lambda x: jax.nn.logsumexp(x) * x,
        lambda x: jax.nn.softplus(x) * x,
        lambda x: jax.nn.softmax(jnp.where(CAUSAL, x, -jnp.inf), axis=-1) @ x,
        lambda x: jnp.where(CAUSAL, x, 2 * x),
    ],
)
def test_what_does_not_branch_is_left_alone(f):
    assert piecewise(f, np.zeros((3, 3))) is None


def test_a_maximum_that_is_seen_has_branches():
    for f in (lambda x: x - jnp.max(x), lambda x: jnp.exp(x - jnp.max(x)) + jnp.max(x) ** 2):
        assert piecewise(f, np.zeros(3)) is not None


def test_branches_that_meet_real_numbers_in_unknown_ways_are_refused():
    with pytest.raises(NotCoveredError, match=r"`scatter.*whole numbers that depend on the arg"):
        piecewise(lambda x: x.at[jnp.argmax(x)].multiply(2.0), np.zeros(3))


def reader(f, weights, inputs):
    return BranchReader(piecewise(f, weights, inputs))


def test_inputs_in_several_cells_have_several_patterns():
    f = lambda w, x: w @ jax.nn.relu(x)  # noqa: E731
    found = reader(f, np.zeros((2, 3)), np.zeros(3)).read(np.ones((2, 3)), 0, 100)
    assert found.patterns == 8
    again = reader(f, np.zeros((2, 3)), np.zeros(3)).read(np.ones((2, 3)), 0, 50, range(50))
    np.testing.assert_array_equal(found.arrays[0][50:], again.arrays[0])


def test_rounding_errors_decide_nothing():
    f = lambda w, x: w * jnp.sign((x[0] + x[1]) - x[1] - x[0])  # noqa: E731
    with pytest.raises(ArgumentError, match="not proved to differ"):
        reader(f, np.zeros(2), np.zeros(2)).read(np.ones(2), 0, 10)


def test_two_neurons_that_are_off_are_equal_constants_of_the_cell():
    f = lambda w, x: w * jnp.max(jax.nn.relu(-(x**2)))  # noqa: E731
    found = reader(f, np.zeros(2), np.zeros(3)).read(np.ones(2), 0, 10)
    assert found.patterns == 1


class Errs(Reads):
    """Reads all branches and outcomes but one as floats have them."""

    def __init__(self, place):
        super().__init__()
        self.place, self.met = place, 0

    def decide(self, decision):
        found = super().decide(decision)
        if decision.holds is not None:
            self.branches[-1] = self.spoiled(self.branches[-1])
        return found

    def outcome(self, decision):
        found = super().outcome(decision)
        self.outcomes[-1] = self.spoiled(self.outcomes[-1])
        return found

    def spoiled(self, x):
        """Another line for a line of zeros with one 1, else the other truth value, sign or the next
        whole number."""
        self.met += 1
        if self.place != self.met - 1:
            return x
        if x.dtype == bool:
            return ~x
        if x.ndim == 0 or x.shape[-1] == 1:
            return 1 - x
        is_one_hot = jnp.all((x == 0) | (x == 1)) & jnp.all(jnp.sum(x, axis=-1) == 1)
        return jnp.where(is_one_hot, jnp.roll(x, 1, -1), 1 - x)


class Misread(Piecewise):
    """A function of which the decision with some number is read wrongly."""

    place = -1

    def read(self, arguments):
        decider = Errs(self.place)
        self._run(decider, arguments)
        return decider


@pytest.mark.parametrize("name", PIECEWISE)
def test_branches_are_proved_and_wrong_ones_are_not(name):
    f, shape = PIECEWISE[name]
    found = piecewise(lambda w, x: w * f(x), np.zeros(()), np.zeros(shape))
    x = np.stack([normal(seed, name, shape) for seed in range(4)])
    misread = Misread(found.jaxpr, found.structure, found.shapes, found.shifts)
    with jax.enable_x64(True):
        met = misread.read((np.ones(()), x[0])).met
    assert met > 0
    for place in range(-1, met):
        misread = Misread(found.jaxpr, found.structure, found.shapes, found.shifts)
        object.__setattr__(misread, "place", place)
        _, holds = Decided(misread, 4).at(np.ones(()), [x], np.ones(4, dtype=bool))
        assert holds.any() == (place == -1), place


@pytest.mark.parametrize(
    ("f", "holds"),
    [
        (lambda x: x > 0, True),
        (lambda x: jnp.exp(-800 - x**2) > 0, False),  # 0 > 0 in floats
        (lambda x: jnp.exp(800 + x**2) > 5, True),
        (lambda x: (jnp.log(1 + jnp.exp(800 + jnp.tanh(x))) - 800) ** 2 < 2500, False),
        (lambda x: jnp.sum(jnp.stack([1 + 0 * x, jnp.exp(-50 - x * x), -1 + 0 * x])) > 0, False),
        (lambda x: jnp.sin(1e40 * x) > 0, False),
        (lambda x: x * (1 / x) >= 1, False),
        (lambda x: jnp.sqrt(-1 - x**2) > 0, False),
    ],
)
def test_what_floats_get_wrong_is_not_proved(f, holds):
    found = piecewise(lambda w, x: w * jnp.where(f(x), x, x**2), np.zeros(()), np.zeros(()))
    x = normal(0, "x", (8,))
    assert Decided(found, 8).at(np.ones(()), [x], np.ones(8, dtype=bool))[1].all() == holds


def test_numbers_that_are_the_same_everywhere_are_ties():
    def f(w, x):
        h = jnp.repeat(jax.nn.leaky_relu(w * x), 2)
        pooled = lax.reduce_window(h, -jnp.inf, lax.max, (3,), (1,), "SAME")
        least = lax.reduce_window(h, jnp.inf, lax.min, (3,), (1,), "SAME")
        return jnp.max(pooled) + jnp.sort(least)[0] + jnp.round(jnp.where(x > 0, 0.5, 1.5))

    found = piecewise(f, np.zeros(3), np.zeros(3))
    x = normal(0, "x", (8, 3))
    assert Decided(found, 8).at(normal(0, "w", (3,)), [x], np.ones(8, dtype=bool))[1].all()
    assert not Decided(found, 8).at(np.zeros(3), [x], np.ones(8, dtype=bool))[1].any()


@pytest.mark.parametrize("seed", range(12))
def test_windows_are_those_of_jax(seed):
    """Strides, padding and dilations of all kinds, also windows that there are none of."""
    numbers = np.random.default_rng(seed)
    size, window, strides, inner, outer = (
        tuple(numbers.integers(1, most, 2).tolist()) for most in (7, 4, 4, 3, 3)
    )
    padding = [(low, high) for low, high in numbers.integers(0, 4, (2, 2)).tolist()]

    def pooled(x):
        return lax.reduce_window(
            x, -jnp.inf, lax.max, window, strides, padding, outer, window_dilation=inner
        )

    with jax.enable_x64(True):
        x = numbers.normal(size=size)
        expected, (equation,) = pooled(x), jax.make_jaxpr(pooled)(x).eqns
        entries = np.asarray(_windows(jnp.asarray(x), equation, -np.inf))
    assert entries.shape[:-1] == expected.shape
    np.testing.assert_array_equal(np.max(entries, axis=-1, initial=-np.inf), expected)
