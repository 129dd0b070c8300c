"""The same function from better conditioned factors, for accurate evaluation.

Products such as Kᵀ Q are evaluated with an error relative to ‖K‖ ‖Q‖, and chains of them with the
product of all such ratios ‖K‖ ‖Q‖ / ‖Kᵀ Q‖. Orthonormal factors take the ratios away: from QR
decompositions Kᵀ = P R, O = P R and (V_1 … V_H) = R P the factor R is handed to the other side. No
singular value is dropped, so the error is that of rounding K, Q, V, O once.
"""

import numpy as np
from jaxtyping import Float

from neuromanifold.networks.weights import Weights

Matrix = Float[np.ndarray, "_ _"]


def reconditioned(weights: Weights) -> Weights:
    """Weights of the same network with the same function, K, O and inner outputs orthonormal."""
    layers = [
        {name: np.array(T, dtype=np.float64) for name, T in layer.tensors().items()}
        for layer in weights.layers
    ]
    passes_on = weights.architecture.skip != "residual"
    for i, layer in enumerate(layers):
        for h in range(weights.architecture.heads):
            P, R = _qr(layer["key"][h].T)
            layer["key"][h], layer["query"][h] = P.T, R @ layer["query"][h]
            if "output" in layer:
                P, R = _qr(layer["output"][h])
                layer["output"][h], layer["value"][h] = P, R @ layer["value"][h]
        if passes_on and i + 1 < len(layers):
            written = layer["output" if "output" in layer else "value"]
            P, R = _qr(np.hstack(list(written)).T)
            written[:] = np.stack(np.split(P.T, len(written), axis=1))
            for read in ("query", "key", "value"):
                layers[i + 1][read] = layers[i + 1][read] @ R.T
    return Weights.from_tensors(weights.architecture, layers)


def _qr(matrix: Float[np.ndarray, "m n"]) -> tuple[Matrix, Float[np.ndarray, "n n"]]:
    """P (m × n) and R (n × n) with P R = matrix, zero columns and rows where m < n."""
    m, n = matrix.shape
    thin_P, thin_R = np.linalg.qr(matrix)
    P, R = np.zeros((m, n)), np.zeros((n, n))
    P[:, : min(m, n)], R[: min(m, n)] = thin_P, thin_R
    return P, R
