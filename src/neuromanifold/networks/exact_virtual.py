"""Virtual weights of the floats as they are: dyadic rationals, without rounding (eq-8)."""

import numpy as np

from neuromanifold.algebra.dyadic import Dyadic
from neuromanifold.networks.virtual import virtual_forms
from neuromanifold.networks.weights import Weights


def exact_layers(weights: Weights) -> list[dict[str, list[Dyadic]]]:
    """The exact matrices of all layers, by tensor and head."""
    return [
        {name: [Dyadic.of(head) for head in np.asarray(T)] for name, T in layer.tensors().items()}
        for layer in weights.layers
    ]


def exact_value_map(layer: dict[str, list[Dyadic]], h: int) -> Dyadic:
    """The value map of a head, also where it is factored."""
    V = layer["value"][h]
    return layer["output"][h] @ V if "output" in layer else V


def exact_forms(weights: Weights) -> tuple[list[Dyadic], Dyadic]:
    """M_1, …, M_l and L of weights with one head."""
    layers = exact_layers(weights)
    scores = [layer["key"][0].T @ layer["query"][0] for layer in layers]
    return virtual_forms(scores, [exact_value_map(layer, 0) for layer in layers])
