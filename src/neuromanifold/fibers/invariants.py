"""What a function shows of its weights: exactly, or with the effect of rounding the weights.

For one head without residual skip these are the virtual weights (M_1, …, M_l, L) (eq-8), for one
lightning layer the table of products of linear forms Σ_h α_m ν_n (prop-a.5), for one softmax layer
with one head the pair (A, V) whatever the skip.

They are sums and products of the weights, and written once: for whole numbers times a power of two,
which the floats are (`algebra.dyadic`), and for floats that carry what rounding did to them
(`algebra.rounded`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any, Literal

import numpy as np
from jaxtyping import Shaped

from neuromanifold.algebra.dyadic import Dyadic
from neuromanifold.algebra.rounded import Rounded
from neuromanifold.architecture import Architecture
from neuromanifold.fibers.units import InUnits

Kind = Literal["virtual weights", "table of products"]
Layer = Mapping[str, Sequence[Any]]
"""Matrices `Rounded` or `Dyadic`, by tensor and head; the heads of a tensor have one exponent."""

_CLEAR = 8.0


@dataclass(frozen=True, slots=True)
class FormFacts:
    """What is known of a matrix; None where floats cannot tell.

    Attributes:
        name: of the matrix.
        zero: whether it is zero.
        skew: whether it is square and skew-symmetric.
        rank_two: whether its rank is at least two.
        apart: whether times 2^{k-1}, k its number, it is not plus or minus an earlier form so.
    """

    name: str
    zero: bool | None
    skew: bool | None
    rank_two: bool | None
    apart: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Invariant:
    """An array that the function shows, 2^`exponent` times `array`.

    Attributes:
        name: M_1, …, L, or T for the table, and V for the sum of value maps.
        array: floats of ordinary size, or whole numbers (dtype object).
        exponent: of the factor.
        noise: the root mean square of ‖d array‖ that rounding the weights causes; 0 for whole
            numbers, which are the floats as they are.
    """

    name: str
    array: Shaped[np.ndarray, "..."]
    exponent: int
    noise: float

    @property
    def exact(self) -> Dyadic | None:
        """The array of whole numbers; None for floats."""
        return Dyadic(self.array, self.exponent) if self.array.dtype == object else None

    @property
    def size(self) -> float:
        """The Frobenius norm of floats; of whole numbers 0 or 1, as nothing is relative to them."""
        if self.array.dtype == object:
            return float(bool(self.array.any()))
        return float(np.linalg.norm(self.array))

    @property
    def relative_noise(self) -> float:
        """The noise relative to the array; 0 for an exact zero, infinite for zero up to noise."""
        if self.noise == 0:
            return 0.0
        return float(self.noise / self.size) if self.size else np.inf

    @property
    def facts(self) -> FormFacts:
        """What the noise leaves no doubt about: everything, for whole numbers."""
        M, exact, clear = self.array, self.exact, _CLEAR * self.noise
        square = M.ndim == 2 and M.shape[0] == M.shape[1]
        if exact is not None:
            skew, two = (exact.is_skew, exact.rank >= 2) if square else (False, None)
            return FormFacts(self.name, exact.is_zero, skew, two)
        zero = None
        if self.size > clear:
            zero = False
        elif self.size == self.noise == 0:
            zero = True
        if not square:
            return FormFacts(self.name, zero, False, None)
        skew = False if np.linalg.norm(M + M.T) / 2 > clear else (True if zero else None)
        second = np.linalg.svd(M, compute_uv=False)[1] if len(M) > 1 else 0.0
        return FormFacts(self.name, zero, skew, True if second > clear else None)

    def times(self, number: float) -> "Invariant":
        """The invariant times a float, whose power of two goes into the exponent."""
        factor = Dyadic.of(np.array([number])).lowest_terms
        whole = int(factor.integers[0])
        noise, exponent = float(abs(whole)) * self.noise, self.exponent + factor.exponent
        return replace(self, array=self.array * whole, noise=noise, exponent=exponent)


def kind_of(architecture: Architecture) -> Kind | None:
    """Which invariants a network has; None for several heads or a residual skip in depth."""
    if architecture.depth == 1 and architecture.is_linear_in_scores:
        return "table of products"
    if architecture.has_virtual_weights:
        return "virtual weights"
    if architecture.depth == 1 and architecture.has_one_head:
        return "virtual weights"
    return None


def rounded_layers(scaled: InUnits) -> list[dict[str, list[Rounded]]]:
    """The floats with their rounding; what writes the output has the exponent of its unit."""
    found: list[dict[str, list[Rounded]]] = []
    for i, (layer, N) in enumerate(zip(scaled.weights.layers, scaled.rounding, strict=True)):
        found.append({})
        last = i + 1 == len(scaled.rounding)
        for name, T in layer.arrays().items():
            size = np.maximum(np.abs(T), N[name]).max(initial=0.0)  # errors, where all vanishes
            top = int(np.frexp(size)[1])
            unit = top + (scaled.output - scaled.input if last and name == list(N)[-1] else 0)
            found[i][name] = [
                Rounded.of(f"{i} {name}", np.ldexp(B, -top), np.ldexp(error, -top), unit)
                for B, error in zip(T, N[name], strict=True)
            ]
    return found


def invariants(
    layers: Sequence[Layer], architecture: Architecture, temperature: float = 1.0
) -> tuple[Invariant, ...]:
    """The invariants of a network that has them, forms multiplied by `temperature`.

    Two networks of temperatures τ and τ' are compared with forms multiplied by τ' and τ: that is
    comparing M/τ with M'/τ', without a division.
    """
    if kind_of(architecture) == "table of products":
        return _tables(layers[0], architecture)
    *forms, linear = virtual_invariants(layers)
    return (*(form.times(temperature) for form in forms), linear)


def virtual_invariants(layers: Sequence[Layer]) -> tuple[Invariant, ...]:
    """M_1, …, M_l and L of layers with one head; those of one layer are A and V (eq-8)."""
    found: list[Invariant] = []
    L: Any = None
    for i, layer in enumerate(layers, start=1):
        K, Q = (layer[name][0] if L is None else layer[name][0] @ L for name in ("key", "query"))
        found.append(_invariant(f"M_{i}", K.T @ Q))
        for name in ("value", "output"):
            if name in layer:
                L = layer[name][0] if L is None else layer[name][0] @ L
    return (*found, _invariant("L", L))


def _invariant(name: str, value: Rounded | Dyadic) -> Invariant:
    if isinstance(value, Dyadic):
        return Invariant(name, value.integers, value.exponent, 0.0)
    return Invariant(name, value.values, value.exponent, value.noise)


def _tables(layer: Layer, architecture: Architecture) -> tuple[Invariant, ...]:
    """The table T[n, m, i, j] = Σ_h V_h[n, i] A_h[j, m], symmetric in i, j; ΣV with an inner skip.

    Token i is Σ_j (x_jᵀ A x_i) V x_j, so the polynomials Σ_ij T[n, m, i, j] y_i y_j z_m are shown
    by two tokens y and z, with and without the causal mask (prop-a.5); one token shows their values
    at z = y, so that m takes part in the symmetry.
    """
    forms = [_invariant("A", K.T @ Q) for K, Q in zip(layer["key"], layer["query"], strict=True)]
    outer = layer.get("output", [None] * len(forms))
    maps = [
        _invariant("V", V if O is None else O @ V)
        for V, O in zip(layer["value"], outer, strict=True)
    ]
    pairs = list(zip(maps, forms, strict=True))
    table = sum(np.multiply.outer(V.array, A.array).transpose(0, 3, 1, 2) for V, A in pairs)
    orders = [(0, 1, 2, 3), (0, 1, 3, 2)]
    if architecture.tokens == 1:
        orders = [(0, *order) for order in permutations((1, 2, 3))]
    table, noise = np.asarray(sum(np.asarray(table).transpose(order) for order in orders)), 0.0
    if table.dtype != object:  # whole numbers stay whole, and compare as well
        table = table / len(orders)
        noise = np.linalg.norm([(V.noise * A.size, A.noise * V.size) for V, A in pairs])
    found = Invariant("T", table, maps[0].exponent + forms[0].exponent, float(noise))
    if not architecture.adds_values:
        return (found,)
    total = np.asarray(sum(V.array for V in maps))
    noise = np.linalg.norm([V.noise for V in maps])
    return found, replace(maps[0], array=total, noise=float(noise))
