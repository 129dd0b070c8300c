"""The elements of the field that stand for formal functions (softmax-exact).

When the arguments f_1, …, f_n of `exp` in a computation have no nontrivial rational combination
that is constant, their exponentials are algebraically independent over the rational functions (Ax),
and each may be replaced by an element of GF(p) of its own. Equal arguments must get equal elements
in the whole computation, and exp(0) = 1. So the element is a keyed hash of the argument's residue;
two different functions that meet in one residue at a point share an element there, which is
harmless. Logarithms, error functions and turns (cos, sin) get theirs in the same way.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as attribute
from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import Any

import numpy as np

from neuromanifold.algebra.modular.formal.primitives import Kind
from neuromanifold.algebra.modular.formal.relations import NO_RELATIONS, Relations, Sides, combined
from neuromanifold.algebra.prime_field import PrimeField, Residues

_STREAMS: dict[Kind, str] = {
    "exp": "neuromanifold formal exponentials 1",
    "log": "neuromanifold formal logarithms 1",
    "erf": "neuromanifold formal error functions 1",
    "turn": "neuromanifold formal turns 1",
}
_SHIFTS_AND_FACTORS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LAST_SHIFT = 31
_SALT = 0x9E3779B97F4A7C15


@dataclass(frozen=True, eq=False, slots=True)
class Formal:
    """The formal elements that one step of a program introduces, one for each entry.

    Attributes:
        number: its place among the formal steps of the program.
        kind: which function it stands for.
        argument: the slot of what the function is taken of.
        output: the slot of the elements.
        shape: of the argument.
        samples: whether the first axis runs over samples; else it depends on weights alone.
        hidden: the entries that a mask hides; None when there are none.
        where: the primitive and the line it comes from.
        variable: of the jaxpr that was recorded, what the function is taken of; None for the
            exponential of −u² beside erf(u).
    """

    number: int
    kind: Kind
    argument: int
    output: int
    shape: tuple[int, ...]
    samples: bool
    hidden: np.ndarray | None
    where: str
    variable: Any = None


@dataclass(frozen=True, eq=False)
class FormalElements:
    """The map argument ↦ element of GF(p) for one seed and label (softmax-exact).

    With a in 0 … p−1 the argument, and two 64-bit keys (k, k'), little-endian, the first 16 bytes
    of SHAKE-256 of the text `neuromanifold formal exponentials 1|seed|label`, the element is

        1 when a = 0, else 1 + (m(m(a ⊕ k) ⊕ k') mod (p − 1))

    where ⊕ is the exclusive or and m the finaliser of SplitMix64 on 64-bit words: z ← (z ⊕ z≫30) ·
    0xBF58476D1CE4E5B9, z ← (z ⊕ z≫27) · 0x94D049BB133111EB, z ⊕ z≫31. Logarithms, error functions
    and turns have texts of their own.

    Attributes:
        field: the prime field.
        seed: the seed.
        label: what the elements are for.
        relations: which elements are made of others.
        salts: for a formal step, by its number, one whole number for each sample and entry; another
            number, another draw of that element.
    """

    field: PrimeField
    seed: int
    label: str = ""
    relations: Relations = NO_RELATIONS
    salts: Mapping[int, np.ndarray] = attribute(default_factory=dict)

    def of(self, formal: Formal, argument: Residues, memory: dict[int, Sides]) -> Residues:
        """The elements of a formal step for its argument; `memory` holds those of earlier steps."""
        rows = argument.reshape(len(argument) if formal.samples else 1, -1)
        salts = self.salts.get(formal.number)
        drawn = {
            "exp": self.exponential,
            "log": self.logarithm,
            "turn": self.turn,
            "erf": self.error_function,
        }[formal.kind](rows, salts)
        if self.relations and formal.kind != "erf":
            drawn = self._related(formal, rows, drawn, memory)
        elements = drawn.reshape(argument.shape)
        return elements if formal.hidden is None else np.where(formal.hidden, 0.0, elements)

    def _related(
        self, formal: Formal, rows: Residues, drawn: Residues, memory: dict[int, Sides]
    ) -> Residues:
        """The elements once those that depend on others are made of them (`relations`)."""
        field, roots = self.field, self.relations.roots
        is_log, values = formal.kind == "log", np.array(drawn)
        if not is_log:
            for entry in range(rows.shape[1]):
                power = roots.get((formal.number, entry), 1)
                values[:, entry] = field.power(drawn[:, entry], power)
        sides = Sides(values, rows, None) if is_log else Sides(rows, values, drawn)
        memory[formal.number] = sides
        for dependent in self.relations.dependents.get(formal.number, ()):
            entry, terms = dependent.entry, dependent.terms
            if is_log:
                power = lcm(*(factor.denominator for _, factor in terms))
                total, product = combined(terms, memory, roots, field, power)
                whole = field.power(rows[:, entry], power)
                rest = self.logarithm(field.multiply(whole, field.inverse(product)))
                share = np.asarray(field.from_fraction(Fraction(1, power)))
                values[:, entry] = field.reduce(total + field.multiply(share, rest))
            else:
                total, product = combined(terms, memory, roots, field)
                rest = field.reduce(rows[:, entry] - total)
                constant = self.turn(rest) if formal.kind == "turn" else self.exponential(rest)
                values[:, entry] = field.multiply(product, constant)
        return values

    def __call__(self, a: Residues) -> Residues:
        """The elements for exponentials of an array of arguments."""
        return self.exponential(a)

    def exponential(self, a: Residues, salts: np.ndarray | None = None) -> Residues:
        """The elements for exponentials of an array of arguments; 1 at 0."""
        a = self._from_zero(a)
        return np.where(a == 0, 1.0, self._drawn("exp", a, salts))

    def logarithm(self, x: Residues, salts: np.ndarray | None = None) -> Residues:
        """The elements for logarithms; 0 at 1."""
        x = self._from_zero(x)
        return np.where(x == 1, 0.0, self._drawn("log", x, salts))

    def turn(self, a: Residues, salts: np.ndarray | None = None) -> Residues:
        """The elements for exp(iu); 1 at 0, and the inverse at −u."""
        a = self.field.reduce(a)
        drawn = self._drawn("turn", np.abs(a), salts)
        return np.where(a == 0, 1.0, np.where(a > 0, drawn, self.field.inverse(drawn)))

    def error_function(self, a: Residues, salts: np.ndarray | None = None) -> Residues:
        """The elements for error functions, odd."""
        a = self.field.reduce(a)
        return np.sign(a) * self._drawn("erf", np.abs(a), salts)

    def _from_zero(self, a: Residues) -> Residues:
        """The residues in 0 … p − 1."""
        balanced = self.field.reduce(a)
        return np.where(balanced < 0, balanced + self.field.modulus, balanced)

    def _drawn(self, kind: Kind, arguments: Residues, salts: np.ndarray | None) -> Residues:
        """The elements for arguments 0 ≤ a < p."""
        salts = np.zeros(arguments.shape) if salts is None else salts
        known = ~np.isnan(arguments + salts)
        if not known.all():
            elements = np.full(known.shape, np.nan)
            elements[known] = self._drawn(kind, arguments[known], salts[known])
            return elements
        # One axis at least: NumPy warns of the intended wrap-around mod 2^64 for scalars only.
        word = np.atleast_1d(arguments).astype(np.uint64)
        word ^= salts.astype(np.uint64) * np.uint64(_SALT)
        for key in _keys(f"{_STREAMS[kind]}|{self.seed}|{self.label}"):
            word = _mixed(word ^ key)
        elements = 1.0 + word % np.uint64(self.field.modulus - 1)  # in 1 … p − 1
        return self.field.balanced(elements).reshape(arguments.shape)


@lru_cache(maxsize=64)
def _keys(text: str) -> np.ndarray:
    digest = hashlib.shake_256(text.encode()).digest(16)
    return np.frombuffer(digest, dtype="<u8").astype(np.uint64)


def _mixed(word: np.ndarray) -> np.ndarray:
    for shift, factor in _SHIFTS_AND_FACTORS:
        word = (word ^ (word >> np.uint64(shift))) * np.uint64(factor)
    return word ^ (word >> np.uint64(_LAST_SHIFT))
