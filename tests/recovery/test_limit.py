import numpy as np
import pytest

from neuromanifold.recovery.oracle import value_at_zero


@pytest.mark.parametrize("nodes", [1, 5, 8])
def test_polynomials_below_the_number_of_nodes_are_exact(nodes):
    coefficients = np.random.default_rng(0).standard_normal((nodes, 3))

    def polynomial(u):
        return sum(c * u**k for k, c in enumerate(coefficients))

    found = value_at_zero(polynomial, reach=0.5, nodes=nodes)
    np.testing.assert_allclose(found, coefficients[0], atol=1e-13)
    higher = value_at_zero(lambda u: np.array([u**nodes]), reach=1.0, nodes=nodes)
    assert abs(higher[0]) > 1e-10


def test_only_positive_arguments_within_reach_are_used():
    seen = []
    value_at_zero(lambda u: np.array([seen.append(u) or u]), reach=2.0, nodes=6)
    assert len(seen) == 6
    assert 0 < min(seen) < max(seen) <= 2.0
