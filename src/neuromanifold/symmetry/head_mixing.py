"""Head mixing: the heads of a lightning layer mix continuously (head-mixing).

A layer is Σ_h V_h X Xᵀ A_h X, which depends on the tensor Σ_h V_h ⊗ A_h only, so for g ∈ GL_H

    A_h' = Σ_k g_hk A_k,    V_h' = Σ_k (g^{-1})_kh V_k

leaves it alone. The A_h' must again have rank ≤ a, and the V_h' rank ≤ v when they are factored.
For a ≥ d (and values not factored, or v ≥ d') that is no condition and all of GL_H acts. Else the
tangent vectors that remain are those of ξ ∈ gl_H for which Σ_k ξ_hk A_k is tangent at A_h to the
matrices of rank ≤ a for every h: with the columns of N, M a basis of the kernels of A_hᵀ and A_h,

    Nᵀ (Σ_k ξ_hk A_k) M = 0,    and dually for the columns of ξ and the V_h.

The inner skip adds Σ_h V_h X, so there also Σ_h ξ_kh = 0 for every k. The diagonal ξ are the
scalings.
"""

import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.linear import LinearAlgebra
from neuromanifold.architecture import Architecture
from neuromanifold.errors import NotCoveredError
from neuromanifold.networks.weights import Layer, Weights
from neuromanifold.symmetry.family import (
    Element,
    Family,
    GeneratorBlock,
    Slot,
    replace_layers,
)
from neuromanifold.symmetry.general_linear import random_invertible

Matrix = Float[np.ndarray, "_ _"]


class HeadMixing(Family):
    """A subgroup of GL_H in every layer; an element holds g of shape (H, H) for each layer."""

    name = "head mixing"
    statement = "head-mixing"

    def holds_for(self, architecture: Architecture) -> bool:
        """Lightning networks with several heads."""
        return architecture.attention == "lightning" and architecture.heads > 1

    def integrates(self, architecture: Architecture) -> bool:
        """Whether the ranks put no condition on g, so that the whole group acts."""
        free_values = architecture.value_ranks is None or all(
            v >= d_next
            for v, d_next in zip(architecture.value_ranks, architecture.widths[1:], strict=True)
        )
        pairs = zip(architecture.ranks, architecture.widths, strict=False)
        return self.holds_for(architecture) and free_values and all(a >= d for a, d in pairs)

    def dimension(self, architecture: Architecture) -> int:
        """Per layer: the unknowns H² less the conditions, and at least the H scalings.

        The count of conditions is exact where they are independent, which is observed and not
        proved (head-mixing); `generators` computes the space itself.
        """
        if not self.holds_for(architecture):
            return 0
        H, total = architecture.heads, 0
        for i, a in enumerate(architecture.ranks):
            d, d_next = architecture.widths[i], architecture.widths[i + 1]
            conditions = max(0, d - a) ** 2
            if architecture.value_ranks is not None:
                v = architecture.value_ranks[i]
                conditions += max(0, d - v) * max(0, d_next - v)
            if architecture.skip == "inner":
                total += max(0, H * (H - 1) - H * conditions)
            else:
                total += H + max(0, H * (H - 1) - H * conditions)
        return total

    def identity(self, architecture: Architecture) -> Element:
        """Identity matrices."""
        return (np.eye(architecture.heads),) * architecture.depth

    def random(
        self, architecture: Architecture, generator: np.random.Generator, condition: float = 10.0
    ) -> Element:
        """Random matrices; with the inner skip, such that the all-ones vector is fixed.

        There Σ_h V_h' = Σ_k (g^{-1} 1)_k V_k must be Σ_k V_k, so g = B diag(1, R) Bᵀ in an
        orthonormal basis B whose first vector is the all-ones direction.
        """
        self._check_integrates(architecture)
        H = architecture.heads
        if architecture.skip != "inner":
            return tuple(
                random_invertible(H, generator, condition) for _ in range(architecture.depth)
            )
        B = np.linalg.qr(np.column_stack([np.ones(H), np.eye(H)[:, 1:]]))[0]
        elements = []
        for _ in range(architecture.depth):
            block = np.eye(H)
            block[1:, 1:] = random_invertible(H - 1, generator, condition)
            elements.append(B @ block @ B.T)
        return tuple(elements)

    def compose(self, first: Element, second: Element) -> Element:
        """The matrix products."""
        return tuple(g @ h for g, h in zip(first, second, strict=True))

    def act(self, element: Element, weights: Weights) -> Weights:
        """Keys stay; queries, and the first factors of the values, take up the change of A and V.

        Q_h' = Q_h + (K_hᵀ)⁺ (A_h' − A_h), which is Q_h for g = 1 and composes, as K_hᵀ has a right
        inverse for a ≥ d.
        """
        self._check_integrates(weights.architecture)
        moved = []
        for g, layer in zip(element, weights.layers, strict=True):
            A, V = np.asarray(layer.attention_matrices()), np.asarray(layer.value_maps())
            Q, K = np.asarray(layer.query), np.asarray(layer.key)
            change_A = np.einsum("hk,kij->hij", g, A) - A
            change_V = np.einsum("kh,kij->hij", np.linalg.inv(g), V) - V
            if layer.output is not None:
                change_V = np.linalg.pinv(np.asarray(layer.output)) @ change_V
            moved.append(
                {
                    "query": Q + np.linalg.pinv(K.mT) @ change_A,
                    "value": np.asarray(layer.value) + change_V,
                }
            )
        return replace_layers(weights, moved)

    def generators(self, weights: Weights, linear: LinearAlgebra) -> list[GeneratorBlock]:
        """The tangent vectors of all admissible ξ, lifted from (A, V) to the weights."""
        if not self.holds_for(weights.architecture):
            return []
        blocks = []
        for i, layer in enumerate(weights.layers):
            mixings = _admissible(layer, weights.architecture, linear)
            if not len(mixings):
                continue
            moves = _lift(layer, i, mixings, linear)
            blocks.append(GeneratorBlock(self.name, f"layer {i}", moves))
        return blocks

    def _check_integrates(self, architecture: Architecture) -> None:
        self.check(architecture)
        if not self.integrates(architecture):
            raise NotCoveredError(
                f"head mixing acts as a whole group only for ranks a ≥ d and free value maps; for "
                f"{architecture.name} only its generators are known"
            )


def _matrices(layer: Layer, linear: LinearAlgebra) -> tuple[np.ndarray, np.ndarray]:
    """A_h = K_hᵀ Q_h and the value maps V_h, in the arithmetic of `linear`."""
    A = linear.matmul(np.asarray(layer.key).mT, np.asarray(layer.query))
    value = np.asarray(layer.value)
    V = value if layer.output is None else linear.matmul(np.asarray(layer.output), value)
    return A, V


def _admissible(
    layer: Layer, architecture: Architecture, linear: LinearAlgebra
) -> Float[np.ndarray, "count h h"]:
    """A basis of the ξ ∈ gl_H that meet the conditions in the module's docstring."""
    A, V = _matrices(layer, linear)
    H = len(A)
    conditions = [np.zeros((0, H, H))]
    for h in range(H):
        left = linear.null_space(np.asarray(layer.key[h]))
        right = linear.null_space(np.asarray(layer.query[h]))
        seen = linear.matmul(linear.matmul(left.T, A), right).reshape(H, -1).T
        rows = np.zeros((len(seen), H, H))
        rows[:, h, :] = seen
        conditions.append(rows)
        if layer.output is not None:
            left = linear.null_space(np.asarray(layer.output[h]).T)
            right = linear.null_space(np.asarray(layer.value[h]))
            seen = linear.matmul(linear.matmul(left.T, V), right).reshape(H, -1).T
            rows = np.zeros((len(seen), H, H))
            rows[:, :, h] = seen
            conditions.append(rows)
    if architecture.skip == "inner":
        conditions.append(np.repeat(np.eye(H)[:, :, None], H, axis=2))
    return linear.null_space(np.concatenate(conditions).reshape(-1, H * H)).T.reshape(-1, H, H)


def _lift(
    layer: Layer, i: int, mixings: Float[np.ndarray, "count h h"], linear: LinearAlgebra
) -> dict[Slot, np.ndarray]:
    """Tangent vectors of the weights whose effect on A and V is that of the given ξ."""
    A, V = _matrices(layer, linear)
    count, H, _ = mixings.shape
    moves: dict[Slot, np.ndarray] = {}
    for h in range(H):
        change_A = linear.matmul(mixings[:, h, :], A.reshape(H, -1)).reshape(count, *A.shape[1:])
        change_V = -linear.matmul(mixings[:, :, h], V.reshape(H, -1)).reshape(count, *V.shape[1:])
        K, Q = np.asarray(layer.key[h]), np.asarray(layer.query[h])
        change_K, moves[Slot(i, "query", h)] = _lift_product(K.T, Q, change_A, linear)
        moves[Slot(i, "key", h)] = change_K.mT
        if layer.output is None:
            moves[Slot(i, "value", h)] = change_V
        else:
            O_h, V_h = np.asarray(layer.output[h]), np.asarray(layer.value[h])
            moves[Slot(i, "output", h)], moves[Slot(i, "value", h)] = _lift_product(
                O_h, V_h, change_V, linear
            )
    return moves


def _lift_product(
    left: Matrix, right: Matrix, change: Float[np.ndarray, "count p q"], linear: LinearAlgebra
) -> tuple[np.ndarray, np.ndarray]:
    """δleft, δright with δleft · right + left · δright = change, for a tangent `change`.

    `left` is p × r and `right` r × q. Where r ≥ p or r ≥ q one factor takes up everything. Else
    both have full rank r; with B left = 1 take δright = B change, and what remains of the change
    has its rows in the row space of `right` (that is tangency): δleft = remainder · right^{-1}.
    """
    (p, r), q = left.shape, right.shape[1]
    zero_left, zero_right = np.zeros((len(change), p, r)), np.zeros((len(change), r, q))
    if r >= p:
        return zero_left, linear.matmul(linear.right_inverse(left), change)
    if r >= q:
        return linear.matmul(change, linear.right_inverse(right.T).T), zero_right
    change_right = linear.matmul(linear.right_inverse(left.T).T, change)
    remainder = linear.subtract(change, linear.matmul(left, change_right))
    return linear.matmul(remainder, linear.right_inverse(right)), change_right
