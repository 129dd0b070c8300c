"""Floats with what rounding did to them: matrices whose errors are carried along to first order.

A matrix that was rounded is off by independent errors E, each entry by its own root mean square N.
A product of such matrices is off by terms P E R, one for every place where E enters:

    d(B C) = dB C + B dC,    (P E R)ᵀ = Rᵀ Eᵀ Pᵀ,    E ‖P E R‖² = Σ_pq N_pq² ‖P e_p‖² ‖e_qᵀ R‖²:

sums of squares of rows and columns that cost no more than the products themselves. The result is
the size of what rounding does to this matrix; it knows that rows of C V and columns of K C^{-1} are
rounded each to its own size, and it grows with the condition of the factors.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

Matrix = Float[np.ndarray, "_ _"]


@dataclass(frozen=True, slots=True, eq=False)
class Rounded:
    """The matrix `values` · 2^`exponent`.

    Attributes:
        values: the entries in that unit.
        exponent: of the unit.
        errors: the terms P E R that `values` are off by: the name of E, then P, N and R.
    """

    values: Matrix
    exponent: int
    errors: tuple[tuple[str, Matrix, Matrix, Matrix], ...]

    @classmethod
    def of(cls, name: str, values: Matrix, rounding: Matrix, exponent: int) -> "Rounded":
        """A matrix whose entries were rounded, each by the root mean square in `rounding`."""
        one, one_right = map(np.eye, values.shape)
        return cls(values, exponent, ((name, one, rounding, one_right),))

    @property
    def noise(self) -> float:
        """The root mean square of ‖d values‖.

        Terms of one E are not independent: the square of n of them is at most n times their
        squares.
        """
        terms = Counter(name for name, *_ in self.errors)
        square = sum(
            terms[name] * np.sum(P * P, axis=0) @ (N * N) @ np.sum(R * R, axis=1)
            for name, P, N, R in self.errors
        )
        return float(np.sqrt(square))

    @property
    def T(self) -> "Rounded":
        """The transpose."""
        errors = tuple((name, R.T, N.T, P.T) for name, P, N, R in self.errors)
        return Rounded(self.values.T, self.exponent, errors)

    def __matmul__(self, other: "Rounded") -> "Rounded":
        B, C = self.values, other.values
        errors = [(name, P, N, R @ C) for name, P, N, R in self.errors]
        errors += [(name, B @ P, N, R) for name, P, N, R in other.errors]
        return Rounded(B @ C, self.exponent + other.exponent, tuple(errors))
