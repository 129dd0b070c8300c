"""A proved rank is never larger than the rank in many digits, whatever the function."""

import contextlib
import functools
import json
from collections import Counter

import jax
import numpy as np
import pytest

import neuromanifold as nm
from expressions import random_function, twin_functions
from expressions.constants import LENGTH
from expressions.digits import SkippedError
from expressions.floats import Floats
from expressions.ranks import rank_in_digits
from neuromanifold.algebra.cells.points import SIZES, normal
from neuromanifold.algebra.cells.rules import MEETINGS, OUTCOMES, PIECEWISE
from neuromanifold.algebra.cells.whole import WholeInputs
from neuromanifold.algebra.modular.coverage import SUPPORTED
from neuromanifold.algebra.modular.tracing import programs_in
from neuromanifold.certificates.ball_rank import _inputs as ball_inputs
from neuromanifold.certificates.cells import MOST_PATTERNS, pieces
from neuromanifold.certificates.certificate import Certificate
from neuromanifold.certificates.jacobian import SPARE_ROWS
from neuromanifold.certificates.program import rows_program
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


def _network(function, size, whole, name):
    return nm.network(
        lambda w, x: function(Floats, w["w"], x),
        {"w": np.zeros(size)},
        REAL | WHOLE if whole else REAL,
        name=name,
    )


def _compared(seed, reading=None):
    """What a certificate of a random function is beside its rank in many digits.

    With a reading at the weights of that rank, else at generic ones.
    """
    function, size, whole = random_function(seed)
    return _beside_digits(_network(function, size, whole, f"{seed}"), function, whole, reading)


def _beside_digits(network, function, whole=False, reading=None):
    try:
        weights, inputs = _points(network, network.parameters + 8, whole)
        if reading == "balls":
            inputs = [
                dict(zip(sorted(network.sample), x, strict=True))
                for x in zip(
                    *jax.tree.leaves(ball_inputs(network, 0, network.parameters + SPARE_ROWS)),
                    strict=True,
                )
            ]
        given = {} if reading is None else {"weights": {"w": weights}, "reading": reading}
        certificate = nm.certify(network, **given)
    except NeuromanifoldError:
        return "refused"
    assert Certificate.from_dict(json.loads(json.dumps(certificate.to_dict()))) == certificate
    passed = certificate.readings.passed
    met = max(certificate.inputs, MOST_PATTERNS + len(passed) if passed else 0)
    if reading != "balls" and met > len(inputs) // 2:
        # A certificate that took more inputs, or passed some over, may have seen more cells.
        inputs = _points(network, met, whole)[1]
    try:
        rank = rank_in_digits(function, weights, inputs)
    except SkippedError:
        return "skipped"
    if rank is None:
        return "no gap"
    assert certificate.lower <= rank, (
        f"function {network.name}: {certificate}; in many digits {rank}"
    )
    if not certificate.lower_is_proved:
        return "unproved"
    return "proved" if certificate.lower == rank else "smaller"


def _count(seeds, compared=_compared):
    return Counter(map(compared, seeds))


def test_twins_meet_every_primitive():
    """A new rule needs an expression of its own among them."""
    met = set()
    for number, function in enumerate(twin_functions()):
        network = _network(function, 4, False, f"twins {number}")
        with contextlib.suppress(NeuromanifoldError):
            for whole in (network.program, rows_program(network, 4).jaxpr):
                met |= {e.primitive.name for part in programs_in(whole) for e in part.jaxpr.eqns}
    assert {*SUPPORTED, *PIECEWISE, *OUTCOMES, *MEETINGS} - met == set()


@pytest.mark.slow
def test_twins_have_no_false_proof():
    found = Counter(
        _beside_digits(_network(function, 4, False, f"twins {number}"), function)
        for number, function in enumerate(twin_functions())
    )
    assert found["proved"] >= 85


def test_random_functions_have_no_false_proof():
    found = _count(range(30))
    assert found["proved"] >= 12


@pytest.mark.parametrize(("reading", "least"), [("residues", 3), ("balls", 2)])
def test_random_functions_at_given_weights_have_no_false_proof(reading, least):
    found = _count(range(12), functools.partial(_compared, reading=reading))
    assert found["proved"] >= least


@pytest.mark.slow
@pytest.mark.parametrize("reading", ["residues", "balls"])
@pytest.mark.parametrize("first", range(30, 330, 100))
def test_hundreds_at_given_weights_have_no_false_proof(first, reading):
    found = _count(range(first, first + 100), functools.partial(_compared, reading=reading))
    assert found["proved"] >= 20


@pytest.mark.slow
@pytest.mark.parametrize("first", range(30, 1030, 100))
def test_a_thousand_random_functions_have_no_false_proof(first):
    found = _count(range(first, first + 100))
    assert found["proved"] >= 30
