"""What may happen to the heads of a layer: scaling, permutation, mixing (eq-13, head-mixing).

*Permutation.* Heads are summed, so their order does not matter.

*Scaling.* (A, V) → (λ A, V/λ) in every layer and head of a lightning network leaves each layer's
function alone, hence holds with a residual skip too (residual-skip). The inner skip breaks it, as V
also acts on X by itself (inner-skip); softmax breaks it (thm-3.9).

*Mixing.* A lightning layer is Σ_h V_h X Xᵀ A_h X, which depends on the tensor Σ_h V_h ⊗ A_h only,
so for g ∈ GL_H

    A_h' = Σ_k g_hk A_k,    V_h' = Σ_k (g^{-1})_kh V_k

leaves it alone. The A_h' must again have rank ≤ a, and the V_h' rank ≤ v when they are factored.
For a ≥ d (and values not factored, or v ≥ d') that is no condition and all of GL_H acts. Else the
tangent vectors that remain are those of ξ ∈ gl_H for which Σ_k ξ_hk A_k is tangent at A_h to the
matrices of rank ≤ a for every h: with the columns of N, M a basis of the kernels of A_hᵀ and A_h,

    Nᵀ (Σ_k ξ_hk A_k) M = 0,    and dually for the columns of ξ and the V_h.

The inner skip adds Σ_h V_h X, so there also Σ_h ξ_kh = 0 for every k. The diagonal ξ are the
scalings.

On the weights. For a = d keys are square, and Q_h' = K_h^{-T} A_h' is the only query that gives
A_h' with the same key: so mixing commutes with all changes of basis, and it is a part of a
`GroupElement`. For a > d the queries of A_h' form an affine space of dimension (a − d) d, and no
choice of one in it will do for all: the one closest to Q_h, taken here, is not carried along by
K ↦ C K, Q ↦ C^{-T} Q unless C is orthogonal; Q_h A_h^{-1} A_h', the only one that is, needs A_h to
be invertible, and g may make it singular, after which g^{-1} does not lead back. There mixing acts
as a group by itself and composes with the other families by acting alone. The same holds for
O_h V_h, where v = d' makes O_h square.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import mul
from typing import Any

import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.linear import LinearAlgebra
from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError, NotCoveredError
from neuromanifold.networks.family import Element, Family, GeneratorBlock, Slot, Tensors
from neuromanifold.symmetry.groups import random_invertible

Matrix = Float[np.ndarray, "_ _"]
Layer = dict[str, np.ndarray]
"""The tensors of one layer by their short names: query, key, value, output."""
_LARGEST_LOSS = 2.0**-16
"""What is lost beyond it where keys are inverted was lost to their kernel, not to rounding."""


@dataclass(frozen=True)
class Scaling(Family):
    """A non-zero number for every layer and head; an element holds λ of shape (H,) a layer."""

    depth: int
    heads: int
    product = staticmethod(mul)
    name = "scaling"
    statement = "eq-13"
    is_group = True

    @property
    def dimension(self) -> int:
        """The number of layers and heads, H l."""
        return self.depth * self.heads

    def moves(self, tensor: str) -> bool:
        """Queries and values."""
        return tensor.endswith((".query", ".value"))

    def identity(self) -> Element:
        """Ones."""
        return (np.ones(self.heads),) * self.depth

    def random(self, generator: np.random.Generator, condition: float = 10.0) -> Element:
        """Factors of either sign, their sizes between the root of `condition` and its inverse."""
        size = self.heads
        return tuple(
            generator.choice([-1.0, 1.0], size) * condition ** generator.uniform(-0.5, 0.5, size)
            for _ in range(self.depth)
        )

    def act(self, element: Element, weights: Tensors) -> dict[str, np.ndarray]:
        """Q' = λ Q, V' = V/λ."""
        moved = dict(weights)
        for i, factor in enumerate(element):
            query, value = f"layers.{i}.query", f"layers.{i}.value"
            moved[query] = np.asarray(weights[query]) * factor[:, None, None]
            moved[value] = np.asarray(weights[value]) / factor[:, None, None]
        return moved

    def generators(self, weights: Tensors, linear: LinearAlgebra) -> list[GeneratorBlock]:
        """δQ = Q, δV = −V."""
        blocks = []
        for i in range(self.depth):
            query, value = f"layers.{i}.query", f"layers.{i}.value"
            for h in range(self.heads):
                moves = {
                    Slot(query, (h,)): np.asarray(weights[query])[h : h + 1],
                    Slot(value, (h,)): -np.asarray(weights[value])[h : h + 1],
                }
                blocks.append(GeneratorBlock(self.name, moves))
        return blocks


def _after(first: Any, second: Any) -> Any:
    """The order in which head h of the result is head second[first[h]] of before."""
    return second[first]


@dataclass(frozen=True)
class HeadPermutation(Family):
    """A permutation of the heads of every layer; head h of the result is head σ(h) of before."""

    depth: int
    heads: int
    product = staticmethod(_after)
    name = "head permutation"
    statement = "head-mixing"
    is_group = True

    @property
    def dimension(self) -> int:
        """The group is finite."""
        return 0

    def moves(self, tensor: str) -> bool:
        """Everything of a layer."""
        return tensor.startswith("layers.")

    def identity(self) -> Element:
        """The order as it is."""
        return (np.arange(self.heads),) * self.depth

    def random(self, generator: np.random.Generator, condition: float = 10.0) -> Element:
        """Independent random orders; `condition` has no meaning here."""
        del condition
        return tuple(generator.permutation(self.heads) for _ in range(self.depth))

    def act(self, element: Element, weights: Tensors) -> dict[str, np.ndarray]:
        """Reorder the leading axis of every tensor of a layer."""
        return {
            name: np.asarray(tensor)[element[int(name.split(".")[1])]]
            if name.startswith("layers.")
            else tensor
            for name, tensor in weights.items()
        }

    def generators(self, weights: Tensors, linear: LinearAlgebra) -> list[GeneratorBlock]:
        """None: the group is finite."""
        return []


@dataclass(frozen=True)
class HeadMixing(Family):
    """A subgroup of GL_H in every layer; an element holds g of shape (H, H) for each layer.

    Attributes:
        architecture: a lightning network with several heads.
        keeps_sum: whether Σ_h V_h is seen by itself, as with the inner skip.
    """

    architecture: Architecture
    keeps_sum: bool
    name = "head mixing"
    statement = "head-mixing"

    @property
    def is_group(self) -> bool:
        """Whether the ranks put no condition on g, so that the whole group acts."""
        return all(rank >= size for rank, size in self._ranks())

    @property
    def composes(self) -> bool:
        """Whether it commutes with changes of basis, as it does where what stays is square."""
        return all(rank == size for rank, size in self._ranks())

    def _ranks(self) -> Iterator[tuple[int, int]]:
        """The ranks a of all forms with d, and v with d' of all values that are factored."""
        for layer in self.architecture.shapes:
            _, a, d = layer["query"]
            yield a, d
            if "output" in layer:
                _, d_next, v = layer["output"]
                yield v, d_next

    @property
    def dimension(self) -> int:
        """Per layer: the unknowns H² less the conditions, and at least the H scalings.

        The count of conditions is exact where they are independent, which is observed and not
        proved (head-mixing); `generators` computes the space itself.
        """
        H, total = self.architecture.heads, 0
        for layer in self.architecture.shapes:
            _, a, d = layer["query"]
            conditions = max(0, d - a) ** 2
            if "output" in layer:
                _, d_next, v = layer["output"]
                conditions += max(0, d - v) * max(0, d_next - v)
            total += max(0, H * (H - 1) - H * conditions) + (0 if self.keeps_sum else H)
        return total

    def moves(self, tensor: str) -> bool:
        """Everything of a layer."""
        return tensor.startswith("layers.")

    def identity(self) -> Element:
        """Identity matrices."""
        return (np.eye(self.architecture.heads),) * self.architecture.depth

    def random(self, generator: np.random.Generator, condition: float = 10.0) -> Element:
        """Random matrices; with the inner skip, such that the all-ones vector is fixed.

        There Σ_h V_h' = Σ_k (g^{-1} 1)_k V_k must be Σ_k V_k, so g = B diag(1, R) Bᵀ in an
        orthonormal basis B whose first vector is the all-ones direction.
        """
        self._check_group()
        H, depth = self.architecture.heads, self.architecture.depth
        if not self.keeps_sum:
            return tuple(random_invertible(H, generator, condition) for _ in range(depth))
        B = ones_first(H)
        elements = []
        for _ in range(depth):
            block = np.eye(H)
            block[1:, 1:] = random_invertible(H - 1, generator, condition)
            elements.append(B @ block @ B.T)
        return tuple(elements)

    def nearest(
        self, forms: Float[np.ndarray, "h m n"], new_forms: Float[np.ndarray, "h m n"]
    ) -> Float[np.ndarray, "h h"]:
        """G with A_h' = Σ_k g_hk A_k in the sense of least squares, in the subgroup that acts."""
        H = len(forms)
        g = np.linalg.lstsq(forms.reshape(H, -1).T, new_forms.reshape(H, -1).T)[0].T
        return g + (1 - g.sum(axis=1, keepdims=True)) / H if self.keeps_sum else g

    def act(self, element: Element, weights: Tensors) -> dict[str, np.ndarray]:
        """Keys stay; queries, and the first factors of the values, take up the change of A and V.

        Q_h' = Q_h + (K_hᵀ)⁺ (A_h' − A_h), which is Q_h for g = 1 and composes, as K_hᵀ has a right
        inverse for a ≥ d. Where it has none, and A_h' is no product with it, that is an error.
        """
        self._check_group()
        moved = dict(weights)
        for i, g in enumerate(element):
            layer = _layer(weights, i)
            outer, dual = layer.get("output"), _inverse(g, i).T
            query = _mixed(g, layer["key"].mT, layer["query"], f"keys of layer {i}")
            value = _mixed(dual, outer, layer["value"], f"outputs of layer {i}")
            moved |= {f"layers.{i}.query": query, f"layers.{i}.value": value}
        return moved

    def generators(self, weights: Tensors, linear: LinearAlgebra) -> list[GeneratorBlock]:
        """The tangent vectors of all admissible ξ, lifted from (A, V) to the weights."""
        blocks = []
        for i in range(self.architecture.depth):
            layer = _layer(weights, i)
            mixings = _admissible(layer, self.keeps_sum, linear)
            if len(mixings):
                blocks.append(GeneratorBlock(self.name, _lift(layer, i, mixings, linear)))
        return blocks

    def _check_group(self) -> None:
        if not self.is_group:
            raise NotCoveredError(
                f"head mixing acts as a whole group only for ranks a ≥ d and free value maps; for "
                f"{self.architecture.name} only its generators are known"
            )


def _inverse(g: Matrix, i: int) -> Matrix:
    try:
        return np.linalg.inv(g)
    except np.linalg.LinAlgError:
        raise ArgumentError(
            f"the heads of layer {i} are mixed by an invertible matrix; got a singular one"
        ) from None


def _mixed(g: Matrix, left: np.ndarray | None, right: np.ndarray, of: str) -> np.ndarray:
    """R_h' with L_h R_h' = Σ_k g_hk L_k R_k, closest to R_h; without L that is Σ_k g_hk R_k."""
    products = right if left is None else left @ right
    wanted = np.einsum("hk,kij->hij", g, products)
    if left is None:
        return wanted
    found = right + np.linalg.pinv(left) @ (wanted - products)
    sizes = np.einsum("hk,kij->hij", abs(g), abs(products)).max(axis=(1, 2))
    if not np.all(abs(left @ found - wanted).max(axis=(1, 2)) <= _LARGEST_LOSS * sizes):
        raise ArgumentError(
            f"the {of} are singular and do not allow this mixing of heads; mix heads at weights "
            "where they have full rank"
        )
    return found


def ones_first(n: int) -> Matrix:
    """An orthonormal basis, in columns, whose first vector is along the vector of ones."""
    return np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, 1:]]))[0]


def _layer(weights: Tensors, i: int) -> Layer:
    """The tensors of layer i."""
    prefix = f"layers.{i}."
    return {
        name.removeprefix(prefix): np.asarray(tensor)
        for name, tensor in weights.items()
        if name.startswith(prefix)
    }


def _matrices(layer: Layer, linear: LinearAlgebra) -> tuple[np.ndarray, np.ndarray]:
    """A_h = K_hᵀ Q_h and the value maps V_h, in the arithmetic of `linear`."""
    A = linear.matmul(layer["key"].mT, layer["query"])
    value = layer["value"]
    V = linear.matmul(layer["output"], value) if "output" in layer else value
    return A, V


def _admissible(
    layer: Layer, keeps_sum: bool, linear: LinearAlgebra
) -> Float[np.ndarray, "count h h"]:
    """A basis of the ξ ∈ gl_H that meet the conditions in the module's docstring."""
    A, V = _matrices(layer, linear)
    H = len(A)
    conditions = [np.zeros((0, H, H))]

    def tangent(h: int, left: Matrix, right: Matrix, maps: np.ndarray) -> np.ndarray:
        """The rows of Nᵀ (Σ_k ξ_hk A_k) M = 0, with H unknowns each."""
        left, right = linear.null_space(left), linear.null_space(right)
        rows = np.zeros((left.shape[1] * right.shape[1], H, H))
        rows[:, h, :] = linear.matmul(linear.matmul(left.T, maps), right).reshape(H, -1).T
        return rows

    for h in range(H):
        conditions.append(tangent(h, layer["key"][h], layer["query"][h], A))
        if "output" in layer:
            dual = tangent(h, layer["output"][h].T, layer["value"][h], V)
            conditions.append(dual.swapaxes(1, 2))
    if keeps_sum:
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
        K, Q = layer["key"][h], layer["query"][h]
        change_K, moves[Slot(f"layers.{i}.query", (h,))] = _lift_product(K.T, Q, change_A, linear)
        moves[Slot(f"layers.{i}.key", (h,))] = change_K.mT
        if "output" not in layer:
            moves[Slot(f"layers.{i}.value", (h,))] = change_V
        else:
            O_h, V_h = layer["output"][h], layer["value"][h]
            moves[Slot(f"layers.{i}.output", (h,))], moves[Slot(f"layers.{i}.value", (h,))] = (
                _lift_product(O_h, V_h, change_V, linear)
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
