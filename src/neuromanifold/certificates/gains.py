"""Where a map reads what a centred norm puts out, seen in the kernel at one random weight.

A centred norm with gain v leaves out the direction g = 1/v, so that a map W behind it may get u ⊗ g
while nothing but vectors of weights, biases, moves besides (layernorm-centring). So let N be the
kernel of the Jacobian at a random weight, and Π what its vectors do to W that move no other matrix:
W reads a norm with gain v along an axis if Π contains a matrix that is constant along that axis
once it is multiplied by v. Which vector fields come of it is for `symmetry_algebra` to solve.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import null_space, rank
from neuromanifold.certificates.jacobian import SPARE_ROWS, Point, at_a_point, jacobian_rows
from neuromanifold.certificates.vector_fields import Gain, Part
from neuromanifold.networks.network import Network


def gains_of(
    network: Network, parts: Sequence[Part], field: PrimeField, seed: int
) -> tuple[Gain, ...]:
    """The axes along which a norm's direction may be added, with its gain (layernorm-centring)."""

    def compute(point: Point) -> tuple[Gain, ...]:
        J = np.concatenate(list(jacobian_rows(network, point, network.columns + SPARE_ROWS)))
        kernel = null_space(J, field)
        matrices = [part for part in parts if len(part.shape) > 1]
        found: list[Gain] = []
        for part in matrices:
            alone = _still(kernel, part, [p for p in parts if p != part], field)
            biased = _still(kernel, part, [p for p in matrices if p != part], field)
            for axis, n in enumerate(part.shape):
                for v in (None, *(v for v in parts if v.shape == (n,))):
                    few, more = (
                        _constant(space, part, axis, v, point) for space in (alone, biased)
                    )
                    if more > (0 if v else few):  # what is 1 and moves alone is a constant field
                        found.append(Gain(part, axis, v, more > few))
        return tuple(found)

    return at_a_point(network, field, seed, compute)


def _still(
    kernel: Float[np.ndarray, "columns kernel"],
    part: Part,
    others: Sequence[Part],
    field: PrimeField,
) -> Float[np.ndarray, "entries found"]:
    """What kernel vectors do to a part that leave others as they are."""
    moved = [np.zeros((0, kernel.shape[1])), *(kernel[p.columns] for p in others)]
    still = null_space(np.concatenate(moved), field)
    return field.matmul(np.ascontiguousarray(kernel[part.columns]), still)


def _constant(
    space: Float[np.ndarray, "entries found"], part: Part, axis: int, v: Part | None, point: Point
) -> int:
    """The dimension of what is constant along an axis once multiplied by v."""
    if not space.shape[1]:
        return 0
    front = np.moveaxis(space.reshape(*part.shape, -1), axis, 0)
    if v is not None:
        gain = point.weights[v.columns].reshape(-1, *[1] * (front.ndim - 1))
        front = point.field.multiply(front, gain)
    steps = point.field.reduce(front[1:] - front[:1]).reshape(-1, space.shape[1])
    return rank(space, point.field) - rank(np.ascontiguousarray(steps), point.field)
