"""Checks of deep networks as compositions, and of the neuromanifold and its fibers."""

from itertools import combinations_with_replacement
from math import comb

import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.formula.ambient import ambient_dimension
from neuromanifold.networks.weights import Weights, conditioned_weights, random_weights
from neuromanifold.paper.checks.evaluation import (
    DIFFERENT,
    ROUNDING,
    distance,
    exact_output,
    integer_input,
    integer_weights,
    normal_input,
    output,
)
from neuromanifold.paper.checks.evidence import (
    Case,
    Check,
    Counterexample,
    Finding,
    apart,
    close,
    equal,
)
from neuromanifold.paper.checks.exact_dimensions import certified
from neuromanifold.symmetry.attention import attention_network, named
from neuromanifold.symmetry.families import families_of

_DEEP = [
    Architecture((2, 1), (2,), 2),
    Architecture((3, 2, 2), (2, 1), 3),
    Architecture((2, 3, 2), (2, 2), 2),
    Architecture((2, 2, 2, 2), (1, 2, 2), 2),
]


def homogeneous(quick: bool, seed: int) -> Finding:
    """A deep lightning network is homogeneous of degree 3^l (def-2).

    Doubling an input doubles every rounding error with it, so in floats too the two sides must be
    the same to the last bit.
    """
    networks = _DEEP[:2] if quick else _DEEP
    cases = []
    for network in networks:
        W, X = random_weights(network, seed), normal_input(network, seed)
        degree = 3**network.depth
        cases.append(equal(f"{network}: φ(2X)", 2.0**degree * output(W, X), output(W, 2 * X)))
    return Finding(
        f"φ(2X) = 2^(3^l) φ(X) for {len(networks)} networks of depth 1 to "
        f"{networks[-1].depth}, to the last bit (seed {seed})",
        cases,
        {"degrees": {network.name: 3**network.depth for network in networks}},
    )


def layer_after_layer(quick: bool, seed: int) -> Finding:
    """The network is the composition of its layers (eq-4)."""
    networks = _DEEP[:2] if quick else _DEEP
    cases = []
    for network in networks:
        W, X = integer_weights(network, seed, 1), integer_input(network, seed, 1)
        Y = X
        for i in range(network.depth):
            one = Architecture(network.widths[i : i + 2], network.ranks[i : i + 1], network.tokens)
            Y = output(Weights((W.layers[i],), one), Y)
        cases.append(equal(network.name, Y, output(W, X)))
    return Finding(
        f"{len(networks)} networks of integer weights, layer by layer (seed {seed})", cases
    )


def parameters(_quick: bool, seed: int) -> Finding:
    """There are Σ_i d_{i-1}(2 a_i + d_i) parameters (def-3)."""
    networks = [*_DEEP, Architecture((4, 2, 3), (2, 1), 3), Architecture((5, 1), (3,), 2)]
    cases = []
    for network in networks:
        d, a = network.widths, network.ranks
        count = sum(d[i] * (2 * a[i] + d[i + 1]) for i in range(network.depth))
        cases.append(equal(f"{network}: count", count, network.parameters))
        entries = random_weights(network, seed).flatten().size
        cases.append(equal(f"{network}: entries", count, entries))
        columns = attention_network(network).columns
        cases.append(equal(f"{network}: Jacobian columns", count, columns))
    example = Architecture((4, 2, 3), (2, 1), 3)
    d, a = example.widths, example.ranks
    printed = sum(d[i + 1] * (2 * a[i] + d[i]) for i in range(example.depth))
    return Finding(
        checked=f"{len(networks)} architectures: the formula, the entries of weights and the "
        "columns of the Jacobian",
        cases=cases,
        counterexample=Counterexample(
            text=f"Widths 4, 2, 3 and ranks 2, 1 have {example.parameters} weights; the printed "
            f"Σ d_i(2a_i + d_{{i-1}}) gives {printed}.",
            refutes=printed != example.parameters,
            numbers={"parameters": example.parameters, "printed": printed},
        ),
    )


def inside_polynomials(quick: bool, seed: int) -> Finding:
    """Functions of lightning networks are polynomial maps of degree 3^l (eq-5).

    On a line s ↦ φ(X + sY) a polynomial of degree n has n-th difference n! times its leading
    coefficient, φ(Y) as φ is homogeneous, and the next difference is zero. In Python integers.
    """
    networks = _DEEP[:2] if quick else _DEEP
    cases = []
    for network in networks:
        W, degree = integer_weights(network, seed, 1), 3**network.depth
        X, Y = (integer_input(network, seed + k, 1) for k in (0, 1))
        values = [exact_output(W, X + s * Y) for s in range(degree + 2)]
        for order, expected in ((degree, _factorial(degree) * exact_output(W, Y)), (degree + 1, 0)):
            found = sum((-1) ** (order - s) * comb(order, s) * values[s] for s in range(order + 1))
            cases.append(equal(f"{network}: difference {order}", expected + 0 * found, found))
    return Finding(
        f"differences of order 3^l and 3^l + 1 along a line, for {len(networks)} networks in "
        f"Python integers (seed {seed})",
        cases,
    )


def _factorial(n: int) -> int:
    return n * _factorial(n - 1) if n else 1


def ambient(quick: bool, _seed: int) -> Finding:
    """The space of polynomial maps has dimension t·d_l·C(t·d_0 + 3^l − 1, 3^l) (ambient)."""
    networks = [
        Architecture((d, *(2,) * (depth - 1), d_out), (1,) * depth, t)
        for d, d_out, t, depth in [(2, 1, 2, 1), (1, 1, 1, 1), (3, 2, 2, 1), (1, 2, 2, 2)]
        + ([] if quick else [(2, 1, 1, 2), (2, 3, 2, 2), (1, 1, 2, 3)])
    ]
    cases = []
    for network in networks:
        variables = range(network.tokens * network.widths[0])
        monomials = sum(1 for _ in combinations_with_replacement(variables, 3**network.depth))
        count = network.tokens * network.widths[-1] * monomials
        cases.append(equal(network.name, count, ambient_dimension(network)))
    slice_of = ambient_dimension(Architecture((2, 1), (2,), 2))
    cases.append(equal("the layer of Figure 1", 40, slice_of))
    return Finding(
        f"{len(networks)} networks, all monomials listed one by one",
        cases,
        {"Figure 1": slice_of},
    )


def fibers(quick: bool, seed: int) -> Finding:
    """Symmetries stay in the fiber, other weights are outside; its dimension (eq-6)."""
    networks = [
        Architecture((3, 2, 3), (2, 2), 3),
        Architecture((3, 3), (2,), 3, "softmax"),
        Architecture((3, 3), (3,), 3, heads=2),
        Architecture((3, 3, 3), (2, 2), 3, skip="residual"),
        Architecture((3, 3, 3), (2, 2), 3, mask="causal"),
    ][: 2 if quick else None]
    cases: list[Case] = []
    dimensions = {}
    for network in networks:
        W, X = conditioned_weights(network, seed), normal_input(network, seed)
        generator = np.random.default_rng(seed)
        for family in families_of(attention_network(network)):
            moved = family.act(family.random(generator), named(W))
            moved = Weights.from_named(network, moved)
            error = distance(output(W, X), output(moved, X))
            cases.append(close(f"{network}: moved by {family.name}", error, ROUNDING))
        other = conditioned_weights(network, seed + 1)
        cases.append(
            apart(f"{network}: other weights", distance(output(W, X), output(other, X)), DIFFERENT)
        )
        found = certified(network, seed)
        dimensions[network.name] = found.parameters - found.lower
        cases.append(
            equal(
                f"{network}: fiber dimension",
                sum(family.dimension for family in found.symmetries),
                found.parameters - found.lower,
            )
        )
    return Finding(
        f"{len(networks)} networks, every family of symmetries of each, float64; dimensions of "
        f"generic fibers by exact ranks (seed {seed})",
        cases,
        {"dimensions of generic fibers": dimensions},
    )


CHECKS: dict[str, Check] = {
    "def-2": homogeneous,
    "eq-4": layer_after_layer,
    "def-3": parameters,
    "eq-5": inside_polynomials,
    "ambient": ambient,
    "eq-6": fibers,
}
