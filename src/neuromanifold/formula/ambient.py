"""The dimension of the space of polynomial maps that contains the neuromanifold."""

from math import comb

from neuromanifold.architecture import Architecture
from neuromanifold.errors import HypothesisError
from neuromanifold.statements import Facts, get, unmet


def ambient_dimension(architecture: Architecture) -> int:
    """The dimension of the homogeneous maps around the neuromanifold (ambient, eq-5).

    A lightning network without skip has t·d_l output coordinates, each homogeneous of degree 3^l in
    the t·d_0 input coordinates; heads and masks do not change that.

    >>> ambient_dimension(Architecture(widths=(2, 1), ranks=(2,), tokens=2))
    40
    """
    failures = unmet(get("ambient"), Facts.of(architecture))
    if failures:
        raise HypothesisError(
            f"only lightning networks without skip are homogeneous polynomial maps; "
            f"got {architecture}: {'; '.join(failures)}"
        )
    t, degree = architecture.tokens, 3**architecture.depth
    return t * architecture.widths[-1] * comb(t * architecture.widths[0] + degree - 1, degree)
