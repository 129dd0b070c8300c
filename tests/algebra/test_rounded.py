"""What rounding does to products, against products of matrices that were changed at random."""

import numpy as np
import pytest

from neuromanifold.algebra.rounded import Rounded

DRAWS = 4000


def sampled(function, matrices, roundings):
    """The root mean square of what errors of the given sizes change."""
    generator = np.random.default_rng(1)
    squares = []
    for _ in range(DRAWS):
        moved = [
            B + 1e-6 * N * generator.standard_normal(B.shape)
            for B, N in zip(matrices, roundings, strict=True)
        ]
        squares.append(np.sum((function(*moved) - function(*matrices)) ** 2))
    return 1e6 * np.sqrt(np.mean(squares))


@pytest.mark.parametrize("seed", range(3))
def test_the_noise_of_a_product_is_what_errors_of_its_factors_cause(seed):
    generator = np.random.default_rng(seed)
    shapes = [(2, 4), (3, 4), (3, 5)]
    matrices = [generator.standard_normal(shape) for shape in shapes]
    roundings = [np.abs(generator.standard_normal(shape)) for shape in shapes]
    B, C, D = (
        Rounded.of(str(k), *one, exponent=k)
        for k, one in enumerate(zip(matrices, roundings, strict=True))
    )
    product = B @ C.T @ D
    np.testing.assert_allclose(product.values, matrices[0] @ matrices[1].T @ matrices[2])
    assert product.exponent == 3
    wanted = sampled(lambda B, C, D: B @ C.T @ D, matrices, roundings)
    assert product.noise == pytest.approx(wanted, rel=0.05)


def test_a_matrix_that_enters_twice_counts_with_all_that_its_two_errors_may_add_up_to():
    generator = np.random.default_rng(0)
    L, K = generator.standard_normal((2, 3, 3))
    one = np.ones((3, 3))
    left, form = Rounded.of("L", L, one, 0), Rounded.of("K", K, one, 0)
    noise = (left.T @ form @ left).noise
    wanted = sampled(lambda L, K: L.T @ K @ L, [L, K], [one, one])
    assert wanted <= 1.05 * noise
    assert noise <= 2**0.5 * 1.05 * wanted
    symmetric = sampled(lambda L: L.T @ L, [L], [one])
    assert (left.T @ left).noise == pytest.approx(symmetric, rel=0.3)
    assert symmetric <= 1.05 * (left.T @ left).noise
