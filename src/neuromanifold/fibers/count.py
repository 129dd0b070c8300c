"""How many weights modulo symmetries have the function of generic weights.

Weights are taken with one point for each orbit of the changes of basis and rescalings
(`fibers.section`), around a random point y = 0 over a prime field. That weights have the same
function as this point are polynomial equations in y: outputs at random inputs X, or the
coefficients of their power series at ε X, which for softmax too are polynomials in the weights.
`algebra.quotient` counts the solutions over the algebraic closure. As the fiber of a generic
function consists of closures of orbits of full dimension, these are its components.

What is proved. From below, points known from symmetries (`known_points`). `exact`: a theorem about
generic fibers applies, and the count does not contradict it. `infinite`: the dimension is proved to
be smaller than that of the weights modulo symmetries, as heads mix or forms are not seen. The count
itself is exact for the one fiber mod p, and with overwhelming probability that of generic weights;
it proves nothing for these, since solutions can run to infinity mod p as those of p y² = y do. So
where no theorem applies and two primes agree, it is `probable`, otherwise there is a `lower bound`.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from flint import nmod_mpoly

from neuromanifold.algebra.prime_field import DEFAULT_PRIME, PrimeField
from neuromanifold.algebra.quotient import Zeros, ring, zeros
from neuromanifold.algebra.rank import rank
from neuromanifold.architecture import Architecture
from neuromanifold.certificates.exact import certify
from neuromanifold.display import Displayed, Recorded
from neuromanifold.errors import ArgumentError
from neuromanifold.fibers.section import Entries, Head, Section, known_points, section
from neuromanifold.statements import Facts, applies, get

Verdict = Literal["exact", "probable", "infinite", "lower bound"]

MONOMIALS = 4000
"""How many monomials are eliminated together at most, unless another number is given."""
_PRIMES = (DEFAULT_PRIME, 8388571)
_LARGEST = 24
"""Dimensions modulo symmetries beyond which nothing is tried."""
_MOST_PARAMETERS = 1000
_INPUTS = 40
"""How many inputs give equations."""
_ORDERS = 8
"""How many orders of a power series are looked at."""
_THEOREMS = (
    "thm-3.2",
    "thm-3.7",
    "thm-3.9",
    "softmax-fibers",
    "softmax-causal-fibers",
    "softmax-inner-fibers",
    "softmax-layer",
    "softmax-heads",
)


@dataclass(frozen=True, slots=True)
class FiberCount(Displayed, Recorded):
    """The number of weights modulo changes of basis and rescalings with one generic function.

    Attributes:
        architecture: of the network.
        coordinates: the dimension of its weights modulo these symmetries.
        lower: so many there are at least, by permutations of heads and the like.
        found: how many there are over the algebraic closure at random weights mod p; None where
            that was not to be computed.
        verdict: `exact`, `probable`, `infinite` or `lower bound`.
        statement: the id of the theorem that makes it exact.
        primes: those over which it was counted.
        seed: of weights and inputs.
    """

    architecture: Architecture
    coordinates: int
    lower: int
    found: int | None
    verdict: Verdict
    statement: str | None
    primes: tuple[int, ...]
    seed: int
    _json = "architecture coordinates value verdict statement lower found primes seed"

    @property
    def value(self) -> int | None:
        """The number, where it is exact or probable."""
        return {"exact": self.lower, "probable": self.found}.get(self.verdict)

    def __str__(self) -> str:
        counted = "not counted" if self.found is None else f"{self.found} over GF({self.primes[0]})"
        number = {
            "exact": f"{self.lower} (exact, {self.statement}; {counted})",
            "probable": f"{self.found} (probable, over two primes; at least {self.lower} proved)",
            "infinite": "infinitely many (exact)",
            "lower bound": f"at least {self.lower} (no theorem; {counted})",
        }[self.verdict]
        return (
            f"Weights of {self.architecture.name} with one generic function, modulo changes of "
            f"basis and rescalings ({self.coordinates} coordinates): {number}."
        )


def count_fiber(
    architecture: Architecture, *, seed: int = 0, monomials: int = MONOMIALS
) -> FiberCount:
    """How many weights modulo symmetries have the function of generic weights.

    Args:
        architecture: of the network, with at most 24 coordinates modulo symmetries.
        seed: of the random weights and inputs.
        monomials: how many are eliminated together at most; time grows with the third power.

    >>> found = count_fiber(Architecture((2, 1), (1,), 2))
    >>> found.value, found.verdict, found.statement, found.coordinates
    (2, 'exact', 'thm-3.2', 4)
    """
    if monomials < 1:
        raise ArgumentError(f"monomials must be at least 1; got {monomials}")
    if architecture.parameters > _MOST_PARAMETERS:
        raise ArgumentError(
            f"fibers are counted for at most {_MOST_PARAMETERS} parameters; {architecture.name} "
            f"has {architecture.parameters}: take smaller sizes"
        )
    chart = section(architecture)
    if chart.coordinates > _LARGEST:
        raise ArgumentError(
            f"fibers are counted for at most {_LARGEST} coordinates modulo symmetries; "
            f"{architecture.name} has {chart.coordinates}: take smaller sizes"
        )
    least, statement = known_points(architecture), _theorem(architecture)
    counted: list[int | None] = []
    verdict: Verdict = "lower bound"
    if certify(architecture, seed=seed).upper < chart.coordinates:
        verdict, statement = "infinite", None
    else:
        counted.append(_zeros(chart, _PRIMES[0], seed, least, monomials).distinct)
        if statement is not None and counted[0] in (None, least):
            verdict = "exact"
        elif counted[0] is not None:
            counted.append(_zeros(chart, _PRIMES[1], seed + 1, least, monomials).distinct)
            verdict = "probable" if counted[0] == counted[1] else "lower bound"
    return FiberCount(
        architecture=architecture,
        coordinates=chart.coordinates,
        lower=least,
        found=counted[0] if counted else None,
        verdict=verdict,
        statement=statement if verdict == "exact" else None,
        primes=_PRIMES[: len(counted)],
        seed=seed,
    )


def _theorem(architecture: Architecture) -> str | None:
    """The theorem by which generic fibers are those that `known_points` counts."""
    facts = Facts.of(architecture)
    if architecture.attends_to_all and applies(get("softmax-residual"), facts):
        return "softmax-residual"
    return next((id_ for id_ in _THEOREMS if applies(get(id_), facts)), None)


def _zeros(chart: Section, prime: int, seed: int, least: int, monomials: int) -> Zeros:
    """The zeros of the equations, order by order until one more changes nothing or costs too much.

    An order whose equations have a larger degree than could be looked at adds nothing.
    """
    last, field = Zeros(None, None, 0, 0), PrimeField(prime)
    equations: list[nmod_mpoly] = []
    for order in _orders(chart.architecture):
        equations = [*equations, *_equations(chart, field, seed, order)]
        if not _isolated(equations, field, chart.unknowns):
            continue
        here = zeros(equations, field, least=least, monomials=monomials)
        if here.most is None:
            if last.most or max(f.total_degree() for f in equations) > here.degree:
                return last
        elif here.most in (least, last.most):
            return here
        last = here
    return last


def _orders(architecture: Architecture) -> list[int | None]:
    """The orders in ε to look at; None where the function is homogeneous."""
    if architecture.is_homogeneous:
        return [None]
    last = 2 * _ORDERS if architecture.averages_tokens else 3**architecture.depth + 1
    return [*range(1, last, 2)]


def _isolated(equations: list[nmod_mpoly], field: PrimeField, n: int) -> bool:
    """Whether the differential at y = 0 has full rank."""
    rows = np.zeros((len(equations), n))
    for row, f in zip(rows, equations, strict=True):
        for exponents, value in f.to_dict().items():
            if sum(exponents) == 1:
                row[exponents.index(1)] = field.from_integers([int(value)])[0]
    return rank(rows, field) == n


def _equations(chart: Section, field: PrimeField, seed: int, order: int | None) -> list[nmod_mpoly]:
    """What outputs at random inputs, or their coefficients of an order, demand of y."""
    architecture, p = chart.architecture, field.modulus
    polynomials = ring(chart.unknowns, field)
    numbers = iter(field.random(seed, "fiber", (4 * chart.unknowns + 64,)).astype(int).tolist())
    at = [w % p for w in chart.point(lambda: next(numbers) % p, p)]
    moved = [polynomials.constant(w) + y for y, w in zip(polynomials.gens(), at, strict=True)]
    layers, found = chart.layers(moved)

    def constants(numbers: np.ndarray) -> Entries:
        found = np.empty(numbers.shape, dtype=object)
        for place in np.ndindex(numbers.shape):
            found[place] = polynomials.constant(int(numbers[place]) % p)
        return found

    size, origin = (architecture.widths[0], architecture.tokens), (0,) * chart.unknowns
    for k in range(_INPUTS):
        X = constants(field.random(seed, f"input {order} {k}", size))
        zero = constants(np.zeros(size))
        series = [X] if order is None else [X if i == 1 else zero for i in range(order + 1)]
        for heads in layers:
            series = _layer(architecture, heads, series, p)
        found += [f - int(f[origin]) for f in series[-1].ravel()]
    return found


Series = list[Entries]
"""The coefficients of a power series of matrices, up to some order."""


def _layer(architecture: Architecture, heads: list[Head], X: Series, p: int) -> Series:
    """One layer (eq-2, eq-15), X a power series."""
    total: Series = X if architecture.adds_input else [x[:0] for x in X]
    for A, V in heads:
        P = _pattern(architecture, A, X, p)
        out = _product(X, P)
        if architecture.adds_values:
            out = [x + y for x, y in zip(X, out, strict=True)]
        out = [V @ y for y in out]
        total = out if not len(total[0]) else [x + y for x, y in zip(total, out, strict=True)]
    return total


def _product(left: Series, right: Series) -> Series:
    return [
        sum((left[i] @ right[k - i] for i in range(1, k + 1)), left[0] @ right[k])
        for k in range(len(left))
    ]


def _pattern(architecture: Architecture, A: Entries, X: Series, p: int) -> Series:
    """Scores, or e^S over its column sums: k E_k = Σ_m m S_m E_{k-m}, and E = P Z."""
    scores = _product([x.T for x in X], [A @ x for x in X])
    t = architecture.tokens
    seen = np.ones((t, t), dtype=object)
    if not architecture.attends_to_all:
        seen = np.triu(np.ones((t, t), dtype=int)).astype(object)
    if not architecture.averages_tokens:
        return [S * seen for S in scores]
    exponential = [scores[0] + seen]  # scores begin at order two
    for k in range(1, len(X)):
        terms = (scores[m] * exponential[k - m] * m for m in range(1, k + 1))
        exponential.append(sum(terms, scores[0]) * pow(k, -1, p) * seen)
    sums = [E.sum(axis=0) for E in exponential]
    inverse = np.array([pow(int(n), -1, p) for n in seen.sum(axis=0)], dtype=object)
    pattern: Series = []
    for k, E in enumerate(exponential):
        earlier = (pattern[k - m] * sums[m] for m in range(1, k + 1))
        pattern.append((E - sum(earlier, scores[0])) * inverse)
    return pattern
