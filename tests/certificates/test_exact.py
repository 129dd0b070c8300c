"""Certificates prove what is known, and claim no more."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuromanifold.architecture import Architecture
from neuromanifold.certificates.exact import certify
from neuromanifold.certificates.ledger import explain
from neuromanifold.certificates.numeric import estimate
from neuromanifold.errors import ArgumentError
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.networks.weights import random_weights, unflatten
from neuromanifold.statements import Facts


def lightning(*args, **kwargs):
    return Architecture(*args, **kwargs)


def softmax(*args, **kwargs):
    return Architecture(*args, attention="softmax", **kwargs)


# --- networks -------------------------------------------------------------------------------


@pytest.mark.statement("field-rank")
def test_every_network_of_the_table_is_certified_and_agrees_with_its_formula(architecture):
    certificate = certify(architecture, seed=1)
    formula = dimension_formula(architecture)
    assert certificate.verdict == "exact"
    if formula.dimension is not None:
        assert certificate.lower == formula.dimension


@pytest.mark.statement("head-mixing")
@pytest.mark.statement("inner-skip")
@pytest.mark.statement("residual-skip")
@pytest.mark.statement("causal-mask")
@pytest.mark.statement("one-token")
@pytest.mark.statement("all-widths")
@pytest.mark.parametrize(
    ("network", "dimension"),
    [
        (lightning((2, 1), (2,), 2), 5),
        (lightning((3, 2), (2,), 3), 13),
        (lightning((2, 4, 2), (2, 2), 3), 10),
        (lightning((8, 7, 1), (2, 2), 3), 62),
        (lightning((3, 3, 3), (1, 2), 3), 18),
        (lightning((3, 3, 3), (2, 2), 3, skip="inner"), 25),
        (lightning((3, 3, 3), (1, 2), 3, mask="causal"), 20),
        (lightning((3, 3, 3), (2, 2), 2, mask="causal"), 23),
        (lightning((3, 3), (3,), 3, heads=2), 32),
        (lightning((4, 4), (4,), 3, heads=3), 87),
        (lightning((4, 4), (3,), 3, heads=3), 87),
        (lightning((4, 1), (4,), 3, heads=2), 32),
        (lightning((3, 3, 3), (2, 2), 1), 19),
        (lightning((2, 2, 2), (2, 2), 1), 8),
        (lightning((2, 2, 2, 2), (2, 2, 2), 1), 10),
        (softmax((4, 3, 2), (2, 2), 1), 8),
    ],
    ids=str,
)
def test_known_numbers(network, dimension):
    certificate = certify(network)
    assert certificate.lower == dimension
    assert certificate.lower <= certificate.upper


@pytest.mark.statement("conj-3.10")
@pytest.mark.statement("eq-16")
@pytest.mark.parametrize(
    ("delta", "dimension"),
    list(zip(range(3, 11), [25, 40, 57, 76, 97, 120, 145, 172], strict=True)),
)
def test_the_values_of_figure_three_are_proved(delta, dimension):
    widths, ranks = (delta, delta, delta), (2, 2)
    normalised, plain = certify(softmax(widths, ranks, 3)), certify(lightning(widths, ranks, 3))
    assert (normalised.lower, normalised.verdict) == (dimension, "exact")
    assert (plain.lower, plain.verdict) == (dimension - 2, "exact")


def random_architecture(seed):
    """A network with one head and random sizes."""
    generator = np.random.default_rng(seed)
    depth = int(generator.integers(1, 4))
    return Architecture(
        widths=tuple(int(d) for d in generator.integers(1, 6, depth + 1)),
        ranks=tuple(int(a) for a in generator.integers(1, 5, depth)),
        tokens=int(generator.integers(1, 4)),
        attention=str(generator.choice(["lightning", "softmax"])),
    )


@pytest.mark.statement("all-widths")
@pytest.mark.parametrize("seed", range(12))
def test_random_architectures_have_the_dimension_of_the_formula(seed):
    architecture = random_architecture(seed)
    assert certify(architecture).lower == dimension_formula(architecture).dimension


@pytest.mark.slow
@pytest.mark.statement("all-widths")
@pytest.mark.parametrize("seed", range(12, 400))
def test_many_random_architectures_have_the_dimension_of_the_formula(seed):
    architecture = random_architecture(seed)
    certificate = certify(architecture)
    assert certificate.lower == certificate.upper == dimension_formula(architecture).dimension
    assert certificate.verdict == "exact"


def has_symmetric_scores(architecture):
    """Whether all tokens reach some softmax layer as multiples of one vector.

    Then the scores a y_j y_i are symmetric, and with three tokens their differences are dependent:
    independent exponentials would prove too much, and a basis of exponents is needed.
    """
    reach = Facts.of(architecture).reach[:-1]
    return architecture.attention == "softmax" and architecture.tokens >= 3 and 1 in reach


@pytest.mark.statement("softmax-exact")
def test_symmetric_scores_have_dependent_exponents_which_are_written_over_a_basis():
    certificate = certify(softmax((1, 2), (1,), 3))
    assert has_symmetric_scores(certificate.architecture)
    check = certificate.independence
    assert (check.columns, check.rank, check.relations) == (5, 5, 1)
    assert certificate.verdict == "exact"
    assert certificate.lower == estimate(certificate.architecture).rank


@settings(max_examples=8)
@given(st.integers(0, 10**6))
@pytest.mark.statement("field-rank")
def test_a_certificate_never_exceeds_a_theorem(seed):
    architecture = random_architecture(seed % 40)
    formula = dimension_formula(architecture)
    lower = certify(architecture, seed=seed, inputs=1 + seed % 30).lower
    if formula.status == "theorem":
        assert lower <= formula.dimension


def test_two_primes_and_two_seeds_agree():
    network = softmax((3, 2, 4), (2, 3), 3)
    found = {(certify(network, seed=s, prime=p).lower) for s in (0, 1) for p in (8388593, 1048583)}
    assert found == {22}


def test_too_few_inputs_give_a_smaller_lower_bound_and_no_exact_claim():
    network = lightning((3, 3, 3), (2, 2), 3)
    certificate = certify(network, inputs=10)
    assert certificate.inputs == certificate.lower == 10
    assert certificate.verdict == "bounds"
    assert certificate.unexplained == 13


# --- readouts -------------------------------------------------------------------------------


@pytest.mark.statement("readouts")
@pytest.mark.parametrize("readout", ["probabilities", "decisions"])
def test_readouts_see_the_network_of_one_output_less(readout):
    wide, narrow = softmax((3, 2, 4), (2, 3), 3), softmax((3, 2, 3), (2, 3), 3)
    certificate = certify(wide, readout=readout)
    assert certificate.verdict == "exact"
    assert certificate.lower == certify(narrow).lower - (readout == "decisions")


@pytest.mark.statement("readouts")
@pytest.mark.parametrize("readout", ["probabilities", "decisions"])
def test_readouts_of_wide_layers_are_bounded_by_the_virtual_weights(readout):
    certificate = certify(lightning((2, 4, 3), (2, 2), 3), readout=readout)
    assert certificate.upper_source == "virtual weights"
    assert certificate.verdict == "exact"
    assert sum(family.dimension for family in certificate.symmetries) < (
        certificate.parameters - certificate.lower
    )


@pytest.mark.statement("readouts")
@pytest.mark.parametrize("readout", ["probabilities", "decisions"])
def test_one_output_coordinate_decides_nothing(readout):
    for skip in ("none", "residual"):
        certificate = certify(lightning((1, 1), (1,), 2, skip=skip), readout=readout)
        assert (certificate.lower, certificate.upper, certificate.verdict) == (0, 0, "exact")


@pytest.mark.statement("readouts")
def test_a_residual_network_has_no_scale_to_lose():
    network = lightning((3, 3, 3), (2, 2), 3, skip="residual")
    logits, probabilities, decisions = (
        certify(network, readout=readout) for readout in ("logits", "probabilities", "decisions")
    )
    assert logits.lower - probabilities.lower == 3
    assert decisions.lower == probabilities.lower
    assert decisions.verdict == "exact"


# --- given weights --------------------------------------------------------------------------


def test_at_random_weights_the_local_dimension_is_the_generic_one(architecture):
    local = certify(architecture, weights=random_weights(architecture, 5))
    assert local.lower == certify(architecture).lower
    assert local.weights is not None


def test_at_a_special_point_the_local_dimension_is_smaller():
    """A = k⊗q, V = h⊗k is critical: the differential loses rank there."""
    network = lightning((3, 2), (3,), 2)
    k, q, h = np.array([1.0, 2, 3]), np.array([0.5, -1, 2]), np.array([1.0, -2])
    weights = random_weights(network, 0)
    tensors = {
        "query": np.outer([1, 0, 0], q)[None],
        "key": np.outer([1, 0, 0], k)[None],
        "value": np.outer(h, k)[None],
    }
    special = type(weights).from_tensors(network, [tensors])
    assert certify(network, weights=special).lower < certify(network).lower
    zero = unflatten(network, np.zeros(network.parameters))
    assert certify(network, weights=zero).lower == 0


@pytest.mark.statement("softmax-exact")
def test_dependent_exponents_at_given_weights_are_noticed():
    """Heads (A, V) and (−A, V): exponents come in opposite pairs, and 16 would be wrong."""
    network = softmax((2, 2), (2,), 2, heads=2)
    base = random_weights(network, 0).layers[0].tensors()
    tensors = {
        "query": np.stack([base["query"][0], -base["query"][0]]),
        "key": np.stack([base["key"][0]] * 2),
        "value": np.stack([base["value"][0]] * 2),
    }
    special = type(random_weights(network, 0)).from_tensors(network, [tensors])
    certificate = certify(network, weights=special)
    check = certificate.independence
    assert (check.columns, check.rank, check.relations) == (2, 2, 2)
    assert certificate.lower == estimate(network, weights=special).rank == 12
    assert certify(network).verdict == "exact"


@pytest.mark.statement("softmax-exact")
def test_a_rank_that_proves_nothing_is_no_lower_bound():
    """Two heads of width 1 at given weights: the exponents' ratio is no small rational number."""
    network = softmax((1, 1), (1,), 2, heads=2)
    certificate = certify(network, weights=random_weights(network, 0))
    check = certificate.independence
    assert (check.columns, check.rank, certificate.lower_is_proved) == (4, 2, False)
    assert (certificate.lower, certificate.verdict) == (0, "bounds")
    assert certificate.rank == certificate.summary()["rank"] > 0 == certificate.summary()["lower"]
    assert "proves nothing" in str(certificate)
    assert "exponentials: rank 2 of 4" in str(certificate)
    assert explain(network, weights=random_weights(network, 0)).lines[0].name != "dimension"


@pytest.mark.statement("softmax-exact")
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_the_exponents_of_all_layers_and_heads_are_proved_independent(mask):
    network = softmax((3, 3, 3), (2, 2), 3, heads=2, mask=mask)
    check = certify(network).independence
    pairs = 6 if mask == "none" else 3
    assert check.columns == check.rank == 2 * 2 * pairs


def test_weights_of_another_network_are_refused():
    with pytest.raises(ArgumentError, match=r"weights of .* were wanted; got those of"):
        certify(lightning((3, 2), (2,), 3), weights=random_weights(lightning((3, 3), (2,), 3), 0))


def test_weights_with_nan_are_refused():
    network = lightning((2, 2), (1,), 2)
    with pytest.raises(ArgumentError, match="NaN or infinite"):
        certify(network, weights=unflatten(network, np.full(network.parameters, np.inf)))


@pytest.mark.parametrize(
    ("prime", "sentence"),
    [
        (8388592, "not a prime|odd"),
        (2**23 + 9, "below 2"),
        (251, "above 2"),
        (-7, "odd and below"),
    ],
)
def test_bad_primes_are_refused(prime, sentence):
    with pytest.raises(ArgumentError, match=sentence):
        certify(lightning((2, 2), (1,), 2), prime=prime)


@pytest.mark.usefixtures("wrong_types")
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"seed": -1}, "seed must be a whole number from 0 to .* − 1; got -1"),
        ({"seed": 2**63}, "seed must be a whole number from 0 to .* − 1; got 92"),
        ({"seed": "a"}, "seed must be a whole number"),
        ({"inputs": 2**60}, "inputs must be at least 1 and at most 10000000"),
        ({"inputs": 2.5}, "inputs must be a whole number; got 2.5"),
        ({"reading": "residue"}, "a reading is one of residues, balls; got 'residue'"),
    ],
)
def test_seeds_and_inputs_that_are_none_are_refused(arguments, text):
    with pytest.raises(ArgumentError, match=text):
        certify(lightning((2, 2), (1,), 2), **arguments)
