"""Least squares on virtual weights: the last digits of a numeric recovery.

The forms and the linear map are fitted to values of the black box by Levenberg–Marquardt, whose
steps are short along the rescalings (eq-13) that the function does not see. Each input counts by
its relative error.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jaxtyping import Array, Float, Float64

from neuromanifold.architecture import Architecture
from neuromanifold.networks.virtual import VirtualWeights, evaluate_virtual

_TOLERANCE = 1e-15


def polish(
    start: VirtualWeights,
    inputs: Float64[np.ndarray, "sample d0 t"],
    outputs: Float64[np.ndarray, "sample d_l t"],
) -> VirtualWeights:
    """The virtual weights near `start` that fit the values best."""
    architecture = start.architecture
    sizes = np.linalg.norm(outputs, axis=(1, 2), keepdims=True)
    kept = sizes[:, 0, 0] > 0
    inputs, outputs, sizes = inputs[kept], outputs[kept], sizes[kept]
    with jax.enable_x64(True):
        X = jnp.asarray(inputs)

        def residual(vector: np.ndarray) -> np.ndarray:
            values = np.asarray(_values(jnp.asarray(vector), X, architecture))
            return ((values - outputs) / sizes).ravel()

        def jacobian(vector: np.ndarray) -> np.ndarray:
            slopes = np.asarray(_slopes(jnp.asarray(vector), X, architecture))
            return (slopes / sizes[..., None]).reshape(outputs.size, len(vector))

        found = scipy.optimize.least_squares(
            residual,
            np.concatenate([np.ravel(M) for M in (*start.forms, start.linear)]),
            jac=jacobian,
            method="lm",
            xtol=_TOLERANCE,
            ftol=_TOLERANCE,
            gtol=_TOLERANCE,
            max_nfev=200,
        )
    return _unpack(found.x, architecture)


def balance(virtual: VirtualWeights) -> VirtualWeights:
    """The rescaling of a lightning network in which all M_i and L have one norm (eq-13).

    The function scales with c = ‖L‖ ∏ ‖M_i‖^{3^{l-i}}, whose exponents sum to n = (3^l + 1)/2, so
    that norm is c^{1/n}.
    """
    l = len(virtual.forms)
    exponents = [3 ** (l - i) for i in range(1, l + 1)] + [1]
    tensors = [np.asarray(M) for M in (*virtual.forms, virtual.linear)]
    norms = [float(np.linalg.norm(M)) for M in tensors]
    if min(norms) == 0:
        return virtual
    logarithm = sum(e * np.log(norm) for e, norm in zip(exponents, norms, strict=True))
    norm = np.exp(logarithm / sum(exponents))
    *forms, linear = [M * (norm / old) for M, old in zip(tensors, norms, strict=True)]
    return VirtualWeights(tuple(forms), linear, virtual.architecture)


def _unpack(vector: np.ndarray | Array, architecture: Architecture) -> VirtualWeights:
    d, l = architecture.widths[0], architecture.depth
    forms = tuple(vector[i * d * d : (i + 1) * d * d].reshape(d, d) for i in range(l))
    return VirtualWeights(forms, vector[l * d * d :].reshape(-1, d), architecture)


@partial(jax.jit, static_argnames="architecture")
def _values(
    vector: Float[Array, " n"], X: Float[Array, "sample d0 t"], architecture: Architecture
) -> Float[Array, "sample d_l t"]:
    virtual = _unpack(vector, architecture)
    return jnp.asarray(jax.vmap(partial(evaluate_virtual, virtual))(X))


_slopes = jax.jit(jax.jacfwd(_values), static_argnames="architecture")
