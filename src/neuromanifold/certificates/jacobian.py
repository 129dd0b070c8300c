"""The rank of the Jacobian over a prime field, at points drawn from a seed (field-rank).

The rank of the Jacobian at any point over any field to which the network specialises is at most the
generic rank: a non-zero minor mod p is a non-zero minor. So a rank found here is a proof of
dim ≥ rank. Each input gives one row uᵀ J with a random cotangent u, the smallest matrix that
reaches the full rank.
"""

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any, TypeVar

import jax
import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.echelon import EchelonForm
from neuromanifold.algebra.modular import FormalExponentials
from neuromanifold.algebra.prime_field import PrimeField, Residues, ZeroResidueError
from neuromanifold.certificates.program import rows_program
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.network import Network

SPARE_ROWS = 8
"""Rows beyond the upper bound: each further row misses with probability about 1/p."""
ATTEMPTS = 5
BATCH = 512
"""The most inputs in one evaluation, so that memory stays bounded while rows are streamed."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Point:
    """Where the Jacobian is taken: weights, and what inputs and exponentials are drawn from.

    Attributes:
        field: the prime field.
        seed: the seed of everything drawn.
        attempt: how many points were drawn before because a denominator was zero there.
        weights: the weights as one vector of residues.
    """

    field: PrimeField
    seed: int
    attempt: int
    weights: Residues

    def draw(self, what: str, shape: tuple[int, ...]) -> Residues:
        """Residues for one purpose."""
        return self.field.random(self.seed, f"{what} attempt {self.attempt}", shape)

    def exponentials(self, what: str = "") -> FormalExponentials:
        """The elements that stand for exponentials."""
        return FormalExponentials(self.field, self.seed, f"{what} attempt {self.attempt}")


def at_a_point(
    network: Network,
    field: PrimeField,
    seed: int,
    compute: Callable[[Point], T],
    weights: Residues | None = None,
) -> T:
    """`compute` at a random point, drawn again while a denominator is zero there.

    With `weights` given only inputs and exponentials are drawn.
    """
    for attempt in range(ATTEMPTS):
        at = weights
        if at is None:
            at = field.random(seed, f"weights attempt {attempt}", (network.columns,))
            at[network.parameters :] = 1.0
        try:
            return compute(Point(field, seed, attempt, at))
        except ZeroResidueError:
            continue
    raise ArgumentError(
        f"a denominator is zero mod {field.modulus} at {ATTEMPTS} random points in a row; "
        "the function divides by something that vanishes identically, or try another --prime"
    )


def batches(count: int) -> tuple[int, int]:
    """How many evaluations of how many inputs each give at least `count` rows."""
    number = max(1, ceil(count / BATCH))
    return number, max(1, ceil(count / number))


def jacobian_rows(
    network: Network, point: Point, count: int, skip: int = 0
) -> Iterator[Float[np.ndarray, "batch columns"]]:
    """At least `count` rows uᵀ J after the first `skip`, in batches."""
    number, size = batches(count)
    rows = rows_program(network, size)
    weights = network.assemble(point.weights)
    exponentials = point.exponentials() if rows.uses_exponentials else None
    inputs, cotangents = samples(network, point, skip + number * size)
    for start in range(skip, skip + number * size, size):
        batch = slice(start, start + size)
        values = rows(
            point.field,
            weights,
            *jax.tree.map(operator.itemgetter(batch), (inputs, cotangents)),
            exponentials=exponentials,
        )
        leaves = [values[tensor.name].reshape(size, -1) for tensor in network.tensors]
        yield np.concatenate(leaves, axis=1)


def samples(network: Network, point: Point, count: int) -> tuple[Any, Any]:
    """The first `count` inputs and their cotangents; a larger count begins with the same ones."""
    return (
        drawn(network.sample, point, "inputs", count),
        drawn(network.output, point, "cotangents", count),
    )


def drawn(shapes: Any, point: Point, what: str, count: int) -> Any:
    """A pytree of random residues with the given shapes after a leading axis of length `count`."""
    leaves, structure = jax.tree.flatten(shapes)
    values = [point.draw(f"{what} {k}", (count, *np.shape(leaf))) for k, leaf in enumerate(leaves)]
    return jax.tree.unflatten(structure, values)


@dataclass(frozen=True, slots=True)
class JacobianRank:
    """The rank of the Jacobian at a point, with what it was found from.

    Attributes:
        rank: the rank, a proof of dim ≥ rank.
        inputs: the number of inputs, one row each.
        kernel_checks: how many known kernel vectors were multiplied with all rows.
        kernel_holds: for each of them, whether all products were zero.
        uses_exponentials: whether formal exponentials took part, whose independence is to be shown.
        dyadic_constants: constants of the function taken as the exact value of their float.
        row_space: the echelon form of the rows, for further questions.
    """

    rank: int
    inputs: int
    kernel_checks: int
    kernel_holds: tuple[bool, ...]
    uses_exponentials: bool
    dyadic_constants: tuple[float, ...]
    row_space: EchelonForm


def jacobian_rank(
    network: Network,
    point: Point,
    upper: int,
    kernel: Float[np.ndarray, "columns checks"],
    inputs: int | None = None,
) -> JacobianRank:
    """The rank from `upper + 8` inputs, doubled once when it falls short of `upper`.

    Every row is also multiplied with the columns of `kernel`, which must give zero. With `inputs`
    exactly that many are used and nothing is doubled.
    """
    form = EchelonForm(network.columns, point.field)
    holds, used = np.ones(kernel.shape[1], dtype=bool), 0
    count = upper + len(network.constants) + SPARE_ROWS if inputs is None else inputs
    for _ in range(2 if inputs is None else 1):
        for rows in jacobian_rows(network, point, count, used):
            rows = rows if inputs is None else rows[: inputs - used]
            form.add(rows)
            holds &= ~np.any(point.field.matmul(rows, kernel), axis=0)
            used += len(rows)
        if form.rank >= upper + len(network.constants):
            break
    program = rows_program(network, batches(count)[1])
    return JacobianRank(
        form.rank,
        used,
        kernel.shape[1],
        tuple(map(bool, holds)),
        program.uses_exponentials,
        program.dyadic_constants,
        form,
    )
