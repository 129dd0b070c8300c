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
from neuromanifold.formula.all_widths import (
    rescalings,
    virtual_dimension,
    virtual_upper_bound,
)
from neuromanifold.formula.readouts import narrowed
from neuromanifold.networks.weights import Weights
from neuromanifold.statements import Facts
from neuromanifold.symmetry.families import FAMILIES

_STATEMENTS = {family.name: family.statement for family in FAMILIES}
UNSEEN = "not seen by the virtual weights"
UNSHOWN = "not seen by the function"
UNEXPLAINED = "unexplained"
_HIDDEN = (UNSEEN, UNSHOWN, UNEXPLAINED)


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


@dataclass(frozen=True, slots=True)
class Ledger:
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
        return sum(line.dimension for line in self.lines if line.name in _HIDDEN)

    @property
    def remark(self) -> str:
        """Why there are no directions, where some were to be expected."""
        if not self.hidden or self.kernel is not None:
            return ""
        return (
            f"directions are shown for at most {LARGEST_NETWORK} parameters; "
            f"this network has {self.parameters}"
        )

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
    architecture: Architecture,
    *,
    seed: int = 0,
    prime: int = DEFAULT_PRIME,
    readout: Readout = "logits",
    weights: Weights | None = None,
) -> Ledger:
    """Say where all the parameters of a network go, at generic or at given weights.

    Where part of the kernel belongs to no symmetry group, its directions are shown too.

    >>> print(explain(Architecture(widths=(3, 3), ranks=(3,), tokens=3, heads=2)))
    lightning 3-3 ranks 3 tokens 3 heads 2: 54 parameters = 32 dimension + 18 key-query + 2 \
scaling + 2 head mixing + 0 unexplained (exact; prime 8388593, seed 0).
    """
    certificate = certify(architecture, seed=seed, prime=prime, readout=readout, weights=weights)
    ledger = Ledger(certificate, ledger_lines(certificate), None)
    if not ledger.hidden or architecture.parameters > LARGEST_NETWORK:
        return ledger
    return replace(ledger, kernel=hidden_kernel(certificate, weights))


def ledger_lines(certificate: Certificate) -> tuple[Line, ...]:
    """The lines that a network's certificate implies; they add up to its parameters.

    Decisions add one column, the constant, to the kernel's and one to the dimension's side, so it
    drops out (readouts).
    """
    method = "field-rank" if certificate.independence is None else "softmax-exact"
    families = tuple(
        Line(family.name, family.dimension, _STATEMENTS.get(family.name, "readouts"))
        for family in certificate.symmetries
    )
    unseen = certificate.parameters - sum(f.dimension for f in families) - certificate.upper
    unshown = min(unseen, _unshown(certificate))
    return (
        Line("dimension", certificate.lower, method),
        *families,
        Line(UNSEEN, unseen - unshown, "virtual-bound"),
        Line(UNSHOWN, unshown, "virtual-bound"),
        Line(UNEXPLAINED, certificate.unexplained, None),
    )


def _unshown(certificate: Certificate) -> int:
    """How many dimensions of the virtual weights the network proves not to show.

    The families without scaling move no virtual weight, and scaling moves them by the rescalings;
    so virtual weights less rescalings less the bound is what their directions lose beyond that.
    With one output coordinate there are no differences, and all that is left is not shown.
    """
    architecture, readout = certificate.architecture, certificate.readout
    if architecture is None or certificate.upper_source != "virtual weights":
        return 0
    if readout != "logits":
        if architecture.widths[-1] == 1:
            return certificate.parameters
        architecture = narrowed(architecture)
    facts, bound = Facts.of(architecture), virtual_upper_bound(architecture)
    return 0 if bound is None else virtual_dimension(facts) - rescalings(facts) - bound
