"""The ledger: where all the parameters of a network go (redundancy, with exact ranks).

    parameters = dimension + symmetries + what the virtual weights do not see + unexplained

Every number comes from one certificate. The families of symmetries are counted in the order
key-query, value-output, inter-layer, scaling, head mixing, output shift, output scaling; what two
of them share counts for the first. Wide layers have directions that move no virtual weight and
belong to none of these groups, and some networks do not show all of their virtual weights, such as
skew-symmetric parts (virtual-bound). What remains is unexplained: a symmetry that nobody
has named, or a rank that the bounds do not reach.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

from neuromanifold.algebra.prime_field import DEFAULT_PRIME
from neuromanifold.architecture import Architecture, Readout
from neuromanifold.certificates.certificate import Certificate
from neuromanifold.certificates.exact import certify
from neuromanifold.certificates.kernel import LARGEST_NETWORK, HiddenKernel, hidden_kernel
from neuromanifold.certificates.virtual_rank import at_weights
from neuromanifold.display import Displayed
from neuromanifold.formula.readouts import unshown_dimensions
from neuromanifold.networks.network import Network
from neuromanifold.symmetry.families import families_of, network

_UNSEEN = "not seen by the "
UNSHOWN = "not seen by the function"
UNEXPLAINED = "unexplained"
RANK = "rank found, not proved"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a ledger.

    Attributes:
        name: what the dimensions are.
        dimension: how many there are.
        statement: the id of the statement behind the line; None for what is unexplained.
    """

    name: str
    dimension: int
    statement: str | None

    @property
    def is_hidden(self) -> bool:
        """Whether the line counts directions of the kernel that belong to no symmetry group."""
        return self.name == UNEXPLAINED or self.name.startswith(_UNSEEN)


@dataclass(frozen=True, slots=True)
class Ledger(Displayed):
    """The parameters of a network, line by line.

    Attributes:
        certificate: what the numbers were taken from.
        lines: the dimension first, then each part of the kernel; they add up to the parameters.
        kernel: the directions that no symmetry group accounts for; None when there are none, or the
            network is too large for them.
    """

    certificate: Certificate
    lines: tuple[Line, ...]
    kernel: HiddenKernel | None

    @property
    def parameters(self) -> int:
        """The number of parameters, the sum of the lines."""
        return self.certificate.parameters

    @property
    def unexplained(self) -> int:
        """How many dimensions of the kernel no line accounts for."""
        return self.certificate.unexplained

    @property
    def hidden(self) -> int:
        """How many dimensions of the kernel belong to no symmetry group."""
        return sum(line.dimension for line in self.lines if line.is_hidden)

    @property
    def remark(self) -> str:
        """Why there are no directions, where some were to be expected."""
        if not self.hidden or self.kernel is not None:
            return ""
        if self.certificate.readings.patterns:
            return "directions are not shown for piecewise networks: other cells have other ones"
        return (
            f"directions are shown for at most {LARGEST_NETWORK} parameters; "
            f"this network has {self.parameters}"
        )

    def _parts(self) -> list[tuple[str, int]]:
        return [(line.name, line.dimension) for line in self.lines]

    def __str__(self) -> str:
        parts = " + ".join(
            f"{line.dimension} {line.name}"
            for line in self.lines
            if line.dimension or line.name in ("dimension", UNEXPLAINED)
        )
        return (
            f"{self.certificate.subject}: {self.parameters} parameters = {parts} "
            f"({self.certificate.verdict}; prime {self.certificate.prime}, "
            f"seed {self.certificate.seed})."
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        architecture = self.certificate.architecture
        return {
            "architecture": architecture.to_dict() if architecture else None,
            "readout": self.certificate.readout,
            "parameters": self.parameters,
            "lines": [asdict(line) for line in self.lines],
            "unexplained": self.unexplained,
            "certificate": self.certificate.summary(),
            "kernel": None if self.kernel is None else asdict(self.kernel),
            "remark": self.remark,
        }


def explain(
    subject: Network | Architecture,
    *,
    seed: int = 0,
    prime: int = DEFAULT_PRIME,
    readout: Readout = "logits",
    weights: Any = None,
) -> Ledger:
    """Say where all the parameters of a network go, at generic or at given weights.

    Where part of the kernel belongs to no symmetry group, its directions are shown too.

    >>> print(explain(Architecture(widths=(3, 3), ranks=(3,), tokens=3, heads=2)))
    lightning 3-3 ranks 3 tokens 3 heads 2: 54 parameters = 32 dimension + 18 key-query + 2 \
scaling + 2 head mixing + 0 unexplained (exact; prime 8388593, seed 0).
    """
    net = at_weights(network(subject, readout=readout), weights)
    certificate = certify(net, seed=seed, prime=prime, weights=weights)
    ledger = Ledger(certificate, ledger_lines(certificate, net), None)
    large = net.parameters > LARGEST_NETWORK
    if not ledger.hidden or large or certificate.readings.patterns:
        return ledger
    return replace(ledger, kernel=hidden_kernel(certificate, net, weights))


def ledger_lines(certificate: Certificate, net: Network) -> tuple[Line, ...]:
    """The lines that a network's certificate implies; they add up to its parameters.

    Decisions add one column, the constant, to the kernel's and one to the dimension's side, so it
    drops out (readouts).
    """
    method = "field-rank" if certificate.independence is None else "softmax-exact"
    statements = {family.name: family.statement for family in families_of(net)}
    families = tuple(
        Line(family.name, family.dimension, statements[family.name])
        for family in certificate.symmetries
    )
    lines = [
        Line("dimension" if certificate.lower_is_proved else RANK, certificate.rank, method),
        *families,
    ]
    bound = net.bound
    if bound is not None and certificate.upper_source == bound.name:
        unseen = certificate.parameters - sum(f.dimension for f in families) - certificate.upper
        unshown = 0
        if bound.name == "virtual weights" and net.architecture is not None:
            unshown = min(unseen, unshown_dimensions(net.architecture, net.readout))
        lines += [
            Line(f"{_UNSEEN}{bound.name}", unseen - unshown, bound.statement),
            Line(UNSHOWN, unshown, bound.statement),
        ]
    return (*lines, Line(UNEXPLAINED, certificate.unexplained, None))
