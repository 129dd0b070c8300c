"""Checks of how many parameters are too many, and of what that means for samples."""

from collections.abc import Mapping
from itertools import product
from typing import Any

from neuromanifold.architecture import Architecture
from neuromanifold.certificates.exact import certify
from neuromanifold.formula.redundancy import redundancy
from neuromanifold.paper.checks.exact_dimensions import certified, compare_dimensions, formula
from neuromanifold.paper.checks.trial import Trial, check


def square(d: int, depth: int) -> Architecture:
    """All widths and ranks d, three tokens."""
    return Architecture((d,) * (depth + 1), (d,) * depth, 3)


_TWELVE = {"widths": (768,) * 13, "ranks": (64,) * 12, "tokens": 3}
_HEADS = {**_TWELVE, "heads": 12, "value_ranks": (64,) * 12}
COMMON_SHAPES: Mapping[str, Architecture] = {
    "one layer, d = a = 64": square(64, 1),
    "2 layers, d = a = 64": square(64, 2),
    "6 layers, d = a = 512": square(512, 6),
    "12 layers, d = a = 768": square(768, 12),
    "96 layers, d = a = 12288": square(12288, 96),
    "12 layers, d = 768, a = 64": Architecture(**_TWELVE),
    "12 layers, d = 768, 12 heads of 64": Architecture(**_HEADS),
    "12 softmax layers, d = 768, 12 heads of 64": Architecture(attention="softmax", **_HEADS),
}


def redundancy_table() -> list[dict[str, Any]]:
    """Parameters against dimension for common shapes (redundancy)."""
    return [
        {
            "shape": name,
            "parameters": found.parameters,
            "dimension": found.formula.dimension,
            "ratio": found.ratio,
            "status": found.formula.status,
        }
        for name, network in COMMON_SHAPES.items()
        for found in (redundancy(network),)
    ]


@check("redundancy")
def ratio(trial: Trial) -> str:
    """3d²l parameters, (l+1)d² − l dimensions: the ratio tends to 3 (redundancy)."""
    sizes = [(2, 1), (2, 2)] if trial.quick else list(product((2, 3, 4), (1, 2, 3)))
    checked = compare_dimensions(
        trial,
        [square(d, depth) for d, depth in sizes],
        lambda network: (network.depth + 1) * network.widths[0] ** 2 - network.depth,
    )
    for d, depth in [*sizes, (1000, 1000)]:
        network = square(d, depth)
        trial.equal(f"{d}, {depth}: parameters", 3 * d * d * depth, network.parameters)
    limit = redundancy(square(1000, 1000)).ratio or 0.0
    trial.close("ratio at d = l = 1000", abs(limit - 3), 3e-3)
    trial.numbers |= {"ratio at d = l = 1000": limit, "table": redundancy_table()}
    proved = certified(square(3, 3), trial.seed)
    found = proved.parameters / proved.lower
    trial.refute(
        f"d = a = 3 and three layers: {proved.parameters} parameters and a proved dimension of "
        f"{proved.lower}, a ratio of {found:.3g} > 3/2. For d = l = 1000 it is {limit:.4g}; 3/2 is "
        "the limit for one layer.",
        proved.verdict == "exact" and found > 1.5,
        {"parameters": proved.parameters, "dimension": proved.lower},
    )
    return f"{checked}; the ratio by formula at d = l = 1000"


_SAMPLED = [
    Architecture((3, 2, 3), (2, 2), 3),
    Architecture((3, 3, 3), (2, 2), 3, "softmax"),
    Architecture((4, 3), (3,), 2),
]


@check("sample-complexity")
def samples(trial: Trial) -> str:
    """The rank of n generic equations is min(n, dimension) (sample-complexity).

    Each row of the Jacobian is one equation, an output number in a random direction at a fresh
    input; their rank stops growing at the dimension, far below the number of parameters. A sample
    has t·d_l numbers, so with fewer than D/(t·d_l) samples the function is not determined.
    """
    networks = trial.some(_SAMPLED, 1)
    for network in networks:
        D, numbers = formula(network) or 0, network.tokens * network.widths[-1]
        least = -(-D // numbers)
        ranks = {
            n: certify(network, seed=trial.seed, inputs=n).lower
            for n in (1, D // 2, D - 1, D, D + 5, network.parameters)
        }
        for n, found in ranks.items():
            trial.equal(f"{network}: {n} equations", min(n, D), found)
        short = (least - 1) * numbers
        found = certify(network, seed=trial.seed, inputs=short).lower
        trial.equal(f"{network}: a sample too few", min(short, D - 1), found)
        trial.numbers[network.name] = {
            "parameters": network.parameters,
            "dimension": D,
            "rank by equations": ranks,
            "least samples": least,
        }
    return (
        f"{len(networks)} networks, exact ranks of 1 to {networks[0].parameters} and more "
        f"equations (seed {trial.seed})"
    )
