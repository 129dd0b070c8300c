"""Coordinates between layers that no input reaches (eq-8).

The outputs of layer i, over all inputs, span the image of (V_1 R … V_H R), R a basis of what
reaches the layer. What the next layer reads beyond that span does not enter the function, so it can
be scaled down to zero along the fiber. There the interface C_i is free beyond the span, and its
determinant can take either sign.
"""

import numpy as np
from jaxtyping import Float

from neuromanifold.fibers.normal_form.factors import numeric_rank
from neuromanifold.networks.traits import adds_input
from neuromanifold.networks.weights import Weights, replace_layers


def has_unseen(weights: Weights) -> bool:
    """Whether some layer reads coordinates that no input reaches."""
    return any(P is not None for P in _unseen_projectors(weights))


def fade_unseen(weights: Weights, amount: float) -> Weights:
    """The weights with what is never reached scaled by 1 − `amount`; the function stays (eq-8)."""
    layers = []
    for layer, P in zip(weights.layers, _unseen_projectors(weights), strict=True):
        read: dict[str, np.ndarray] = {}
        if P is not None:
            kept = np.eye(len(P)) - amount * P
            read = {name: np.asarray(layer.tensors()[name]) @ kept for name in _READ}
        layers.append(read)
    return replace_layers(weights, layers)


_READ = ("query", "key", "value")


def _unseen_projectors(weights: Weights) -> list[Float[np.ndarray, "d d"] | None]:
    """For each layer the orthogonal projector onto what never reaches it, None if there is none."""
    projectors: list[np.ndarray | None] = [None]
    R = np.eye(weights.architecture.widths[0])
    for layer in weights.layers[:-1]:
        if adds_input(weights.architecture):
            projectors.append(None)
            continue
        U, S, _ = np.linalg.svd(np.hstack(list(np.asarray(layer.value_maps()) @ R)))
        r = numeric_rank(S) if S[0] > 0 else 0
        R = U[:, :r]
        projectors.append(U[:, r:] @ U[:, r:].T if r < len(U) else None)
    return projectors
