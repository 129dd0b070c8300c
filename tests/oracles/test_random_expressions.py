"""A proved rank is never larger than the rank in many digits, whatever the function."""

from collections import Counter

import numpy as np
import pytest

import neuromanifold as nm
from expressions import LENGTH, Floats, SkippedError, random_function, rank_in_digits
from neuromanifold.algebra.cells.points import SIZES, normal
from neuromanifold.algebra.cells.whole import WholeInputs
from neuromanifold.certificates.cells import pieces
from neuromanifold.errors import NeuromanifoldError

REAL = {"a": np.zeros(LENGTH), "b": np.zeros(LENGTH)}
WHOLE = {"c": np.zeros(LENGTH, dtype=bool), "t": np.ones(LENGTH, dtype=int)}


def _points(network, count, whole):
    """Weights, and inputs of the same cells that a certificate is about; positive without cells."""
    generator = np.random.default_rng(0)
    numbers = WholeInputs([(LENGTH,)] * 2, [range(2)] * 2).drawn(0, range(count))
    every = [dict(zip(WHOLE, x, strict=True)) for x in zip(*numbers, strict=True)]
    found = pieces(network)
    if found is None or not found.has_cells:
        draw = generator.uniform
        turns = every * 2 if whole else every
        inputs = [x | {k: draw(0.3, 1.2, LENGTH) for k in REAL} for x in turns]
        return draw(0.3, 1.2, network.parameters), inputs
    # The real inputs of a certificate, with others close to each of them.
    inputs = [
        every[i]
        | {
            k: SIZES[i % len(SIZES)] * normal(0, f"cell input {i} leaf {leaf} attempt 0", (LENGTH,))
            + 1e-2 * turn * generator.standard_normal(LENGTH)
            for leaf, k in enumerate(REAL)
        }
        for i in range(count)
        for turn in range(2)
    ]
    return network.draw(0)["w"], inputs


def _compared(seed):
    """What a certificate of a random function is beside its rank in many digits."""
    function, size, whole = random_function(seed)
    network = nm.network(
        lambda w, x: function(Floats, w["w"], x),
        {"w": np.zeros(size)},
        REAL | WHOLE if whole else REAL,
        name=f"{seed}",
    )
    try:
        certificate = nm.certify(network)
    except NeuromanifoldError:
        return "refused"
    try:
        rank = rank_in_digits(function, *_points(network, size + 8, whole))
    except SkippedError:
        return "skipped"
    if rank is None:
        return "no gap"
    assert certificate.lower <= rank, f"function {seed}: {certificate}; in many digits {rank}"
    if not certificate.lower_is_proved:
        return "unproved"
    return "proved" if certificate.lower == rank else "smaller"


def _count(seeds):
    return Counter(map(_compared, seeds))


def test_random_functions_have_no_false_proof():
    found = _count(range(30))
    assert found["proved"] >= 12


@pytest.mark.slow
@pytest.mark.parametrize("first", range(30, 1030, 100))
def test_a_thousand_random_functions_have_no_false_proof(first):
    found = _count(range(first, first + 100))
    assert found["proved"] >= 40
