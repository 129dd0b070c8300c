"""Invariants of the floats as they are: dyadic rationals, in whole numbers and a power of two.

A float is m·2^e, so a tensor is a matrix of integers times one power of two, and sums and products
of such are again. No rounding happens, and ranks, zeros, equality and proportionality are decided,
for the very numbers that the weights hold (eq-8, prop-a.5).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

import flint
import numpy as np

from neuromanifold.fibers.invariants import kind_of, table_orders
from neuromanifold.networks.traits import adds_values
from neuromanifold.networks.virtual import virtual_forms
from neuromanifold.networks.weights import Weights


@dataclass(frozen=True, slots=True, eq=False)
class Dyadic:
    """The array `integers` · 2^`exponent`, Python's whole numbers in an array of objects."""

    integers: np.ndarray
    exponent: int

    @classmethod
    def of(cls, array: np.ndarray) -> "Dyadic":
        """The exact value of an array of floats."""
        mantissas, exponents = np.frexp(np.asarray(array, dtype=np.float64))
        whole = np.ldexp(mantissas, 53).astype(np.int64).astype(object)
        exponents = exponents.astype(np.int64) - 53
        lowest = int(exponents[mantissas != 0].min()) if mantissas.any() else 0
        shifts = np.where(mantissas == 0, 0, exponents - lowest).astype(object)
        return cls(whole * 2**shifts if whole.size else whole, lowest)

    @property
    def is_zero(self) -> bool:
        """Whether all entries are zero."""
        return not self.integers.any()

    @property
    def lowest_terms(self) -> "Dyadic":
        """The same array with an odd entry, or with exponent 0 if it is zero."""
        common = gcd(*self.integers.ravel())
        if not common:
            return Dyadic(self.integers, 0)
        twos = (common & -common).bit_length() - 1
        return Dyadic(self.integers >> twos, self.exponent + twos)

    @property
    def rank(self) -> int:
        """The rank of a matrix, over the rationals."""
        rows, columns = self.integers.shape
        return flint.fmpz_mat(rows, columns, [int(x) for x in self.integers.ravel()]).rank()

    @property
    def is_skew(self) -> bool:
        """Whether the symmetric part of a square matrix is zero."""
        return not (self.integers + self.integers.T).any()

    @property
    def symmetric_part(self) -> "Dyadic":
        """Half the sum with the transpose."""
        return Dyadic(self.integers + self.integers.T, self.exponent - 1)

    def __matmul__(self, other: "Dyadic") -> "Dyadic":
        return Dyadic(self.integers @ other.integers, self.exponent + other.exponent)

    @property
    def T(self) -> "Dyadic":
        """The transpose."""
        return Dyadic(self.integers.T, self.exponent)

    def __add__(self, other: "Dyadic") -> "Dyadic":
        low = min(self.exponent, other.exponent)
        one, two = (x.integers * 2 ** (x.exponent - low) for x in (self, other))
        return Dyadic(one + two, low)

    def equals(self, other: "Dyadic") -> bool:
        """Whether the two are the same array of numbers."""
        one, two = self.lowest_terms, other.lowest_terms
        return one.exponent == two.exponent and np.array_equal(one.integers, two.integers)

    def factor_to(self, other: "Dyadic") -> Fraction | None:
        """λ with other = λ · self ≠ 0; None when there is none."""
        if self.is_zero or other.is_zero:
            return None
        at = np.unravel_index(np.argmax(self.integers != 0), self.integers.shape)
        b, c = self.integers[at], other.integers[at]
        if not c or not np.array_equal(self.integers * c, other.integers * b):
            return None
        return Fraction(c, b) * Fraction(2) ** (other.exponent - self.exponent)


@dataclass(frozen=True, slots=True, eq=False)
class ExactInvariant:
    """An invariant of the floats as they are.

    Attributes:
        name: M_1, …, L, or T and V.
        value: the array.
    """

    name: str
    value: Dyadic


def exact_invariants(
    weights: Weights, temperature: Fraction = Fraction(1)
) -> tuple[ExactInvariant, ...]:
    """The invariants of `fibers.invariants`, exactly; forms are multiplied by `temperature`.

    Two networks of temperatures τ and τ' are compared with forms multiplied by τ' and τ: that is
    comparing M/τ with M'/τ', without a division.
    """
    if kind_of(weights.architecture) == "table of products":
        return _tables(weights, _layers(weights)[0])
    return exact_virtual(weights, temperature)


def exact_virtual(
    weights: Weights, temperature: Fraction = Fraction(1)
) -> tuple[ExactInvariant, ...]:
    """M_1, …, M_l, multiplied by `temperature`, and L of weights with one head (eq-8)."""
    layers = _layers(weights)
    scores = [layer["key"][0].T @ layer["query"][0] for layer in layers]
    forms, L = virtual_forms(scores, [_value_map(layer, 0) for layer in layers])
    shift = _log2(temperature.denominator)
    named = [
        ExactInvariant(f"M_{i}", Dyadic(M.integers * temperature.numerator, M.exponent - shift))
        for i, M in enumerate(forms, start=1)
    ]
    return (*named, ExactInvariant("L", L))


def multiply_to_one(powers: Sequence[tuple[Fraction, int]]) -> bool:
    """Whether ∏ λ^n = 1, without writing the product down.

    The absolute values factor over a base of coprime numbers, which greatest common divisors find;
    the product is one when all exponents add up to zero and the sign is positive.
    """
    if sum(n for factor, n in powers if factor < 0) % 2:
        return False
    base = _coprime_base(
        [x for factor, _ in powers for x in (abs(factor.numerator), factor.denominator)]
    )
    return all(
        sum(
            n * (_order(factor.numerator, b) - _order(factor.denominator, b))
            for factor, n in powers
        )
        == 0
        for b in base
    )


def _coprime_base(numbers: list[int]) -> list[int]:
    """Numbers > 1, coprime in pairs, of which the given ones are products of powers."""
    base: list[int] = []
    waiting = [x for x in numbers if x > 1]
    while waiting:
        x = waiting.pop()
        shared = next((b for b in base if gcd(x, b) > 1), None)
        if shared is None:
            base.append(x)
            continue
        g = gcd(x, shared)
        base.remove(shared)
        waiting += [part for part in (g, x // g, shared // g) if part > 1]
    return base


def _order(x: int, b: int) -> int:
    """How often b divides x."""
    count = 0
    while x % b == 0:
        x, count = x // b, count + 1
    return count


def _layers(weights: Weights) -> list[dict[str, list[Dyadic]]]:
    """The exact matrices of all layers, by tensor and head."""
    return [
        {name: [Dyadic.of(head) for head in np.asarray(T)] for name, T in layer.tensors().items()}
        for layer in weights.layers
    ]


def _log2(power: int) -> int:
    """The exponent of a power of two: the denominator of a float."""
    return power.bit_length() - 1


def _value_map(layer: dict[str, list[Dyadic]], h: int) -> Dyadic:
    V = layer["value"][h]
    return layer["output"][h] @ V if "output" in layer else V


def _tables(weights: Weights, layer: dict[str, list[Dyadic]]) -> tuple[ExactInvariant, ...]:
    """The symmetric table of one lightning layer, and ΣV with an inner skip (prop-a.5)."""
    tables: list[Dyadic] = []
    total: list[Dyadic] = []
    for h in range(weights.architecture.heads):
        A, V = layer["key"][h].T @ layer["query"][h], _value_map(layer, h)
        product = np.multiply.outer(V.integers, A.integers).transpose(0, 3, 1, 2)  # n, m, i, j
        orders = table_orders(weights.architecture.tokens)
        symmetric = sum(product.transpose(order) for order in orders)
        tables.append(Dyadic(np.asarray(symmetric), V.exponent + A.exponent))
        total.append(V)
    table, values = tables[0], total[0]
    for one, V in zip(tables[1:], total[1:], strict=True):
        table, values = table + one, values + V
    found = (ExactInvariant("T", table),)
    return (*found, ExactInvariant("V", values)) if adds_values(weights.architecture) else found
