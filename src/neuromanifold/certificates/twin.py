"""The naive twin: the Jacobian of the built-in networks in plain integers mod p.

Written from the definitions (def-1, eq-15) with the derivative worked out by hand, in int64, and
with none of the code that evaluates JAX functions over a prime field. A sum of k products of
residues 0 ≤ x < p < 2^23 is below k·2^46 < 2^63 for k < 2^17, longer than any sum here.

With P = Xᵀ A X (lightning) or its normalisation (softmax) and Y = Σ_h V_h X P_h, a cotangent Ȳ of Y
pulls back to

    V̄ = Ȳ (X P)ᵀ,   P̄ = (V X)ᵀ Ȳ,   Ā = X S̄ Xᵀ,   Q̄ = K Ā,   K̄ = Q Āᵀ,
    X̄ = Vᵀ Ȳ Pᵀ + A X S̄ᵀ + Aᵀ X S̄,

where S̄ = P̄ on the entries that the mask keeps, and S̄_ji = P_ji (P̄_ji − Σ_k P_ki P̄_ki)/τ for
softmax. The skips add X̄ += Ȳ, or turn P into P + 1 in V̄ and X̄.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from neuromanifold.algebra.modular.literals import rational_array
from neuromanifold.architecture import Architecture, Readout
from neuromanifold.errors import ArgumentError

Integers = Int64[np.ndarray, "..."]
_LONGEST_SUM = 2**17


@dataclass(frozen=True, slots=True)
class TwinExponentials:
    """Formal exponentials in Python integers, one argument at a time (softmax-exact).

    Attributes:
        prime: p.
        keys: the two 64-bit keys.
    """

    prime: int
    keys: tuple[int, int]

    @classmethod
    def of(cls, prime: int, seed: int, label: str) -> "TwinExponentials":
        """The exponentials of a seed and label."""
        text = f"neuromanifold formal exponentials 1|{seed}|{label}"
        digest = hashlib.shake_256(text.encode()).digest(16)
        words = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")
        return cls(prime, words)

    def __call__(self, argument: int) -> int:
        """The element for one argument 0 ≤ a < p."""
        if argument == 0:
            return 1
        word = argument
        for key in self.keys:
            word = _split_mix(word ^ key)
        return 1 + word % (self.prime - 1)


def _split_mix(z: int) -> int:
    bits = 2**64 - 1
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & bits
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & bits
    return z ^ (z >> 31)


@dataclass(frozen=True, slots=True)
class Twin:
    """A network over the integers mod p.

    Attributes:
        architecture: the network.
        prime: p.
        exponentials: the elements for exponentials (not used by lightning attention).
    """

    architecture: Architecture
    prime: int
    exponentials: TwinExponentials

    def row(
        self,
        weights: list[dict[str, Integers]],
        X: Integers,
        u: Integers,
        readout: Readout,
        constant: int | None = None,
    ) -> Integers:
        """uᵀ J of one input, all tensors flattened one after another, then that of the constant.

        `u` has one row less than the output when the readout takes differences.
        """
        p = self.prime
        inputs = [X]
        attended: list[list[Integers]] = []
        for layer in weights:
            output, P = self._forward(layer, inputs[-1])
            inputs.append(output)
            attended.append(P)
        seen = inputs[-1] if readout == "logits" else inputs[-1][1:] - inputs[-1][:1]
        cotangent = u if readout == "logits" else np.concatenate([-u.sum(0, keepdims=True), u])
        cotangent = cotangent * (1 if constant is None else constant) % p
        parts: list[Integers] = []
        for i in reversed(range(len(weights))):
            moved, cotangent = self._backward(weights[i], inputs[i], attended[i], cotangent)
            parts = [*(moved[name].ravel() for name in weights[i]), *parts]
        if constant is not None:
            parts.append(np.array([(u * (seen % p) % p).sum() % p]))
        return np.concatenate(parts)

    def exponents(self, weights: list[dict[str, Integers]], X: Integers) -> Integers:
        """All arguments of exponentials that the mask keeps, but those that are always 0."""
        found = [np.zeros(0, dtype=np.int64)]
        for layer in weights:
            for h in range(self.architecture.heads):
                A, _ = self._head(layer, h)
                S = _product(self.prime, X.T, A, X)
                found.append(self._arguments(S)[1:][self._kept(len(S))[1:]])
            X, _ = self._forward(layer, X)
        return np.concatenate(found)

    def _forward(self, layer: dict[str, Integers], X: Integers) -> tuple[Integers, list[Integers]]:
        """The layer's output, and the attention weights P of each head."""
        p, total = self.prime, np.zeros((), dtype=np.int64)
        attended: list[Integers] = []
        for h in range(self.architecture.heads):
            A, V = self._head(layer, h)
            P = self._weights(_product(p, X.T, A, X))
            seen = P + np.eye(X.shape[1], dtype=np.int64) * (self.architecture.skip == "inner")
            out = _product(p, V, X, seen % p)
            total = (total + out) % p
            attended.append(P)
        return ((total + X) % p if self.architecture.skip == "residual" else total), attended

    def _backward(
        self, layer: dict[str, Integers], X: Integers, attended: list[Integers], Y_bar: Integers
    ) -> tuple[dict[str, Integers], Integers]:
        """The cotangents of the layer's tensors and of its input, by the formulas above."""
        p, moved = self.prime, {name: np.zeros_like(tensor) for name, tensor in layer.items()}
        X_bar = Y_bar if self.architecture.skip == "residual" else np.zeros_like(X)
        for h, P in enumerate(attended):
            A, V = self._head(layer, h)
            seen = P + np.eye(X.shape[1], dtype=np.int64) * (self.architecture.skip == "inner")
            V_bar = _product(p, Y_bar, (seen % p).T, X.T)
            S_bar = self._scores_cotangent(P, _product(p, X.T, V.T, Y_bar))
            A_bar = _product(p, X, S_bar, X.T)
            moved["query"][h] = _product(p, layer["key"][h], A_bar)
            moved["key"][h] = _product(p, layer["query"][h], A_bar.T)
            if "output" in layer:
                moved["value"][h] = _product(p, layer["output"][h].T, V_bar)
                moved["output"][h] = _product(p, V_bar, layer["value"][h].T)
            else:
                moved["value"][h] = V_bar
            X_bar = X_bar + _product(p, V.T, Y_bar, (seen % p).T)
            X_bar = X_bar + _product(p, A, X, S_bar.T) + _product(p, A.T, X, S_bar)
        return moved, X_bar % p

    def _head(self, layer: dict[str, Integers], h: int) -> tuple[Integers, Integers]:
        A = _product(self.prime, layer["key"][h].T, layer["query"][h])
        V = layer["value"][h]
        return A, _product(self.prime, layer["output"][h], V) if "output" in layer else V

    def _kept(self, t: int) -> np.ndarray:
        """Which scores s_ji the mask keeps: j ≤ i if causal."""
        causal = self.architecture.mask == "causal"
        return np.array([[j <= i or not causal for i in range(t)] for j in range(t)])

    def _weights(self, S: Integers) -> Integers:
        """P from the scores; softmax subtracts the first score of a column from the others."""
        p, kept = self.prime, self._kept(len(S))
        if self.architecture.attention == "lightning":
            return np.where(kept, S, 0)
        elements = [[self.exponentials(int(a)) for a in row] for row in self._arguments(S)]
        E = np.where(kept, np.array(elements), 0)
        totals = E.sum(axis=0) % p
        inverses = np.array([pow(int(total), -1, p) for total in totals])
        return E * inverses % p

    def _arguments(self, S: Integers) -> Integers:
        """What is exponentiated: the scores over τ less the first one of each column."""
        scaled = S * self._inverse_temperature() % self.prime
        return (scaled - scaled[:1]) % self.prime

    def _scores_cotangent(self, P: Integers, P_bar: Integers) -> Integers:
        if self.architecture.attention == "lightning":
            return np.where(self._kept(len(P)), P_bar, 0)
        p = self.prime
        mean = (P * P_bar % p).sum(axis=0) % p
        return P * ((P_bar - mean) % p) % p * self._inverse_temperature() % p

    def _inverse_temperature(self) -> int:
        value = 1 / rational_array(np.array([self.architecture.temperature])).distinct[0]
        return value.numerator * pow(value.denominator, -1, self.prime) % self.prime


def _product(p: int, *factors: Integers) -> Integers:
    """The matrix product mod p, reduced after every factor."""
    result = factors[0]
    for factor in factors[1:]:
        if factor.shape[0] >= _LONGEST_SUM:
            raise ArgumentError(f"the naive twin sums fewer than {_LONGEST_SUM} products")
        result = (result @ factor) % p
    return result
