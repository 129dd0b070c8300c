"""The rank of the Jacobian at given real weights, proved in balls (field-rank).

Inputs and cotangents are floats drawn from the seed, each standing for itself. A minor whose
determinant is a ball without zero proves the rank at these very weights, for anything analytic and
without any obligation.
"""

from typing import Any

import jax
import numpy as np

from neuromanifold.algebra.balls import proved_rank, rows_in_balls
from neuromanifold.algebra.balls.arrays import PRECISION, precision
from neuromanifold.algebra.cells.points import normal
from neuromanifold.algebra.cells.whole import WholeInputs, range_of
from neuromanifold.certificates.jacobian import SPARE_ROWS
from neuromanifold.errors import NotCoveredError
from neuromanifold.networks.network import Network

MOST_COLUMNS = 2000
"""Weights up to which balls are taken: about a thousand take a minute."""


def ball_rank(
    net: Network,
    weights: dict[str, np.ndarray],
    upper: int,
    seed: int,
    inputs: int | None = None,
    bits: int = PRECISION,
) -> tuple[int, int]:
    """The rank from `upper + 8` inputs, or from as many as told, and how many those are.

    Args:
        net: the network.
        weights: real weights by name.
        upper: an upper bound for the rank.
        seed: of the inputs and cotangents.
        inputs: use exactly so many inputs.
        bits: the precision.
    """
    if net.columns > MOST_COLUMNS:
        raise NotCoveredError(
            f"{net.name} has {net.columns} weights, and balls are for at most {MOST_COLUMNS}; take "
            "reading='residues'"
        )
    count = upper + SPARE_ROWS if inputs is None else inputs
    at = {t.name: np.asarray(weights[t.name], dtype=np.float64) for t in net.tensors}
    X, u = _inputs(net, seed, count), _normal(net.output, seed, "cotangent", count)
    rows = rows_in_balls(net.apply, at, X, u, bits=bits)
    with precision(bits):
        return proved_rank(net.rows(rows)).rank, count


def _normal(shapes: Any, seed: int, what: str, count: int) -> Any:
    leaves, structure = jax.tree.flatten(shapes)
    drawn = [
        normal(seed, f"ball {what} {k}", (count, *np.shape(leaf))) for k, leaf in enumerate(leaves)
    ]
    return jax.tree.unflatten(structure, drawn)


def _inputs(net: Network, seed: int, count: int) -> Any:
    """Normal inputs, and whole numbers where the network takes those."""
    leaves, structure = jax.tree.flatten(net.sample)
    ranges = [range_of(leaf) for leaf in leaves]
    whole = [(np.shape(leaf), r) for leaf, r in zip(leaves, ranges, strict=True) if r is not None]
    numbers = iter(
        WholeInputs([s for s, _ in whole], [r for _, r in whole]).drawn(seed, range(count))
        if whole
        else []
    )
    drawn = _normal(leaves, seed, "input", count)
    mixed = [
        x if r is None else next(numbers).astype(np.asarray(leaf).dtype)
        for x, r, leaf in zip(drawn, ranges, leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, mixed)
