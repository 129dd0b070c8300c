"""Whether two weights have the same function, for the floats as the rationals they are (eq-6).

*Different* is proved, by a theorem about what the function determines (`fibers.determined`, with
exact ranks), or by a witness: an input at which ball arithmetic of enough digits encloses the two
outputs in disjoint balls. *Same* is proved where the invariants are equal. For the networks that
have none (several heads in depth, residual skips in depth) the difference of the two functions is
evaluated at random points over two prime fields, with formal exponentials (softmax-exact): if it
vanishes at all of them the functions are equal but for a chance below (degree/p) at each point,
which the reason says.
"""

from fractions import Fraction

import flint
import numpy as np

from neuromanifold.algebra.modular import FormalElements, over_prime_field
from neuromanifold.algebra.prime_field import PrimeField, ZeroResidueError
from neuromanifold.architecture import Architecture
from neuromanifold.fibers.determined import determined, exact_facts, together
from neuromanifold.fibers.evidence import (
    FACTOR,
    comparable_invariants,
    equal_invariants,
    exact_pair,
    exactly_equal,
    is_scale_free,
)
from neuromanifold.fibers.outputs import common_units, random_inputs
from neuromanifold.fibers.same import Comparison, Verdict, Witness
from neuromanifold.networks.attention import attention
from neuromanifold.networks.traits import (
    adds_input,
    adds_values,
    attends_to_past,
    is_linear_in_scores,
)
from neuromanifold.networks.weights import Weights

PRIMES = (8388593, 8388587)
"""The two largest primes below 2^23."""
POINTS = 4
"""Random points over each prime field."""
BITS = (128, 512, 2048)
"""Precisions that a witness is looked for with, one after the other."""


def compare_exactly(first: Weights, second: Weights, *, inputs: int, seed: int) -> Comparison:
    """The comparison of the module's docstring.

    Args:
        first: weights W.
        second: weights W' of a comparable network.
        inputs: the number of inputs among which a witness is looked for.
        seed: of inputs and points.
    """
    equal = exactly_equal(first, second)
    if equal is not None:
        return _answer("same", equal.text, equal.statement, None, inputs, seed)
    proved = _determined_difference(first, second)
    witness = _witness(first, second, inputs, seed)
    if proved is not None:
        return _answer("different", *proved, witness, inputs, seed)
    if witness is not None:
        text = "the outputs at the witness lie in disjoint balls"
        return _answer("different", text, None, witness, inputs, seed)
    if _vanishes(first, second, seed):
        text = (
            f"the difference of the functions vanishes at {POINTS} random points over each of the "
            f"primes {PRIMES[0]} and {PRIMES[1]}, which is no proof, but leaves little chance"
        )
        return _answer("same", text, "field-rank", None, inputs, seed)
    text = "no input shows a difference, and formal exponentials do not show equality"
    return _answer("undecided", text, None, None, inputs, seed)


def _answer(
    verdict: Verdict,
    reason: str,
    statement: str | None,
    witness: Witness | None,
    inputs: int,
    seed: int,
) -> Comparison:
    error = 0.0
    if witness is not None:
        size = max(np.abs(witness.first).max(), np.abs(witness.second).max()) or 1.0
        error = float(np.abs(witness.first - witness.second).max() / size)
    return Comparison(
        verdict=verdict,
        reason=reason,
        statement=statement,
        compared="outputs" if witness is not None else "invariants",
        error=error,
        tolerance=0.0,
        bound=0.0,
        witness=witness,
        transport=None,
        tested=f"outputs at up to {inputs} random inputs in ball arithmetic, seed {seed}",
        inputs=inputs,
        seed=seed,
        exact=True,
    )


def _determined_difference(first: Weights, second: Weights) -> tuple[str, str | None] | None:
    """What the function determines and is not equal, in words with the statement."""
    architecture = first.architecture
    if not comparable_invariants(architecture, second.architecture):
        return None
    pair = exact_pair(first, second)
    shared = together(
        *(determined(architecture, [exact_facts(one) for one in own]) for own in pair)
    )
    scale_free = is_scale_free(architecture)
    for one, other in zip(*pair, strict=True):
        if one.name not in shared.seen:
            continue
        if scale_free and one.value.factor_to(other.value) is None:
            return f"what differs is the direction of {one.name}", shared.statement
        if not scale_free and not one.value.equals(other.value):
            return f"what differs is {one.name}", shared.statement
    whole = shared.seen >= {one.name for one in pair[0]}
    if scale_free and whole and not equal_invariants(*pair, shared.unseen, scale_free=True):
        return f"what differs is {FACTOR}", shared.statement
    return None


def _witness(first: Weights, second: Weights, inputs: int, seed: int) -> Witness | None:
    """An input at which balls around the outputs are disjoint, with the outputs as floats."""
    X = random_inputs((first.architecture, second.architecture), inputs, seed)
    s = common_units(first, second)[0].input
    precision = flint.ctx.prec
    try:
        for bits in BITS:
            flint.ctx.prec = bits
            for x in X[: max(1, 1024 // bits) * 8]:
                x = np.ldexp(x, s)
                one, other = _balls(first, x), _balls(second, x)
                apart = any(
                    not y.overlaps(z) for y, z in zip(one.entries(), other.entries(), strict=True)
                )
                if apart:
                    return Witness(x, _floats(one), _floats(other))
    finally:
        flint.ctx.prec = precision
    return None


def _floats(balls: flint.arb_mat) -> np.ndarray:
    values = [float(y.mid()) for y in balls.entries()]
    return np.array(values).reshape(balls.nrows(), balls.ncols())


def _ball_matrix(matrix: np.ndarray) -> flint.arb_mat:
    rows, columns = matrix.shape
    return flint.arb_mat(rows, columns, [flint.arb(float(x)) for x in matrix.ravel()])


def _balls(weights: Weights, X: np.ndarray) -> flint.arb_mat:
    """φ_W(X) in ball arithmetic, for the floats as they are (def-1, eq-15)."""
    architecture, tokens = weights.architecture, _ball_matrix(X)
    for layer in weights.layers:
        total = None
        for h in range(architecture.heads):
            T = {name: _ball_matrix(np.asarray(x)[h]) for name, x in layer.tensors().items()}
            scores = (T["key"] * tokens).transpose() * (T["query"] * tokens)
            mixed = tokens * _ball_weights(scores, architecture)
            if adds_values(architecture):
                mixed = mixed + tokens
            mixed = T["value"] * mixed
            if "output" in T:
                mixed = T["output"] * mixed
            total = mixed if total is None else total + mixed
        assert total is not None
        tokens = tokens + total if adds_input(architecture) else total
    return tokens


def _ball_weights(scores: flint.arb_mat, architecture: Architecture) -> flint.arb_mat:
    """The attention weights of scores, with mask and normalisation."""
    t, causal = scores.ncols(), attends_to_past(architecture)
    kept = [[not causal or j <= i for i in range(t)] for j in range(t)]
    if is_linear_in_scores(architecture):
        entries = [scores[j, i] if kept[j][i] else flint.arb(0) for j in range(t) for i in range(t)]
        return flint.arb_mat(t, t, entries)
    temperature = flint.arb(architecture.temperature)
    powers = [
        [
            ((scores[j, i] - scores[0, i]) / temperature).exp() if kept[j][i] else flint.arb(0)
            for i in range(t)
        ]
        for j in range(t)
    ]
    totals = [sum((powers[j][i] for j in range(t)), flint.arb(0)) for i in range(t)]
    return flint.arb_mat(t, t, [powers[j][i] / totals[i] for j in range(t) for i in range(t)])


def _vanishes(first: Weights, second: Weights, seed: int) -> bool:
    """Whether φ_W − φ_W' is zero at random points over both primes."""

    def difference(pair: tuple[Weights, Weights], X: np.ndarray) -> object:
        return attention(pair[0], X) - attention(pair[1], X)

    shape = (first.architecture.widths[0], first.architecture.tokens)
    function = over_prime_field(difference, (first, second), np.zeros(shape))
    for prime in PRIMES:
        field = PrimeField(prime)
        pair = tuple(_residues(weights, field) for weights in (first, second))
        for k in range(POINTS):
            X = field.random(seed, f"point {k}", shape)
            elements = FormalElements(field, seed + k)
            try:
                value = function(field, pair, X, elements=elements)
            except ZeroResidueError:
                return False
            if np.any(value):
                return False
    return True


def _residues(weights: Weights, field: PrimeField) -> Weights:
    """The weights' exact values mod p."""
    layers = []
    for layer in weights.layers:
        tensors = {}
        for name, T in layer.tensors().items():
            values = [field.from_fraction(Fraction(float(x))) for x in np.asarray(T).ravel()]
            tensors[name] = np.array(values).reshape(T.shape)
        layers.append(tensors)
    return Weights.from_tensors(weights.architecture, layers)
