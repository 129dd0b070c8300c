"""Functions and Jacobians in balls, and ranks proved by one minor."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from flint import arb, fmpq
from jax.extend.core import jaxprs_in_params

from neuromanifold.algebra.balls import in_balls, proved_rank, rows_in_balls
from neuromanifold.algebra.balls.arrays import PRECISION, balls, midpoints, precision
from neuromanifold.algebra.balls.function import meant
from neuromanifold.algebra.balls.minors import is_regular
from neuromanifold.algebra.balls.rules import RULES, UndecidedError
from neuromanifold.algebra.cells.points import normal
from neuromanifold.algebra.modular.coverage import COVERED, SUPPORTED
from neuromanifold.algebra.modular.rules.indexing import MOVED
from neuromanifold.algebra.modular.rules.structural import ARRANGEMENTS, UNTOUCHED
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
    with pytest.raises(UndecidedError, match=r"`gt` .*two balls overlap"):
        in_balls(lambda x: jnp.where(jnp.exp(x) ** 2 > jnp.exp(2 * x), x, -x), np.ones(2))
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


def values(f, *shapes):
    """The floats of `f` at random arguments, after balls are found to enclose them closely."""
    x = [normal(0, str(i), shape) for i, shape in enumerate(shapes)]
    found = jax.tree.leaves(in_balls(f, *x))
    with jax.enable_x64(True):
        floats = jax.tree.leaves(jax.jit(f)(*x))
    for these, those in zip(found, floats, strict=True):
        assert these.shape == those.shape
        if these.dtype == object:
            np.testing.assert_allclose(midpoints(these), those, rtol=1e-9, atol=1e-9)
            assert all(ball.rad() < 1e-60 for ball in these.ravel())
        else:
            np.testing.assert_array_equal(these, those)


def convolution(layout=("NCHW", "OIHW", "NCHW"), strides=(1, 1), padding="VALID", **params):
    def convolve(x, k):
        return jax.lax.conv_general_dilated(
            x, k, strides, padding, dimension_numbers=layout, **params
        )

    return convolve


@pytest.mark.parametrize(
    ("f", "left", "right"),
    [
        (convolution(strides=(2, 1), padding=[(1, 2), (0, 3)]), (2, 3, 5, 4), (4, 3, 3, 2)),
        (convolution(padding=[(3, -1), (2, 2)], rhs_dilation=(2, 3)), (1, 2, 6, 5), (3, 2, 2, 2)),
        (convolution(padding=[(1, 1), (2, 0)], lhs_dilation=(2, 3)), (2, 2, 3, 4), (1, 2, 3, 3)),
        (convolution(feature_group_count=2, strides=(1, 2)), (2, 4, 4, 5), (6, 2, 2, 3)),
        (convolution(batch_group_count=3), (6, 2, 4, 4), (3, 2, 2, 3)),
        (convolution(layout=("NHWC", "HWIO", "NHWC")), (2, 4, 5, 3), (2, 3, 3, 4)),
        (convolution(layout=("CWNH", "IWOH", "WCHN")), (3, 4, 2, 5), (3, 2, 4, 3)),
        (convolution(padding=[(-7, 0), (0, 0)]), (2, 3, 8, 4), (4, 3, 2, 2)),
    ],
)
def test_convolutions_are_enclosed(f, left, right):
    values(f, left, right)


def window(operation, size, strides, padding, **params):
    start = {jax.lax.add: 0.0, jax.lax.max: -np.inf, jax.lax.min: np.inf}[operation]
    return lambda x: jax.lax.reduce_window(x, start, operation, size, strides, padding, **params)


@pytest.mark.parametrize("operation", [jax.lax.add, jax.lax.max, jax.lax.min])
@pytest.mark.parametrize(
    "params",
    [
        {"size": (2, 3), "strides": (2, 1), "padding": [(1, 0), (2, 2)]},
        {"size": (2, 2), "strides": (1, 2), "padding": "VALID", "window_dilation": (3, 2)},
        {"size": (3, 2), "strides": (1, 1), "padding": "SAME", "base_dilation": (2, 2)},
    ],
)
def test_windows_are_enclosed(operation, params):
    values(window(operation, **params), (5, 6))


def test_a_window_outside_of_the_array_has_what_it_begins_with():
    sums, largest = (
        in_balls(window(operation, (2,), (1,), [(3, 0)]), np.arange(1.0, 4.0))
        for operation in (jax.lax.add, jax.lax.max)
    )
    assert [float(x) for x in sums] == [0.0, 0.0, 1.0, 3.0, 5.0]
    assert [float(x) for x in largest] == [-np.inf, -np.inf, 1.0, 2.0, 3.0]


def solve(**params):
    def solution(a, b):
        a = a + 3 * jnp.eye(a.shape[-1])
        return jax.lax.linalg.triangular_solve(a, b, **params)

    return solution


@pytest.mark.parametrize("left_side", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transpose_a", [True, False])
@pytest.mark.parametrize("unit_diagonal", [True, False])
def test_triangular_systems_are_enclosed(left_side, lower, transpose_a, unit_diagonal):
    f = solve(
        left_side=left_side, lower=lower, transpose_a=transpose_a, unit_diagonal=unit_diagonal
    )
    values(f, (2, 3, 4, 4), (2, 3, 4, 2) if left_side else (2, 3, 2, 4))


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (2, 3, 4, 4), (0, 3, 3)])
def test_factors_are_enclosed(shape):
    values(jax.lax.linalg.lu, shape)


def test_factors_of_a_singular_matrix_multiply_to_it():
    matrix = np.array([[0.0, 2.0, 4.0], [0.0, 1.0, 2.0], [0.0, 4.0, 9.0]])
    factors, pivots, order = in_balls(jax.lax.linalg.lu, matrix)
    factors = midpoints(factors)
    product = (np.tril(factors, -1) + np.eye(3)) @ np.triu(factors)
    np.testing.assert_array_equal(product, matrix[order])
    assert pivots.tolist() == [0, 2, 2]


def system(a, b):
    """What calls these: solutions, inverses and determinants, by factors with pivots."""
    return jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.slogdet(a), jnp.linalg.det(a)


def test_linear_systems_and_their_derivatives_are_enclosed():
    values(system, (4, 4), (4, 2))
    values(jax.grad(lambda a, b: jnp.sum(jnp.linalg.solve(a, b) ** 2)), (4, 4), (4, 2))


PLACES = np.array([[0], [2], [0], [3], [0], [7]])


@pytest.mark.parametrize("name", ["scatter_add", "scatter_mul", "scatter_sub"])
def test_scatters_meet_an_entry_repeatedly_and_drop_what_is_outside(name):
    numbers = jax.lax.ScatterDimensionNumbers((1,), (0,), (0,))
    f = lambda x, u: getattr(jax.lax, name)(x, PLACES, u, numbers, mode="drop")  # noqa: E731
    values(f, (4, 2), (6, 2))


@pytest.mark.parametrize("reverse", [True, False])
def test_logarithms_of_partial_sums_are_enclosed(reverse):
    values(lambda x: jax.lax.cumlogsumexp(50 * x, axis=1, reverse=reverse), (2, 5, 3))
    lowest = jnp.array([-jnp.inf, 0.0, 0.0])
    found = in_balls(lambda x: jax.lax.cumlogsumexp(x + lowest, reverse=reverse), np.zeros(3))
    expected = [np.log(2.0), np.log(2.0), 0.0] if reverse else [-np.inf, 0.0, np.log(2.0)]
    np.testing.assert_allclose(midpoints(found), expected, rtol=1e-15)


def spectrum(x, y):
    """Every operation on complex values."""
    z = jax.lax.complex(x, y)
    w = jnp.fft.ifft(jnp.fft.fft(z) * (1 + 2j)) + jnp.exp(jnp.conj(z)) / (z + 2) ** 2
    s = jnp.cumsum(jnp.stack([w[::-1], z @ z.T @ z]), axis=0)
    rounds = jnp.fft.irfft(jnp.fft.rfft(x, axis=0), axis=0) + jnp.fft.fft2(z).real
    kernel = jax.lax.conv_general_dilated(z[None, None], w[None, None, :2, :2], (1, 1), "SAME")
    return jnp.real(s) * jnp.imag(s) + jnp.abs(w) + rounds, jnp.abs(kernel)


def test_complex_values_are_enclosed():
    values(spectrum, (4, 4), (4, 4))


OF_COMPLEX = COVERED["of complex values"].difference(
    *(names for kind, names in COVERED.items() if kind != "of complex values")
)


def primitives(jaxpr):
    """The names of all primitives of a jaxpr and of what it calls."""
    inner = (one for equation in jaxpr.eqns for one in jaxprs_in_params(equation.params))
    return {equation.primitive.name for equation in jaxpr.eqns}.union(*map(primitives, inner))


@pytest.mark.parametrize("name", sorted(SUPPORTED - COVERED["calls and loops"]))
def test_what_is_read_exactly_is_read_in_balls(name):
    """Complex values are pairs of real ones before they are read in balls."""
    x = jax.ShapeDtypeStruct((4, 4), np.float64)
    opened = OF_COMPLEX & primitives(jax.make_jaxpr(spectrum)(x, x).jaxpr)
    assert name in {*RULES, *MOVED, *ARRANGEMENTS, *UNTOUCHED, *opened}
