"""The linear algebra that does not care which field its numbers are from.

Two implementations: `FloatingPoint` (the reals, with a tolerance for kernels) and `Modular` (GF(p),
exact). What is built on this interface, the tangent vectors of symmetries above all, is the same
code for numeric and exact use.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import null_space, right_inverse
from neuromanifold.errors import ArgumentError

Matrix = Float[np.ndarray, "_ _"]
Stack = Float[np.ndarray, "..."]


class LinearAlgebra(ABC):
    """Products, kernels and one-sided inverses over one field."""

    @abstractmethod
    def matmul(self, left: Stack, right: Stack) -> Stack:
        """The matrix product, batched like NumPy's."""

    @abstractmethod
    def subtract(self, left: Stack, right: Stack) -> Stack:
        """The difference."""

    @abstractmethod
    def null_space(self, matrix: Matrix) -> Matrix:
        """A basis of {x : matrix x = 0}, as columns."""

    @abstractmethod
    def right_inverse(self, matrix: Matrix) -> Matrix:
        """R with matrix R = 1, for a matrix of full row rank."""


@dataclass(frozen=True, slots=True)
class FloatingPoint(LinearAlgebra):
    """Float64.

    Attributes:
        tolerance: singular values below it, relative to the largest, count as zero.
    """

    tolerance: float = 1e-10

    def matmul(self, left: Stack, right: Stack) -> Stack:
        """The matrix product."""
        return np.matmul(left, right)

    def subtract(self, left: Stack, right: Stack) -> Stack:
        """The difference."""
        return left - right

    def null_space(self, matrix: Matrix) -> Matrix:
        """Right singular vectors of the singular values that count as zero."""
        if 0 in matrix.shape:
            return np.eye(matrix.shape[1])
        _, values, right = np.linalg.svd(matrix)
        rank = int(np.sum(values > self.tolerance * values[0]))
        return right[rank:].T

    def right_inverse(self, matrix: Matrix) -> Matrix:
        """The pseudo-inverse, once the rows are seen to be independent."""
        if self.null_space(matrix.T).shape[1]:
            raise ArgumentError("the matrix has no right inverse: its rows are dependent")
        return np.linalg.pinv(matrix)


@dataclass(frozen=True, slots=True)
class Modular(LinearAlgebra):
    """Residues mod p, exact.

    Attributes:
        field: the prime field.
    """

    field: PrimeField

    def matmul(self, left: Stack, right: Stack) -> Stack:
        """The matrix product mod p."""
        return self.field.matmul(left, right)

    def subtract(self, left: Stack, right: Stack) -> Stack:
        """The difference mod p."""
        return self.field.reduce(left - right)

    def null_space(self, matrix: Matrix) -> Matrix:
        """From the reduced echelon form."""
        return null_space(matrix, self.field)

    def right_inverse(self, matrix: Matrix) -> Matrix:
        """From the echelon form of the matrix beside the identity."""
        return right_inverse(matrix, self.field)
