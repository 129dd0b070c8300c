"""Discovery: the symmetries of a network that nobody has told of.

All vector fields of `vector_fields` in the kernel of the Jacobian, by linear algebra over a
prime field: the equations at several random weights, more than the longest axis has entries, are
solved exactly, the solutions are checked at fresh weights, those that move nothing are divided out,
and what remains is split into blocks that share no axis of a tensor, each with its name.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.echelon import EchelonForm
from neuromanifold.algebra.linear import LinearAlgebra, Modular
from neuromanifold.algebra.prime_field import DEFAULT_PRIME, PrimeField, Residues
from neuromanifold.algebra.rank import null_space, rank_profile
from neuromanifold.architecture import Architecture, Readout
from neuromanifold.certificates.blocks import Block, blocks_of
from neuromanifold.certificates.certificate import Certificate
from neuromanifold.certificates.exact import certificate_field, certify
from neuromanifold.certificates.jacobian import Point, at_a_point, jacobian_rows
from neuromanifold.certificates.vector_fields import (
    Field,
    Part,
    ansatz,
    equations,
    motions,
    parts_of,
)
from neuromanifold.errors import ArgumentError, NotCoveredError
from neuromanifold.networks.family import Element, Family, GeneratorBlock, Tensors
from neuromanifold.networks.network import Network
from neuromanifold.networks.space import Space, Tensor
from neuromanifold.symmetry.families import network

LARGEST = 6_000
"""The most unknowns: their equations are a matrix of that size squared."""
_FRESH = 2
"""Weights at which solutions are checked after they were found."""
_ROUNDS = 6


@dataclass(frozen=True, eq=False)
class Discovered(Family):
    """Vector fields found by `discover`, as tangent vectors; how they integrate is not known.

    Attributes:
        network: the network.
        fields: the unknowns.
        solutions: their values, one row for each field.
    """

    network: Network
    fields: tuple[Field, ...]
    solutions: Residues
    field: PrimeField
    name = "discovered"
    is_group = False

    @property
    def statement(self) -> None:
        """None: checked at random points, not proved."""

    @property
    def dimension(self) -> int:
        """The number of fields."""
        return len(self.solutions)

    def moves(self, tensor: str) -> bool:
        """It may be any."""
        return True

    def identity(self) -> Element:
        """Not known."""
        raise NotCoveredError("discovered symmetries are known by their tangent vectors only")

    def random(self, generator: np.random.Generator, condition: float = 10.0) -> Element:
        """Not known."""
        return self.identity()

    def compose(self, first: Element, second: Element) -> Element:
        """Not known."""
        return self.identity()

    def act(self, element: Element, weights: Tensors) -> dict[str, np.ndarray]:
        """Not known."""
        del element, weights
        raise NotCoveredError("discovered symmetries are known by their tangent vectors only")

    def generators(self, weights: Tensors, linear: LinearAlgebra) -> list[GeneratorBlock]:
        """The tangent vectors at residues of the field they were found in."""
        if not isinstance(linear, Modular) or linear.field != self.field:
            raise ArgumentError(
                f"symmetries discovered mod {self.field.modulus} are vectors of that field; "
                "discover them with the prime of the certificate"
            )
        if not len(self.solutions):
            return []
        rows = motions(self.fields, self.field, self.solutions, self.network.flatten(weights))
        moves = {slot: rows[:, place] for slot, place in self.network.places.items()}
        return [GeneratorBlock(self.name, "everywhere", moves)]


@dataclass(frozen=True, slots=True)
class Discovery:
    """The symmetries found.

    Attributes:
        certificate: of the network, with these symmetries as the upper bound.
        blocks: the symmetries by what they move.
        unknowns: how many numbers were solved for.
        points: how many random weights gave equations, and how many more checked the solutions.
        network: the network with the discovered symmetries.
    """

    certificate: Certificate
    blocks: tuple[Block, ...]
    unknowns: int
    points: tuple[int, int]
    network: Network

    @property
    def explained(self) -> int:
        """The dimension of the kernel that the symmetries account for."""
        return sum(family.dimension for family in self.certificate.symmetries)

    @property
    def kernel(self) -> int:
        """The dimension of the kernel of the Jacobian."""
        return self.certificate.parameters - self.certificate.lower

    @property
    def unexplained(self) -> int:
        """What of the kernel stays unexplained."""
        return self.kernel - self.explained

    def __str__(self) -> str:
        subject, count = self.certificate.subject, self.certificate.parameters
        found = "; ".join(map(str, self.blocks)) or "none"
        return (
            f"{subject}: {self.explained} of the {self.kernel} dimensions of the kernel are "
            f"symmetries, {self.unexplained} unexplained, of {count} parameters: {found} (checked "
            f"at {self.points[1]} fresh points; prime {self.certificate.prime}, "
            f"seed {self.certificate.seed})."
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "subject": self.certificate.subject,
            "parameters": self.certificate.parameters,
            "kernel": self.kernel,
            "explained": self.explained,
            "unexplained": self.unexplained,
            "blocks": [asdict(block) for block in self.blocks],
            "unknowns": self.unknowns,
            "points": {"solved": self.points[0], "checked": self.points[1]},
            "certificate": self.certificate.summary(),
        }


def discover(
    subject: Network | Architecture,
    *,
    seed: int = 0,
    prime: int = DEFAULT_PRIME,
    readout: Readout = "logits",
) -> Discovery:
    """Find all symmetries of a network that are affine in the weights, and name them.

    What is declared about the network is not used.

    Args:
        subject: the network, or an architecture.
        seed: of all random weights and inputs.
        prime: p, between 2^20 and 2^23.
        readout: what is looked at of an architecture's output.
    """
    field = certificate_field(prime)
    given = network(subject, readout=readout)
    net, parts = _bare(given), parts_of(given)
    fields = ansatz(parts, _dead(net, parts, field, seed))
    unknowns = sum(f.size for f in fields)
    if unknowns > LARGEST:
        raise ArgumentError(
            f"{net.name} has {unknowns} unknowns, and discovery takes at most {LARGEST}; describe "
            "it in a smaller configuration of the same kind"
        )
    solutions, used = _solved(net, fields, field, seed)
    moving = _moving(net, fields, field, seed, solutions)
    found = replace(net, families=(Discovered(net, fields, moving, field),))
    certificate = certify(found, seed=seed, prime=prime)
    return Discovery(
        certificate, blocks_of(fields, solutions, field), unknowns, (used, _FRESH), found
    )


def _bare(net: Network) -> Network:
    """The network without what is known about it."""
    tensors = tuple(
        Tensor(t.name, tuple(Space(f"{t.name} axis {k}", n) for k, n in enumerate(t.shape)))
        for t in net.tensors
    )
    return replace(net, tensors=tensors, families=(), bound=None, is_built_in=False)


def _dead(net: Network, parts: tuple[Part, ...], field: PrimeField, seed: int) -> frozenset[Part]:
    """The parts that the function does not see: their columns are zero at a random point."""

    def compute(point: Point) -> frozenset[Part]:
        J = np.concatenate(list(jacobian_rows(net, point, 8)))
        return frozenset(part for part in parts if not np.any(J[:, part.columns]))

    return at_a_point(net, field, seed, compute)


def _solved(
    net: Network, fields: tuple[Field, ...], field: PrimeField, seed: int
) -> tuple[Float[np.ndarray, "solutions unknowns"], int]:
    """A basis of the vector fields in the kernel at all weights, and how many weights it took."""
    unknowns = sum(f.size for f in fields)
    longest = max(n for f in fields for n in f.part.shape)
    wanted = max(longest + 2, 4)
    rows = min(net.parameters, -(-(unknowns + 16) // wanted)) + 2
    form = EchelonForm(unknowns, field)
    used = 0
    for _ in range(_ROUNDS):
        while used < wanted:
            form.add(_equations(net, fields, field, seed, used, rows))
            used += 1
        solutions = null_space(form.basis, field)
        fresh = [_equations(net, fields, field, seed, used + k, rows) for k in range(_FRESH)]
        if not any(np.any(field.matmul(equation, solutions)) for equation in fresh):
            return np.ascontiguousarray(solutions.T), used
        wanted *= 2
    raise RuntimeError(
        f"the equations for the symmetries of {net.name} still give new conditions after {used} "
        "random weights"
    )


def _equations(
    net: Network, fields: tuple[Field, ...], field: PrimeField, seed: int, number: int, rows: int
) -> Residues:
    """The equations at the weights of this number."""

    def compute(point: Point) -> Residues:
        J = np.concatenate(list(jacobian_rows(net, point, rows)))
        return equations(fields, field, J, point.weights)

    return at_a_point(net, field, _point_seed(seed, number), compute)


def _point_seed(seed: int, number: int) -> int:
    """Distinct seeds for the points of one discovery."""
    return 1_000_003 * (seed + 1) + number


def _moving(
    net: Network,
    fields: tuple[Field, ...],
    field: PrimeField,
    seed: int,
    solutions: Float[np.ndarray, "solutions unknowns"],
) -> Float[np.ndarray, "moving unknowns"]:
    """A basis of the solutions modulo those that move nothing.

    A tensor multiplied by λ along one axis and by 1/λ along another stays. What moves nothing at
    two random weights moves nothing at all, but for a chance of about 1/p.
    """
    if not len(solutions):
        return solutions
    moved = [
        motions(fields, field, solutions, field.random(seed, f"motion {k}", (net.columns,)))
        for k in range(2)
    ]
    independent, _ = rank_profile(np.concatenate(moved, axis=1), field)
    return solutions[independent]
