"""The Jacobian of a network as a program on residues, and what holds for its formal elements."""

from functools import lru_cache
from typing import Any

import jax

from neuromanifold.algebra.modular import (
    ModularFunction,
    Obligation,
    Source,
    obligations,
    relations_of,
    rows_over_prime_field,
)
from neuromanifold.algebra.modular.formal.relations import Relations
from neuromanifold.algebra.modular.tracing import halves_of
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.certificates.cells import with_branches
from neuromanifold.networks.network import Network

_MOST = 128
"""Programs kept: tracing takes longer than running a small one."""

CHECKED_INPUTS = 64
"""The most inputs of the program whose obligations are checked."""


@lru_cache(maxsize=_MOST)
def rows_program(network: Network, batch: int) -> ModularFunction:
    """The rows uᵀ J of `batch` inputs X with one cotangent u each, on residues.

    Arguments: the weights, then inputs and cotangents with a leading axis. Value: the weights by
    name with that axis, uᵀ ∂f/∂W for each input (field-rank). The inputs of a piecewise network
    have its branches as a second part (cells).
    """
    cells = with_branches(network)
    return rows_over_prime_field(
        cells.apply,
        network.shapes[0],
        cells.sample,
        batch,
        network.output,
        halves_of(network.program),
    )


def checked_program(network: Network, batch: int) -> ModularFunction:
    """The same program for a number of inputs with which its obligations are checked."""
    return rows_program(network, min(batch, CHECKED_INPUTS))


@lru_cache(maxsize=_MOST)
def generic_relations(network: Network, batch: int, field: PrimeField) -> Relations:
    """The relations between formal elements at generic weights, which no seed changes."""
    return relations_of(checked_program(network, batch), field)


@lru_cache(maxsize=_MOST)
def generic_obligations(network: Network, batch: int, field: PrimeField) -> tuple[Obligation, ...]:
    """What has to be shown for the formal elements at generic weights.

    Independence is a property of the function: ranks at any points show it once for all seeds.
    """
    program = checked_program(network, batch)
    relations = generic_relations(network, batch, field)
    return obligations(program, Source(field, 0, "generic"), relations)


def weight_leaves(network: Network, vector: Any) -> tuple[Any, ...]:
    """The weights with these entries, in the order in which a program takes them."""
    return tuple(jax.tree.leaves(network.assemble(vector)))
