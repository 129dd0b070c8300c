"""Checks of the dimension for all widths and ranks, with factors and with one token."""

import random

from neuromanifold.architecture import Architecture, Attention
from neuromanifold.formula.all_widths import virtual_upper_bound
from neuromanifold.paper.checks.evidence import Case
from neuromanifold.paper.checks.exact_dimensions import certified, compare_dimensions, formula
from neuromanifold.paper.checks.lightning_proofs import one_vector, rank_one_layer, two_tokens
from neuromanifold.paper.checks.trial import Trial, check

_KINDS: tuple[Attention, ...] = ("lightning", "softmax")


def random_networks(
    count: int, seed: int, *, tokens: tuple[int, ...] = (2, 3), **fields: object
) -> list[Architecture]:
    """Networks of widths 1 to 5, ranks 1 to 3 and depths 1 to 3, lightning and softmax in turn.

    Softmax networks through a width of one have two tokens: the exponents a x_i (x_j − x_1) of
    three such tokens are linearly dependent, so that no exact lower bound is proved there
    (softmax-exact).
    """
    draw = random.Random(f"architectures {seed} {sorted(fields)}")
    networks = []
    for k in range(count):
        depth = draw.randint(1, 3)
        widths = tuple(draw.randint(1, 5) for _ in range(depth + 1))
        if fields.get("skip") == "residual":
            widths = (draw.randint(1, 4),) * (depth + 1)
        ranks = tuple(draw.randint(1, 3) for _ in range(depth))
        thin = _KINDS[k % 2] == "softmax" and 1 in widths[:-1]
        described = {
            "widths": widths,
            "ranks": ranks,
            "tokens": min(draw.choice(tokens), 2) if thin else draw.choice(tokens),
            "attention": _KINDS[k % 2],
        }
        networks.append(Architecture.from_dict({**described, **fields}))
    return list(dict.fromkeys(networks))


_NAMED = [
    Architecture((2, 4, 2), (2, 2), 3),
    Architecture((3, 3, 3), (1, 2), 3),
    Architecture((5, 4, 1), (2, 2), 2),
]


@check("all-widths")
def every_width(trial: Trial) -> str:
    """The dimension is that of the virtual weights less l (all-widths).

    After a layer of rank one only symmetric parts count: the networks named first.
    """
    seed = trial.seed
    drawn = random_networks(8 if trial.quick else 160, seed, attention="lightning")
    checked = compare_dimensions(trial, _NAMED + drawn)
    places = [(2, 1, 2), (2, 2, 2), (3, 1, 2), (3, 2, 2), (3, 3, 2), (3, 2, 3)]
    lemmas = [two_tokens(seed, depth) for depth in (1, 2)]
    lemmas += [rank_one_layer(seed, depth, j, d) for depth, j, d in trial.some(places, 4)]
    trial.cases += lemmas
    return f"{checked}; {len(lemmas)} identities of the proof, exactly"


@check("virtual-bound")
def virtual_bound(trial: Trial) -> str:
    """No rank exceeds the bound from the virtual weights (virtual-bound)."""
    few, seed = (4, trial.seed) if trial.quick else (24, trial.seed)
    networks = [
        *random_networks(8 if trial.quick else 160, seed),
        *random_networks(few, seed, mask="causal"),
        *random_networks(few, seed, skip="inner"),
    ]
    for network in networks:
        bound, found = virtual_upper_bound(network), certified(network, seed)
        exceeded = bound is None or found.lower > bound
        failure = f"rank {found.lower} exceeds the bound {bound}" if exceeded else None
        trial.cases.append(Case(network.name, failure))
    wide = certified(_NAMED[0], seed)
    trial.equal("widths 2, 4, 2: bound", wide.lower, virtual_upper_bound(_NAMED[0]))
    trial.numbers["widths 2,4,2, ranks 2,2"] = {
        "by symmetries": wide.parameters - sum(family.dimension for family in wide.symmetries),
        "by virtual weights": wide.upper,
        "rank": wide.lower,
    }
    return (
        f"{len(networks)} architectures with and without mask and inner skip, exact ranks "
        f"(seed {seed})"
    )


@check("factored-values")
def factored(trial: Trial) -> str:
    """Factors act as widths; in the last one an injective map follows (factored-values)."""
    draw = random.Random(f"value ranks {trial.seed}")
    networks = []
    for network in random_networks(6 if trial.quick else 40, trial.seed + 1):
        values = tuple(draw.randint(1, 4) for _ in network.ranks)
        thin = network.attention == "softmax" and 1 in values[:-1]
        tokens = 2 if thin else network.tokens
        fields = {**network.to_dict(), "tokens": tokens, "value_ranks": values}
        networks.append(Architecture.from_dict(fields))
    return compare_dimensions(trial, networks, _without_factors)


def _without_factors(network: Architecture) -> int | None:
    """The dimension from that of a network without factors (factored-values)."""
    values = network.value_ranks or network.widths[1:]
    inner = [
        network.widths[0],
        *(min(d, v) for d, v in zip(network.widths[1:-1], values[:-1], strict=True)),
    ]
    rho = min(*inner, network.widths[-1], values[-1])
    plain = Architecture((*inner, rho), network.ranks, network.tokens, network.attention)
    dimension = formula(plain)
    return None if dimension is None else dimension + rho * (network.widths[-1] - rho)


@check("one-token")
def one_token(trial: Trial) -> str:
    """One token: lightning sees symmetric parts only (one-token)."""
    named = [
        Architecture((3, 3, 3), (2, 2), 1),
        Architecture((2, 2, 2), (2, 2), 1),
        Architecture((2, 2, 2, 2), (2, 2, 2), 1),
    ]
    one, seed = {"tokens": (1,), "attention": "lightning"}, trial.seed
    drawn = random_networks(8 if trial.quick else 50, seed, **one)
    inner = random_networks(4 if trial.quick else 30, seed, skip="inner", **one)
    checked = compare_dimensions(trial, named + drawn + inner)
    lemmas = [one_vector(seed, depth, d) for depth, d in ((1, 2), (2, 3), (3, 2))]
    trial.cases += lemmas
    return f"{checked}; {len(lemmas)} identities of the proof, exactly"
