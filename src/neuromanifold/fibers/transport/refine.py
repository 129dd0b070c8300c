"""One Gauss–Newton step on a group element: less residual in the direction of the orbit.

Near W' = g·W the action of 1 + ξ is linear in ξ, with the generators of the families at g·W as its
derivative. The ξ that moves g·W closest to W', every tensor measured relative to its size, is a
linear least-squares problem whose columns are those generators. Mixed heads stay as they are mixed.
"""

import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.linear import FloatingPoint
from neuromanifold.networks.family import Element
from neuromanifold.networks.weights import Weights
from neuromanifold.symmetry.attention import attention_network, named
from neuromanifold.symmetry.group_element import GroupElement, parts_of

MOST_ENTRIES = 4_000_000
"""Size of the matrix of generators above which the step is not worth its time."""

_CONTINUOUS = ("inter_layer", "scaling", "value_output", "key_query")


def refine(element: GroupElement, weights: Weights, wanted: Weights) -> GroupElement:
    """The element after one step towards g·weights = wanted; unchanged when it is too large."""
    moved = element.act(weights)
    families = parts_of(element.architecture)
    blocks = {
        name: families[name].generators(named(moved), FloatingPoint())
        for name in _CONTINUOUS
        if getattr(element, name)
    }
    count = sum(block.count for part in blocks.values() for block in part)
    if count * weights.architecture.parameters > MOST_ENTRIES:
        return element
    scales = np.concatenate(
        [np.full(T.size, 1 / (np.linalg.norm(T) or 1.0)) for _, T in wanted.named_tensors()]
    )
    dense = attention_network(element.architecture).dense
    columns = [dense(block) for part in blocks.values() for block in part]
    matrix = np.concatenate(columns).T * scales[:, None]
    side = (wanted.flatten() - moved.flatten()) * scales
    step = np.linalg.lstsq(matrix, side)[0]
    identity = GroupElement.identity(element.architecture)
    parts = {"head_permutation": identity.head_permutation, "head_mixing": identity.head_mixing}
    start = 0
    for name in blocks:
        parts[name], start = _near_identity(getattr(element, name), step, start)
    return GroupElement(element.architecture, **parts).compose(element)


def _near_identity(part: Element, step: Float[np.ndarray, " n"], start: int) -> tuple[Element, int]:
    """1 + ξ in the shape of `part`: generators come in the order of an element's entries."""
    moved = []
    for array in part:
        xi = step[start : start + array.size].reshape(array.shape)
        moved.append(xi + (1.0 if array.ndim == 1 else np.eye(array.shape[-1])))
        start += array.size
    return tuple(moved), start
