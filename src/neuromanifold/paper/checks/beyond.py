"""Checks of what the paper leaves open: all widths, masks, skips, several heads, bounds."""

import random
from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from neuromanifold.architecture import Architecture, Attention, Skip
from neuromanifold.formula.all_widths import virtual_upper_bound
from neuromanifold.formula.bounds import proved_bounds
from neuromanifold.formula.heads import head_dimension
from neuromanifold.networks.weights import random_weights
from neuromanifold.paper.checks.evaluation import normal_input, output
from neuromanifold.paper.checks.exact_dimensions import certified, compare_dimensions, formula
from neuromanifold.paper.checks.lightning_proofs import (
    causal_orders,
    inner_expansion,
    one_vector,
    rank_one_layer,
    two_tokens,
)
from neuromanifold.paper.checks.trial import Trial, check
from neuromanifold.symmetry.group_element import GroupElement

_KINDS: tuple[Attention, ...] = ("lightning", "softmax")
_LEMMAS = ((1, 2), (2, 3), (3, 2))
"""Depths and widths at which the lemmas of the proofs are tried."""


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
    drawn = random_networks(8 if trial.quick else 160, trial.seed, attention="lightning")
    checked = compare_dimensions(trial, _NAMED + drawn)
    before = trial.cases
    for depth in (1, 2):
        two_tokens(trial, depth)
    places = [(2, 1, 2), (2, 2, 2), (3, 1, 2), (3, 2, 2), (3, 3, 2), (3, 2, 3)]
    for place in trial.some(places, 4):
        rank_one_layer(trial, *place)
    return f"{checked}; {trial.cases - before} identities of the proof, exactly"


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
        trial.at_most(network.name, found.lower, -1 if bound is None else bound)
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
    for depth, d in _LEMMAS:
        one_vector(trial, depth, d)
    return f"{checked}; {len(_LEMMAS)} identities of the proof, exactly"


def _with_drawn(trial: Trial, named: Architecture, most: int, **fields: Any) -> str:
    """The dimensions of a network and of random ones of its kind."""
    count = 6 if trial.quick else most
    drawn = random_networks(count, trial.seed, attention="lightning", **fields)
    return compare_dimensions(trial, [named, *drawn])


@check("causal-mask")
def causal_mask(trial: Trial) -> str:
    """With the causal mask a layer of rank one does not collapse the later ones (causal-mask)."""
    masked = Architecture((3, 3, 3), (1, 2), 3, mask="causal")
    open_ = Architecture((3, 3, 3), (1, 2), 3)
    checked = _with_drawn(trial, masked, 50, mask="causal")
    trial.numbers["widths 3,3,3, ranks 1,2"] = {
        "causal": certified(masked, trial.seed).lower,
        "no mask": certified(open_, trial.seed).lower,
    }
    for depth, d in _LEMMAS[1:]:
        causal_orders(trial, depth, d)
    return f"{checked}; {sum(depth for depth, _ in _LEMMAS[1:])} orders of the proof, exactly"


@check("inner-skip")
def inner_skip(trial: Trial) -> str:
    """V(X + XP): no rescalings, no collapse (inner-skip)."""
    named = Architecture((3, 3, 3), (2, 2), 3, skip="inner")
    checked = _with_drawn(trial, named, 50, skip="inner")
    for depth, d in _LEMMAS:
        inner_expansion(trial, depth, d)
    return f"{checked}; {len(_LEMMAS)} expansions of the proof, exactly"


@check("residual-skip")
def residual_skip(trial: Trial) -> str:
    """X + φ(X): no inter-layer symmetry, but every layer's scaling stays (residual-skip)."""
    example = Architecture((3, 3, 3), (2, 2), 3, skip="residual")
    checked = _with_drawn(trial, example, 40, skip="residual")
    W, X = random_weights(example, trial.seed), normal_input(example, trial.seed)
    moved = GroupElement(example, scaling=(np.array([2.0]), np.array([0.5]))).act(W)
    same = bool(np.array_equal(output(W, X), output(moved, X)))
    proved = certified(example, trial.seed)
    without = proved.lower + example.depth
    trial.refute(
        "Widths 3, 3, 3 and ranks 2, 2 with X + φ(X): (2A_1, V_1/2, A_2/2, 2V_2) has the same "
        "outputs to the last bit, so the scaling symmetry does not break; the dimension is "
        f"{proved.lower} ({proved.verdict}), and would be {without} if it did.",
        same and proved.verdict == "exact",
        {"dimension": proved.lower, "without scaling symmetry": without},
    )
    return checked


def _several_heads(trial: Trial) -> list[Architecture]:
    sizes = product((2, 3), (2, 3), (1, 2, 3), (2, 3))
    layers = [Architecture((d, d_out), (a,), 2, heads=H) for d, d_out, a, H in sizes]
    softmax = [
        Architecture((d, d), (a,), 2, "softmax", heads=2) for d, a in product((2, 3), (1, 2, 3))
    ]
    deep = [
        Architecture((2, 2, 2), (2, 2), 3, heads=3),
        Architecture((3, 3, 3), (1, 2), 2, heads=2),
        Architecture((3, 3), (2,), 3, heads=3, value_ranks=(2,)),
        Architecture((4, 4), (4,), 2, heads=3),
        Architecture((4, 4), (3,), 2, heads=3),
    ]
    every = [*deep, *softmax, *layers]
    return [one for one in every[:: 5 if trial.quick else 1] if formula(one) is not None]


@check("head-mixing")
def several_heads(trial: Trial) -> str:
    """Lightning heads mix continuously, softmax heads do not (head-mixing)."""
    checked = compare_dimensions(trial, _several_heads(trial))
    example = Architecture((3, 3), (3,), 3, heads=2)
    proved = certified(example, trial.seed)
    unmixed = example.heads * (head_dimension(example, 0) - 1)
    trial.refute(
        f"d = d' = a = 3 and two lightning heads: the dimension is {proved.lower} "
        f"({proved.verdict}); if heads could only be permuted it would be twice that of one head, "
        f"{unmixed}.",
        proved.upper < unmixed,
        {"dimension": proved.lower, "two heads that do not mix": unmixed},
    )
    return checked


_LAYERS = [
    Architecture((3, 3), (1,), 2, heads=2),
    Architecture((3, 3), (3,), 2, heads=2),
    Architecture((2, 4), (2,), 2, heads=3, value_ranks=(1,)),
    Architecture((3, 2), (1,), 2, heads=5, value_ranks=(1,)),
    Architecture((4, 4), (1,), 2, heads=3, value_ranks=(4,)),
    Architecture((4, 1), (4,), 2, heads=2),
    Architecture((6, 1), (6,), 1, heads=2),
    Architecture((6, 1), (6,), 1, heads=2, skip="inner"),
]
"""Among these every bound but one is the smallest once."""
_DEEP = [
    Architecture((2, 3, 2), (2, 2), 2, heads=2),
    Architecture((2, 4, 2), (2, 2), 3, "softmax", heads=2),
    Architecture((2, 2, 2), (1, 2), 2, heads=2, skip="residual"),
    Architecture((2, 3, 2), (2, 2), 1, "softmax", heads=2, value_ranks=(1, 2)),
    Architecture((2, 4, 6, 1), (1, 1, 2), 1, heads=2),
]
_SKIPS: tuple[Skip, ...] = ("none", "inner")


def _within_bounds(trial: Trial, networks: Sequence[Architecture]) -> str:
    reached = 0
    names: Counter[str] = Counter()
    for network in networks:
        smallest, rank = proved_bounds(network)[0], certified(network, trial.seed).lower
        trial.at_most(f"{network}: rank, {smallest}", rank, smallest.value)
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
    return _within_bounds(trial, trial.some([*_LAYERS, *many], len(_LAYERS)))


@check("layers-bound")
def layer_by_layer(trial: Trial) -> str:
    """No deep network with several heads or a residual skip exceeds its layers (layers-bound)."""
    kinds = product((1, 2, 4), (1, 2), (1, 3), _KINDS, (2, 3), _SKIPS)
    many = [
        Architecture((2, d, 2), (a, 2), t, attention, heads=H, skip=skip)
        for d, a, t, attention, H, skip in kinds
    ]
    return _within_bounds(trial, trial.some([*_DEEP, *many], len(_DEEP)))
