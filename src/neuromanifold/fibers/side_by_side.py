"""Equal functions, proved by running two networks side by side on one unknown (eq-8).

Before a layer the tokens of the two networks are C Z and C' Z with one matrix Z for both; at the
start Z = X and C = C' = 1. The layer puts out J Ẑ and J' Ẑ, where the rows of Ẑ are

    softmax     Z P(M) for every form M = Cᵀ A_h C of either network, and Z itself for a skip;
    lightning   for token m the products of Σ_j z_j z_jᵀ with z_m, and Z itself for a skip.

If J = J' behind the last layer, the functions are equal. If not yet, a basis C, C' of the columns
of [J; J'] goes on to the next layer. For one head this compares the virtual weights (M, L); for
several it sees through whatever permuting, mixing, merging and swapping of heads does to weights.

Tokens that are alike hide more. Softmax keeps tokens that are equal: one token, and all behind a
layer of uniform weights, or of skew forms and two tokens (softmax-fibers). Lightning on multiples
of one vector, one token or all behind a form of rank one, has the products in any order (one-token,
all-widths). And of two tokens softmax makes Z P(−M) = 2 Z P(0) − Z P(M) (softmax-layer).
"""

from fractions import Fraction
from itertools import permutations
from math import isqrt

import numpy as np

from neuromanifold.algebra.exact_field import ExactField
from neuromanifold.architecture import Architecture
from neuromanifold.networks.weights import Layer, Weights

Exact = np.ndarray
"""A matrix of fractions."""
Heads = list[tuple[Exact, Exact]]
"""V_h C and M_h of every head."""
Form = tuple[Fraction, ...]
"""The entries of M, none for Z itself."""
Both = tuple[Architecture, Architecture]

MOST_ENTRIES = 1_000_000
"""Tables of products that are larger take more than some ten seconds and are not tried."""

_Q = ExactField()


def equal_side_by_side(first: Weights, second: Weights) -> bool:
    """Whether this proves two functions equal, for the floats as they are (eq-8).

    False says nothing: layers of two networks may differ and their functions be the same.
    """
    both = first.architecture, second.architecture
    if both[0].depth != both[1].depth:
        return False
    J = C = [_exact(np.eye(both[0].widths[0]))] * 2
    temperatures = [Fraction(one.temperature) for one in both[::-1]]
    alike, run = both[0].tokens == 1, _lightning if both[0].is_linear_in_scores else _softmax
    for layers in zip(first.layers, second.layers, strict=True):
        if not C[0].size:
            return True
        heads = [_heads(*one) for one in zip(layers, C, temperatures, strict=True)]
        size = C[0].shape[1] ** 3 * sum(len(own[0][0]) for own in heads)
        if both[0].is_linear_in_scores and size > MOST_ENTRIES:
            return False
        skips = [_skip(*one) for one in zip(both, C, heads, strict=True)]
        J, alike = run(both, heads, skips, alike=alike)
        columns, _ = _Q.row_basis(np.vstack(J).T)
        C = np.split(columns.T, [len(J[0])])
    return bool(np.array_equal(J[0], J[1]))


def _exact(array: np.ndarray) -> Exact:
    return np.vectorize(Fraction, otypes=[object])(np.asarray(array, dtype=np.float64))


def _heads(layer: Layer, C: Exact, temperature: Fraction) -> Heads:
    """Forms times the temperature of the other network: no division, and forms that compare."""
    found = []
    for h in range(len(layer.query)):
        head = {name: _exact(T[h]) for name, T in layer.arrays().items()}
        maps = [head[name] for name in ("output", "value") if name in head]
        key, query = (_Q.product(head[name], C) for name in ("key", "query"))
        found.append((_Q.product(*maps, C), _Q.product(key.T, query) * temperature))
    return found


def _skip(architecture: Architecture, C: Exact, heads: Heads) -> Exact:
    """What the layer makes of Z itself."""
    if architecture.adds_input:
        return C
    total = sum(V for V, _ in heads)
    return np.asarray(total) if architecture.adds_values else 0 * np.asarray(total)


def _softmax(
    both: Both, heads: list[Heads], skips: list[Exact], *, alike: bool
) -> tuple[list[Exact], bool]:
    """J and J' of a softmax layer, and whether all tokens are equal behind it."""
    tokens = both[0].tokens
    terms: list[dict[Form, Exact]] = []
    for own, skip in zip(heads, skips, strict=True):
        terms.append({(): skip})
        for V, M in own:
            form: Form = () if alike else tuple(M.flat)
            if tokens == 2 and next((x for x in form if x), 0) < 0:
                _add(terms[-1], tuple((0 * M).flat), 2 * V)
                V, form = -V, tuple((-M).flat)
            _add(terms[-1], form, V)
    seen = [
        form
        for form in terms[0] | terms[1]
        if any(form in own and own[form].any() for own in terms)
    ]
    collapsed = both[0].attends_to_all and all(_collapses(form, tokens) for form in seen)
    J = [
        np.hstack([0 * skip, *(own.get(form, 0 * skip) for form in seen)])
        for own, skip in zip(terms, skips, strict=True)
    ]
    return J, alike or collapsed


def _add(terms: dict[Form, Exact], form: Form, J: Exact) -> None:
    terms[form] = terms[form] + J if form in terms else J


def _collapses(form: Form, tokens: int) -> bool:
    """Whether Z P(M) has equal columns; that is never known of Z itself (softmax-fibers)."""
    M = np.array(form or (1,), dtype=object).reshape(isqrt(len(form)) or 1, -1)
    return not (M + M.T if tokens == 2 else M).any()


def _lightning(
    both: Both, heads: list[Heads], skips: list[Exact], *, alike: bool
) -> tuple[list[Exact], bool]:
    """J and J' of a lightning layer, and whether behind it tokens are multiples of one vector."""
    orders = list(permutations((1, 2, 3))) if alike else [(1, 2, 3), (2, 1, 3)]
    tables = []
    for own in heads:
        table = np.asarray(sum(np.multiply.outer(V, M) for V, M in own))
        tables.append(np.asarray(sum(table.transpose(0, *order) for order in orders)))
    queries = np.concatenate(tables).reshape(-1, tables[0].shape[3])
    alike = alike or (both[0].is_plain and both[1].is_plain and len(_Q.row_basis(queries)[0]) == 1)
    i, k = np.triu_indices(len(tables[0][0]))
    J = [
        np.hstack([skip, table[:, i, k].reshape(len(table), -1)])
        for skip, table in zip(skips, tables, strict=True)
    ]
    return J, alike
