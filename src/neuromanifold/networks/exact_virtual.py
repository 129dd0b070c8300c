"""Virtual weights of the floats as they are: dyadic rationals, without rounding (eq-8)."""

from collections.abc import Iterator
from math import isqrt

import numpy as np

from neuromanifold.algebra.dyadic import Dyadic
from neuromanifold.networks.virtual import virtual_forms
from neuromanifold.networks.weights import Weights


def exact_layers(weights: Weights) -> list[dict[str, list[Dyadic]]]:
    """The exact matrices of all layers, by tensor and head; the heads have one exponent."""
    exact = [{name: Dyadic.of(T) for name, T in one.arrays().items()} for one in weights.layers]
    return [
        {name: [Dyadic(head, T.exponent) for head in T.integers] for name, T in layer.items()}
        for layer in exact
    ]


def exact_forms(weights: Weights) -> tuple[list[Dyadic], Dyadic]:
    """M_1, …, M_l and L of weights with one head."""
    layers = exact_layers(weights)
    scores = [layer["key"][0].T @ layer["query"][0] for layer in layers]
    values = [
        layer["output"][0] @ layer["value"][0] if "output" in layer else layer["value"][0]
        for layer in layers
    ]
    return virtual_forms(scores, values)


class VirtualDifferential:
    """The differential of W ↦ (M_1, …, M_l, L) at given weights, in whole numbers (eq-8).

    A tensor of floats is one of whole numbers times 2^e. In the former, in place of the weights,
    every virtual weight is that of the floats times a power of two, so ranks and row spaces are
    those at the floats. 2^e is the unit of `Dyadic.of` for the tensor.

    Attributes:
        forms: for each M_k its derivatives by tensor, a d_0² × (entries of the tensor) matrix.
        linear: the same for L.
    """

    def __init__(self, weights: Weights) -> None:
        layers = exact_layers(weights)
        whole = [{name: heads[0].integers for name, heads in layer.items()} for layer in layers]
        values = [T["output"] @ T["value"] if "output" in T else T["value"] for T in whole]
        self._layers = whole
        self._before = [np.eye(whole[0]["key"].shape[1], dtype=int).astype(object)]
        for V in values:
            self._before.append(V @ self._before[-1])
        self.forms = [self._of_form(k, values) for k in range(len(whole))]
        self.linear = dict(self._through_values(self._after(len(whole), values)))

    def _after(self, k: int, values: list[np.ndarray]) -> list[np.ndarray]:
        """V_k ⋯ V_{i+2} for each layer i < k, counted from 0: L_k = after[i] V_{i+1} L_i."""
        after: list[np.ndarray] = []
        for V in values[:k]:
            after = [V @ product for product in after]
            after.append(np.eye(len(V), dtype=int).astype(object))
        return after

    def _through_values(self, lefts: list[np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
        """The derivatives of left[i] · (value map of layer i) · L_i, for some layers."""
        for i, left in enumerate(lefts):
            T, right = self._layers[i], self._before[i]
            if "output" in T:
                yield f"layers.{i}.value", np.kron(left @ T["output"], right.T)
                yield f"layers.{i}.output", np.kron(left, (T["value"] @ right).T)
            else:
                yield f"layers.{i}.value", np.kron(left, right.T)

    def _of_form(self, k: int, values: list[np.ndarray]) -> dict[str, np.ndarray]:
        """M = Pᵀ Kᵀ Q P, P = L_k: dM = Pᵀ Kᵀ dQ P + (Pᵀ Qᵀ dK P)ᵀ and what dP gives on both sides.

        In rows, vec(B E C) = (B ⊗ Cᵀ) vec(E).
        """
        P, K, Q = self._before[k], self._layers[k]["key"], self._layers[k]["query"]
        after = self._after(k, values)
        right = dict(self._through_values([(K @ P).T @ (Q @ one) for one in after]))
        left = dict(self._through_values([(Q @ P).T @ (K @ one) for one in after]))
        found = {name: J + _transposed(left[name]) for name, J in right.items()}
        found[f"layers.{k}.query"] = np.kron((K @ P).T, P.T)
        found[f"layers.{k}.key"] = _transposed(np.kron((Q @ P).T, P.T))
        return found


def symmetrised(derivatives: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Those of M + Mᵀ."""
    return {name: J + _transposed(J) for name, J in derivatives.items()}


def _transposed(J: np.ndarray) -> np.ndarray:
    """The derivatives of Mᵀ, with those of a square M."""
    d = isqrt(len(J))
    return J.reshape(d, d, -1).swapaxes(0, 1).reshape(d * d, -1)
