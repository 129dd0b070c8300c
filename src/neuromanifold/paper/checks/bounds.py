"""Checks of the proved upper bounds: no exact rank exceeds one."""

from collections import Counter
from collections.abc import Sequence
from itertools import product

from neuromanifold.architecture import Architecture, Attention, Skip
from neuromanifold.formula.bounds import proved_bounds
from neuromanifold.paper.checks.evidence import Case
from neuromanifold.paper.checks.exact_dimensions import certified
from neuromanifold.paper.checks.trial import Trial, check

_LAYERS = [
    Architecture((3, 3), (1,), 2, heads=2),
    Architecture((3, 3), (3,), 2, heads=2),
    Architecture((2, 4), (2,), 2, heads=3, value_ranks=(1,)),
    Architecture((3, 2), (1,), 2, heads=5, value_ranks=(1,)),
    Architecture((4, 4), (1,), 2, heads=3, value_ranks=(4,)),
    Architecture((4, 1), (4,), 2, heads=2),
]
"""Among these every bound but one is the smallest once."""
_DEEP = [
    Architecture((2, 3, 2), (2, 2), 2, heads=2),
    Architecture((2, 4, 2), (2, 2), 3, "softmax", heads=2),
    Architecture((2, 2, 2), (1, 2), 2, heads=2, skip="residual"),
    Architecture((2, 3, 2), (2, 2), 1, "softmax", heads=2, value_ranks=(1, 2)),
]
_KINDS: tuple[Attention, ...] = ("lightning", "softmax")
_SKIPS: tuple[Skip, ...] = ("none", "inner")


def _compare(trial: Trial, networks: Sequence[Architecture]) -> str:
    reached = 0
    names: Counter[str] = Counter()
    for network in networks:
        smallest, rank = proved_bounds(network)[0], certified(network, trial.seed).lower
        exceeded = f"rank {rank}, {smallest}" if rank > smallest.value else None
        trial.cases.append(Case(network.name, exceeded))
        reached += rank == smallest.value
        names[smallest.name] += 1
    trial.numbers |= {"reached": reached, "smallest bound": names}
    return (
        f"{len(networks)} architectures, exact ranks (seed {trial.seed}); the smallest bound is "
        f"reached by {reached}"
    )


@check("flattening-bounds")
def flattenings(trial: Trial) -> str:
    """No layer with several heads has a rank above one of its bounds (flattening-bounds)."""
    many = [
        Architecture((d, d_out), (a,), 2, heads=H, value_ranks=(v,), skip=skip)
        for d, d_out, a, H, v, skip in product((2, 3), (1, 2, 4), (1, 2), (2, 3, 5), (1, 2), _SKIPS)
    ]
    return _compare(trial, trial.some([*_LAYERS, *many], len(_LAYERS)))


@check("layers-bound")
def layers(trial: Trial) -> str:
    """No deep network with several heads or a residual skip exceeds its layers (layers-bound)."""
    kinds = product((1, 2, 4), (1, 2), (1, 3), _KINDS, (2, 3), _SKIPS)
    many = [
        Architecture((2, d, 2), (a, 2), t, attention, heads=H, skip=skip)
        for d, a, t, attention, H, skip in kinds
    ]
    return _compare(trial, trial.some([*_DEEP, *many], len(_DEEP)))
