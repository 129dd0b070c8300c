"""One layer with one head in the coordinates (A, V): ranks, rank-one factors, the swapped point.

For A = k qᵀ and V = h vᵀ of rank one token i of the output is h Σ_j (vᵀ x_j)(kᵀ x_j) (qᵀ x_i), in
which k and v can change places: (v qᵀ, h kᵀ) has the same function (thm-3.2).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from neuromanifold.errors import HypothesisError
from neuromanifold.fibers.normal_form.comparable import in_float64, unit_roundoff
from neuromanifold.fibers.normal_form.factors import numeric_rank
from neuromanifold.networks.weights import Weights

Matrix = Float[np.ndarray, "_ _"]


@dataclass(frozen=True, slots=True)
class Spectrum:
    """A numeric rank with the evidence for it.

    Attributes:
        name: which matrix.
        rank: how many singular values count as non-zero.
        values: the singular values.
        tolerance: those below this multiple of `scale` count as zero.
        scale: the size that a matrix built from these factors can have.
    """

    name: str
    rank: int
    values: tuple[float, ...]
    tolerance: float
    scale: float

    def to_dict(self) -> dict[str, object]:
        """The JSON form."""
        return {
            "name": self.name,
            "rank": self.rank,
            "singular_values": list(self.values),
            "tolerance": self.tolerance,
        }


def rank_tolerance(weights: Weights) -> float:
    """Relative size below which singular values count as zero: a multiple of the unit roundoff."""
    return 2.0**16 * unit_roundoff(weights)


def spectrum(name: str, matrix: Matrix, scale: float, tolerance: float) -> Spectrum:
    """The numeric rank of a matrix whose factors could have given it size `scale`.

    Rounding leaves errors relative to the factors' sizes, so a product that cancels is zero only
    relative to those.
    """
    values = np.linalg.svd(matrix, compute_uv=False)
    significant = np.concatenate([[scale], values]) if scale > 0 else values
    rank = numeric_rank(significant, tolerance) - (1 if scale > 0 else 0)
    return Spectrum(name, max(rank, 0), tuple(map(float, values)), tolerance, scale)


def layer_spectra(weights: Weights, i: int) -> tuple[Spectrum, Spectrum]:
    """The ranks of A and V of layer i of a network with one head."""
    tolerance = rank_tolerance(weights)
    layer = in_float64(weights).layers[i]
    K, Q, V = np.asarray(layer.key[0]), np.asarray(layer.query[0]), np.asarray(layer.value[0])
    size_V = np.linalg.norm(V, 2)
    if layer.output is not None:
        O_1 = np.asarray(layer.output[0])
        V, size_V = O_1 @ V, size_V * np.linalg.norm(O_1, 2)
    size_A = np.linalg.norm(K, 2) * np.linalg.norm(Q, 2)
    return (
        spectrum(f"A_{i + 1}", K.T @ Q, float(size_A), tolerance),
        spectrum(f"V_{i + 1}", V, float(size_V), tolerance),
    )


def swapped(weights: Weights) -> Weights:
    """The other point of the fiber when A and V have rank one: (v ⊗ q, h ⊗ k) (thm-3.2).

    Keys, queries and factors of values beyond the first are set to zero.
    """
    A_spectrum, V_spectrum = layer_spectra(weights, 0)
    if weights.architecture.depth > 1 or weights.architecture.heads > 1:
        raise HypothesisError(
            f"the swap is for one layer with one head; got {weights.architecture.name}"
        )
    if (A_spectrum.rank, V_spectrum.rank) != (1, 1):
        raise HypothesisError(
            f"the swap needs A and V of rank one; got ranks {A_spectrum.rank} and {V_spectrum.rank}"
        )
    layer = in_float64(weights).layers[0]
    k, q = _rank_one(np.asarray(layer.attention_matrices()[0]))
    h, v = _rank_one(np.asarray(layer.value_maps()[0]))
    tensors = {name: np.zeros(T.shape) for name, T in layer.tensors().items()}
    tensors["key"][0, 0], tensors["query"][0, 0] = v, q
    if layer.output is None:
        tensors["value"][0] = np.outer(h, k)
    else:
        tensors["output"][0, :, 0], tensors["value"][0, 0] = h, k
    return Weights.from_tensors(weights.architecture, [tensors])


def _rank_one(matrix: Matrix) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " n"]]:
    """Vectors u and w of equal length with matrix ≈ u wᵀ."""
    U, S, Wt = np.linalg.svd(matrix)
    root = np.sqrt(S[0])
    return root * U[:, 0], root * Wt[0]
