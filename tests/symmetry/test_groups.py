"""Groups as values: dimensions, elements of bounded condition, laws, generators."""

import numpy as np
import pytest
import scipy.linalg

from neuromanifold.errors import DiagramError
from neuromanifold.symmetry.groups import (
    GL,
    Monomial,
    Orthogonal,
    RotationCommutant,
    WithTranslations,
)

GROUPS = [
    (GL(3), 9),
    (WithTranslations(GL(2)), 6),
    (Orthogonal(4), 6),
    (RotationCommutant(4, 4, "halves"), 4),
    (RotationCommutant(4, 4, "neighbours"), 4),
    (RotationCommutant(5, 2, "halves"), 11),
    (Monomial(3, "nonzero"), 3),
    (Monomial(3, "positive"), 3),
    (Monomial(3, "sign"), 0),
    (Monomial(3, permute=True), 0),
    (Monomial(3, "positive", permute=True), 3),
    (WithTranslations(Monomial(3)), 3),
    (Monomial(2), 0),
]
every_group = pytest.mark.parametrize(
    ("group", "dimension"), GROUPS, ids=[group.name for group, _ in GROUPS]
)


def belongs(group, g):
    """Whether a matrix is in the group, by its definition."""
    if group.affine:
        last = np.eye(len(g))[-1]
        return np.allclose(g[-1], last) and belongs(group.linear, g[:-1, :-1])
    if isinstance(group, Orthogonal):
        return np.allclose(g @ g.T, np.eye(len(g)))
    if isinstance(group, RotationCommutant):
        turn = np.eye(group.size)
        for k, (i, j) in enumerate(group.planes):
            c, s = np.cos(1 + k), np.sin(1 + k)
            turn[np.ix_([i, j], [i, j])] = [[c, -s], [s, c]]
        return np.allclose(g @ turn, turn @ g)
    if isinstance(group, Monomial):
        entries = g[np.abs(g) > 1e-12]
        if len(entries) != group.size or not np.all((np.abs(g) > 1e-12).sum(0) == 1):
            return False
        if not group.permute and not np.allclose(np.diag(np.diag(g)), g):
            return False
        if group.scale in ("none", "positive") and np.any(entries < 0):
            return False
        return group.scale in ("positive", "nonzero") or np.allclose(np.abs(entries), 1)
    return abs(np.linalg.det(g)) > 0


@every_group
def test_elements_belong_and_products_too(group, dimension):
    generator = np.random.default_rng(0)
    for _ in range(5):
        g, h = (group.random(generator, 30.0) for _ in range(2))
        assert belongs(group, g)
        assert belongs(group, g @ h)
        assert belongs(group, group.identity())
        linear = g[: group.size, : group.size]
        assert np.linalg.cond(linear) <= 30 * (1 + 1e-9)


@every_group
def test_generators_span_the_tangent_space(group, dimension):
    """exp of a combination is in the group, and the generators are independent."""
    basis = group.generators()
    assert len(basis) == group.dimension == dimension
    if not len(basis):
        return
    assert np.linalg.matrix_rank(basis.reshape(len(basis), -1)) == dimension
    assert set(np.unique(basis)) <= {-1.0, 0.0, 1.0}
    for xi in basis:
        assert (xi != 0).sum(0).max() <= 1
        assert (xi != 0).sum(1).max() <= 1
    mix = np.random.default_rng(1).standard_normal(len(basis))
    assert belongs(group, scipy.linalg.expm(np.tensordot(mix, basis, 1)))


@every_group
def test_the_dual_undoes_the_space(group, dimension):
    g = group.random(np.random.default_rng(2))[: group.size, : group.size]
    np.testing.assert_allclose(
        group.power(g, -1).T @ group.power(g, 1), np.eye(group.size), atol=1e-12
    )


def test_powers_of_scalings_and_of_nothing_else():
    g = Monomial(3, "nonzero", permute=True).random(np.random.default_rng(3))
    group = Monomial(3, "nonzero", permute=True)
    np.testing.assert_allclose(group.power(g, 0), (g != 0).astype(float))
    np.testing.assert_allclose(group.power(g, -2), np.where(g != 0, 1 / np.where(g, g, 1) ** 2, 0))
    with pytest.raises(DiagramError, match="GL_2 acts on a space and on its dual only"):
        GL(2).power(np.eye(2), 2)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: RotationCommutant(4, 3), "an even number of coordinates, at most 4; got 3"),
        (lambda: RotationCommutant(2, 4), "at most 2; got 4"),
    ],
)
def test_groups_that_do_not_exist(make, sentence):
    with pytest.raises(DiagramError, match=sentence):
        make()
