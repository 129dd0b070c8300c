"""The neuromanifold as tables of products of linear forms (prop-a.5).

Let α_m be column m of A and ν_n row n of V, read as linear forms on R^d. Token i of the output is

    φ(X)_i = Σ_j (x_jᵀ A x_i) V x_j = ( Σ_m x_{i,m} Σ_j α_m(x_j) ν_n(x_j) )_n,

so the function is the d × d' table of the quadratic forms T_mn = α_m · ν_n and nothing else, and it
is linear in the table. Conversely, for two tokens e_m and x the first output is T_mn(e_m) + T_mn(x)
and for e_m and 0 it is T_mn(e_m): their difference shows the table. A form is stored by its
coefficients of x_i x_j, i ≤ j, in the order of `np.triu_indices`. These need no division, so the
same code serves residues mod p.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.products import product_terms
from neuromanifold.geometry.layer import Factors, check_layer
from neuromanifold.networks.weights import Weights

Table = Float[np.ndarray, "*batch d d_out forms"]


def product_table(
    A: Float[np.ndarray, "*batch d d"], V: Float[np.ndarray, "*batch d_out d"]
) -> Table:
    """The table of α_m · ν_n, bilinear in A and V (prop-a.5).

    For residues |x| < 2^22 the entries are sums of two products, below 2^45: exact integers, still
    to be reduced.
    """
    i, j = np.triu_indices(A.shape[-1])
    alpha, nu = np.swapaxes(A, -1, -2)[..., :, None, :], V[..., None, :, :]
    return alpha[..., i] * nu[..., j] + np.where(i == j, 0.0, alpha[..., j] * nu[..., i])


def table_of(weights: Weights) -> Float[np.ndarray, "d d_out forms"]:
    """The table of the function that the weights compute (prop-a.5)."""
    check_layer(weights.architecture, "prop-a.5")
    factors = Factors.of(weights)
    return product_table(factors.form, factors.value_map)


def symmetric_matrices(table: Table) -> Float[np.ndarray, "*batch d d_out d d"]:
    """The symmetric matrix of every form, whose norm is the one distances are measured in."""
    d = table.shape[-3]
    i, j = np.triu_indices(d)
    matrices = np.zeros((*table.shape[:-1], d, d))
    halves = np.where(i == j, table, table / 2)
    matrices[..., i, j] = halves
    matrices[..., j, i] = halves
    return matrices


def table_norm(table: Table) -> float:
    """The root of the sum of squares of all entries of all symmetric matrices."""
    return float(np.linalg.norm(symmetric_matrices(table)))


def evaluate_table(
    table: Float[np.ndarray, "d d_out forms"], X: Float[np.ndarray, "d t"]
) -> Float[np.ndarray, "d_out t"]:
    """φ(X) from the table, whether or not it consists of products (prop-a.5)."""
    i, j = np.triu_indices(X.shape[0])
    sums = table @ (X[i] * X[j]).sum(axis=1)
    return sums.T @ X


def read_table(
    function: Callable[[np.ndarray], np.ndarray], d: int
) -> Float[np.ndarray, "d d_out forms"]:
    """The table of a function of two tokens of width d, from its values (prop-a.5).

    T_mn(x) is the difference of the first output token at inputs (e_m, x) and (e_m, 0).
    """

    def first_output(x: np.ndarray, e: np.ndarray) -> np.ndarray:
        return np.asarray(function(np.stack([e, x], axis=1)), dtype=np.float64)[:, 0]

    i, j = np.triu_indices(d)
    terms = product_terms(first_output, d)[i, j]
    return np.where(i == j, 0.5, 1.0) * terms.T
