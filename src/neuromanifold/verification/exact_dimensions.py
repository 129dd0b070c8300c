"""Dimensions by certificates, compared with what theory expects."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from neuromanifold.architecture import Architecture
from neuromanifold.dimension.certificate import Certificate
from neuromanifold.dimension.exact import certify
from neuromanifold.dimension.numeric import estimate
from neuromanifold.verification.evidence import Case


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
    def numeric(self) -> int:
        """The number of networks whose exact rank proves nothing, so that floats were asked."""
        return sum(not certificate.lower_is_proved for certificate in self.certificates)

    @property
    def checked(self) -> str:
        """How many networks, in which field."""
        one = self.certificates[0]
        text = (
            f"{len(self.certificates)} architectures by exact ranks over GF({one.prime}), seed "
            f"{one.seed}; lower and upper bound meet for {self.proved} of them, which proves their "
            "dimensions"
        )
        if not self.numeric:
            return text
        return (
            f"{text}; for {self.numeric} softmax networks with a width of one, whose exponents "
            "depend on each other, the rank was taken in float64 instead"
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
    """The rank must be the expected dimension, which must not exceed the proved upper bound.

    With one token's width reduced to one, exponents a x_i (x_j − x_1) of three tokens are linearly
    dependent, so no exact lower bound is proved (softmax-exact); a float64 rank is taken instead.
    """
    rank = found.lower if found.lower_is_proved else estimate(network, seed=found.seed).rank
    if rank is not None and expected == rank <= found.upper:
        return Case(network.name)
    return Case(
        network.name,
        f"expected dimension {expected}, found a rank of {rank} and the upper bound {found.upper}",
    )
