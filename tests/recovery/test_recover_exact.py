from fractions import Fraction

import flint
import numpy as np
import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError, NotCoveredError
from neuromanifold.networks.weights import Layer, Weights
from neuromanifold.recovery import ExactOracle, exact_network_oracle, recover

PRIME = 8388593
TWO_LAYERS = [
    Architecture((3, 3, 3), (2, 2), 3),
    Architecture((4, 2, 3), (2, 2), 2),
    Architecture((3, 5, 2), (2, 3), 3),
    Architecture((3, 3, 1), (3, 2), 3),
]
THREE_LAYERS = [
    Architecture((3, 3, 3, 3), (2, 2, 2), 3),
    Architecture((3, 5, 2, 2), (3, 2, 2), 3),
    Architecture((3, 4, 3, 1), (2, 2, 3), 2),
]


def exact_virtual(weights):
    """M_1, …, M_l and L in exact arithmetic (eq-8)."""
    linear = np.array(
        [
            [Fraction(int(i == j)) for i in range(weights.architecture.widths[0])]
            for j in range(weights.architecture.widths[0])
        ],
        dtype=object,
    )
    forms = []
    for layer in weights.layers:
        forms.append(linear.T @ layer.attention_matrices()[0] @ linear)
        linear = layer.value_maps()[0] @ linear
    return [*forms, linear]


def whole_weights(architecture, seed):
    """Weights of whole numbers from −5 to 5: forms of rank at least 2, not skew, and L ≠ 0."""
    generator = np.random.default_rng(seed)
    while True:
        tensors = [
            {name: generator.integers(-5, 6, shape) for name, shape in layer.items()}
            for layer in architecture.shapes
        ]
        weights = Weights.from_tensors(architecture, tensors)
        *forms, linear = [M.astype(float) for M in exact_virtual(weights)]
        if linear.any() and all(np.linalg.matrix_rank(M) > 1 and (M + M.T).any() for M in forms):
            return weights


def are_parallel(found, wanted, prime):
    """Whether one exact array is a non-zero multiple of the other."""
    found, wanted = (np.vectorize(Fraction, otypes=[object])(a).ravel() for a in (found, wanted))
    minors = np.outer(found, wanted) - np.outer(wanted, found)
    if prime is not None:
        minors = minors % prime
    return found.any() and not minors.any()


def check_exact(architecture, seed, prime):
    truth = whole_weights(architecture, seed)
    recovery = recover(exact_network_oracle(truth, prime), architecture, seed=seed)
    assert recovery.verdict == "identified", recovery
    assert recovery.fit_error == 0
    assert isinstance(recovery.fit_error, Fraction)
    found, wanted = exact_virtual(recovery.weights), exact_virtual(truth)
    for M, M_wanted in zip(found, wanted, strict=True):
        assert are_parallel(M, M_wanted, prime)
    return recovery


@pytest.mark.statement("thm-3.7")
@pytest.mark.statement("eq-13")
@pytest.mark.parametrize("prime", [None, PRIME], ids=["Q", "GF(p)"])
@pytest.mark.parametrize("architecture", [*TWO_LAYERS, *THREE_LAYERS], ids=str)
def test_exact_networks_are_found_up_to_rescaling_without_error(architecture, prime):
    for seed in range(1 if prime is None else 3):
        check_exact(architecture, seed, prime)


@pytest.mark.slow
@pytest.mark.statement("thm-3.7")
@pytest.mark.parametrize("prime", [None, PRIME], ids=["Q", "GF(p)"])
@pytest.mark.parametrize("architecture", [*TWO_LAYERS, *THREE_LAYERS], ids=str)
def test_exact_networks_are_found_over_many_seeds(architecture, prime):
    for seed in range(50):
        check_exact(architecture, seed, prime)


@pytest.mark.statement("thm-3.2")
@pytest.mark.parametrize("prime", [None, PRIME], ids=["Q", "GF(p)"])
def test_an_exact_layer_of_rank_one_has_both_points(prime):
    k, q, v = np.array([[1, 2, -1], [3, 1, 1], [0, 2, 5]])
    layer = Layer(query=q[None, None], key=k[None, None], value=v[None, None])
    truth = Weights((layer,), Architecture((3, 1), (1,), 2))
    recovery = recover(exact_network_oracle(truth, prime), truth.architecture)
    assert recovery.verdict == "identified"
    assert len(recovery.alternatives) == 1
    values = [w.layers[0].value[0] for w in (recovery.weights, *recovery.alternatives)]
    assert sorted(are_parallel(value, v[None], prime) for value in values) == [False, True]
    assert sorted(are_parallel(value, k[None], prime) for value in values) == [False, True]


def test_fractions_and_flint_numbers_are_accepted():
    architecture = Architecture((2, 2, 2), (2, 2), 2)
    truth = whole_weights(architecture, 3)
    halves = Weights.from_tensors(
        architecture,
        [{n: np.asarray(t) / 2 for n, t in layer.tensors().items()} for layer in truth.layers],
    )
    inner = exact_network_oracle(halves)

    def answer(X):
        output = inner.function(X)
        return [[flint.fmpq(x.numerator, x.denominator) for x in row] for row in output]

    recovery = recover(ExactOracle(answer), architecture)
    assert recovery.verdict == "identified"
    X = np.array([[Fraction(1, 3), 2], [1, Fraction(-1, 2)]], dtype=object)
    found = exact_network_oracle(recovery.weights).function(X)
    assert np.array_equal(found, inner.function(X))


@pytest.mark.statement("thm-3.7")
def test_a_skew_form_is_refused_exactly():
    architecture = Architecture((3, 3, 3), (3, 3), 3)
    first, second = whole_weights(architecture, 0).layers
    skew = np.array([[0, 1, 2], [-1, 0, 3], [-2, -3, 0]])
    layer = Layer(query=skew[None], key=np.eye(3, dtype=int)[None], value=second.value)
    recovery = recover(exact_network_oracle(Weights((first, layer), architecture)), architecture)
    assert recovery.verdict == "not identified"
    assert "skew" in recovery.reason


@pytest.mark.statement("thm-3.7")
def test_an_interior_layer_of_rank_one_is_refused_exactly():
    architecture = Architecture((3, 3, 3), (1, 2), 3)
    tensors = [
        {n: np.random.default_rng(1).integers(-5, 6, s) for n, s in layer.items()}
        for layer in architecture.shapes
    ]
    oracle = exact_network_oracle(Weights.from_tensors(architecture, tensors), PRIME)
    assert recover(oracle, architecture).verdict == "not identified"


def test_an_almost_lightning_map_is_refused_exactly():
    """One output is off by one unit in the last place: a float tolerance would not see it."""
    architecture = Architecture((2, 2, 2), (2, 2), 2)
    inner = exact_network_oracle(whole_weights(architecture, 0))

    def nearly(X):
        output = inner.function(X)
        output[0, 0] += Fraction(1, 10**30) * X[0, 0] ** 9
        return output

    recovery = recover(ExactOracle(nearly), architecture)
    assert recovery.verdict == "not identified"
    assert recovery.weights is None


def test_the_exact_zero_function_is_recognised():
    architecture = Architecture((2, 3, 2), (2, 2), 2)
    recovery = recover(ExactOracle(lambda X: 0 * X), architecture)
    assert recovery.verdict == "identified"
    assert not any(tensor.any() for _, tensor in recovery.weights.named_tensors())


def test_inexact_answers_and_small_primes_are_errors():
    architecture = Architecture((2, 2), (2,), 2)
    with pytest.raises(ArgumentError, match="whole numbers or fractions; got"):
        recover(ExactOracle(lambda X: X.astype(float)), architecture)
    with pytest.raises(ArgumentError, match="a prime of at least 65536; got 101"):
        recover(ExactOracle(lambda X: X, prime=101), architecture)
    with pytest.raises(NotCoveredError, match="exact black boxes are made of lightning"):
        exact_network_oracle(
            Weights.from_tensors(
                Architecture((2, 2), (1,), 2, "softmax"),
                [
                    {
                        "query": np.ones((1, 1, 2)),
                        "key": np.ones((1, 1, 2)),
                        "value": np.eye(2)[None],
                    }
                ],
            )
        )


@pytest.mark.parametrize("prime", [None, PRIME], ids=["Q", "GF(p)"])
@pytest.mark.parametrize(
    "cubic",
    [
        lambda X: X[:1] ** 3,
        lambda X: X[:1] ** 3 + X[1:2] ** 3 + X[:1] * X[1:2] * X[2:],
        lambda X: X[:1] * X[1:2] * (X[:1] + X[2:]),
    ],
    ids=["cube", "irreducible", "three factors"],
)
def test_an_exact_cubic_map_that_is_no_lightning_layer_is_refused(cubic, prime):
    recovery = recover(ExactOracle(cubic, prime), Architecture((3, 1), (3,), 2))
    assert recovery.verdict == "not identified"
    assert recovery.weights is None
    assert recovery.reason
