"""The rank of the Jacobian over a prime field, at points drawn from a seed (field-rank).

The rank of the Jacobian at any point over any field to which the network specialises is at most the
generic rank: a non-zero minor mod p is a non-zero minor. So a rank found here is a proof of
dim ≥ rank. Each input gives one row uᵀ J with a random cotangent u, the smallest matrix that
reaches the full rank.
"""

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.echelon import EchelonForm
from neuromanifold.algebra.elimination import Indices
from neuromanifold.algebra.modular import settled
from neuromanifold.algebra.modular.literals import Precision
from neuromanifold.algebra.modular.square_roots.radicands import Redraw
from neuromanifold.algebra.prime_field import PrimeField, Residues, ZeroResidueError
from neuromanifold.certificates.cells import cells_for, pieces, possible_inputs, real_inputs
from neuromanifold.certificates.features import freed
from neuromanifold.certificates.point import OtherWeightsError, Point, drawn_weights
from neuromanifold.certificates.program import rows_program, weight_leaves
from neuromanifold.networks.network import Network

SPARE_ROWS = 8
"""Rows beyond the upper bound: each further row misses with probability about 1/p."""
BATCH = 512
"""The most inputs in one evaluation, so that memory stays bounded while rows are streamed."""


def batches(count: int) -> tuple[int, int]:
    """How many evaluations of how many inputs each give at least `count` rows."""
    number = max(1, ceil(count / BATCH))
    return number, max(1, ceil(count / number))


def jacobian_rows(
    network: Network, point: Point, count: int, skip: int = 0
) -> Iterator[Float[np.ndarray, "batch columns"]]:
    """At least `count` rows uᵀ J after the first `skip`, in batches."""
    number, size = batches(count)
    program = rows_program(network, size)
    if point.precision is not None:
        program = program.in_floats(point.precision)
    weights = network.assemble(point.weights)
    elements = point.elements(point.relations(network, size)) if program.formals else None
    total = skip + number * size
    for start in range(skip, total, size):
        batch = operator.itemgetter(slice(start, start + size))
        inputs, cotangents = jax.tree.map(batch, samples(network, point, total))
        arguments = (weights, inputs, cotangents)
        again = _redraw(network, point, arguments, start)
        ready = settled(program, point.field, arguments, elements, again)
        if ready.moved:
            raise OtherWeightsError(network.flatten(ready.arguments[0]))
        values = program(point.field, *ready.arguments, elements=ready.elements)
        yield network.rows(values)


def _redraw(network: Network, point: Point, arguments: tuple[Any, ...], start: int) -> Redraw:
    """Other weights, unless they were given, and other real inputs from the `start`-th on.

    Other weights depend on the point alone, so that whatever is asked there finds the same ones.
    """
    others = other_inputs(network, point, arguments, start)
    if point.given is not None:
        return others

    def redraw(leaf: int, draw: int) -> Residues:
        if leaf >= len(network.tensors):
            return others(leaf, draw)
        again = f" draw {draw}"
        vector = drawn_weights(network, point.field, point.seed, point.attempt, again)
        return weight_leaves(network, vector)[leaf]

    return redraw


def other_inputs(
    network: Network, point: Point, arguments: tuple[Any, ...], start: int = 0
) -> Redraw:
    """Other real inputs from the `start`-th on, and everything else as it is."""
    leaves, weights = jax.tree.leaves(arguments), len(network.tensors)
    real = range(weights, weights + len(real_inputs(network)))

    def redraw(leaf: int, draw: int) -> Residues:
        if leaf not in real:
            return leaves[leaf]
        what = f"inputs from {start} draw {draw} {leaf - weights}"
        return point.draw(what, leaves[leaf].shape)

    return redraw


def samples(network: Network, point: Point, count: int) -> tuple[Any, Any]:
    """The first `count` inputs and their cotangents; a larger count begins with the same ones."""
    if pieces(network) is None:
        inputs = drawn(freed(network).sample, point, "inputs", count)
    else:
        inputs = drawn(real_inputs(network), point, "inputs", count)
        arrays = point.branches(network, count).arrays
        inputs = (inputs, [point.field.from_integers(x.astype(int)) for x in arrays])
    return inputs, drawn(network.output, point, "cotangents", count)


def drawn(shapes: Any, point: Point, what: str, count: int) -> Any:
    """A pytree of random residues with the given shapes after a leading axis of length `count`."""
    leaves, structure = jax.tree.flatten(shapes)
    values = [point.draw(f"{what} {k}", (count, *np.shape(leaf))) for k, leaf in enumerate(leaves)]
    return jax.tree.unflatten(structure, values)


@dataclass(frozen=True, slots=True)
class Readings:
    """How the constants of a function were read, where that could be done otherwise.

    Attributes:
        dyadic: constants taken as the exact value of their float.
        suspects: those so small beside others of their array that they may be rounding noise.
        masks: large negative constants in exponents or maxima, taken as minus infinity.
        patterns: the number of distinct patterns of branches of a piecewise function; 0 if it is
            none.
        whole: the number of distinct inputs of whole numbers; 0 if inputs are real.
        possible: how many of those there are.
        cells: how many inputs gave the branches of all rows, in turn, where the rows of a cell were
            too few to show it; 0 elsewhere.
        passed: the numbers of inputs that were passed over, since nothing is proved in their cells.
    """

    dyadic: tuple[float, ...] = ()
    suspects: tuple[float, ...] = ()
    masks: tuple[float, ...] = ()
    patterns: int = 0
    whole: int = 0
    possible: int = 0
    cells: int = 0
    passed: tuple[int, ...] = ()


def readings_of(network: Network, point: Point, inputs: int, batch: int) -> Readings:
    """How the constants and the branches of a network were read, for so many inputs."""
    program, found = rows_program(network, batch), pieces(network)
    read = (program.dyadic_constants, program.suspect_constants, program.masks_read)
    if found is None:
        return Readings(*read)
    branches = point.branches(network, inputs)
    patterns = branches.patterns if found.has_cells else 0
    numbers = (patterns, branches.whole, possible_inputs(network), point.cells or 0)
    return Readings(*read, *numbers, point.passed)


@dataclass(frozen=True, slots=True)
class JacobianRank:
    """The rank of the Jacobian at a point, with what it was found from.

    Attributes:
        rank: the rank, a proof of dim ≥ rank.
        inputs: the number of inputs, one row each.
        kernel_checks: how many known kernel vectors were multiplied with all rows.
        kernel_holds: for each of them, whether all products were zero.
        batch: how many inputs were evaluated at once.
        readings: how constants of the function were read.
        row_space: the echelon form of the rows, for further questions, in the columns kept.
    """

    rank: int
    inputs: int
    kernel_checks: int
    kernel_holds: tuple[bool, ...]
    batch: int
    readings: Readings
    row_space: EchelonForm


def jacobian_rank(
    network: Network,
    point: Point,
    upper: int,
    kernel: Float[np.ndarray, "columns checks"],
    inputs: int | None = None,
    *,
    without: Indices | None = None,
) -> JacobianRank:
    """The rank from `upper + 8` inputs, and from up to as many again while it is below `upper`.

    Every row is also multiplied with the columns of `kernel`, which must give zero. With `inputs`
    exactly that many are used. The columns `without` are left out before the elimination. What
    remains is a submatrix, so its rank is a lower bound whatever was left out, and it is the rank
    of all columns where the ones left out are combinations of the others.
    """
    kept = np.delete(np.arange(network.columns), [] if without is None else without)
    form = EchelonForm(len(kept), point.field)
    holds, used = np.ones(kernel.shape[1], dtype=bool), 0
    most = upper + len(network.constants)
    count = most + SPARE_ROWS if inputs is None else inputs
    for turn in range(2 if inputs is None else 1):
        for rows in jacobian_rows(network, point, count, used):
            rows = rows if inputs is None else rows[: inputs - used]
            form.add(rows if without is None else np.take(rows, kept, axis=1))
            holds &= ~np.any(point.field.matmul(rows, kernel), axis=0)
            used += len(rows)
            if turn and form.rank >= most:
                break
        if form.rank >= most:
            break
    batch = batches(count)[1]
    form = less_in_floats(network, point, form.rank, kept, [count] * ceil(used / count)) or form
    return JacobianRank(
        form.rank,
        used,
        kernel.shape[1],
        tuple(map(bool, holds)),
        batch,
        readings_of(network, point, used, batch),
        form,
    )


def less_in_floats(
    network: Network, point: Point, rank: int, kept: Indices, counts: Sequence[int]
) -> EchelonForm | None:
    """The echelon form of the rows with all constants as floats, if its rank is less than this.

    It is asked for where constants are read in two ways (`literals`). What stands for formal
    functions is as before; where their relations do not hold for the floats, that is more general.
    """
    is_generic = point.given is None and pieces(network) is None
    for precision in rows_program(network, batches(counts[0])[1]).precisions:
        there = replace(point, precision=precision)
        if is_generic and _has_rank(network, point.field, precision, rank, tuple(counts)):
            continue
        form = _in_floats(network, there, rank, kept, counts)
        if form is not None and form.rank < rank:
            return form
    return None


@lru_cache(maxsize=128)
def _has_rank(
    network: Network,
    field: PrimeField,
    precision: Precision,
    rank: int,
    counts: tuple[int, ...],
) -> bool:
    """Whether floats have this rank at random weights: if so they have it at those of any seed."""
    there = Point(field, 0, 0, drawn_weights(network, field, 0, 0), precision=precision)
    form = _in_floats(network, there, rank, np.arange(network.columns), counts)
    return form is not None and form.rank >= rank


def _in_floats(
    network: Network, point: Point, rank: int, kept: Indices, counts: Sequence[int]
) -> EchelonForm | None:
    """The echelon form of some columns, of no more rows than give a rank; None if floats have none.

    Then this is no point for the floats, and nothing is known of them.
    """
    try:
        try:
            return _form(network, point, rank, kept, counts)
        except OtherWeightsError as other:
            return _form(network, replace(point, weights=other.weights), rank, kept, counts)
    except ZeroResidueError:
        return None


def _form(
    network: Network, point: Point, rank: int, kept: Indices, counts: Sequence[int]
) -> EchelonForm:
    form, used = EchelonForm(len(kept), point.field), 0
    for count in counts:
        for rows in jacobian_rows(network, point, count, used):
            form.add(np.take(rows, kept, axis=1))
            used += len(rows)
            if form.rank >= rank:
                return form
    return form


def settled_rank(
    network: Network,
    point: Point,
    upper: int,
    kernel: Float[np.ndarray, "columns checks"],
    *,
    without: Indices | None = None,
) -> JacobianRank:
    """`jacobian_rank`, of a piecewise network with rows until the cells it meets add nothing."""
    found = jacobian_rank(network, point, upper, kernel, without=without)
    if pieces(network) is None:
        return found
    there = replace(point, cells=point.cells or cells_for(network, found.inputs))
    most = upper + len(network.constants)
    while found.rank < most and 2 * found.inputs <= most_inputs(network.columns):
        more = jacobian_rank(network, there, upper, kernel, 2 * found.inputs, without=without)
        if more.rank == found.rank:
            break
        found = more
    return found


def most_inputs(columns: int) -> int:
    """The most inputs that a certificate takes by itself, and that a verification takes."""
    return max(10_000, 64 * columns)
