"""Networks whose inputs enter through functions that the engine does not read.

Where those are independent functions of the inputs alone, their values take the place of the
inputs (docs/explanation/engine/features.md). The obligation that they are is proved in balls before
anything is computed with them, and again for each certificate and each verification.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from neuromanifold.algebra.cells.piecewise import piecewise
from neuromanifold.algebra.features import MOST_VALUES, Features, features
from neuromanifold.algebra.modular import Obligation
from neuromanifold.algebra.modular.interpreter import not_read
from neuromanifold.errors import NotCoveredError
from neuromanifold.networks.network import Network

NAME = "functions of the inputs"


@lru_cache(maxsize=128)
def freed(network: Network) -> Network:
    """The network with functions of the inputs as its inputs; itself if all of it is read."""
    found = _features(network)
    if found is None:
        return network
    if not _obligation(found).met:
        raise _refused(found, f"of {found.count} only {found.rank()} were shown to be")

    def apply(weights: Mapping[str, Any], X: Any) -> Any:
        return jax.tree.unflatten(found.structure, found.rest(*jax.tree.leaves(dict(weights)), *X))

    other = replace(network, apply=apply, sample=[np.zeros(shape) for shape in found.shapes])
    if piecewise(other.apply, *other.shapes) is not None:
        raise _refused(found, "here they decide branches")
    return other


def feature_obligations(
    network: Network, weights: tuple[np.ndarray, ...] | None = None
) -> tuple[Obligation, ...]:
    """That the functions of the inputs which stand for them are independent; none if none do.

    They have to be where the function has a value, at the weights that were given if any were.
    """
    found = _features(network)
    return () if found is None else (_obligation(found, weights),)


@lru_cache(maxsize=128)
def _features(network: Network) -> Features | None:
    return None if network.architecture else features(network.apply, *network.shapes)


def _obligation(found: Features, weights: tuple[np.ndarray, ...] | None = None) -> Obligation:
    entries = sum(x.size for x in found.inputs)
    if found.count > entries:
        raise _refused(
            found, f"an input has {entries} real numbers, and {found.count} reach the weights"
        )
    if found.count > MOST_VALUES:
        raise _refused(found, f"there are {found.count}, and at most {MOST_VALUES} are tried")
    try:
        return Obligation(NAME, found.count, found.rank(weights))
    except NotCoveredError as error:
        raise _refused(found, str(error)) from None


def _refused(found: Features, why: str) -> NotCoveredError:
    also = ", and functions of the inputs alone where these are independent; but"
    return not_read(found.where, f"{also} {why}")
