"""Dimensions by certificates, compared with what theory expects."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from neuromanifold.architecture import Architecture
from neuromanifold.certificates.certificate import Certificate
from neuromanifold.certificates.exact import certify
from neuromanifold.paper.checks.evidence import Case


@lru_cache(maxsize=4096)
def certified(architecture: Architecture, seed: int) -> Certificate:
    """The certificate of a network at generic weights, computed once (field-rank)."""
    return certify(architecture, seed=seed)


@dataclass(frozen=True, slots=True)
class ExactComparison:
    """Expected dimensions against certificates.

    Attributes:
        cases: one for each network.
        certificates: one for each network.
    """

    cases: tuple[Case, ...]
    certificates: tuple[Certificate, ...]

    @property
    def proved(self) -> int:
        """The number of networks whose dimension is proved: the bounds meet."""
        return sum(certificate.verdict == "exact" for certificate in self.certificates)

    @property
    def checked(self) -> str:
        """How many networks, in which field."""
        one = self.certificates[0]
        return (
            f"{len(self.certificates)} architectures by exact ranks over GF({one.prime}), seed "
            f"{one.seed}; lower and upper bound meet for {self.proved} of them, which proves their "
            "dimensions"
        )

    @property
    def numbers(self) -> dict[str, object]:
        """The counts, and every network with its dimension."""
        return {
            "architectures": len(self.certificates),
            "proved": self.proved,
            "dimensions": {one.subject: one.lower for one in self.certificates},
        }


def compare_dimensions(
    networks: Sequence[Architecture], expected: Callable[[Architecture], int | None], seed: int
) -> ExactComparison:
    """The expected dimension of each network against the rank and the bound of its certificate."""
    found = tuple(certified(network, seed) for network in networks)
    cases = (
        _case(network, expected(network), certificate)
        for network, certificate in zip(networks, found, strict=True)
    )
    return ExactComparison(tuple(cases), found)


def _case(network: Architecture, expected: int | None, found: Certificate) -> Case:
    """The rank must be the expected dimension, which must not exceed the proved upper bound."""
    if not found.lower_is_proved:
        return Case(network.name, f"the rank {found.rank} is not a proved bound")
    if expected == found.lower <= found.upper:
        return Case(network.name)
    return Case(
        network.name,
        f"expected dimension {expected}, found a rank of {found.lower} and the upper bound "
        f"{found.upper}",
    )
