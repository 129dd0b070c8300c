"""How far two functions differ at random inputs."""

import numpy as np

from neuromanifold.networks.probe import outputs, random_inputs, well_scaled
from neuromanifold.networks.weights import Weights

_INPUTS = 4


def function_deviation(first: Weights, second: Weights, *, seed: int) -> float:
    """The largest ‖φ − φ'‖ / ‖φ‖ at a few well-scaled random inputs, 0 where both are 0 (eq-6)."""
    X = well_scaled(first, random_inputs(first.architecture, _INPUTS, seed))
    Y, Y_new = outputs(first, X), outputs(second, X)
    sizes = np.linalg.norm(Y, axis=(1, 2))
    differences = np.linalg.norm(Y - Y_new, axis=(1, 2))
    return float((differences / np.where(sizes > 0, sizes, 1.0)).max())
