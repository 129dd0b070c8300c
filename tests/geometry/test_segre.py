"""Prop A.5, forward: a layer is the table of products of its linear forms."""

import jax
import numpy as np
import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.errors import HypothesisError, NotCoveredError
from neuromanifold.geometry.layer import Factors
from neuromanifold.geometry.segre import (
    evaluate_table,
    product_table,
    read_table,
    symmetric_matrices,
    table_norm,
    table_of,
)
from neuromanifold.networks.attention import attention
from neuromanifold.networks.weights import random_weights
from single_layers import architecture

SIZES = [(1, 1, 1), (2, 1, 2), (2, 3, 1), (3, 2, 2), (4, 3, 6)]


def output(weights, X):
    with jax.enable_x64(True):
        return np.asarray(attention(weights, X))


@pytest.mark.statement("prop-a.5")
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("seed", range(3))
def test_the_table_gives_the_output_for_any_number_of_tokens(sizes, seed):
    weights = random_weights(architecture(*sizes), seed)
    for tokens in (1, 2, 5):
        X = np.random.default_rng(seed).standard_normal((sizes[0], tokens))
        np.testing.assert_allclose(
            evaluate_table(table_of(weights), X), output(weights, X), rtol=1e-12, atol=1e-13
        )


@pytest.mark.statement("prop-a.5")
@pytest.mark.parametrize("sizes", SIZES)
def test_two_tokens_show_the_table(sizes):
    weights = random_weights(architecture(*sizes), 1)
    seen = read_table(lambda X: output(weights, X), sizes[0])
    np.testing.assert_allclose(seen, table_of(weights), rtol=0, atol=1e-13)


def test_the_entries_are_products_of_columns_of_A_and_rows_of_V():
    weights = random_weights(architecture(3, 2, 2), 0)
    factors, x = Factors.of(weights), np.array([0.3, -1.2, 2.0])
    forms = symmetric_matrices(table_of(weights))
    for m in range(3):
        for n in range(2):
            product = (factors.form[:, m] @ x) * (factors.value_map[n] @ x)
            assert x @ forms[m, n] @ x == pytest.approx(product, rel=1e-13)


def test_the_table_is_bilinear_and_its_norm_counts_both_halves_of_a_matrix():
    generator = np.random.default_rng(0)
    A, B, V = generator.standard_normal((3, 2, 2))
    np.testing.assert_allclose(
        product_table(A + 2 * B, V), product_table(A, V) + 2 * product_table(B, V), atol=1e-14
    )
    assert table_norm(np.array([[[0.0, 2.0, 0.0]]] * 2)) == pytest.approx(2.0)


def test_factored_values_give_the_table_of_their_product():
    network = Architecture(widths=(3, 4), ranks=(2,), tokens=2, value_ranks=(2,))
    weights = random_weights(network, 0)
    X = np.random.default_rng(0).standard_normal((3, 2))
    np.testing.assert_allclose(evaluate_table(table_of(weights), X), output(weights, X), rtol=1e-12)


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"tokens": 1}, HypothesisError, "tokens = 1 < 2"),
        ({"heads": 2}, NotCoveredError, "heads = 2 > 1"),
        ({"attention": "softmax"}, NotCoveredError, "attention = softmax, not lightning"),
        ({"mask": "causal"}, NotCoveredError, "mask = causal, not none"),
        ({"skip": "residual"}, NotCoveredError, "skip = residual, not none"),
    ],
)
def test_other_networks_are_refused_with_the_reason(changes, error, text):
    network = Architecture(**{"widths": (3, 3), "ranks": (2,), "tokens": 2, **changes})
    with pytest.raises(error, match=text):
        table_of(random_weights(network, 0))
