"""Checks of the dimensions of softmax networks, row by row of the table of what is proved."""

import random
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from neuromanifold.architecture import Architecture, Mask, Skip
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.networks.weights import Weights, random_weights
from neuromanifold.paper.checks.evaluation import ROUNDING, distance, normal_input, output
from neuromanifold.paper.checks.exact_dimensions import certified, compare_dimensions, theorem
from neuromanifold.paper.checks.trial import Trial, check


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table of proved dimensions: what its networks are drawn from."""

    depths: tuple[int, ...] = (1, 2, 3)
    heads: tuple[int, ...] = (1,)
    tokens: tuple[int, ...] = (2, 3)
    skips: tuple[Skip, ...] = ("none",)
    masks: tuple[Mask, ...] = ("none",)
    narrowest: int = 1
    bottleneck: bool = False


_ANY: tuple[Skip, ...] = ("none", "inner")
_MASKS: tuple[Mask, ...] = ("none", "causal")
ROWS: Mapping[str, Row] = {
    "one head": Row(),
    "one head, causal": Row(masks=("causal",)),
    "one head, inner": Row(skips=("inner",)),
    "one head, inner, causal": Row(skips=("inner",), masks=("causal",)),
    "residual": Row(heads=(1, 2, 3), skips=("residual",)),
    "residual, causal": Row(heads=(1, 2, 3), skips=("residual",), masks=("causal",)),
    "layer": Row(depths=(1,), heads=(2, 3), skips=_ANY, masks=_MASKS),
    "heads": Row(depths=(2, 3), heads=(2, 3), tokens=(3,), narrowest=2),
    "heads, bottleneck": Row((2, 3), (2, 3), skips=_ANY, masks=_MASKS, bottleneck=True),
    "one token": Row(heads=(1, 2), tokens=(1,), skips=_ANY, masks=_MASKS),
}


def random_softmax(row: str, count: int, seed: int, largest: int = 120) -> list[Architecture]:
    """Different random networks of a row with at most so many parameters."""
    draw = random.Random(f"{row} {seed}")
    found: dict[Architecture, None] = {}
    for _ in range(200 * count):
        network = _drawn(draw, ROWS[row])
        if network.parameters <= largest:
            found[network] = None
        if len(found) == count:
            break
    return list(found)


def _drawn(draw: random.Random, row: Row) -> Architecture:
    depth, skip = draw.choice(row.depths), draw.choice(row.skips)
    widths = tuple(draw.randint(row.narrowest, 4) for _ in range(depth + 1))
    if skip == "residual":
        widths = (draw.randint(1, 3),) * (depth + 1)
    if row.bottleneck:
        delta = draw.randint(1, 3)
        outer = (delta + draw.randint(0, 2), delta + draw.randint(0, 2))
        widths = (outer[0], *(delta,) * (depth - 1), outer[1])
    factored = draw.random() < 0.3 and not row.bottleneck
    return Architecture(
        widths=widths,
        ranks=tuple(draw.randint(1, 3) for _ in range(depth)),
        tokens=draw.choice(row.tokens),
        attention="softmax",
        heads=draw.choice(row.heads),
        value_ranks=tuple(draw.randint(1, 3) for _ in range(depth)) if factored else None,
        skip=skip,
        mask=draw.choice(row.masks),
    )


def _rows(trial: Trial, *names: str) -> str:
    count = 5 if trial.quick else 40
    networks = [one for row in names for one in random_softmax(row, count, trial.seed)]
    return compare_dimensions(trial, networks, theorem)


@check("softmax-dimension")
def one_head(trial: Trial) -> str:
    """One head: the dimension of the virtual weights (softmax-dimension)."""
    return _rows(trial, *(row for row in ROWS if row.startswith("one head")))


@check("softmax-one-token")
def one_token(trial: Trial) -> str:
    """One token: a linear map (softmax-one-token)."""
    return _rows(trial, "one token")


@check("softmax-residual")
def residual(trial: Trial) -> str:
    """The residual skip: all pairs (A, V) (softmax-residual)."""
    return _rows(trial, "residual", "residual, causal")


@check("softmax-heads-bottleneck")
def bottleneck_of_heads(trial: Trial) -> str:
    """Bottlenecks with several heads (softmax-heads-bottleneck)."""
    return _rows(trial, "heads, bottleneck")


@check("softmax-heads")
def deep_heads(trial: Trial) -> str:
    """Deep networks with several heads; two tokens that widen see less (softmax-heads)."""
    networks = random_softmax("heads", 6 if trial.quick else 60, trial.seed)
    two, three = (Architecture((2, 4, 2), (2, 4), t, "softmax", heads=2) for t in (2, 3))
    checked = compare_dimensions(trial, [three, *networks], theorem)
    ranks = {f"t = {one.tokens}": certified(one, trial.seed).lower for one in (two, three)}
    trial.equal(f"{two}: no formula", None, dimension_formula(two).dimension)
    trial.equal(f"{two}: rank", 52, ranks["t = 2"])
    same = distance(*_unseen_direction(two, trial.seed))
    trial.close(f"{two}: A_(2,h) + B has the same function", same, ROUNDING)
    trial.numbers["widths 2,4,2, ranks 2,4, two heads"] = ranks
    return checked


def _unseen_direction(network: Architecture, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Outputs for A_{2,1} and A_{2,1} + B, B invisible with two tokens.

    All differences of tokens after layer 1 are V_{1,1} p u + V_{1,2} q u, u = x_1 − x_2, so the
    scores see (p, q) ⊗ u only: B is invisible when every V_{1,g}ᵀ B V_{1,g'} is skew and
    B Σ_g V_{1,g} = 0. With S = [V_{1,1} V_{1,2}] invertible, B = S^{−T} (b ⊗ J) S^{−1}, where
    b = (1, −1; 2, −2) and J is the skew 2 × 2 matrix.
    """
    W, X = random_weights(network, seed), normal_input(network, seed)
    tensors = [
        {name: np.array(part) for name, part in layer.tensors().items()} for layer in W.layers
    ]
    S = np.linalg.inv(np.concatenate(list(tensors[0]["value"]), axis=1))
    B = S.T @ np.kron([[1.0, -1.0], [2.0, -2.0]], [[0.0, 1.0], [-1.0, 0.0]]) @ S
    K, Q = tensors[1]["key"], tensors[1]["query"]
    Q[0] = np.linalg.solve(K[0].T, K[0].T @ Q[0] + B)
    return output(W, X), output(Weights.from_tensors(network, tensors), X)
