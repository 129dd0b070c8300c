"""Whether two weights have the same function, for the floats as the rationals they are (eq-6).

*Different* is proved, by a theorem about what the function determines (`fibers.determined`, with
exact ranks), or by a witness: an input at which ball arithmetic of enough digits encloses the two
outputs in disjoint balls. *Same* is proved where the invariants are equal. For the networks that
have none (several heads in depth, residual skips in depth) the difference of the two functions is
evaluated at random points over two prime fields, with formal exponentials (softmax-exact): if it
vanishes at all of them the functions are equal but for a chance below (degree/p) at each point,
which the reason says.
"""

import jax
import numpy as np

from neuromanifold.algebra.balls.arrays import balls, midpoints, precision
from neuromanifold.algebra.modular import FormalElements, over_prime_field
from neuromanifold.algebra.prime_field import PrimeField, ZeroResidueError
from neuromanifold.fibers.evidence import Evidence, gather
from neuromanifold.fibers.outputs import common_units, random_inputs
from neuromanifold.fibers.same import Comparison, Verdict, Witness
from neuromanifold.networks.attention import Tokens, attention
from neuromanifold.networks.evaluation import evaluate
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
    proved = gather(first, second)
    witness = None if proved.equal else _witness(first, second, inputs, seed)
    verdict, reason, statement = _decide(first, second, proved, witness, seed)
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


def _decide(
    first: Weights, second: Weights, proved: Evidence, witness: Witness | None, seed: int
) -> tuple[Verdict, str, str | None]:
    """The verdict with its reason and statement."""
    if proved.equal is not None:
        return "same", proved.equal.text, proved.equal.statement
    if proved.differ is not None:
        return "different", proved.differ, proved.statement
    if witness is not None:
        return "different", "the outputs at the witness lie in disjoint balls", None
    if _vanishes(first, second, seed):
        text = (
            f"the difference of the functions vanishes at {POINTS} random points over each of the "
            f"primes {PRIMES[0]} and {PRIMES[1]}, which is no proof, but leaves little chance"
        )
        return "same", text, "field-rank"
    text = "no input shows a difference, and formal exponentials do not show equality"
    return "undecided", text, None


def _witness(first: Weights, second: Weights, inputs: int, seed: int) -> Witness | None:
    """An input at which balls around the outputs are disjoint, with the outputs as floats."""
    X = random_inputs((first.architecture, second.architecture), inputs, seed)
    s = common_units(first, second)[0].input
    for bits in BITS:
        with precision(bits):
            for x in X[: max(1, 1024 // bits) * 8]:
                x = np.ldexp(x, s)
                one, other = _balls(first, x), _balls(second, x)
                if any(not y.overlaps(z) for y, z in zip(one.flat, other.flat, strict=True)):
                    return Witness(x, midpoints(one), midpoints(other))
    return None


def _balls(weights: Weights, X: np.ndarray) -> np.ndarray:
    """φ_W(X) in ball arithmetic, for the floats as they are (def-1, eq-15)."""
    layers = [{name: balls(T) for name, T in layer.arrays().items()} for layer in weights.layers]
    return evaluate(layers, balls(X), weights.architecture)


def _vanishes(first: Weights, second: Weights, seed: int) -> bool:
    """Whether φ_W − φ_W' is zero at random points over both primes."""

    def difference(pair: tuple[Weights, Weights], X: Tokens) -> jax.Array:
        return attention(pair[0], X) - attention(pair[1], X)

    shape = (first.architecture.widths[0], first.architecture.tokens)
    function = over_prime_field(difference, (first, second), np.zeros(shape))
    for prime in PRIMES:
        field = PrimeField(prime)
        pair = jax.tree.map(field.from_floats, (first, second))
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
