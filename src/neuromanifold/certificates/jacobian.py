"""The rank of the Jacobian over a prime field, at points drawn from a seed (field-rank).

The rank of the Jacobian at any point over any field to which the network specialises is at most the
generic rank: a non-zero minor mod p is a non-zero minor. So a rank found here is a proof of
dim ≥ rank. Each input gives one row uᵀ J with a random cotangent u, the smallest matrix that
reaches the full rank.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, TypeVar

import jax
import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.cells.points import Branches
from neuromanifold.algebra.echelon import EchelonForm
from neuromanifold.algebra.elimination import Indices
from neuromanifold.algebra.modular import (
    FormalElements,
    ModularFunction,
    Obligation,
    Source,
    obligations,
    relations_of,
    roots_of_weights,
    settled,
)
from neuromanifold.algebra.modular.formal_rules import NonSquareError
from neuromanifold.algebra.modular.radicands import Redraw
from neuromanifold.algebra.modular.relations import NO_RELATIONS, Relations
from neuromanifold.algebra.prime_field import PrimeField, Residues, ZeroResidueError
from neuromanifold.certificates.cells import (
    MOST_PATTERNS,
    branches,
    pieces,
    possible_inputs,
    real_inputs,
)
from neuromanifold.certificates.features import feature_obligations, freed
from neuromanifold.certificates.program import (
    checked_program,
    generic_obligations,
    generic_relations,
    rows_program,
    weight_leaves,
)
from neuromanifold.certificates.real_values import value_obligations
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.network import Network

SPARE_ROWS = 8
"""Rows beyond the upper bound: each further row misses with probability about 1/p."""
ATTEMPTS = 5
MORE_ATTEMPTS = 64
"""Points drawn where radicands that depend on weights alone have to be squares."""
BATCH = 512
"""The most inputs in one evaluation, so that memory stays bounded while rows are streamed."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GivenWeights:
    """Weights that were given: floats, that is dyadic rationals.

    Attributes:
        values: all their entries, with ones for the constants.
    """

    values: Float[np.ndarray, " columns"]

    def __call__(self, field: PrimeField) -> Residues:
        """The exact residues over a field."""
        return field.from_floats(self.values)


@dataclass(frozen=True, slots=True)
class Point:
    """Where the Jacobian is taken: weights, and what inputs and exponentials are drawn from.

    Attributes:
        field: the prime field.
        seed: the seed of everything drawn.
        attempt: how many points were drawn before because a denominator was zero there.
        weights: the weights as one vector of residues.
        given: these weights over any field, when they were given and not drawn.
    """

    field: PrimeField
    seed: int
    attempt: int
    weights: Residues
    given: GivenWeights | None = None

    def draw(self, what: str, shape: tuple[int, ...]) -> Residues:
        """Residues for one purpose."""
        return self.field.random(self.seed, f"{what} attempt {self.attempt}", shape)

    def elements(self, relations: Relations = NO_RELATIONS) -> FormalElements:
        """The elements that stand for formal functions."""
        return FormalElements(self.field, self.seed, f" attempt {self.attempt}", relations)

    def relations(self, network: Network, batch: int) -> Relations:
        """The relations between the formal elements of a network, at weights like these."""
        given = self.given
        if given is None:
            return generic_relations(network, batch, self.field)
        return relations_of(
            checked_program(network, batch),
            self.field,
            lambda field: weight_leaves(network, given(field)),
        )

    def obligations(self, network: Network, batch: int) -> tuple[Obligation, ...]:
        """What has to be shown for a network, with the ranks that do."""
        at = given = None
        if self.given is not None:
            given = self.given.values.tobytes()
            at = weight_leaves(network, self.given.values)
        shown = *feature_obligations(network, at), *self._formal_obligations(network, batch)
        return shown if pieces(network) else (*shown, *value_obligations(network, given))

    def _formal_obligations(self, network: Network, batch: int) -> tuple[Obligation, ...]:
        """What has to be shown for its formal elements."""
        program = checked_program(network, batch)
        if not program.formals and not program.maxima:
            return ()
        if self.given is None and pieces(network) is None:
            shown = generic_obligations(network, batch, self.field)
            if all(obligation.met for obligation in shown):
                return shown
        leaves = None if self.given is None else weight_leaves(network, self.weights)
        source = Source(self.field, self.seed, f"attempt {self.attempt}", leaves)
        relations = self.relations(network, batch)
        if pieces(network) is None:
            return obligations(program, source, relations)
        checks = [
            obligations(program, replace(source, fixed=fixed), relations)
            for fixed in self._patterns(network, program)
        ]
        if len(checks) > 1:  # roots of weights are those of all patterns
            program = rows_program(network, MOST_PATTERNS)
            fixed = self._fixed(network, self.branches(network, MOST_PATTERNS).arrays)
            checks.append(roots_of_weights(program, replace(source, fixed=fixed), relations))
        return _together(checks)

    def branches(self, network: Network, count: int) -> Branches:
        """The branches of a piecewise network at the first `count` inputs."""
        values = None if self.given is None else self.given.values
        return branches(network, self.seed, values, count)

    def _patterns(
        self, network: Network, program: ModularFunction
    ) -> Iterator[dict[int, Residues]]:
        """Each distinct pattern of branches, for all samples of a program at once, by leaf."""
        arrays = self.branches(network, MOST_PATTERNS).arrays
        flat = [x.reshape(MOST_PATTERNS, -1) for x in arrays]
        rows = np.concatenate([np.zeros((MOST_PATTERNS, 1)), *flat], axis=1)
        for k in np.unique(rows, axis=0, return_index=True)[1]:
            fixed = self._fixed(network, [x[k] for x in arrays])
            yield {
                leaf: np.array(np.broadcast_to(x, program.shapes[leaf]))
                for leaf, x in fixed.items()
            }

    def _fixed(self, network: Network, arrays: Sequence[Any]) -> dict[int, Residues]:
        """Branches as residues, by the number of their leaf."""
        first = len(network.tensors) + len(real_inputs(network))
        return {first + j: self.field.from_integers(x.astype(int)) for j, x in enumerate(arrays)}


class OtherWeightsError(NonSquareError):
    """Radicands of weights alone are squares at other weights, near those of a point."""

    def __init__(self, weights: Residues) -> None:
        super().__init__("a radicand that depends on the weights alone is no square")
        self.weights = weights


def at_a_point(
    network: Network,
    field: PrimeField,
    seed: int,
    compute: Callable[[Point], T],
    weights: GivenWeights | None = None,
    attempts: range | None = None,
) -> T:
    """`compute` at a random point, drawn again while it is none that can be used.

    A point cannot be used when a denominator is zero there. Where a radicand that depends on the
    weights alone is no square, `compute` begins again at weights of which some rows are others.
    With `weights` given only inputs and formal elements are drawn; with `attempts` those draws are
    made and no others.
    """
    attempt, last = (0, ATTEMPTS) if attempts is None else (attempts.start, attempts.stop)
    while attempt < last:
        at = drawn_weights(network, field, seed, attempt) if weights is None else weights(field)
        try:
            try:
                return compute(Point(field, seed, attempt, at, weights))
            except OtherWeightsError as other:
                return compute(Point(field, seed, attempt, other.weights, weights))
        except NonSquareError:
            last = MORE_ATTEMPTS if attempts is None else last
        except ZeroResidueError:
            pass
        attempt += 1
    raise ArgumentError(
        f"a denominator is zero or a radicand no square mod {field.modulus} at {last} points "
        "in a row; the function divides by something that vanishes identically, or try another "
        "--prime"
    )


def drawn_weights(
    network: Network, field: PrimeField, seed: int, attempt: int, again: str = ""
) -> Residues:
    """Random weights, with ones for the constants."""
    weights = field.random(seed, f"weights attempt {attempt}{again}", (network.columns,))
    weights[network.parameters :] = 1.0
    return weights


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
    """

    dyadic: tuple[float, ...] = ()
    suspects: tuple[float, ...] = ()
    masks: tuple[float, ...] = ()
    patterns: int = 0
    whole: int = 0
    possible: int = 0


def readings_of(network: Network, point: Point, inputs: int, batch: int) -> Readings:
    """How the constants and the branches of a network were read, for so many inputs."""
    program, found = rows_program(network, batch), pieces(network)
    read = (program.dyadic_constants, program.suspect_constants, program.masks_read)
    if found is None:
        return Readings(*read)
    branches = point.branches(network, inputs)
    patterns = branches.patterns if found.has_cells else 0
    return Readings(*read, patterns, branches.whole, possible_inputs(network))


def _together(checks: Sequence[tuple[Obligation, ...]]) -> tuple[Obligation, ...]:
    """The obligations of several patterns as one of each kind: all have to be met."""
    kinds = dict.fromkeys(check.name for pattern in checks for check in pattern)
    same = [[o for pattern in checks for o in pattern if o.name == name] for name in kinds]
    return tuple(
        Obligation(
            group[0].name,
            sum(o.columns for o in group),
            sum(o.rank for o in group),
            sum(o.relations for o in group),
        )
        for group in same
    )


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
    return JacobianRank(
        form.rank,
        used,
        kernel.shape[1],
        tuple(map(bool, holds)),
        batch,
        readings_of(network, point, used, batch),
        form,
    )
