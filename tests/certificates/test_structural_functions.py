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
from neuromanifold.errors import NeuromanifoldError


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


def test_places_that_are_whole_inputs_are_added_to():
    # Each v_i meets each o_j, a product of two vectors: 4 + 3 − 1.
    def f(w, segments):
        return jax.ops.segment_sum(w["v"], segments, num_segments=3) @ w["o"]

    assert dimension(f, {"v": np.zeros(4), "o": np.zeros(3)}, np.array([0, 2, 1, 2])) == 6


def test_places_that_are_decided_are_written_to():
    def written(w, x):
        return jnp.zeros(3).at[jnp.argmax(x)].set(w[0] * x[0]) + w[1] * x

    def added(w, x):
        return jax.lax.dynamic_update_slice(w[:3] * x["y"], w[3:] ** 2, (x["place"],))

    assert dimension(written, np.zeros(2), np.zeros(3)) == 2
    assert dimension(added, np.zeros(5), {"y": np.zeros(()), "place": np.int32(1)}) == 4  # not w_1


def test_dropped_updates_at_whole_inputs_have_no_weight():
    f = lambda w, t: jnp.zeros(2).at[t + 2].add(w)  # noqa: E731
    with pytest.raises(NeuromanifoldError, match="depends on none of its weights"):
        dimension(f, np.zeros(2), np.array([0, 1]))


def test_attention_of_jax_without_a_mask_is_softmax_attention():
    # Queries and keys of width 1 are seen through their product.
    def f(w, x):
        return jax.nn.dot_product_attention(x @ w["q"], x @ w["k"], x @ jnp.eye(2, 1))

    weights = {"q": np.zeros((2, 1)), "k": np.zeros((2, 1))}
    assert dimension(f, weights, np.zeros((3, 1, 2))) == 3


def test_many_powers_at_once_are_chosen_among():
    f = lambda w, x: w @ x ** jnp.arange(70.0)  # noqa: E731
    assert dimension(f, np.zeros(70), np.zeros(())) == 70


def test_a_system_without_equations_has_no_weight():
    def f(w, x):
        nothing = jnp.linalg.solve(jnp.full((0, 0), w), jnp.zeros(0))
        return w * x + jnp.sum(nothing)

    assert dimension(f, np.zeros(()), np.zeros(())) == 1


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
