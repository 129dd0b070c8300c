"""Virtual weights (M, L): what a network with one head sees of its weights (eq-8).

With L_i = V_i ⋯ V_1 and L = L_l, the form of layer i pulled back to the input is
M_i = L_{i-1}ᵀ A_i L_{i-1}, M_1 = A_1. Write X_i = L_i X Z_i for the output of layer i; then

    X_{i-1}ᵀ A_i X_{i-1} = Z_{i-1}ᵀ (Xᵀ M_i X) Z_{i-1},    Z_i = Z_{i-1} P_i,    Z_0 = I,

so the weights enter through (M, L) only, whatever P_i does with its scores: this holds for
lightning and softmax, with and without a mask, and for the inner skip with Z_i = Z_{i-1} (I + P_i).
"""

import itertools
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError, NotCoveredError
from neuromanifold.networks.attention import Tokens, pattern
from neuromanifold.networks.weights import Numeric, Weights

Form = Shaped[Numeric, "d0 d0"]


class VirtualWeights(eqx.Module):
    """Virtual weights of a network with one head (eq-8).

    Attributes:
        forms: M_1, …, M_l, each d_0 × d_0.
        linear: L, shape d_l × d_0.
        architecture: the network (static).
    """

    forms: tuple[Form, ...]
    linear: Shaped[Numeric, "d_l d0"]
    architecture: Architecture = eqx.field(static=True)


def virtual_weights(weights: Weights) -> VirtualWeights:
    """The virtual weights of `weights` (eq-8), for every depth and width."""
    architecture = weights.architecture
    if not architecture.has_virtual_weights:
        raise NotCoveredError(
            f"virtual weights exist for one head without a residual skip; got {architecture.name}"
        )
    forms, linear = virtual_forms(
        [layer.attention_matrices()[0] for layer in weights.layers],
        [layer.value_maps()[0] for layer in weights.layers],
    )
    return VirtualWeights(tuple(forms), linear, architecture)


def virtual_forms(scores: Sequence[Any], values: Sequence[Any]) -> tuple[list[Any], Any]:
    """M_1, …, M_l and L from A_1, …, A_l and V_1, …, V_l: arrays, or exact matrices (eq-8).

    All that is asked of a matrix is its product `@` and its transpose `T`.
    """
    forms, linear = [scores[0]], values[0]
    for A, V in zip(scores[1:], values[1:], strict=True):
        forms.append(linear.T @ A @ linear)
        linear = V @ linear
    return forms, linear


def degrees(depth: int) -> list[int]:
    """3^{l-1}, …, 3, 1 and 1: the degrees of a lightning network in M_1, …, M_l and L (eq-13)."""
    return [*(3 ** (depth - i) for i in range(1, depth + 1)), 1]


def evaluate_virtual(virtual: VirtualWeights, X: Tokens) -> Float[Numeric, "d_l t"]:
    """φ(X) from virtual weights, for every network that has them: the recursion in Z above."""
    X = jnp.asarray(X)
    architecture, t = virtual.architecture, X.shape[1]
    Z = jnp.eye(t, dtype=X.dtype)
    for M in virtual.forms:
        scores = Z.T @ (X.T @ M @ X) @ Z
        Z = Z @ pattern(scores, architecture) + (Z if architecture.skip == "inner" else 0)
    return virtual.linear @ X @ Z


def evaluate_recursion(virtual: VirtualWeights, X: Tokens) -> Float[Numeric, "d_l t"]:
    """φ(X) by the paper's recursion for lightning networks (lemma-3.6, eq-10, eq-11).

    D_0 = I, D_i = D_{i-1} Xᵀ M_i X D_{i-1} Xᵀ M_iᵀ X D_{i-1}, and
    φ(X) = L X ∏_{i=1..l} (D_{l-i} Xᵀ M_{l-i+1} X), the factors in order from left to right.
    """
    _check_plain_lightning(virtual.architecture)
    X = jnp.asarray(X)
    D = jnp.eye(X.shape[1], dtype=X.dtype)
    steps: list[Array] = []
    for M in virtual.forms:
        G = X.T @ M @ X
        steps.append(D @ G)
        D = D @ G @ D @ G.T @ D
    product = virtual.linear @ X
    for step in reversed(steps):
        product = product @ step
    return product


def unrolled_factor(j: int) -> tuple[int, bool]:
    """Which form stands at place j of the unrolled sum: its layer and whether transposed (eq-12).

    The layer is the 3-adic valuation of j plus one; the form is transposed when the first non-zero
    base-3 digit of j, from the right, is 2.
    """
    if j < 1:
        raise ArgumentError(f"places of the unrolled sum count from 1; got {j}")
    layer = 1
    while j % 3 == 0:
        j //= 3
        layer += 1
    return layer, j % 3 == 2


def evaluate_unrolled(virtual: VirtualWeights, X: Tokens) -> Float[np.ndarray, "d_l t"]:
    """φ(X) as the unrolled sum over k_1 … k_l̃, l̃ = (3^l − 1)/2, term by term (eq-12).

    The naive twin of `evaluate_recursion`: t^l̃ terms for each token, in plain NumPy.
    """
    _check_plain_lightning(virtual.architecture)
    X = np.asarray(X)
    t = X.shape[1]
    length = (3 ** len(virtual.forms) - 1) // 2
    grams = []
    for j in range(1, length):
        layer, transposed = unrolled_factor(j)
        M = np.asarray(virtual.forms[layer - 1])
        grams.append(X.T @ (M.T if transposed else M) @ X)
    last, LX = X.T @ np.asarray(virtual.forms[0]) @ X, np.asarray(virtual.linear) @ X
    output = np.zeros((LX.shape[0], t), dtype=LX.dtype)
    for ks in itertools.product(range(t), repeat=length):
        coefficient = 1.0
        for gram, k, k_next in zip(grams, ks, ks[1:], strict=False):
            coefficient = coefficient * gram[k, k_next]
        output += np.outer(LX[:, ks[0]], coefficient * last[ks[-1]])
    return output


def rescale_virtual(virtual: VirtualWeights, factors: tuple[float, ...]) -> VirtualWeights:
    """M_i' = λ_i M_i and L' = ρ L, ρ keeping the function: ∏ λ_i^{3^{l-i}} = 1/ρ (eq-13)."""
    _check_plain_lightning(virtual.architecture, mask_allowed=True)
    l = len(virtual.forms)
    if len(factors) != l or not all(factors):
        raise ArgumentError(f"{l} factors other than 0 were wanted; got {factors!r}")
    powers = zip(factors, degrees(l), strict=False)
    rho = 1 / np.prod([factor**degree for factor, degree in powers])
    forms = tuple(factor * M for factor, M in zip(factors, virtual.forms, strict=True))
    return VirtualWeights(forms, rho * virtual.linear, virtual.architecture)


def _check_plain_lightning(architecture: Architecture, *, mask_allowed: bool = False) -> None:
    if not (architecture.is_homogeneous and (mask_allowed or architecture.is_plain)):
        raise NotCoveredError(
            "this formula is for lightning networks without skip"
            f"{'' if mask_allowed else ' and mask'}; got {architecture.name}: "
            "evaluate_virtual covers every network with virtual weights"
        )
