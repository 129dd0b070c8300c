"""Checks of the proved upper bounds: no exact rank exceeds one."""

from collections.abc import Iterable

from neuromanifold.architecture import Architecture
from neuromanifold.formula.bounds import proved_bounds
from neuromanifold.paper.checks.evidence import Case, Check, Finding
from neuromanifold.paper.checks.exact_dimensions import certified


def _layers(quick: bool) -> list[Architecture]:
    """Layers with few and many heads; among the first every bound but one is the smallest once."""
    few = [
        Architecture((3, 3), (1,), 2, heads=2),
        Architecture((3, 3), (3,), 2, heads=2),
        Architecture((2, 4), (2,), 2, heads=3, value_ranks=(1,)),
        Architecture((3, 2), (1,), 2, heads=5, value_ranks=(1,)),
        Architecture((4, 4), (1,), 2, heads=3, value_ranks=(4,)),
        Architecture((4, 1), (4,), 2, heads=2),
    ]
    many = [
        Architecture((d, d_out), (a,), 2, heads=H, value_ranks=(v,), skip=skip)
        for d in (2, 3)
        for d_out in (1, 2, 4)
        for a in (1, 2)
        for H in (2, 3, 5)
        for v in (1, 2)
        for skip in ("none", "inner")
    ]
    return few if quick else [*few, *many]


def _deep(quick: bool) -> list[Architecture]:
    few = [
        Architecture((2, 3, 2), (2, 2), 2, heads=2),
        Architecture((2, 4, 2), (2, 2), 3, "softmax", heads=2),
        Architecture((2, 2, 2), (1, 2), 2, heads=2, skip="residual"),
        Architecture((2, 3, 2), (2, 2), 1, "softmax", heads=2, value_ranks=(1, 2)),
    ]
    many = [
        Architecture((2, d, 2), (a, 2), t, attention, heads=H, skip=skip)
        for d in (1, 2, 4)
        for a in (1, 2)
        for t in (1, 3)
        for attention in ("lightning", "softmax")
        for H in (2, 3)
        for skip in ("none", "inner")
    ]
    return few if quick else [*few, *many]


def _compare(networks: Iterable[Architecture], seed: int) -> Finding:
    cases: list[Case] = []
    reached = 0
    names: dict[str, int] = {}
    for network in networks:
        smallest, rank = proved_bounds(network)[0], certified(network, seed).lower
        exceeded = f"rank {rank}, {smallest}" if rank > smallest.value else None
        cases.append(Case(network.name, exceeded))
        reached += rank == smallest.value
        names[smallest.name] = names.get(smallest.name, 0) + 1
    return Finding(
        f"{len(cases)} architectures, exact ranks (seed {seed}); the smallest bound is reached by "
        f"{reached}",
        cases,
        {"reached": reached, "smallest bound": names},
    )


def flattenings(quick: bool, seed: int) -> Finding:
    """No layer with several heads has a rank above one of its bounds (flattening-bounds)."""
    return _compare(_layers(quick), seed)


def layers(quick: bool, seed: int) -> Finding:
    """No deep network with several heads or a residual skip exceeds its layers (layers-bound)."""
    return _compare(_deep(quick), seed)


CHECKS: dict[str, Check] = {"flattening-bounds": flattenings, "layers-bound": layers}
