"""Dimensions by certificates, compared with what theory expects."""

from collections.abc import Callable, Sequence
from functools import lru_cache

from neuromanifold.architecture import Architecture
from neuromanifold.certificates.certificate import Certificate
from neuromanifold.certificates.exact import certify
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.paper.checks.trial import Trial


@lru_cache(maxsize=4096)
def certified(architecture: Architecture, seed: int) -> Certificate:
    """The certificate of a network at generic weights, computed once (field-rank)."""
    return certify(architecture, seed=seed)


def formula(network: Architecture) -> int | None:
    """The dimension that the formula gives."""
    return dimension_formula(network).dimension


def theorem(network: Architecture) -> int | None:
    """The dimension by formula; None unless it is a theorem, so that a comparison fails."""
    found = dimension_formula(network)
    return found.dimension if found.status == "theorem" else None


def compare_dimensions(
    trial: Trial,
    networks: Sequence[Architecture],
    expected: Callable[[Architecture], int | None] = formula,
) -> str:
    """The expected dimension of each network against the rank and the bound of its certificate.

    Returns how many networks there were, in which field, and how many dimensions are proved.
    """
    found = [certified(network, trial.seed) for network in networks]
    for network, certificate in zip(networks, found, strict=True):
        trial.case(network.name, _failure(expected(network), certificate))
    proved = sum(one.verdict == "exact" for one in found)
    trial.numbers |= {
        "architectures": len(found),
        "proved": proved,
        "dimensions": {one.subject: one.lower for one in found},
    }
    return (
        f"{len(found)} architectures by exact ranks over GF({found[0].prime}), seed {trial.seed}; "
        f"lower and upper bound meet for {proved} of them, which proves their dimensions"
    )


def _failure(expected: int | None, found: Certificate) -> str | None:
    """The rank must be the expected dimension, which must not exceed the proved upper bound."""
    if not found.lower_is_proved:
        return f"the rank {found.rank} is not a proved bound"
    if expected == found.lower <= found.upper:
        return None
    return (
        f"expected dimension {expected}, found a rank of {found.lower} and the upper bound "
        f"{found.upper}"
    )
