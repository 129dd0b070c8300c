"""The paper's own dimension formulas, as printed (eq-7, eq-14, eq-16).

They are special cases of the general count, and kept apart from it so that each checks the other.
"""

from neuromanifold.architecture import Architecture
from neuromanifold.errors import HypothesisError
from neuromanifold.statements import Facts, get, unmet


def one_layer_dimension(architecture: Architecture) -> int:
    """The dimension of one lightning layer (cor-3.3, eq-7)."""
    _require("eq-7", architecture)
    (d, d_out), (a,) = architecture.widths, architecture.ranks
    if a <= d:
        return 2 * a * d + d * d_out - a**2 - 1
    return d**2 + d * d_out - 1


def lightning_bottleneck_dimension(architecture: Architecture) -> int:
    """The dimension of a deep lightning network with a bottleneck (cor-3.8, eq-14)."""
    _require("eq-14", architecture)
    d, a, delta, depth = _bottleneck(architecture)
    alpha = [min(a_i, d_before) for a_i, d_before in zip(a, d, strict=False)]
    return (
        2 * alpha[0] * d[0]
        - alpha[0] ** 2
        + delta * (d[0] + d[depth])
        - delta**2
        - depth
        + sum(2 * alpha_i * delta - alpha_i**2 for alpha_i in alpha[1:])
    )


def softmax_bottleneck_dimension(architecture: Architecture) -> int:
    """The expected dimension of a deep softmax network with a bottleneck (conj-3.10, eq-16)."""
    _require("eq-16", architecture)
    d, a, delta, depth = _bottleneck(architecture)
    alpha = [min(a_i, d_before) for a_i, d_before in zip(a, d, strict=False)]
    return (
        2 * alpha[0] * d[0]
        - alpha[0] ** 2
        + delta * (d[depth] + d[0])
        - delta**2
        + sum(2 * alpha_i * delta - alpha_i**2 for alpha_i in alpha[1:])
    )


def _bottleneck(architecture: Architecture) -> tuple[tuple[int, ...], tuple[int, ...], int, int]:
    """The widths, the ranks, the interior width δ and the depth l."""
    return architecture.widths, architecture.ranks, architecture.widths[1], architecture.depth


def _require(statement_id: str, architecture: Architecture) -> None:
    failures = unmet(get(statement_id), Facts.of(architecture))
    if failures:
        raise HypothesisError(
            f"{statement_id} does not speak about {architecture}: {'; '.join(failures)}; "
            "ask dimension_formula instead, which covers more"
        )
