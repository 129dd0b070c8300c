"""Readouts: what is finally looked at, instead of the outputs themselves.

`logits` is φ(X) itself. `probabilities` are the softmax over the d_l output coordinates of each
token: they determine, and are determined by, the differences φ_n − φ_1 of output coordinates.
`decisions`, which coordinate of a token is largest, depend on those differences up to one positive
constant for the whole network.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from neuromanifold.architecture import READOUTS, Readout
from neuromanifold.errors import ArgumentError


def read_out(
    output: Float[Array | np.ndarray, "*batch d_l t"], readout: Readout
) -> Float[Array | np.ndarray, "*batch rows t"]:
    """The linear part of a readout: the outputs, or their differences from the first coordinate.

    For `decisions` the result counts up to one positive constant, which the caller divides out.
    """
    check_readout(readout)
    if readout == "logits":
        return output
    return output[..., 1:, :] - output[..., :1, :]


def probabilities(output: Float[Array | np.ndarray, "d_l t"]) -> Float[Array, "d_l t"]:
    """The softmax over the output coordinates of each token."""
    shifted = jnp.exp(output - jnp.max(output, axis=-2, keepdims=True))
    return shifted / shifted.sum(axis=-2, keepdims=True)


def check_readout(readout: str) -> None:
    """Raise unless `readout` is one of the known words."""
    if readout not in READOUTS:
        raise ArgumentError(f"readout must be one of {', '.join(READOUTS)}; got {readout!r}")
