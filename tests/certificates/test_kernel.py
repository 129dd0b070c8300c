"""The directions shown are those of the kernel that the known symmetries leave over."""

import numpy as np
import pytest

import neuromanifold as nm
from neuromanifold.algebra.linear import FloatingPoint
from neuromanifold.architecture import Architecture
from neuromanifold.certificates.exact import certify
from neuromanifold.certificates.kernel import hidden_kernel
from neuromanifold.certificates.numeric import numeric_jacobian
from neuromanifold.certificates.spectrum import unit_rows
from neuromanifold.networks.weights import random_weights
from neuromanifold.symmetry.attention import named
from neuromanifold.symmetry.families import all_generators


def projection(rows, rank):
    """The orthogonal projection onto the span of rows of known rank."""
    basis = np.linalg.svd(rows, full_matrices=False)[2][:rank]
    return basis.T @ basis


@pytest.mark.parametrize("widths", [(2, 4, 2), (2, 5, 3)])
def test_directions_are_the_kernel_less_the_known_tangent_vectors(widths):
    """The squares of a tensor's entries add up to the trace of the difference of projections.

    Known tangent vectors lie in the kernel, so the projection onto what is left of it is the
    kernel's less theirs; its trace on a tensor does not depend on the basis that is shown.
    """
    network = Architecture(widths, (2, 2), 3)
    certificate, weights = certify(network), random_weights(network, 0)
    net = nm.network(network)
    J = unit_rows(numeric_jacobian(net, named(weights), seed=0))
    blocks = all_generators(net, named(weights), FloatingPoint())
    known = np.concatenate([net.dense(block) for block in blocks])
    rank = sum(family.dimension for family in certificate.symmetries)
    left = np.eye(J.shape[1]) - projection(J, certificate.lower) - projection(known, rank)
    found = hidden_kernel(certificate, net)
    assert len(found.directions) == network.parameters - certificate.lower - rank > 0
    start = 0
    for name, tensor in weights.named_tensors():
        block = slice(start, start + tensor.size)
        start += tensor.size
        shown = sum(direction[name] ** 2 for direction in found.directions)
        assert shown == pytest.approx(np.trace(left[block, block]), abs=1e-6)
