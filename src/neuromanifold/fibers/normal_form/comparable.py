"""What must hold before two weights are compared: one network, finite entries, float64 inside."""

import numpy as np

from neuromanifold.errors import ArgumentError, WeightsError
from neuromanifold.networks.weights import Weights


def in_float64(weights: Weights) -> Weights:
    """The same weights as float64 NumPy arrays; NaN and infinite entries are an error."""
    layers = []
    for i, layer in enumerate(weights.layers):
        tensors = {}
        for name, tensor in layer.tensors().items():
            tensors[name] = np.asarray(tensor, dtype=np.float64)
            if not np.isfinite(tensors[name]).all():
                raise WeightsError(
                    f"weights must be finite; layers.{i}.{name} has entries that are NaN or "
                    "infinite: mend them"
                )
        layers.append(tensors)
    return Weights.from_tensors(weights.architecture, layers)


def check_same_architecture(first: Weights, second: Weights) -> None:
    """Raise unless both are weights of one network."""
    if first.architecture != second.architecture:
        raise ArgumentError(
            "two weights of one architecture were wanted; got "
            f"{first.architecture.name} and {second.architecture.name}"
        )


def unit_roundoff(*weights: Weights) -> float:
    """The distance from 1 to the next number, in the coarsest dtype among the tensors."""
    return max(
        float(np.finfo(np.asarray(tensor).dtype).eps)
        for w in weights
        for _, tensor in w.named_tensors()
    )
