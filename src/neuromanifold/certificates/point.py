"""Points: where the Jacobian of a network is taken, and what holds there (field-rank)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.cells.points import Branches
from neuromanifold.algebra.modular import (
    FormalElements,
    ModularFunction,
    Obligation,
    Source,
    obligations,
    relations_of,
    square_roots,
)
from neuromanifold.algebra.modular.formal.relations import NO_RELATIONS, Relations
from neuromanifold.algebra.modular.literals import Precision
from neuromanifold.algebra.modular.rules.formal import NonSquareError
from neuromanifold.algebra.prime_field import PrimeField, Residues, ZeroResidueError
from neuromanifold.certificates.cells import (
    MOST_PATTERNS,
    branches,
    cells_for,
    is_formal,
    pieces,
    real_inputs,
)
from neuromanifold.certificates.features import feature_obligations
from neuromanifold.certificates.floats import float_obligations
from neuromanifold.certificates.low_constants import mask_obligations
from neuromanifold.certificates.program import (
    checked_program,
    generic_obligations,
    generic_relations,
    rows_program,
    weight_leaves,
)
from neuromanifold.certificates.real_values import value_obligations
from neuromanifold.errors import ArgumentError, NotCoveredError
from neuromanifold.networks.network import Network
from neuromanifold.networks.weights import checked_seed

ATTEMPTS = 5
MOST_TRIED = 16 * MOST_PATTERNS
"""Inputs among which those are sought in whose cells all is shown, at most `MOST_PATTERNS`."""
MOST_HOPELESS = 4 * MOST_PATTERNS
"""Patterns after which that is given up, if nothing is shown in any of them."""
MORE_ATTEMPTS = 64
"""Points drawn where radicands that depend on weights alone have to be squares."""

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
        cells: how many real inputs give the branches of a piecewise network, in turn; None for as
            many as the rows call for.
        passed: the numbers of real inputs whose cells are passed over.
        precision: in which all constants are floats; None where they are what they are read as.
    """

    field: PrimeField
    seed: int
    attempt: int
    weights: Residues
    given: GivenWeights | None = None
    cells: int | None = None
    passed: tuple[int, ...] = ()
    precision: Precision | None = None

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
        values = None if self.given is None else self.given.values
        is_piecewise = pieces(network) is not None
        arrays = self.branches(network, MOST_PATTERNS).arrays if is_piecewise else ()
        masks = checked_program(network, batch).masks_read
        shown = (
            *feature_obligations(network, self._given(network)),
            *self._formal_obligations(network, batch),
            *mask_obligations(network, values, masks, arrays),
        )
        if is_piecewise:
            return shown
        return (*shown, *value_obligations(network, None if values is None else values.tobytes()))

    def _formal_obligations(self, network: Network, batch: int) -> tuple[Obligation, ...]:
        """What has to be shown for its formal elements."""
        program = checked_program(network, batch)
        if not program.formals and not program.maxima:
            return ()
        if pieces(network) is None:
            in_floats = float_obligations(network, program, self._given(network) or (), {})
            if self.given is None:
                shown = generic_obligations(network, batch, self.field)
                if all(obligation.met for obligation in shown):
                    return (*shown, *in_floats)
            shown = obligations(program, self._source(network), self.relations(network, batch))
            return (*shown, *in_floats)
        in_a_cell = self._in_a_cell(network, batch)
        checks = [tuple(in_a_cell(pattern)) for pattern in self._patterns(network)]
        if len(checks) > 1:  # roots of weights are those of all patterns
            program = rows_program(network, MOST_PATTERNS)
            fixed = self._fixed(network, self.branches(network, MOST_PATTERNS).arrays)
            at, relations = (
                replace(self._source(network), fixed=fixed),
                self.relations(network, batch),
            )
            checks.append(square_roots(program, at, relations, weights=True))
        return _together(checks)

    def _source(self, network: Network) -> Source:
        """Where the points come from at which something is shown."""
        leaves = None if self.given is None else weight_leaves(network, self.weights)
        return Source(self.field, self.seed, f"attempt {self.attempt}", leaves)

    def _given(self, network: Network) -> tuple[Any, ...] | None:
        """The leaves of the given weights, as floats, if there are any."""
        return None if self.given is None else weight_leaves(network, self.given.values)

    def _in_a_cell(
        self, network: Network, batch: int
    ) -> Callable[[Sequence[np.ndarray]], Iterator[Obligation]]:
        """What has to be shown for the formal elements of a piecewise network with some branches.

        One after the other, those that take little time first.
        """
        program, given = checked_program(network, batch), self._given(network) or ()
        source, relations = self._source(network), self.relations(network, batch)

        def shown(pattern: Sequence[np.ndarray]) -> Iterator[Obligation]:
            yield from float_obligations(network, program, given, self._leaves(network, pattern))
            fixed = self._everywhere(network, program, pattern)
            yield from obligations(program, replace(source, fixed=fixed), relations)

        return shown

    def passing_over(self, network: Network) -> "Point | None":
        """This point without the cells in which formal elements are not shown to be independent.

        Where an exponent is cut off, as by clipping, its exponential is a constant e^k, of which
        nothing is known, and a norm of neurons that are all off is that of zero. Other cells have a
        rank all the same. None if all cells are such, or none is.
        """
        in_a_cell = self._in_a_cell(network, MOST_PATTERNS)

        def is_shown(pattern: Sequence[np.ndarray]) -> bool:
            try:
                return all(one.met for one in in_a_cell(pattern))
            except (ZeroResidueError, NonSquareError, NotCoveredError):
                return False

        passed, shown, kept = list[int](), dict[bytes, bool](), 0
        for n, pattern in enumerate(self._every_pattern(network)):
            key = b"".join(x.tobytes() for x in pattern)
            if key not in shown:
                shown[key] = is_shown(pattern)
            kept += shown[key]
            if not shown[key]:
                passed.append(n)
            if kept == MOST_PATTERNS or (len(shown) == MOST_HOPELESS and not kept):
                break
        return replace(self, cells=kept, passed=tuple(passed)) if kept and passed else None

    def _every_pattern(self, network: Network) -> Iterator[list[np.ndarray]]:
        """The branches at the first inputs, one after the other."""
        for first in range(0, MOST_TRIED, MOST_PATTERNS):
            there = replace(self, cells=MOST_PATTERNS, passed=tuple(range(first)))
            arrays = there.branches(network, MOST_PATTERNS).arrays
            yield from ([np.asarray(x[k]) for x in arrays] for k in range(MOST_PATTERNS))

    def branches(self, network: Network, count: int) -> Branches:
        """The branches of a piecewise network at the first `count` inputs."""
        values = None if self.given is None else self.given.values
        cells = self.cells or cells_for(network, count)
        found = branches(network, self.seed, values, cells, self.passed)
        return replace(found, arrays=[x[np.arange(count) % cells] for x in found.arrays])

    def _patterns(self, network: Network) -> Iterator[list[np.ndarray]]:
        """Each distinct pattern of branches; none of a network that has none."""
        if pieces(network) is None:
            return
        arrays = self.branches(network, MOST_PATTERNS).arrays
        flat = [x.reshape(MOST_PATTERNS, -1) for x in arrays]
        rows = np.concatenate([np.zeros((MOST_PATTERNS, 1)), *flat], axis=1)
        for k in np.unique(rows, axis=0, return_index=True)[1]:
            yield [np.asarray(x[k]) for x in arrays]

    def _everywhere(
        self, network: Network, program: ModularFunction, pattern: Sequence[np.ndarray]
    ) -> dict[int, Residues]:
        """One pattern of branches for all samples of a program at once, by leaf."""
        fixed = self._fixed(network, pattern)
        return {k: np.array(np.broadcast_to(x, program.shapes[k])) for k, x in fixed.items()}

    def _fixed(self, network: Network, arrays: Sequence[Any]) -> dict[int, Residues]:
        """Branches as residues, by the number of their leaf."""
        leaves = self._leaves(network, arrays)
        return {k: self.field.from_integers(x.astype(int)) for k, x in leaves.items()}

    def _leaves(self, network: Network, arrays: Sequence[Any]) -> dict[int, Any]:
        """Branches by the number of their leaf."""
        return dict(enumerate(arrays, start=len(network.tensors) + len(real_inputs(network))))


class NoPointError(ArgumentError):
    """At no point that was tried could anything be computed."""


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
    checked_seed(seed)
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
    raise NoPointError(
        f"a denominator is zero or a radicand no square mod {field.modulus} at {last} points "
        "in a row; the function divides by something that vanishes identically, or takes too many "
        "roots of weights alone (of tokens: give the embedded ones), or try another prime"
    )


def in_shown_cells(
    network: Network,
    field: PrimeField,
    seed: int,
    compute: Callable[[Point], T],
    obligations_of: Callable[[T], Sequence[Obligation]],
    weights: GivenWeights | None = None,
) -> T:
    """`at_a_point`; where that shows nothing, without the cells in which nothing is shown."""
    bare = network.bare

    def elsewhere(point: Point) -> T | None:
        there = point.passing_over(bare)
        return None if there is None else compute(there)

    def other() -> T | None:
        return at_a_point(network, field, seed, elsewhere, weights) if is_formal(bare) else None

    try:
        found = at_a_point(network, field, seed, compute, weights)
    except NoPointError:
        if (shown := other()) is None:
            raise
        return shown
    if all(one.met for one in obligations_of(found)) or (shown := other()) is None:
        return found
    return shown


def drawn_weights(
    network: Network, field: PrimeField, seed: int, attempt: int, again: str = ""
) -> Residues:
    """Random weights, with ones for the constants."""
    weights = field.random(seed, f"weights attempt {attempt}{again}", (network.columns,))
    weights[network.parameters :] = 1.0
    return weights


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
