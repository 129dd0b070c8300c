"""Discovery: the symmetries of a network that nobody has told of.

All vector fields of `vector_fields` in the kernel of the Jacobian everywhere (`symmetry_algebra`),
split into blocks that share no axis of a tensor, each with its name (`blocks`). While something of
the kernel stays unexplained: with the relations between exponentials; then on the slices that a
torus of the symmetries leaves (`slices`), with the directions that norms leave out, and then the
shears along these (`gains`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from neuromanifold.algebra.prime_field import DEFAULT_PRIME, PrimeField
from neuromanifold.architecture import Architecture, Readout
from neuromanifold.certificates.certificate import Certificate
from neuromanifold.certificates.discovery.blocks import Block, blocks_of
from neuromanifold.certificates.discovery.gains import gains_of, shears_of
from neuromanifold.certificates.discovery.slices import slices, whole
from neuromanifold.certificates.discovery.symmetry_algebra import (
    LARGEST,
    Algebra,
    Discovered,
    size,
    symmetry_algebra,
)
from neuromanifold.certificates.discovery.vector_fields import Part, readings_of
from neuromanifold.certificates.exact import certificate_field, certify
from neuromanifold.display import Displayed
from neuromanifold.errors import DiagramError, NotCoveredError
from neuromanifold.networks.network import Network
from neuromanifold.symmetry.families import network


@dataclass(frozen=True, slots=True)
class Discovery(Displayed):
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
        """The dimension of the kernel of the Jacobian by the rank found, which may be no proof."""
        return self.certificate.parameters - self.certificate.rank

    @property
    def unexplained(self) -> int:
        """What of the kernel stays unexplained."""
        return self.kernel - self.explained

    def __str__(self) -> str:
        found = ": " + ("; ".join(map(str, self.blocks)) or "none")
        if not self.kernel:
            found = " none is moved by a symmetry"
        return (
            f"{self.certificate.subject}: {self.account}, of {self.certificate.parameters} "
            f"parameters{found} (checked at {self.points[1]} fresh points; "
            f"prime {self.certificate.prime}, seed {self.certificate.seed})."
            f"{self.certificate.notes}"
        )

    @property
    def account(self) -> str:
        """How much of the kernel is explained, in words."""
        kernel = "kernel" if self.certificate.lower_is_proved else "kernel found, not proved,"
        if not self.kernel:
            return f"the {kernel} is zero"
        return (
            f"{self.explained} of the {self.kernel} dimensions of the {kernel} are symmetries, "
            f"{self.unexplained} unexplained"
        )

    def _parts(self) -> list[tuple[str, int]]:
        """Where the dimensions of the kernel come from."""
        blocks = ((str(block), block.dimension) for block in self.blocks)
        return [*blocks, ("unexplained", self.unexplained)]

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
    """Find all symmetries of a network of the form in `vector_fields`, and name them.

    They move every tensor along its own axes, or by what is constant, or by tensors with more axes;
    what mixes two tensors stays unexplained. A tensor of three axes or more is first read as one,
    then as a stack of matrices. If the kernel is larger, gains of norms are made 1, and the
    directions that centred norms leave out and shears by them are looked for too (norm-absorption,
    layernorm-centring, stream-one). What is declared about the network is not used, but that copies
    of a space are numbered.

    Args:
        subject: the network, or an architecture.
        seed: of all random weights and inputs.
        prime: p, between 2^20 and 2^23.
        readout: what is looked at of an architecture's output.
    """
    field = certificate_field(prime)
    given = network(subject, readout=readout)
    net, readings = given.bare, readings_of(given)
    readings = [parts for parts in readings if size(parts) <= LARGEST] or readings[:1]

    def affine(*, related: bool) -> list[Discovery]:
        return _tried(_affine(net, parts, field, seed, related=related) for parts in readings)

    found = affine(related=False)
    related = any(one.relations for one in found[0].certificate.obligations)
    if found[0].unexplained and related:
        found = affine(related=True)
    if found[0].unexplained:
        found = _tried(_on_slices(one, seed, related) for one in found)
    return found[0]


def _tried(every: Iterable[Discovery]) -> list[Discovery]:
    """Those up to the first that explains all; what explains most in the fewest blocks first."""
    found: list[Discovery] = []
    for one in every:
        found.append(one)
        if not one.unexplained:
            break
    return sorted(found, key=lambda one: (one.unexplained, len(one.blocks)))


def _affine(
    net: Network, parts: tuple[Part, ...], field: PrimeField, seed: int, *, related: bool
) -> Discovery:
    """The vector fields that are affine."""
    algebra = symmetry_algebra(net, parts, field, seed, related=related)
    return _discovery(net, (Discovered(net, algebra),), _named(algebra), seed)


def _on_slices(found: Discovery, seed: int, related: bool) -> Discovery:
    """Those besides that are affine where some vectors are 1, and what norms leave out."""
    first, net = found.network.families[0], found.network
    assert isinstance(first, Discovered)
    algebra, parts = first.algebra, first.algebra.parts
    for there in slices(net, algebra.fields, algebra.solutions, algebra.field) or [whole(net)]:
        here = there.parts(parts)
        gains = gains_of(there.network, here, algebra.field, seed)
        for is_last in (False, True):
            more = symmetry_algebra(
                there.network, here, algebra.field, seed, gains, related=related
            )
            blocks = [*_named(more), *there.blocks(parts)]
            besides = _discovery(net, (first, Discovered(net, more, there)), blocks, seed)
            found = min(found, besides, key=lambda one: one.unexplained)
            if not found.unexplained:
                return found
            shears = () if is_last else shears_of(more, here, seed)
            if not shears:
                break
            gains = (*gains, *shears)
    return found


def _discovery(
    net: Network, families: tuple[Discovered, ...], blocks: Sequence[Block], seed: int
) -> Discovery:
    """The certificate with these families."""
    last, found = families[-1].algebra, replace(net, families=families)
    try:
        certificate = certify(found, seed=seed, prime=last.field.modulus)
    except DiagramError:
        raise NotCoveredError(
            f"the symmetries that {net.name} has at {sum(last.points)} random weights do not hold "
            "in the cells of the certificate: some cells are rare; take another seed"
        ) from None
    unknowns = sum(f.size for f in last.fields)
    return Discovery(certificate, tuple(blocks), unknowns, last.points, found)


def _named(algebra: Algebra) -> tuple[Block, ...]:
    return blocks_of(algebra.fields, algebra.solutions, algebra.field)
