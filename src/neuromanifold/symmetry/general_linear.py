"""Families whose elements are tuples of invertible matrices, composed by multiplication."""

from abc import abstractmethod
from itertools import product
from math import prod

import numpy as np
from jaxtyping import Float

from neuromanifold.architecture import Architecture
from neuromanifold.symmetry.family import Element, Family


class GeneralLinear(Family):
    """A product of general linear groups; subclasses say of which shapes and how they act."""

    @abstractmethod
    def shapes(self, architecture: Architecture) -> tuple[tuple[int, ...], ...]:
        """The shapes (…, n, n) of an element's arrays; none where the family does not hold."""

    def dimension(self, architecture: Architecture) -> int:
        """The number of entries of an element."""
        return sum(prod(shape) for shape in self.shapes(architecture))

    def identity(self, architecture: Architecture) -> Element:
        """Identity matrices."""
        return tuple(
            np.broadcast_to(np.eye(shape[-1]), shape) for shape in self.shapes(architecture)
        )

    def random(
        self, architecture: Architecture, generator: np.random.Generator, condition: float = 10.0
    ) -> Element:
        """Independent random matrices."""
        self.check(architecture)
        elements = []
        for shape in self.shapes(architecture):
            stack = np.empty(shape)
            for index in product(*map(range, shape[:-2])):
                stack[index] = random_invertible(shape[-1], generator, condition)
            elements.append(stack)
        return tuple(elements)

    def compose(self, first: Element, second: Element) -> Element:
        """The matrix products."""
        return tuple(g @ h for g, h in zip(first, second, strict=True))


def random_invertible(
    size: int, generator: np.random.Generator, condition: float
) -> Float[np.ndarray, "size size"]:
    """A random matrix of condition number `condition`, its singular values around 1.

    Random orthogonal factors, so both signs of the determinant occur.
    """
    left, right = (np.linalg.qr(generator.standard_normal((size, size)))[0] for _ in range(2))
    sign = generator.choice([-1.0, 1.0])
    if size == 1:
        return np.full((1, 1), sign * condition ** generator.uniform(-0.5, 0.5))
    return sign * (left * np.geomspace(condition**0.5, condition**-0.5, size)) @ right


def left_products(B: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """E_pq B for all p, q, stacked in this order (E_qp B when `transposed`)."""
    n = B.shape[0]
    products = np.zeros((n, n, *B.shape))
    for p in range(n):
        if transposed:
            products[p, np.arange(n), np.arange(n)] = B[p]
        else:
            products[p, :, p] = B
    return products.reshape(n * n, *B.shape)


def right_products(B: np.ndarray) -> np.ndarray:
    """B E_pq for all p, q, stacked in this order."""
    n = B.shape[1]
    products = np.zeros((n, n, *B.shape))
    for q in range(n):
        products[:, q, :, q] = B.T
    return products.reshape(n * n, *B.shape)
