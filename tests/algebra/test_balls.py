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
from neuromanifold.algebra.balls.function import around, meant
from neuromanifold.algebra.balls.minors import is_regular
from neuromanifold.algebra.balls.order import UndecidedError
from neuromanifold.algebra.balls.rules import RULES
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


def test_powers_of_what_is_infinite_close_by_have_no_value():
    found = in_balls(lambda x: jnp.power(x, 1.5), np.array(np.inf))
    assert not found.item().is_finite()


def test_what_balls_cannot_decide_is_an_error_that_says_so():
    with pytest.raises(UndecidedError, match=r"`argmax` .*two balls overlap"):
        in_balls(lambda x: jnp.argmax(jnp.stack([jnp.exp(x) ** 2, jnp.exp(2 * x)])), np.array(1.0))
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
    factors, pivots, order = in_balls(lambda x: jax.lax.linalg.lu(matrix + 0 * x), np.array(3.0))
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


def equal(x):
    """Two equal numbers that balls cannot tell to be equal, and further ones."""
    return jnp.array([jnp.exp(x) ** 2, jnp.exp(2 * x), x, -x])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: jnp.maximum(*equal(x)[:2]) - jnp.minimum(*equal(x)[1::-1]),
        lambda x: jax.lax.clamp(equal(x)[1], equal(x), equal(x)[0]),
        lambda x: jnp.max(equal(x)) + jnp.min(-equal(x)),
        lambda x: jax.lax.cummax(equal(x)) + jax.lax.cummin(-equal(x), reverse=True),
        lambda x: window(jax.lax.max, (2,), (1,), "SAME")(equal(x)),
        lambda x: window(jax.lax.min, (2,), (1,), "SAME")(-equal(x)),
        lambda x: jnp.abs(equal(x)[0] - equal(x)[1]),
        lambda x: jax.lax.rem(equal(x)[0] - equal(x)[1], 1.0),
    ],
)
def test_extremes_of_balls_that_overlap_are_enclosed(f):
    values(f, ())


@pytest.mark.parametrize(
    ("name", "operands", "ends"),
    [
        ("max", ((0, 3), (1, 2)), (1, 3)),
        ("max", ((1, 2), (0, 3)), (1, 3)),
        ("min", ((0, 3), (1, 2)), (0, 2)),
        ("min", ((1, 2), (0, 3)), (0, 2)),
        ("clamp", ((0, 3), (1, 4), (2, 5)), (1, 4)),
        ("abs", ((-3, 1),), (0, 3)),
        ("rem", ((-1.5, 2.5), (1, 1)), (-1, 1)),
        ("round", ((0.75, 2.25),), (1, 2)),
        ("pow", ((-1, 2), (2, 2)), (0, 4)),
        ("pow", ((-1, 2), (3, 3)), (-1, 8)),
        ("pow", ((-1, 2), (0, 0)), (1, 1)),
    ],
)
def test_wide_balls_give_all_that_their_numbers_do(name, operands, ends):
    wide = [np.array([arb((a + b) / 2, (b - a) / 2)]) for a, b in operands]
    ((ball,),) = RULES[name](None, wide)
    assert all(ball.contains(end) for end in ends)
    assert ball.is_finite()


@pytest.mark.parametrize(
    ("f", "sides"),
    [
        (lambda x: (x > 3) & (x < 4), (0, 1)),
        (lambda x: (x > 3) & (x > 4), (0,)),
        (lambda x: (x > 3) | (x < 4), (1,)),
        (lambda x: (x > 3) | (x > 4), (0, 1)),
        (lambda x: ~(x > 3) & (x > 2), (0, 1)),
        (lambda x: ~((x > 3) & (x > 4)), (1,)),
        (lambda x: (x + jnp.array([0.0, 1.0]) > 3)[1], (1,)),
        (lambda x: (x - jnp.array([0.0, 1.0]) > 3)[1], (0,)),
        (lambda x: jnp.array([1.0, 2.0])[jnp.where(x > 3, 1, 1)] > 1.5, (1,)),
    ],
)
def test_what_is_said_of_a_tie_holds_on_both_sides(f, sides):
    for number in (lambda x: jnp.where(f(x), 1.0, 0.0), lambda x: f(x).astype(float)):
        found = in_balls(number, np.array(3.0)).item()
        assert [side for side in (0, 1) if found.contains(side)] == list(sides)


@pytest.mark.parametrize(
    ("f", "place"),
    [
        (lambda x: jnp.maximum(x[0], x[1]), 1),
        (lambda x: jnp.minimum(x[0], x[1]), 0),
        (lambda x: jnp.max(x), 3),
        (lambda x: jnp.min(x), 2),
        (lambda x: jax.lax.cummax(x)[2], 1),
        (lambda x: jax.lax.cummin(x)[1], 0),
        (lambda x: jax.lax.clamp(x[0], x[1], x[3]), 1),
        (lambda x: window(jax.lax.max, (4,), (1,), "VALID")(x)[0], 3),
        (lambda x: jax.lax.sort(x)[1], 0),
        (lambda x: jax.lax.top_k(x, 2)[0][1], 1),
    ],
)
def test_the_extreme_ball_is_one_of_them_where_that_is_decided(f, place):
    difference = lambda y: (f(y) - y[place], f(y) == y[place])  # noqa: E731
    zero, same = in_balls(lambda x: difference(jnp.exp(x)), np.array([0.1, 0.5, -1.0, 0.7]))
    assert zero.item().is_zero()
    assert same


def test_infinities_compare_plainly_and_balls_that_overlap_do_not():
    f = lambda x: jnp.where(x - jnp.inf == -jnp.inf - 2 * x, x, -x)  # noqa: E731
    assert in_balls(f, np.array(3.0)).item() > 2
    f = lambda x: jnp.where(x - jnp.inf < -jnp.inf - 2 * x, x, -x)  # noqa: E731
    assert in_balls(f, np.array(3.0)).item() < -2
    for greater in (lambda x: x + 1 > 4, lambda x: jnp.exp(x) ** 2 > jnp.exp(2 * x)):
        either = in_balls(lambda x, g=greater: jnp.where(g(x), x, -x), np.array(3.0)).item()
        assert either.contains(3)
        assert either.contains(-3)


def test_a_number_minus_itself_is_zero():
    difference = lambda x: jnp.exp(x) - jnp.exp(x)  # noqa: E731
    same = lambda y: y - y  # noqa: E731
    assert in_balls(lambda x: same(jnp.exp(x)), np.array(3.0)).item().is_zero()
    assert not in_balls(difference, np.array(3.0)).item().is_zero()
    assert in_balls(lambda x: same(x + jnp.inf), np.array(3.0)).item().is_nan()


def unknown(x):
    """The logarithm of zero, which balls do not tell from a number below."""
    return jnp.log(jnp.exp(x) ** 2 - jnp.exp(2 * x))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: unknown(x).astype(jnp.int32),
        lambda x: jnp.argmax(equal(x)),
        lambda x: jnp.argmin(-equal(x)),
        lambda x: jax.lax.sort(equal(x)),
        lambda x: jax.lax.sort((jnp.array([1, 1, 0, 0]), equal(x)), num_keys=2),
        lambda x: jax.lax.top_k(equal(x), 1),
        lambda x: jnp.argsort(jnp.array([x + 1, 2 * x])),
        lambda x: jnp.argmax(jnp.array([x + 1, 2 * x])),
        lambda x: jnp.where(x + 1 > 2 * x, 1, 2),
        lambda x: (x + 1 > 2 * x).astype(jnp.int32),
        lambda x: (equal(x)[0] - equal(x)[1] - 2).astype(jnp.int32),
        lambda x: jnp.where((x + 1 > 2) != (x > 9), x, -x),  # truth values that compare
    ],
)
def test_what_is_not_known_is_not_decided(f):
    with pytest.raises(UndecidedError, match="not decided"):
        in_balls(f, np.array(1.0))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: jnp.isfinite(unknown(x)),
        lambda x: jnp.isnan(unknown(x)),
        lambda x: equal(x)[0] == equal(x)[1],
        lambda x: (equal(x)[0] - equal(x)[1]).astype(bool),
        lambda x: x == 1,
        lambda x: x >= 1,
    ],
)
def test_truth_that_is_not_known_is_none(f):
    assert in_balls(f, np.array(1.0)).item() is None


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x >= 1) == (x >= 2),
        lambda x: jnp.any(jnp.stack([x >= 1, x >= 2])),
        lambda x: jnp.argmax(jnp.stack([x >= 1, x >= 2])),
        lambda x: jnp.sort(jnp.stack([x >= 1, x >= 2])),
        lambda x: jnp.zeros(2, bool).at[0].set(x >= 1),
        lambda x: jnp.stack([x >= 1, x >= 2])[jnp.argmin(jnp.stack([x, 2 * x]))],
    ],
)
def test_truth_that_is_not_known_is_not_computed_with(f):
    with pytest.raises(UndecidedError, match="not decided"):
        in_balls(f, np.array(1.0))


def test_truth_that_is_known_stays_so_beside_what_is_not():
    truths = lambda x: jnp.pad(jnp.stack([x >= 1, x >= 2]), 1, constant_values=False)  # noqa: E731
    assert in_balls(truths, np.array(1.0)).tolist() == [False, None, False, False]
    chosen = in_balls(lambda x: jnp.where(truths(x), 1.0, 0.0), np.array(1.0))
    assert [ball.is_zero() for ball in chosen] == [True, False, True, True]


@pytest.mark.parametrize("table", [np.array([2, 0, 1]), np.array([True, False, True])])
def test_tables_of_whole_numbers_are_read_at_computed_places(table):
    f = lambda x: x[jnp.asarray(table)[jnp.argmax(x)].astype(int)]  # noqa: E731
    values(f, (3,))


@pytest.mark.parametrize(("dtype", "x"), [("uint8", -3.5), ("int8", 300.5), ("int32", 1e9 * np.pi)])
def test_numbers_beyond_the_range_of_their_type_are_refused(dtype, x):
    with pytest.raises(NotCoveredError, match=f"beyond the range of {dtype}"):
        in_balls(lambda x: x.astype(dtype) * 1.0, np.array(x))


def nothing(x):
    """What has no value anywhere."""
    return jnp.log(-1 - x * x)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: jnp.sign(nothing(x)),
        lambda x: jnp.arctan2(nothing(x), x),
        lambda x: jnp.arctan2(x, nothing(x)),
        lambda x: jnp.cos(x + jnp.inf),
        lambda x: jnp.sin(x - jnp.inf),
        lambda x: jnp.maximum(nothing(x), 1.0),
        lambda x: jnp.clip(nothing(x), -1.0, 1.0),
        lambda x: jnp.tanh(nothing(x)),
    ],
)
def test_what_has_no_value_is_not_enclosed(f):
    assert in_balls(f, np.array(1.0)).item().is_nan()


@pytest.mark.parametrize("x", [0.0, 1.0, 5e-324, 1e-300, 1e300])
def test_balls_around_a_float_hold_an_open_set(x):
    with precision(600):
        ball = around(np.array(x)).item()
        assert ball.contains(arb(x) * (1 + arb(2) ** -250) - arb(2) ** -2001)
        assert not ball.contains(arb(x) * (1 + arb(2) ** -240) + arb(2) ** -1999)


def test_constants_beside_infinities_are_read_as_without_them():
    with precision(PRECISION):
        tenth, low = meant(np.array([0.1, -np.inf]))
        assert tenth.contains(fmpq(1, 10))
        assert float(low) == -np.inf


KEYS = jnp.array([[3, 1, 3], [1, 1, 2], [3, 0, 0], [0, 2, 2]])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (jax.lax.argmax(x, 0, np.int32), jax.lax.argmin(x, 1, np.int32)),
        lambda x: (jnp.sort(x, axis=0), jnp.argsort(x, axis=1), jnp.median(x)),
        lambda x: jax.lax.sort((KEYS, x, x**2), num_keys=2, dimension=0),
        lambda x: jax.lax.sort((x, KEYS), num_keys=1, dimension=1),
        lambda x: (jax.lax.top_k(x, 2), jax.lax.top_k(x.T, 3)),
        lambda x: jax.lax.top_k(jnp.concatenate([x[0] + 9, equal(x[0, 0])]), 3),
        lambda x: jnp.argmax(jnp.stack([x[0, 0] - jnp.inf, x[0, 1] - jnp.inf, x[0, 2], x[0, 2]])),
        lambda x: jnp.argmax(jnp.stack([x[0, 0] - jnp.inf, x[0, 1] - jnp.inf])),
        lambda x: (jax.lax.rem(7 * x, x[::-1]), jnp.mod(5 * x, -0.7), jnp.fmod(x, 10.0)),
        lambda x: (jnp.round(3 * x), jax.lax.round(3 * x), jnp.floor(3 * x), jnp.ceil(3 * x)),
        lambda x: (3 * x).astype(jnp.int32),
        lambda x: (x / 9).astype(bool),
        lambda x: (jax.lax.clamp(-0.5, x, 0.3), jax.lax.clamp(0.9, x, 0.3)),
        lambda x: (jax.lax.cummax(x, axis=1), jax.lax.cummin(x, axis=0, reverse=True)),
        lambda x: ~((x > 0) & (x < 1)) | (x > 2),
        lambda x: jnp.nextafter(1.0, 2.0) * x,
    ],
)
def test_what_is_decided_is_what_floats_decide(f):
    values(f, (4, 3))


@pytest.mark.parametrize(
    ("f", "x", "sides"),
    [
        (jnp.round, 2.5, (2, 3)),
        (jax.lax.round, -2.5, (-2, -3)),
        (lambda x: jax.lax.rem(x, 1.0), 3.0, (0, 1)),
        (lambda x: jax.lax.rem(x, 1.0), 0.0, (0, 0)),
        (lambda x: jax.lax.rem(x, 1.0), -3.0, (0, -1)),
    ],
)
def test_steps_have_both_sides_where_they_are(f, x, sides):
    ball = in_balls(f, np.array(x)).item()
    assert all(ball.contains(side) for side in sides)
    assert ball.rad() <= abs(sides[1] - sides[0]) / 2 + 1e-8


def test_a_bound_met_exactly_has_the_slopes_of_both_sides():
    f = lambda w, x: jax.lax.clamp(0.0, w * x, 3.0)  # noqa: E731
    rows = rows_in_balls(f, np.array(1.0), np.array([3.0, 2.0, 4.0]), np.ones(3))
    assert rows[0].contains(0)
    assert rows[0].contains(3)
    assert [float(x) for x in rows[1:]] == [2.0, 0.0]
