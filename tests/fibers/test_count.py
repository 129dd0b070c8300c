"""Numbers of weights with one function: theorems, products of linear forms, brute force."""

from itertools import product

import numpy as np
import pytest

import neuromanifold as nm
from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError
from neuromanifold.fibers.count import count_fiber
from neuromanifold.fibers.section import section
from neuromanifold.formula.formula import dimension_formula

_BY_THEOREM = [
    (Architecture((2, 1), (1,), 2), 2, "thm-3.2"),  # k and v change places
    (Architecture((2, 2), (1,), 2), 1, "thm-3.2"),
    (Architecture((2, 2), (1,), 2, value_ranks=(1,)), 2, "thm-3.2"),
    (Architecture((2, 2), (2,), 2, "softmax"), 1, "thm-3.9"),
    (Architecture((1, 1, 1), (1, 1), 2, "softmax"), 1, "softmax-fibers"),
    (Architecture((1, 1), (1,), 3, "softmax", heads=2), 2, "softmax-layer"),
    (Architecture((2, 2), (1,), 2, "softmax", skip="residual"), 1, "softmax-residual"),
]
_DEEP_BY_THEOREM = [
    (Architecture((2, 2, 1), (1, 1), 2, "softmax"), 1, "softmax-fibers"),
    (Architecture((2, 2, 2), (2, 2), 2, "softmax", mask="causal"), 1, "softmax-causal-fibers"),
    (Architecture((2, 2, 2), (1, 1), 3, "softmax", skip="inner"), 1, "softmax-inner-fibers"),
    (Architecture((2, 2, 2), (1, 1), 2, "softmax", skip="inner"), 1, "softmax-inner-fibers"),
    (Architecture((2, 2, 1), (2, 2), 3), 1, "thm-3.7"),
    (Architecture((1, 2), (1,), 3, "softmax", heads=3), 6, "softmax-layer"),
]


@pytest.mark.parametrize(
    ("architecture", "expected", "statement"),
    [*_BY_THEOREM, *(pytest.param(*case, marks=pytest.mark.slow) for case in _DEEP_BY_THEOREM)],
    ids=str,
)
@pytest.mark.statement("thm-3.2", "thm-3.9", "softmax-fibers", "softmax-layer")
def test_the_count_agrees_with_the_theorem(architecture, expected, statement):
    found = count_fiber(architecture)
    assert (found.value, found.verdict, found.statement) == (expected, "exact", statement)
    assert found.found == expected


_BY_FACTORS = [
    # one token: the product of ℓ·x, k·x and q·x
    (Architecture((2, 1), (1,), 1), 6),
    (Architecture((2, 2), (1,), 1), 2),
    # behind a layer of rank one: the same with u in place of x
    pytest.param(Architecture((2, 2, 1), (1, 1), 2), 6, marks=pytest.mark.slow),
    pytest.param(Architecture((2, 1, 1), (1, 1), 2), 2, marks=pytest.mark.slow),
    # heads change places, and in each k and v
    pytest.param(
        Architecture((2, 2), (1,), 2, heads=2, value_ranks=(1,)), 8, marks=pytest.mark.slow
    ),
]


@pytest.mark.parametrize(("architecture", "expected"), _BY_FACTORS, ids=str)
def test_linear_forms_change_places(architecture, expected):
    found = count_fiber(architecture)
    assert (found.value, found.verdict, found.lower) == (expected, "probable", expected)


@pytest.mark.slow
def test_heads_of_rank_one_have_more_than_permutations():
    """Two heads 2 → 2 of rank one fill all maps of their kind, and each is one of twelve."""
    found = count_fiber(Architecture((2, 2), (1,), 2, heads=2))
    assert (found.value, found.verdict, found.lower, found.coordinates) == (12, "probable", 2, 12)


@pytest.mark.parametrize(
    "architecture",
    [
        Architecture((2, 2), (2,), 2, heads=2),  # heads mix
        Architecture((2, 2, 2), (1, 2), 2),  # a skew part is not seen
        Architecture((2, 2), (2,), 1),
    ],
    ids=str,
)
def test_infinite_where_the_dimension_is_smaller(architecture):
    found = count_fiber(architecture)
    assert (found.verdict, found.value) == ("infinite", None)
    assert dimension_formula(architecture).dimension < found.coordinates


def test_too_few_monomials_leave_a_lower_bound():
    found = count_fiber(Architecture((2, 2, 1), (1, 1), 2), monomials=50)
    assert (found.verdict, found.value, found.lower, found.found) == ("lower bound", None, 6, None)
    known = count_fiber(Architecture((3, 3), (3,), 2, "softmax"), monomials=1)
    assert (known.verdict, known.found) == ("exact", None)


def test_refusals():
    with pytest.raises(ArgumentError, match="at most 24 coordinates"):
        count_fiber(Architecture((4, 4), (4,), 2))
    with pytest.raises(ArgumentError, match="at most 1000 parameters"):
        count_fiber(Architecture((10**9, 1), (1,), 2))
    with pytest.raises(ArgumentError, match="monomials must be at least 1"):
        count_fiber(Architecture((2, 2), (1,), 2), monomials=0)


@pytest.mark.parametrize(
    "architecture",
    [
        Architecture((3, 2, 2), (2, 1), 3),
        Architecture((3, 2, 2), (2, 1), 3, "softmax"),
        Architecture((2, 2, 2), (2, 1), 3, "softmax", heads=2),
        Architecture((2, 3, 2), (2, 1), 3, "softmax", heads=2, value_ranks=(2, 1)),
        Architecture((2, 2, 2), (2, 1), 3, "softmax", heads=2, skip="residual"),
        Architecture((3, 2, 2), (2, 1), 3, skip="inner"),
    ],
    ids=str,
)
def test_a_section_has_the_dimension_of_the_functions(architecture):
    """Where fibers are finite modulo symmetries, by the formulas."""
    assert section(architecture).coordinates == dimension_formula(architecture).dimension


def _brute_force(q):
    """Fibers of widths 2, 2, 1 and ranks 1, 1 over GF(q): all weights A_1, A_2 of rank one with
    first entry 1, V_1 = 1, and V_2, by their outputs at random inputs."""
    generator = np.random.default_rng(0)
    a, b = np.meshgrid(np.arange(q), np.arange(q), indexing="ij")
    forms = np.stack([np.ones_like(a), a, b, a * b % q], -1).reshape(-1, 2, 2)
    rows = np.array(list(product(range(q), repeat=2)))
    inputs = generator.integers(q, size=(6, 2, 2))
    Y = [X @ X.T @ forms @ X % q for X in inputs]  # the outputs of the first layer
    keys = []
    for y in Y:
        mixed = np.einsum("aij,akj,bkl,alm->abim", y, y, forms, y, optimize=True) % q
        keys.append(np.einsum("ri,abim->abrm", rows, mixed) % q)
    return np.concatenate(keys, -1), forms, rows


def test_brute_force_over_a_tiny_field_finds_the_six_points():
    q = 11
    outputs, forms, rows = _brute_force(q)
    # A_2 = k qᵀ and ℓ with first entries that are not zero and pairwise independent: all six
    # orders of the three linear forms can be written with first entries 1.
    first, second = 3 * q + 5, 2 * q + 7
    assert forms[second].tolist() == [[1, 2], [7, 14 % q]]
    ell = next(i for i, row in enumerate(rows) if row.tolist() == [1, 4])
    same = np.all(outputs == outputs[first, second, ell], axis=-1)
    found = [(forms[i], forms[j], rows[k]) for i, j, k in np.argwhere(same)]
    assert len(found) == 6
    sets = {
        tuple(sorted((int(M[1, 0]), int(M[0, 1]), int(v[1] * pow(int(v[0]), -1, q) % q))))
        for _, M, v in found
    }
    assert sets == {(2, 4, 7)}


def test_the_public_name():
    assert nm.count_fiber is count_fiber
