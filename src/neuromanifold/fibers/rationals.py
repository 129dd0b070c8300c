"""Invariants of the floats as they are, dyadic rationals, without rounding (eq-8, prop-a.5)."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

import numpy as np

from neuromanifold.algebra.dyadic import Dyadic
from neuromanifold.fibers.invariants import kind_of, table_orders
from neuromanifold.networks.exact_virtual import exact_forms, exact_layers, exact_value_map
from neuromanifold.networks.traits import adds_values
from neuromanifold.networks.weights import Weights


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
        return _tables(weights, exact_layers(weights)[0])
    return exact_virtual(weights, temperature)


def exact_virtual(
    weights: Weights, temperature: Fraction = Fraction(1)
) -> tuple[ExactInvariant, ...]:
    """M_1, …, M_l, multiplied by `temperature`, and L of weights with one head (eq-8)."""
    forms, L = exact_forms(weights)
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


def _log2(power: int) -> int:
    """The exponent of a power of two: the denominator of a float."""
    return power.bit_length() - 1


def _tables(weights: Weights, layer: dict[str, list[Dyadic]]) -> tuple[ExactInvariant, ...]:
    """The symmetric table of one lightning layer, and ΣV with an inner skip (prop-a.5)."""
    tables: list[Dyadic] = []
    total: list[Dyadic] = []
    for h in range(weights.architecture.heads):
        A, V = layer["key"][h].T @ layer["query"][h], exact_value_map(layer, h)
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
