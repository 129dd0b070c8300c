"""`dot_general` as one (batched) matrix product."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Product = Callable[[np.ndarray, np.ndarray], np.ndarray]


def contract(
    dimension_numbers: Any, left: tuple[int, ...], right: tuple[int, ...]
) -> Callable[[Product, np.ndarray, np.ndarray], np.ndarray]:
    """The contraction of arrays of two shapes, given a product of matrices (or stacks of them).

    Axes of the result are those of the batch, the free ones on the left, the free ones on the
    right. A network's weights carry no batch axis, and then the inputs of a whole batch are the
    rows or the columns of one matrix product.
    """
    (sum_l, sum_r), (batch_l, batch_r) = dimension_numbers
    free_l = [i for i in range(len(left)) if i not in sum_l and i not in batch_l]
    free_r = [i for i in range(len(right)) if i not in sum_r and i not in batch_r]
    batch = [left[i] for i in batch_l]
    order_l, order_r = [*batch_l, *free_l, *sum_l], [*batch_r, *sum_r, *free_r]
    rows, columns = [left[i] for i in free_l], [right[i] for i in free_r]
    length = math.prod(left[i] for i in sum_l)
    stack = [math.prod(batch)] if batch else []
    matrix_l = [*stack, math.prod(rows), length]
    matrix_r = [*stack, length, math.prod(columns)]
    target = [*batch, *rows, *columns]

    def contraction(product: Product, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        a = x.transpose(order_l).reshape(matrix_l)
        b = y.transpose(order_r).reshape(matrix_r)
        return product(a, b).reshape(target)

    return contraction
