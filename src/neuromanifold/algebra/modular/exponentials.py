"""Formal exponentials: one nonzero element of the field for each argument (softmax-exact).

When the arguments f_1, …, f_n of `exp` in a computation have no nontrivial rational combination
that is constant, their exponentials are algebraically independent over the rational functions (Ax),
and each may be replaced by an element of GF(p) of its own. Equal arguments must get equal elements
in the whole computation, and exp(0) = 1. So the element is a keyed hash of the argument's residue;
two different functions that meet in one residue at a point share an element there, which is
harmless.
"""

import hashlib
from dataclasses import dataclass
from dataclasses import field as attribute

import numpy as np

from neuromanifold.algebra.prime_field import PrimeField, Residues

_STREAM = "neuromanifold formal exponentials 1"
_SHIFTS_AND_FACTORS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LAST_SHIFT = 31


@dataclass(frozen=True)
class FormalExponentials:
    """The map argument ↦ element of GF(p) for one seed and label (softmax-exact).

    With a in 0 … p−1 the argument, and two 64-bit keys (k, k'), little-endian, the first 16 bytes
    of SHAKE-256 of the text `neuromanifold formal exponentials 1|seed|label`, the element is

        1 when a = 0, else 1 + (m(m(a ⊕ k) ⊕ k') mod (p − 1))

    where ⊕ is the exclusive or and m the finaliser of SplitMix64 on 64-bit words: z ← (z ⊕ z≫30) ·
    0xBF58476D1CE4E5B9, z ← (z ⊕ z≫27) · 0x94D049BB133111EB, z ⊕ z≫31.

    Attributes:
        field: the prime field.
        seed: the seed.
        label: what the elements are for.
    """

    field: PrimeField
    seed: int
    label: str = ""
    _keys: np.ndarray = attribute(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        digest = hashlib.shake_256(f"{_STREAM}|{self.seed}|{self.label}".encode()).digest(16)
        object.__setattr__(self, "_keys", np.frombuffer(digest, dtype="<u8").astype(np.uint64))

    def __call__(self, arguments: Residues) -> Residues:
        """The elements for an array of arguments."""
        p = self.field.modulus
        # One axis at least: NumPy warns of the intended wrap-around mod 2^64 for scalars only.
        a = np.atleast_1d(np.mod(arguments, p)).astype(np.uint64)
        word = _mixed(_mixed(a ^ self._keys[0]) ^ self._keys[1])
        element = 1 + (word % np.uint64(p - 1)).astype(np.int64)
        element = np.where(a == 0, 1, element).reshape(arguments.shape)
        return self.field.from_integers(element)


def _mixed(word: np.ndarray) -> np.ndarray:
    for shift, factor in _SHIFTS_AND_FACTORS:
        word = (word ^ (word >> np.uint64(shift))) * np.uint64(factor)
    return word ^ (word >> np.uint64(_LAST_SHIFT))
