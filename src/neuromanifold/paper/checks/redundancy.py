"""Checks of how many parameters are too many, and of what that means for samples."""

from itertools import product
from typing import Any

from neuromanifold.architecture import Architecture
from neuromanifold.certificates.exact import certify
from neuromanifold.formula.redundancy import redundancy
from neuromanifold.formula.sample_complexity import sample_complexity
from neuromanifold.paper.checks.evidence import Case, Check, Counterexample, Finding, close, equal
from neuromanifold.paper.checks.exact_dimensions import certified, compare_dimensions


def square(d: int, depth: int) -> Architecture:
    """All widths and ranks d, three tokens."""
    return Architecture((d,) * (depth + 1), (d,) * depth, 3)


COMMON_SHAPES: tuple[tuple[str, Architecture], ...] = (
    ("one layer, d = a = 64", square(64, 1)),
    ("2 layers, d = a = 64", square(64, 2)),
    ("6 layers, d = a = 512", square(512, 6)),
    ("12 layers, d = a = 768", square(768, 12)),
    ("96 layers, d = a = 12288", square(12288, 96)),
    ("12 layers, d = 768, a = 64", Architecture((768,) * 13, (64,) * 12, 3)),
    (
        "12 layers, d = 768, 12 heads of 64",
        Architecture((768,) * 13, (64,) * 12, 3, heads=12, value_ranks=(64,) * 12),
    ),
    (
        "12 softmax layers, d = 768, 12 heads of 64",
        Architecture((768,) * 13, (64,) * 12, 3, "softmax", heads=12, value_ranks=(64,) * 12),
    ),
)


def redundancy_table() -> list[dict[str, Any]]:
    """Parameters against dimension for common shapes (redundancy)."""
    rows: list[dict[str, Any]] = []
    for name, network in COMMON_SHAPES:
        found = redundancy(network)
        rows.append(
            {
                "shape": name,
                "parameters": found.parameters,
                "dimension": found.formula.dimension,
                "ratio": found.ratio,
                "status": found.formula.status,
            }
        )
    return rows


def ratio(quick: bool, seed: int) -> Finding:
    """3d²l parameters, (l+1)d² − l dimensions: the ratio tends to 3 (redundancy)."""
    sizes = [(2, 1), (2, 2)] if quick else list(product((2, 3, 4), (1, 2, 3)))
    found = compare_dimensions(
        [square(d, depth) for d, depth in sizes],
        lambda network: (network.depth + 1) * network.widths[0] ** 2 - network.depth,
        seed,
    )
    cases: list[Case] = list(found.cases)
    for d, depth in [*sizes, (1000, 1000)]:
        network = square(d, depth)
        cases.append(equal(f"{d}, {depth}: parameters", 3 * d * d * depth, network.parameters))
    limit = redundancy(square(1000, 1000)).ratio or 0.0
    cases.append(close("ratio at d = l = 1000", abs(limit - 3), 3e-3))
    deep = redundancy(square(3, 3))
    proved = certified(square(3, 3), seed)
    return Finding(
        f"{found.checked}; the ratio by formula at d = l = 1000",
        cases,
        {"ratio at d = l = 1000": limit, "table": redundancy_table(), **found.numbers},
        Counterexample(
            text=f"d = a = 3 and three layers: {deep.parameters} parameters and a proved dimension "
            f"of {proved.lower}, a ratio of {deep.parameters / proved.lower:.3g} > 3/2. "
            f"For d = l = 1000 it is {limit:.4g}; 3/2 is the limit for one layer.",
            refutes=proved.verdict == "exact" and deep.parameters / proved.lower > 1.5,
            numbers={"parameters": deep.parameters, "dimension": proved.lower},
        ),
    )


def samples(quick: bool, seed: int) -> Finding:
    """The rank of n generic equations is min(n, dimension) (sample-complexity).

    Each row of the Jacobian is one equation, an output number in a random direction at a fresh
    input; their rank stops growing at the dimension, far below the number of parameters.
    """
    networks = [
        Architecture((3, 2, 3), (2, 2), 3),
        Architecture((3, 3, 3), (2, 2), 3, "softmax"),
        Architecture((4, 3), (3,), 2),
    ][: 1 if quick else None]
    cases: list[Case] = []
    numbers = {}
    for network in networks:
        needs = sample_complexity(network)
        D = needs.formula.dimension or 0
        ranks = {
            n: certify(network, seed=seed, inputs=n).lower
            for n in (1, D // 2, D - 1, D, D + 5, network.parameters)
        }
        cases.extend(equal(f"{network}: {n} equations", min(n, D), ranks[n]) for n in ranks)
        least = -(-D // (network.tokens * network.widths[-1]))
        cases.append(equal(f"{network}: least samples", least, needs.least_samples))
        numbers[network.name] = {
            "parameters": network.parameters,
            "dimension": D,
            "rank by equations": ranks,
            "least samples": needs.least_samples,
        }
    return Finding(
        f"{len(networks)} networks, exact ranks of 1 to {networks[0].parameters} and more "
        f"equations (seed {seed})",
        cases,
        numbers,
    )


CHECKS: dict[str, Check] = {"redundancy": ratio, "sample-complexity": samples}
