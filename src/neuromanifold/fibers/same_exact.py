"""Whether two weights have the same function, for the floats as the rationals they are (eq-6).

Both answers are proved. *Different* by a theorem about what the function determines
(`fibers.determined`, with exact ranks), or by a witness: an input at which ball arithmetic of
enough digits encloses the two outputs in disjoint balls. *Same* where the invariants are equal, or
the networks are when they run side by side (`fibers.side_by_side`).
"""

import numpy as np

from neuromanifold.algebra.balls.arrays import balls, midpoints, precision
from neuromanifold.fibers.evidence import Evidence, gather, side_by_side
from neuromanifold.fibers.outputs import common_units, random_inputs
from neuromanifold.fibers.same import Comparison, Verdict, Witness
from neuromanifold.networks.evaluation import evaluate
from neuromanifold.networks.weights import Weights

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
    witness, error = None, 0.0
    if proved.equal is None:
        witness, error = _witness(first, second, inputs, seed)
    verdict, reason, statement = _decide(first, second, proved, witness)
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
    first: Weights, second: Weights, proved: Evidence, witness: Witness | None
) -> tuple[Verdict, str, str | None]:
    """The verdict with its reason and statement."""
    if proved.equal is None and proved.differ is not None:
        return "different", proved.differ, proved.statement
    if witness is not None:
        return "different", "the outputs at the witness lie in disjoint balls", None
    reason = proved.equal or side_by_side(first, second)
    if reason is not None:
        return "same", reason.text, reason.statement
    return "undecided", "no input shows a difference, and no proof shows equality", None


def _witness(
    first: Weights, second: Weights, inputs: int, seed: int
) -> tuple[Witness | None, float]:
    """An input at which balls around the outputs are disjoint, and by how much, relatively.

    The first where the outputs differ as floats too; otherwise the first. Homogeneous networks are
    given inputs of a size at which the larger outputs have size one.
    """
    both = first.architecture, second.architecture
    X, units = random_inputs(both, inputs, seed), common_units(first, second)
    s = units[0].input
    if all(one.is_homogeneous for one in both):
        s = min(-(u.output // 3**one.depth) for u, one in zip(units, both, strict=True))
    found: tuple[Witness | None, float] = None, 0.0
    for bits in BITS:
        with precision(bits):
            for x in X[: max(1, 1024 // bits) * 8]:
                x = np.ldexp(x, s)
                one, other = _balls(first, x), _balls(second, x)
                if all(y.overlaps(z) for y, z in zip(one.flat, other.flat, strict=True)):
                    continue
                witness = Witness(x, midpoints(one), midpoints(other))
                size = max(np.abs(witness.first).max(), np.abs(witness.second).max()) or 1.0
                apart = float(np.abs(midpoints(one - other)).max())
                error = apart / size if np.isfinite(size) else np.inf
                if not np.array_equal(witness.first, witness.second):
                    return witness, error
                found = found if found[0] else (witness, error)
        if found[0] is not None:
            break
    return found


def _balls(weights: Weights, X: np.ndarray) -> np.ndarray:
    """φ_W(X) in ball arithmetic, for the floats as they are (def-1, eq-15)."""
    layers = [{name: balls(T) for name, T in layer.arrays().items()} for layer in weights.layers]
    return evaluate(layers, balls(X), weights.architecture)
