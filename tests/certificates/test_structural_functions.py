"""Dimensions of functions made of gathers, scatters, windows and linear systems."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sympy import Matrix, symbols

from formal_ranks import float_rank
from neuromanifold.algebra.modular.rules.linear_systems import factors, factors_tangent
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.certificates.exact import certify_function


def dimension(f, weights, inputs):
    certificate = certify_function(f, weights, inputs)
    assert certificate.lower <= certificate.upper
    return certificate.lower


def test_an_entry_outside_is_the_filling_and_no_weight():
    f = lambda w, x: (w * x).at[np.array([0, 7])].get(mode="fill", fill_value=0.0)  # noqa: E731
    assert dimension(f, np.zeros(3), np.zeros(3)) == 1


def test_a_dropped_segment_has_no_weight():
    f = lambda w, x: jax.ops.segment_sum(w * x, np.array([1, 7]), num_segments=2)  # noqa: E731
    assert dimension(f, np.zeros(2), np.zeros(2)) == 1


def test_a_convolution_with_scaled_kernels_loses_the_scalings():
    # k_o and c_o of the output c_o (k_o ∗ x) are seen through their product alone: 2 lost.
    def f(w, x):
        y = jax.lax.conv_general_dilated(x[None], w[0], (1, 1), "SAME")
        return w[1][:, None, None] * y[0]

    assert dimension(f, (np.zeros((2, 1, 2, 2)), np.zeros(2)), np.zeros((1, 3, 3))) == 8


def test_a_linear_system_sees_matrix_and_right_side_up_to_a_factor():
    # x ↦ (A + x I)⁻¹ b with A and b of 4 × 4 and 4 entries: cᵀ (A + x I)⁻¹ b would be 2·4; all
    # entries of the solution together leave nothing of A and b unseen.
    f = lambda w, x: jnp.linalg.solve(w[0] + x * jnp.eye(4), w[1])  # noqa: E731
    assert dimension(f, (np.zeros((4, 4)), np.zeros(4)), np.zeros(())) == 20
    # One entry is a quotient of a cubic by a monic quartic polynomial in x: 4 + 4.
    g = lambda w, x: f(w, x)[0]  # noqa: E731
    assert dimension(g, (np.zeros((4, 4)), np.zeros(4)), np.zeros(())) == 8


LINEAR = {
    # The coefficients of a monic characteristic polynomial.
    "det": (lambda w, x: jnp.linalg.det(w + x * jnp.eye(4)), np.zeros((4, 4)), 4),
    "log det": (lambda w, x: jnp.log(jnp.linalg.det(w + x * jnp.eye(4))), np.zeros((4, 4)), 4),
    # A quotient of a constant by a monic quadratic polynomial: 1 + 2.
    "exp inv": (
        lambda w, x: jnp.exp(jnp.linalg.inv(w + x * jnp.eye(2))[0, 1]),
        np.zeros((2, 2)),
        3,
    ),
    "tanh solve": (
        lambda w, x: jnp.tanh(jnp.linalg.solve(w[0] + x * jnp.eye(2), w[1])),
        (np.zeros((2, 2)), np.zeros(2)),
        6,
    ),
}


@pytest.mark.parametrize("name", LINEAR)
def test_determinants_and_formal_functions_of_linear_systems_have_their_dimension(name):
    f, weights, expected = LINEAR[name]
    assert dimension(f, weights, np.zeros(())) == expected
    assert float_rank(f, weights, np.zeros(())) == expected


def test_the_derivative_of_the_factors_is_the_derivative():
    field, t = PrimeField(), symbols("t")
    a, da = (field.random(0, name, (3, 4)) for name in ("a", "da"))
    moving = Matrix(3, 4, lambda i, j: int(a[i, j]) + t * int(da[i, j]))
    for i in range(2):
        for k in range(i + 1, 3):
            factor = (moving[k, i] / moving[i, i]).together()
            moving[k, i] = factor
            for j in range(i + 1, 4):
                moving[k, j] = (moving[k, j] - factor * moving[i, j]).together()
    slopes, values = moving.diff(t).subs(t, 0), moving.subs(t, 0)

    def residues(matrix):
        return np.array(
            [
                [float(x.p * pow(int(x.q), -1, field.modulus) % field.modulus) for x in row]
                for row in matrix.tolist()
            ]
        )

    np.testing.assert_array_equal(factors(field, a) % field.modulus, residues(values))
    np.testing.assert_array_equal(factors_tangent(field, a, da) % field.modulus, residues(slopes))
