"""Functions and Jacobians in balls, and ranks proved by one minor."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from flint import arb, fmpq

from neuromanifold.algebra.balls import in_balls, proved_rank, rows_in_balls
from neuromanifold.algebra.balls.arrays import PRECISION, balls, midpoints, precision
from neuromanifold.algebra.balls.function import meant
from neuromanifold.algebra.balls.minors import is_regular
from neuromanifold.algebra.balls.rules import UndecidedError
from neuromanifold.algebra.cells.points import normal
from neuromanifold.errors import NotCoveredError

W = {"a": (3, 3), "q": (2, 3), "k": (2, 3), "v": (3, 3), "u": (4, 3), "o": (2, 4)}
WEIGHTS = {name: normal(0, name, shape) for name, shape in W.items()}


def block(w, x):
    """Layer norm, softmax attention, exact GELU."""
    h = w["a"] @ x
    h = (h - jnp.mean(h, 0)) / jnp.sqrt(jnp.var(h, 0) + 1e-5)
    y = w["v"] @ h @ jax.nn.softmax((w["q"] @ h).T @ (w["k"] @ h), axis=-1).T + x
    return w["o"] @ jax.nn.gelu(w["u"] @ y, approximate=False)


def pictures(w, x):
    """Convolution by shifts, ReLU, maxima, sorting, indexing, cumulative sums and products."""
    y = jax.nn.relu(w["a"] @ x + jnp.roll(x, 1, axis=0))
    z = jnp.cumsum(y, axis=1) + jnp.cumprod(x, axis=0) * jnp.sign(x)
    return jnp.max(z, axis=1) + x[np.array([2, 0, 1]), 0] * jnp.where(x[0] > 0, x[1], -x[1])


def rows(f, count, weights=WEIGHTS):
    X = normal(0, "X", (count, 3, 3))
    with jax.enable_x64(True):
        shape = jax.eval_shape(f, weights, X[0]).shape
    u = normal(0, "u", (count, *shape))
    row = lambda x, v: jax.vjp(lambda w: f(w, x), weights)[1](v)[0]  # noqa: E731
    with jax.enable_x64(True):
        floats = jax.jit(jax.vmap(row))(X, u)
    return rows_in_balls(f, weights, X, u), floats


@pytest.mark.parametrize("f", [block, pictures])
def test_balls_enclose_what_floats_compute(f):
    found, floats = rows(f, 3)
    for name in W:
        np.testing.assert_allclose(midpoints(found[name]), floats[name], rtol=1e-9, atol=1e-12)
        assert all(x.rad() < 1e-60 for x in found[name].ravel())


def test_a_rank_at_given_weights_is_proved():
    found, floats = rows(block, 70)
    matrix = np.concatenate([found[name].reshape(70, -1) for name in W], axis=1)
    proved = proved_rank(matrix)
    dense = np.concatenate([floats[name].reshape(70, -1) for name in W], axis=1)
    assert proved.rank == np.linalg.matrix_rank(dense, tol=1e-9 * np.linalg.norm(dense))
    assert proved.rank < matrix.shape[1]


def test_what_is_singular_is_not_called_regular():
    exact = balls(np.array([[1.0, 2.0], [2.0, 4.0]]))
    assert not is_regular(exact)
    assert is_regular(balls(np.array([[1.0, 2.0], [2.0, 4.0000001]])))
    wide = balls(np.eye(2))
    wide[0, 0] = arb(1, 2)
    assert not is_regular(wide)
    third = balls(np.ones((3, 3))) / 3
    assert proved_rank(third).rank == 1
    # Conditioned far beyond what floats resolve: the determinant decides.
    scale = np.array([[1.0, 1.0], [1.0, 1.0 + 2.0**-50]])
    assert is_regular(balls(scale))
    assert proved_rank(balls(np.zeros((2, 3)))).rank == 0


def test_the_function_is_differentiated_and_not_its_own_rule():
    f = lambda w, x: w["a"] * x + jax.lax.stop_gradient(w["b"] * x - w["b"] * x**2)  # noqa: E731
    found = rows_in_balls(f, {"a": np.ones(()), "b": np.ones(())}, np.array([2.0]), np.array([1.0]))
    assert float(found["b"][0].mid()) == -2.0


def test_what_balls_cannot_decide_is_an_error_that_says_so():
    with pytest.raises(UndecidedError, match=r"`max` .*two balls overlap"):
        in_balls(lambda x: jnp.maximum(jnp.exp(x) ** 2, jnp.exp(2 * x)), np.ones(2))
    with pytest.raises(NotCoveredError, match=r"`eigh` .*cannot be evaluated in balls"):
        in_balls(lambda x: jnp.linalg.eigh(x)[0], np.eye(2))


@pytest.mark.parametrize(
    ("f", "expected", "x"),
    [
        (jnp.cbrt, lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), (-1.7, 0.3)),
        (jax.lax.bessel_i0e, lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)), (-1.7, 0.3)),
        (jax.lax.bessel_i1e, lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)), (-1.7, 0.3)),
        (jax.lax.erf_inv, mpmath.erfinv, (-0.7, 0.3)),
        (lambda x: jnp.arctan2(x, -0.5 * x), lambda x: mpmath.atan2(x, -x / 2), (-0.7, 0.3)),
        (lambda x: jax.lax.polygamma(2.0 + 0 * x, x), lambda x: mpmath.psi(2, x), (0.7, 2.3)),
    ],
)
def test_further_functions_enclose_their_values(f, expected, x):
    for entry in x:
        (ball,) = in_balls(f, np.array([entry]))
        with mpmath.workdps(60), precision(PRECISION):
            assert abs(ball - arb(str(expected(mpmath.mpf(entry))))) < 1e-50


def test_constants_are_enclosed_with_what_they_stand_for():
    with precision(PRECISION):
        third, root = meant(np.array([1 / 3, np.sqrt(2.0)]))
        assert abs(third - fmpq(1, 3)) < 1e-70
        assert root.contains(arb(2).sqrt())
        assert root.contains(arb(float(np.sqrt(2.0))))
        f = lambda x: np.sqrt(2.0) * x  # noqa: E731
        assert in_balls(f, np.array(3.0), constant=meant).item().contains(arb(18).sqrt())
        assert not in_balls(f, np.array(3.0)).item().contains(arb(18).sqrt())
