"""Scatters, windows and linear systems over a prime field, with their derivatives."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from algebra.test_modular import FIELD, assert_agrees, points
from neuromanifold.algebra.modular import over_prime_field
from neuromanifold.errors import ArgumentError

OUTSIDE = np.array([0, 7])


def evaluate(f, *integers):
    modular = over_prime_field(f, *(np.zeros(x.shape) for x in integers))
    return modular(FIELD, *(FIELD.from_integers(x) for x in integers))


def times(x, y):
    return FIELD.matmul(FIELD.from_integers(x), y)


@pytest.mark.parametrize("filling", [0.0, 5.0, -0.5])
def test_what_a_gather_reads_outside_is_its_filling(filling):
    f = lambda x: x.at[OUTSIDE].get(mode="fill", fill_value=filling)  # noqa: E731
    assert_agrees(f, *points((3,)))
    assert_agrees(jax.jacrev(f), *points((3,)))


def test_a_filling_that_is_no_number_is_refused_only_where_it_is_read():
    f = lambda x: x.at[OUTSIDE].get(mode="fill", fill_value=jnp.nan)  # noqa: E731
    with pytest.raises(ArgumentError, match="reads outside its operand, which gives NaN"):
        over_prime_field(f, np.zeros(3))
    assert_agrees(f, *points((9,)))


@pytest.mark.parametrize("mode", ["drop", "clip"])
@pytest.mark.parametrize("combine", ["add", "subtract", "set"])
def test_scatters_that_drop_an_index_and_their_derivatives(mode, combine):
    f = lambda x: getattr(x.at[OUTSIDE], combine)(2 * x[:2], mode=mode)  # noqa: E731
    assert_agrees(f, *points((3,)))
    assert_agrees(jax.jacrev(f), *points((3,)))


def test_sums_over_segments_do_not_see_a_segment_that_is_not_there():
    f = lambda x: jnp.sum(jax.ops.segment_sum(x, np.array([1, 7]), num_segments=2) ** 2)  # noqa: E731
    assert_agrees(jax.grad(f), *points((2,)))


CONVOLUTIONS = {
    "strided": ((2, 3, 5, 4), (6, 3, 3, 2), {"window_strides": (1, 2), "padding": "SAME"}),
    "dilated": (
        (2, 3, 5, 4),
        (6, 3, 3, 2),
        {
            "window_strides": (2, 1),
            "padding": ((1, 2), (0, 3)),
            "lhs_dilation": (2, 1),
            "rhs_dilation": (1, 2),
        },
    ),
    "grouped": (
        (2, 3, 5, 4),
        (6, 1, 3, 2),
        {"window_strides": (1, 1), "padding": "VALID", "feature_group_count": 3},
    ),
    "cut": ((2, 3, 5, 4), (6, 3, 3, 2), {"window_strides": (1, 1), "padding": ((-1, 0), (0, 0))}),
    "features last": (
        (2, 5, 4, 3),
        (3, 2, 3, 6),
        {
            "window_strides": (1, 1),
            "padding": "VALID",
            "dimension_numbers": ("NHWC", "HWIO", "NHWC"),
        },
    ),
}


@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_convolutions_and_their_derivatives(kind):
    *shapes, options = CONVOLUTIONS[kind]
    f = lambda x, w: lax.conv_general_dilated(x, w, **options)  # noqa: E731
    both = lambda x, w: (f(x, w), jax.grad(lambda *a: jnp.sum(f(*a) ** 2), (0, 1))(x, w))  # noqa: E731
    assert_agrees(both, *points(*shapes))


def test_sums_over_windows_and_their_derivatives():
    f = lambda x: lax.reduce_window(  # noqa: E731
        x, 0.0, lax.add, (2, 2), (1, 2), ((0, 1), (1, 0)), (2, 1), (1, 2)
    )
    assert_agrees(lambda x: (f(x), jax.grad(lambda y: jnp.sum(f(y) ** 2))(x)), *points((4, 5)))


def test_triangular_systems_of_every_kind():
    A, b = points((2, 5, 5), (2, 5, 3))
    A[:, range(5), range(5)] = 2 + np.arange(5)
    for left, lower, transposed, unit in itertools.product([True, False], repeat=4):
        options = {"left_side": left, "lower": lower, "transpose_a": transposed}
        right = b if left else b.swapaxes(1, 2)
        x = evaluate(
            lambda a, b, o=options, u=unit: lax.linalg.triangular_solve(a, b, unit_diagonal=u, **o),
            A,
            right,
        )
        T = np.tril(A) if lower else np.triu(A)
        if unit:
            T[:, range(5), range(5)] = 1
        T = FIELD.from_integers(T.swapaxes(1, 2) if transposed else T)
        product = FIELD.matmul(T, x) if left else FIELD.matmul(x, T)
        np.testing.assert_array_equal(product, FIELD.from_integers(right))


def test_solutions_and_inverses_of_any_size_solve_their_equations():
    generator = np.random.default_rng(4)
    A, b, dA, db = (generator.integers(-999, 999, (2, 6, n)) for n in (6, 3, 6, 3))
    np.testing.assert_array_equal(
        times(A, evaluate(jnp.linalg.inv, A)), np.broadcast_to(np.eye(6), A.shape)
    )
    move = lambda *a: jax.jvp(jnp.linalg.solve, a[:2], a[2:])  # noqa: E731
    x, dx = evaluate(move, A, b, dA, db)
    np.testing.assert_array_equal(times(A, x), FIELD.from_integers(b))
    # A x = b moves to A dx + dA x = db.
    np.testing.assert_array_equal(
        FIELD.reduce(times(A, dx) + times(dA, x)), FIELD.from_integers(db)
    )


def test_axes_may_be_read_in_another_order_while_reshaping():
    assert_agrees(lambda x: lax.reshape(x, (6, 2), dimensions=(2, 0, 1)), *points((2, 3, 2)))
