"""The kernel of the Jacobian modulo the known symmetries, as what it does to each weight tensor.

How a hidden symmetry is found: a certificate says how many dimensions of the kernel no symmetry
accounts for, and here those directions are looked at. The exact ranks decide how many vectors there
are, so no tolerance does; floating point only says where they point. At weights W, with J the
Jacobian (rows of length one) and B an orthonormal basis of the known tangent vectors' span:

    kernel     N   the last (columns − exact rank) right singular vectors of J
    hidden     D   the part of N orthogonal to B, of dimension (columns of N) − (exact rank of B)

Two vectors of D that differ by a rotation say the same, so D is turned until its vectors move
different tensors as far as they can: they are made eigenvectors of Dᵀ C D, C = diag(1, 2, 3, …)
constant on each tensor. If D is a sum of spaces that move different tensors, and no eigenvalues
coincide, every vector lies in one of them.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.linear import FloatingPoint
from neuromanifold.certificates.certificate import Certificate
from neuromanifold.certificates.numeric import numeric_jacobian
from neuromanifold.certificates.spectrum import unit_rows
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.family import Tensors
from neuromanifold.networks.network import Network
from neuromanifold.symmetry.families import all_generators

LARGEST_NETWORK = 600
"""The most parameters for which directions are computed: a full singular value decomposition."""


@dataclass(frozen=True, slots=True)
class HiddenKernel:
    """Kernel directions that no known symmetry accounts for, in floating point.

    Attributes:
        directions: for each direction, a vector of length one, the length of its part in each
            tensor: `{"layers.0.query": 0.31, …}`.
        error: the sine of the largest angle between the known tangent vectors and the kernel they
            lie in: how far the directions are to be trusted.
        seed: of the weights, unless given, and of the inputs.
    """

    directions: tuple[dict[str, float], ...]
    error: float
    seed: int


def hidden_kernel(certificate: Certificate, network: Network, weights: Any = None) -> HiddenKernel:
    """The kernel modulo the known symmetries, at random weights of the certificate's seed.

    Args:
        certificate: of the network; its ranks say how many directions there are.
        network: the network.
        weights: the given weights, for a certificate of a local dimension.
    """
    if network.parameters > LARGEST_NETWORK:
        raise ArgumentError(
            f"kernel directions are computed for at most {LARGEST_NETWORK} parameters; "
            f"{network.name} has {network.parameters}"
        )
    at = network.draw(certificate.seed) if weights is None else network.values(weights)
    kernel = _kernel(certificate, network, at)
    known = _known(certificate, network, at)
    error = float(np.linalg.norm(known - kernel @ (kernel.T @ known), 2)) if known.size else 0.0
    inside = kernel - known @ (known.T @ kernel)
    hidden = np.linalg.svd(inside, full_matrices=False)[0]
    hidden = hidden[:, : kernel.shape[1] - known.shape[1]]
    return HiddenKernel(_directions(hidden, network), error, certificate.seed)


def _kernel(
    certificate: Certificate, network: Network, weights: Tensors
) -> Float[np.ndarray, "columns kernel"]:
    """An orthonormal basis of the kernel of the Jacobian, of the dimension that is exact."""
    J = unit_rows(numeric_jacobian(network, weights, seed=certificate.seed))
    if not J.size:  # nothing is seen: all weights are kernel, and there is no constant
        return np.eye(network.columns)[:, : network.parameters]
    triangle = np.linalg.qr(J, mode="r")
    rank = certificate.rank + len(network.constants)
    return np.linalg.svd(triangle, full_matrices=True)[2][rank:].T


def _known(
    certificate: Certificate, network: Network, weights: Tensors
) -> Float[np.ndarray, "columns known"]:
    """An orthonormal basis of the tangent vectors that the certificate counts."""
    counted = {family.name for family in certificate.symmetries}
    blocks = all_generators(network, weights, FloatingPoint())
    rows = [network.dense(block) for block in blocks if block.family in counted]
    rank = sum(family.dimension for family in certificate.symmetries)
    span = np.concatenate([np.zeros((0, network.columns)), *rows])
    return np.linalg.svd(span, full_matrices=False)[2][:rank].T


def _directions(
    hidden: Float[np.ndarray, "columns directions"], network: Network
) -> tuple[dict[str, float], ...]:
    """The lengths of the parts in each tensor, after the rotation of the module's docstring."""
    names = [tensor.name for tensor in network.tensors]
    sizes = [prod(tensor.shape) for tensor in network.tensors]
    places = np.repeat(np.arange(1.0, len(sizes) + 1), sizes)
    rotation = np.linalg.eigh(hidden.T @ (places[:, None] * hidden))[1]
    parts = np.split(hidden @ rotation, np.cumsum(sizes)[:-1])
    lengths = np.stack([np.linalg.norm(part, axis=0) for part in parts], axis=1)
    return tuple(dict(zip(names, map(float, row), strict=True)) for row in lengths)
