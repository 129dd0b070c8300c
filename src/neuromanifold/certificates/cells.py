"""Networks that are piecewise, in the cells of real points (cells).

A certificate of a piecewise network is about the function with the branches of real weights and
real inputs: the weights that were given, or some drawn from the seed, and normal inputs from the
seed. The branches hold on an open set of weights and inputs; on it the network is the function with
these branches fixed, and the rank of that function over its field of rational functions may be
found at any residues. Inputs that are whole numbers are branches too: constants of their row.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from neuromanifold.algebra.cells.piecewise import Piecewise, piecewise
from neuromanifold.algebra.cells.points import Branches, BranchReader
from neuromanifold.algebra.cells.whole import range_of
from neuromanifold.algebra.modular.rules.elementary import OPENINGS
from neuromanifold.certificates.features import freed
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.network import Network

MOST_PATTERNS = 16
"""Real inputs whose branches are used beside formal functions: each pattern has obligations."""
_RATIONAL = {"convert_element_type", "integer_pow", "reduce_max", "square"}


@lru_cache(maxsize=128)
def pieces(network: Network) -> Piecewise | None:
    """The network as a piecewise function, or None; the built-in ones are analytic."""
    if network.architecture is not None:
        return None
    network = freed(network)
    return piecewise(network.apply, *network.shapes)


@lru_cache(maxsize=128)
def with_branches(network: Network) -> Network:
    """The network with its branches as a second part of the input, if it has any."""
    found, network = pieces(network), freed(network)
    if found is None:
        return network

    leaves, structure = jax.tree.flatten(network.sample)
    ranges = [range_of(leaf) for leaf in leaves]

    def apply(weights: Any, X: Any) -> Any:
        real = iter(X[0])
        inputs = [next(real) if values is None else None for values in ranges]
        return found.fixed((dict(weights), jax.tree.unflatten(structure, inputs)), X[1])

    return replace(network, apply=apply, sample=(real_inputs(network), found.branch_shapes))


def real_inputs(network: Network) -> list[Any]:
    """The leaves of an input that are real; the others are drawn as whole numbers."""
    return [leaf for leaf in jax.tree.leaves(freed(network).sample) if range_of(leaf) is None]


def possible_inputs(network: Network) -> int:
    """How many inputs of whole numbers there are, besides real ones; 0 if all are real."""
    if pieces(network) is None:
        return 0
    whole = reader(network).whole
    return 0 if whole is None else whole.possible


@lru_cache(maxsize=128)
def reader(network: Network) -> BranchReader:
    """What reads the branches of a piecewise network."""
    found = pieces(network)
    assert found is not None
    return BranchReader(found, [range_of(leaf) for leaf in jax.tree.leaves(network.sample)])


@lru_cache(maxsize=32)
def _read(
    network: Network, seed: int, values: bytes | None, count: int, passed: tuple[int, ...]
) -> Branches:
    if values is None:
        drawn = network.draw(seed)
        tries = (drawn, jax.tree.map(np.abs, drawn))  # roots and logarithms of weights
    else:
        tries = (network.assemble(np.frombuffer(values, dtype=np.float64)),)
    for number, weights in enumerate(tries, start=1):
        every = {name: np.ones(()) for name in network.constants} | weights
        try:
            with jax.enable_x64(True):
                return reader(network).read(every, seed, count, passed)
        except ArgumentError:
            if number == len(tries):
                raise
    raise AssertionError("there is a point to try")


def branches(
    network: Network,
    seed: int,
    values: np.ndarray | None,
    cells: int,
    passed: tuple[int, ...] = (),
) -> Branches:
    """The branches at the first real inputs, at weights with these entries or those of the seed.

    Inputs with the numbers `passed` are left out.
    """
    key = None if values is None else np.ascontiguousarray(values, dtype=np.float64).tobytes()
    return _read(network, seed, key, cells, passed)


def cells_for(network: Network, count: int) -> int:
    """How many real inputs give the branches of so many rows.

    Beside formal functions they are few, each for several rows: the rows of one real input have
    inputs of their own, all in the neighbourhood of that one.
    """
    return min(count, MOST_PATTERNS) if is_formal(network) else count


def is_formal(network: Network) -> bool:
    """Whether a piecewise network contains functions that are not rational."""
    found = pieces(network)
    if found is None:
        return False
    names = {equation.primitive.name for equation in found.jaxpr.jaxpr.eqns}
    return bool(names & (set(OPENINGS) - _RATIONAL)) or bool(found.shifts)
