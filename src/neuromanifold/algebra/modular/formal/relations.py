"""Relations between formal elements: a basis of exponents and logarithms.

Exponents u_k and logarithms log x_j are treated alike, as columns with an additive side (u, or the
formal y = log x) and a multiplicative side (the formal e^u, or x). A rational relation between
additive sides, a_c = Σ λ_b a_b + k with k free of the input, is a relation between multiplicative
ones, m_c = e^k Π m_b^{λ_b}. So a column that depends on earlier ones gets no element of its own:

    exp:  m_c = e^k Π g_b^{N_b λ_b}, where the basis element is m_b = g_b^{N_b} and N_b clears the
          denominators of all λ's that meet column b;
    log:  y_c = Σ λ_b a_b + log C, where C = x_c / Π m_b^{λ_b}.

Then exp(2x) is exp(x)², and log(xy) is log x + log y.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm

import numpy as np

from neuromanifold.algebra.prime_field import PrimeField, Residues

HEIGHT = 64
"""Relations with larger numerators or denominators are not looked for.

About 2.4 · 64² of the p residues are of this height, so a residue that is no such rational number
is taken for one with probability 10^-3; a second prime then tells.
"""

Place = tuple[int, int]
"""A column: the number of the formal step, and the entry in it."""


@dataclass(frozen=True, slots=True)
class Dependent:
    """A column as a rational combination of earlier ones, up to what is free of the input."""

    entry: int
    terms: tuple[tuple[Place, Fraction], ...]


@dataclass(frozen=True)
class Relations:
    """All columns that depend on others.

    Attributes:
        dependents: these columns, by the number of their formal step.
        confirmed: whether they hold mod a second prime too.
    """

    dependents: Mapping[int, tuple[Dependent, ...]] = field(default_factory=dict)
    confirmed: bool = True

    def __bool__(self) -> bool:
        return bool(self.dependents)

    @property
    def count(self) -> int:
        """How many columns depend on others."""
        return sum(map(len, self.dependents.values()))

    @property
    def roots(self) -> dict[Place, int]:
        """For each column of the basis the N_b of the module's docstring."""
        found: dict[Place, int] = {}
        for dependents in self.dependents.values():
            for dependent in dependents:
                for place, factor in dependent.terms:
                    found[place] = lcm(found.get(place, 1), factor.denominator)
        return found

    def extended(self, number: int, dependents: tuple[Dependent, ...]) -> "Relations":
        """With the columns of one more formal step."""
        return Relations({**self.dependents, number: dependents})


NO_RELATIONS = Relations()


@dataclass(frozen=True, slots=True)
class Sides:
    """What a run keeps of one formal step: a row for each sample, a column for each entry.

    Attributes:
        additive: u, or the element that stands for log x.
        multiplicative: the element that stands for e^u, or x.
        root: g with g^N = e^u for the columns of the basis; None for logarithms.
    """

    additive: Residues
    multiplicative: Residues
    root: Residues | None


def combined(
    terms: tuple[tuple[Place, Fraction], ...],
    memory: Mapping[int, Sides],
    roots: Mapping[Place, int],
    field: PrimeField,
    power: int = 1,
) -> tuple[Residues, Residues]:
    """Σ λ_b a_b, and Π m_b^{λ_b} to the given power."""
    total, product = np.zeros(1), np.ones(1)
    for (number, entry), factor in terms:
        sides = memory[number]
        multiple = np.asarray(field.from_fraction(factor))
        total = field.reduce(total + field.multiply(multiple, sides.additive[:, entry]))
        if sides.root is None:
            base, exponent = sides.multiplicative, factor * power
        else:
            base, exponent = sides.root, factor * power * roots.get((number, entry), 1)
        if exponent.denominator != 1:
            raise ValueError("a power of a logarithm's argument must be whole")
        product = field.multiply(product, field.power(base[:, entry], int(exponent)))
    return total, product


def rational(residue: float, field: PrimeField) -> Fraction | None:
    """The rational number of height up to `HEIGHT` with this residue, if there is one.

    There is at most one, because 2 · HEIGHT² < p.
    """
    p = field.modulus
    before, now = (p, 0), (int(residue) % p, 1)
    # Euclid's remainders r = a residue + b p, of which the first small one gives r/a.
    while now[0] > HEIGHT:
        quotient = before[0] // now[0]
        before, now = now, (before[0] - quotient * now[0], before[1] - quotient * now[1])
    numerator, denominator = now
    if denominator == 0 or abs(denominator) > HEIGHT:
        return None
    return Fraction(numerator, denominator)
