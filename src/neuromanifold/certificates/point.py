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
from neuromanifold.algebra.modular.rules.formal import NonSquareError
from neuromanifold.algebra.prime_field import PrimeField, Residues, ZeroResidueError
from neuromanifold.certificates.cells import MOST_PATTERNS, branches, cells_for, pieces, real_inputs
from neuromanifold.certificates.features import feature_obligations
from neuromanifold.certificates.low_constants import mask_obligations
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
from neuromanifold.networks.weights import checked_seed

ATTEMPTS = 5
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
    """

    field: PrimeField
    seed: int
    attempt: int
    weights: Residues
    given: GivenWeights | None = None
    cells: int | None = None

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
            *feature_obligations(
                network, None if values is None else weight_leaves(network, values)
            ),
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
            at = replace(source, fixed=fixed)
            checks.append(square_roots(program, at, relations, weights=True))
        return _together(checks)

    def branches(self, network: Network, count: int) -> Branches:
        """The branches of a piecewise network at the first `count` inputs."""
        values = None if self.given is None else self.given.values
        cells = self.cells or cells_for(network, count)
        found = branches(network, self.seed, values, cells)
        return replace(found, arrays=[x[np.arange(count) % cells] for x in found.arrays])

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
    raise ArgumentError(
        f"a denominator is zero or a radicand no square mod {field.modulus} at {last} points "
        "in a row; the function divides by something that vanishes identically, or takes too many "
        "roots of weights alone (of tokens: give the embedded ones), or try another prime"
    )


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
