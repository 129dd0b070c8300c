"""One layer with one head in the coordinates (A, V): the swapped point of thm-3.2.

For A = k qᵀ and V = h vᵀ of rank one token i of the output is h Σ_j (vᵀ x_j)(kᵀ x_j) (qᵀ x_i), in
which k and v can change places: (v qᵀ, h kᵀ) has the same function (thm-3.2).
"""

import numpy as np
from jaxtyping import Float

from neuromanifold.errors import HypothesisError
from neuromanifold.fibers.facts import facts_of
from neuromanifold.fibers.units import in_units
from neuromanifold.networks.traits import has_one_head
from neuromanifold.networks.weights import Weights

Matrix = Float[np.ndarray, "_ _"]


def swapped(weights: Weights) -> Weights:
    """The other point of the fiber when A and V have rank one: (v ⊗ q, h ⊗ k) (thm-3.2).

    Keys, queries and factors of values beyond the first are set to zero.
    """
    if weights.architecture.depth > 1 or not has_one_head(weights.architecture):
        raise HypothesisError(
            f"the swap is for one layer with one head; got {weights.architecture.name}"
        )
    A_spectrum, V_spectrum = facts_of(weights).spectra[:2]
    if (A_spectrum.rank, V_spectrum.rank) != (1, 1):
        raise HypothesisError(
            f"the swap needs A and V of rank one; got ranks {A_spectrum.rank} and {V_spectrum.rank}"
        )
    scaled = in_units(weights)
    layer = scaled.weights.layers[0]
    k, q = _rank_one(np.asarray(layer.attention_matrices()[0]))
    h, v = _rank_one(np.asarray(layer.value_maps()[0]))
    tensors = {name: np.zeros(T.shape) for name, T in layer.tensors().items()}
    tensors["key"][0, 0], tensors["query"][0, 0] = v, q
    if layer.output is None:
        tensors["value"][0] = np.outer(h, k)
    else:
        tensors["output"][0, :, 0], tensors["value"][0, 0] = h, k
    last = "value" if layer.output is None else "output"
    tensors[last] = np.ldexp(tensors[last], scaled.output)
    return Weights.from_tensors(weights.architecture, [tensors])


def _rank_one(matrix: Matrix) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " n"]]:
    """Vectors u and w of equal length with matrix ≈ u wᵀ."""
    U, S, Wt = np.linalg.svd(matrix)
    root = np.sqrt(S[0])
    return root * U[:, 0], root * Wt[0]
