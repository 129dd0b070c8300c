"""Spaces of polynomial maps that contain the functions of lightning networks."""

from math import comb

from neuromanifold.architecture import Architecture
from neuromanifold.errors import HypothesisError
from neuromanifold.statements import applies, get, unmet


def ambient_dimension(architecture: Architecture) -> int:
    """The dimension of the homogeneous maps around the neuromanifold (ambient, eq-5).

    A lightning network without skip has t·d_l output coordinates, each homogeneous of degree 3^l in
    the t·d_0 input coordinates; heads and masks do not change that.

    >>> ambient_dimension(Architecture(widths=(2, 1), ranks=(2,), tokens=2))
    40
    """
    failures = unmet(get("ambient"), architecture)
    if failures:
        raise HypothesisError(
            f"only lightning networks without skip are homogeneous polynomial maps; "
            f"got {architecture}: {'; '.join(failures)}"
        )
    t, degree = architecture.tokens, 3**architecture.depth
    return t * architecture.widths[-1] * comb(t * architecture.widths[0] + degree - 1, degree)


def polynomial_maps(architecture: Architecture, d: int, d_out: int, depth: int, most: int) -> int:
    """The dimension of maps that contain `depth` layers from d to d', or `most` (polynomial-maps).

    A layer without mask is X ↦ N(C) X, C = X Xᵀ, with N(C) = Σ_h V_h C A_h, or with the inner skip
    Σ_h V_h (1 + C A_h). By induction so are more layers: N'(N C Nᵀ) N. The entries of N have the
    degree (3^l − 1)/2 in the entries of C; with the inner skip, at most this degree, as forms have
    in one variable more. One token x has no mask, and N(x xᵀ) x has forms of degree 3^l as
    coordinates, with the inner skip sums of forms of the degrees 1, 3, …, 3^l. (In one variable
    that is the first count.) There always are some: what leaves no room for any is kept.
    """
    if most <= 0 or not applies(get("polynomial-maps"), architecture):
        return most
    inner = architecture.skip == "inner"
    entries = forms_of_degree((3**depth - 1) // 2, d * (d + 1) // 2 + inner, most)
    most = min(most, d_out * d * entries)
    if architecture.tokens == 1 and d > 1:
        total = 0
        for degree in range(1 if inner else 3**depth, 3**depth + 1, 2):
            total += d_out * forms_of_degree(degree, d, most)
            if total >= most:
                return most
        most = total
    return most


def forms_of_degree(degree: int, variables: int, most: int) -> int:
    """The dimension of the forms of a degree in some variables, or `most` where it is larger.

    It is n choose k with n = degree + variables − 1 and k the smaller of degree and variables − 1.
    Each step below at least doubles the value, as k ≤ n/2: few steps, however large the degree.
    """
    n, k = degree + variables - 1, min(degree, variables - 1)
    value = 1
    for i in range(1, k + 1):
        value = value * (n - k + i) // i
        if value >= most:
            return most
    return min(value, most)
