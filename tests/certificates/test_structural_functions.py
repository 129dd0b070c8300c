"""Dimensions of functions made of gathers, scatters, windows and linear systems."""

import jax
import jax.numpy as jnp
import numpy as np

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
