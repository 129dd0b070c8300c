"""The network of `networks.attention` in NumPy, for numbers of any kind (def-1, eq-15).

Entries may be floats, complex numbers (whose imaginary parts carry derivatives), or objects: balls,
fractions, whole numbers. Leading axes of weights and inputs are batches, and are broadcast. A layer
is a dictionary of stacks, one matrix a head; what is left out is the identity, so {"query": A} is a
layer of forms, and virtual weights are l of those, the last one with "value" L (eq-8).
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Shaped

from neuromanifold.architecture import Architecture

Stacks = Mapping[str, Shaped[np.ndarray, "*weights head _ _"]]
Batch = Shaped[np.ndarray, "*inputs d t"]


def evaluate(layers: Sequence[Stacks], X: Batch, architecture: Architecture) -> np.ndarray:
    """φ(X), layer after layer (def-1)."""
    for layer in layers:
        update = layer_update(layer, X, architecture)
        X = X + update if architecture.adds_input else update
    return X


def layer_update(layer: Stacks, X: Batch, architecture: Architecture) -> np.ndarray:
    """Σ_h V_h X P_h, with the inner skip Σ_h V_h X (1 + P_h); a residual skip is left out."""
    X = X[..., None, :, :]
    keys = layer["key"] @ X if "key" in layer else X
    P = pattern(keys.swapaxes(-1, -2) @ (layer["query"] @ X), architecture)
    if architecture.adds_values:
        P = P + np.eye(P.shape[-1], dtype=int)
    mixed = X @ P
    for name in ("value", "output"):
        mixed = layer[name] @ mixed if name in layer else mixed
    return mixed.sum(axis=-3)


def pattern(scores: np.ndarray, architecture: Architecture) -> np.ndarray:
    """P from scores (eq-15).

    Exponents are shifted by the largest real part, which has no derivative; those of balls, that
    need not be comparable and have no largest exponent, by the first, which every token sees.
    """
    seen = np.triu(np.ones(scores.shape[-2:], dtype=bool)) | architecture.attends_to_all
    if architecture.is_linear_in_scores:
        return np.where(seen, scores, 0)
    scores = scores / architecture.temperature
    shift = scores[..., :1, :]
    if scores.dtype != object:
        shift = np.where(seen, scores.real, -np.inf).max(axis=-2, keepdims=True)
    powers = np.where(seen, np.exp(np.where(seen, scores - shift, 0 * shift)), 0)
    return powers / powers.sum(axis=-2, keepdims=True)
