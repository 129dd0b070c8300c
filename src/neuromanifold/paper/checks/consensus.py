"""Deep softmax near consensus: the expansion behind (softmax-fibers), exactly and numerically.

Tokens c + ε z_k with Σ z_k = 0 and C = Σ z_k z_kᵀ / t. The scores of a column may be shifted, so
take (x_j − mean)ᵀ M x_i = ε z_jᵀ M c + O(ε²). They depend on i at order ε² only, so

    new token i = c + ε² C M c + O(ε³), and two of them differ by O(ε³).

A spread of order ε^s becomes one of order ε^{3s}, and moves the mean by ε^{2s}: after i layers the
spread is of order 3^i, and layer i is seen in the output at order 2·3^{i−1} (consensus).

Two computations: power series in ε with coefficients in GF(p), where every order is exact; and ball
arithmetic at small ε, where logarithms have slopes.
"""

from dataclasses import asdict, dataclass
from itertools import pairwise
from math import log2
from typing import Any

import numpy as np
from flint import arb, ctx
from jaxtyping import Int

from neuromanifold.algebra.prime_field import DEFAULT_PRIME
from neuromanifold.paper.checks.evaluation import from_forms
from neuromanifold.paper.checks.trial import Trial, check

Series = Int[np.ndarray, "_ _ _"]
"""A matrix of power series: order, row, column; one matrix of residues for each power of ε."""

PRECISION = 4000
"""Bits of the balls: spreads go down to ε^27, ε ≥ 2^−40, so that 1,080 bits would be enough."""


@dataclass(frozen=True, slots=True)
class ConsensusOrders:
    """Powers of ε at which things are first seen.

    Attributes:
        spread: the differences of tokens, before the first layer and after every layer.
        shift: what every layer adds to the mean of its tokens.
        seen: the change of the output when the form of a layer changes.
        leading: whether the first layer's shift is ε² C M c exactly, to its first order.
    """

    spread: tuple[int, ...]
    shift: tuple[int, ...]
    seen: tuple[int, ...]
    leading: bool


def consensus_orders(depth: int, width: int, tokens: int, seed: int) -> ConsensusOrders:
    """All orders of a random softmax network in virtual weights, mod p (consensus)."""
    p = DEFAULT_PRIME
    draw = np.random.default_rng((seed, 31))
    order = 3**depth + 2
    forms = draw.integers(1, p, (depth, width, width))
    c, z = draw.integers(1, p, (width, 1)), draw.integers(1, p, (width, tokens))
    z = (tokens * z - z.sum(1, keepdims=True)) % p
    X = np.zeros((order, width, tokens), dtype=np.int64)
    X[0], X[1] = c, z
    path = _through(X, forms, p)
    means = [_mean(Y, p) for Y in path]
    spread = [_valuation((Y - mean) % p) for Y, mean in zip(path, means, strict=True)]
    shift = [_valuation((b - a) % p) for a, b in pairwise(means)]
    seen = []
    for i in range(depth):
        changed = forms.copy()
        changed[i] = (changed[i] + draw.integers(1, p, (width, width))) % p
        seen.append(_valuation((_through(X, changed, p)[-1] - path[-1]) % p))
    covariance = z @ z.T % p * pow(tokens, -1, p) % p
    expected = covariance @ (forms[0] @ c % p) % p
    leading = bool(np.array_equal((means[1] - means[0])[2] % p, expected))
    return ConsensusOrders(tuple(spread), tuple(shift), tuple(seen), leading)


def _through(X: Series, forms: Int[np.ndarray, "l d d"], p: int) -> list[Series]:
    """The input and the tokens after every layer X ↦ X P_M(X)."""
    path = [X]
    for M in forms:
        X = path[-1]
        centred = (X - _mean(X, p)) % p
        scores = _product(centred.transpose(0, 2, 1), (M @ X) % p, p)
        weights = _exponential(scores, p)
        inverse = _reciprocal(weights.sum(1, keepdims=True) % p, p)
        path.append(_product(X, _product(weights, inverse, p, np.multiply), p))
    return path


def _mean(X: Series, p: int) -> Series:
    return X.sum(2, keepdims=True) % p * pow(X.shape[2], -1, p) % p


def _valuation(X: Series) -> int:
    """The first order that is not zero; the number of orders kept if all are."""
    nonzero = X.reshape(len(X), -1).any(1)
    return int(nonzero.argmax()) if nonzero.any() else len(X)


def _product(A: Series, B: Series, p: int, times: Any = np.matmul) -> Series:
    """The product, by default of matrices.

    Residues are below 2^23, so a sum of 2^17 products stays below 2^63.
    """
    total = np.zeros((len(A), *times(A[0], B[0]).shape), dtype=np.int64)
    for k in range(len(A)):
        total[k:] = (total[k:] + times(A[k], B[: len(A) - k])) % p
    return total


def _exponential(f: Series, p: int) -> Series:
    """Exp f for f without constant term: n E_n = Σ_k k f_k E_{n−k}."""
    E = np.zeros_like(f)
    E[0] = 1
    for n in range(1, len(f)):
        total = sum(k * f[k] % p * E[n - k] % p for k in range(1, n + 1))
        E[n] = total * pow(n, -1, p) % p
    return E


def _reciprocal(s: Series, p: int) -> Series:
    """1/s for s with the same invertible constant term in every entry."""
    first = pow(int(s[0].flat[0]), -1, p)
    inverse = np.zeros_like(s)
    inverse[0] = first
    for n in range(1, len(s)):
        total = sum(s[k] * inverse[n - k] % p for k in range(1, n + 1))
        inverse[n] = -total * first % p
    return inverse


EXPONENTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 40)
"""The figure shows ε = 2^−1, …, 2^−16; the slopes are taken from the last two."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Spreads of tokens through a network, in ball arithmetic.

    Attributes:
        exponent: ε = 2^−exponent.
        log2: the base-2 logarithm of the largest distance of two tokens, before the first layer
            and after every layer.
    """

    exponent: int
    log2: tuple[float, ...]


def spreads(depth: int, exponents: tuple[int, ...], seed: int) -> tuple[Spread, ...]:
    """The spread of three tokens of width 2 through random softmax layers of forms M / 4."""
    draw = np.random.default_rng((seed, 32))
    unit = np.eye(2, dtype=object)
    forms = draw.integers(-4, 5, (depth, 2, 2)) + unit
    c, z = draw.integers(1, 5, 2).astype(object), draw.integers(-4, 5, (3, 2)).astype(object)
    found = []
    before, ctx.prec = ctx.prec, PRECISION
    try:
        for exponent in exponents:
            path = [c[:, None] + arb(2) ** -exponent * z.T]
            for M in forms:
                path.append(from_forms([M], path[-1], unit, attention="softmax", temperature=4.0))
            found.append(Spread(exponent, tuple(map(_spread, path))))
    finally:
        ctx.prec = before
    return tuple(found)


def _spread(X: np.ndarray) -> float:
    """log2 of the largest difference of coordinates; the ball must not contain zero."""
    gaps: list[arb] = list(np.ravel(abs(X[:, 1:] - X[:, :1])))
    mantissa, exponent = max(gaps, key=lambda gap: float(gap.mid().log())).mid().man_exp()
    return log2(abs(int(mantissa))) + int(exponent)


@check("consensus")
def expansion(trial: Trial) -> str:
    """Orders 1, 3, 9, … of the spread, 2, 6, 18, … of what is seen of the layers (consensus)."""
    sizes = trial.some([(1, 2, 2), (2, 2, 3), (3, 2, 3), (3, 3, 4), (4, 2, 3)], 3)
    table = {}
    for depth, width, tokens in sizes:
        found = consensus_orders(depth, width, tokens, trial.seed)
        name = f"l = {depth}, d = {width}, t = {tokens}"
        twice = [2 * 3**i for i in range(depth)]
        trial.equal(f"{name}: spread", [3**i for i in range(depth + 1)], found.spread)
        trial.equal(f"{name}: shift of the mean", twice, found.shift)
        trial.equal(f"{name}: layers seen", twice, found.seen)
        trial.equal(f"{name}: ε² C M c", True, found.leading)
        table[name] = {"spread": found.spread, "seen": found.seen}
    curves = spreads(3, EXPONENTS, trial.seed)
    before, last = curves[-2:]
    rise = np.subtract(last.log2, before.log2)
    slopes = (rise / (before.exponent - last.exponent)).tolist()
    for i, slope in enumerate(slopes):
        trial.close(f"slope after {i} layers", abs(slope - 3**i), 1e-3)
    spread = [asdict(one) for one in curves]
    trial.numbers |= {"orders": table, "slopes": slopes, "spreads": spread}
    return (
        f"power series mod p for {len(sizes)} networks, every order exact; slopes in ball "
        f"arithmetic of {PRECISION} bits at ε = 2^−20 and 2^−40 (seed {trial.seed})"
    )
