"""Checks of the lemmas behind the dimensions of lightning networks with one head.

Everything is a polynomial with integer coefficients: tokens have polynomials in ε for entries, and
identities are compared coefficient by coefficient.
"""

from math import prod

import numpy as np
from flint import fmpz_poly

from neuromanifold.paper.checks.evidence import Case, equal

Polynomials = np.ndarray
"""An array of polynomials in ε with integer coefficients."""


def polynomials(*coefficients: np.ndarray) -> Polynomials:
    """Σ_k coefficients[k] ε^k, entry by entry."""
    stacked = np.stack([np.asarray(part, dtype=int) for part in coefficients], axis=-1)
    flat = [fmpz_poly([int(c) for c in entry]) for entry in stacked.reshape(-1, stacked.shape[-1])]
    found = np.empty(len(flat), dtype=object)
    found[:] = flat
    return found.reshape(stacked.shape[:-1])


def scaled(values: Polynomials, factor: fmpz_poly) -> Polynomials:
    """Every entry times one polynomial, which NumPy would take for a sequence of coefficients."""
    scalar = np.empty((), dtype=object)
    scalar[()] = factor
    return values * scalar


def network(
    forms: np.ndarray, L: np.ndarray, X: Polynomials, *, causal: bool = False, inner: bool = False
) -> Polynomials:
    """L F_{M_l} ∘ … ∘ F_{M_1}(X), token by token (eq-1)."""
    for M in forms:
        columns = []
        for i, x in enumerate(X.T):
            seen = X.T[: i + 1] if causal else X.T
            image = M.astype(object) @ x
            parts = (scaled(x_j, x_j @ image) for x_j in seen)
            columns.append(sum(parts, x if inner else 0 * x))
        X = np.stack(columns, axis=1)
    return L.astype(object) @ X


def valuation(values: Polynomials) -> int | None:
    """The lowest power of ε with a non-zero coefficient; None if all vanish."""
    orders = [
        next(k for k, c in enumerate(value.coeffs()) if c != 0)
        for value in values.ravel()
        if value != 0
    ]
    return min(orders, default=None)


def draw(seed: int, depth: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forms, a linear map with two rows, and three vectors."""
    generator = np.random.default_rng((seed, 51, depth, d))
    forms = generator.integers(-3, 4, (depth, d, d)) + np.eye(d, dtype=int)
    return forms, generator.integers(1, 4, (2, d)), generator.integers(1, 4, (3, d))


def one_vector(seed: int, depth: int, d: int) -> Case:
    """One token: φ(x) = L x ∏ S_i(x)^{3^{l−i}}, S_i(x) = xᵀ M_i x (one-token)."""
    forms, L, (x, z, _) = draw(seed, depth, d)
    X = polynomials(x, z)[:, None]
    square = [X[:, 0] @ (M.astype(object) @ X[:, 0]) for M in forms]
    scalar = prod((S ** (3 ** (depth - i)) for i, S in enumerate(square, 1)), start=fmpz_poly([1]))
    expected = scaled(L.astype(object) @ X[:, 0], scalar)
    same = all(network(forms, L, X)[:, 0] == expected)
    return equal(f"one token, l = {depth}, d = {d}: product of forms", True, same)


def rank_one_layer(seed: int, depth: int, j: int, d: int) -> Case:
    """M_j = k qᵀ: φ = (L u) yᵀ |y|^{2e} ∏_{i>j} S_i(u)^{3^{l−i}} (all-widths).

    Y the tokens before layer j, u = Y Yᵀ k, y = Yᵀ q, e = (3^{l−j} − 1)/2.
    """
    forms, L, (k, q, x) = draw(seed, depth, d)
    forms[j - 1] = np.outer(k, q)
    X = np.stack([polynomials(x, k), polynomials(q, x)], axis=1)
    Y = network(forms[: j - 1], np.eye(d, dtype=int), X)
    y, u = Y.T @ q.astype(object), Y @ (Y.T @ k.astype(object))
    scalar = (y @ y) ** ((3 ** (depth - j) - 1) // 2)
    for i in range(j + 1, depth + 1):
        scalar *= (u @ (forms[i - 1].astype(object) @ u)) ** (3 ** (depth - i))
    expected = scaled(np.outer(L.astype(object) @ u, y), scalar)
    same = bool((network(forms, L, X) == expected).all())
    return equal(f"rank one in layer {j} of {depth}, d = {d}: product of factors", True, same)


def two_tokens(seed: int, depth: int) -> Case:
    """φ(X) = N(X Xᵀ) X with N of degree m = (3^l − 1)/2, so that two tokens show N (all-widths).

    For R Rᵀ = 25 that says φ(X R) = 25^m φ(X) R.
    """
    forms, L, (x, z, _) = draw(seed, depth, 2)
    X = np.stack([polynomials(x, z), polynomials(z, 0 * x)], axis=1)
    R = np.array([[3, -4], [4, 3]], dtype=object)
    power = 25 ** ((3**depth - 1) // 2)
    same = bool((network(forms, L, X @ R) == network(forms, L, X) @ (power * R)).all())
    return equal(f"two tokens, l = {depth}: φ(X R) = 25^m φ(X) R", True, same)


def causal_orders(seed: int, depth: int, d: int) -> list[Case]:
    """Tokens ε ξ, η: the skew part of M_i is seen at order 2·3^{i−1} (causal-mask)."""
    forms, L, (xi, eta, _) = draw(seed, depth, d)
    X = np.stack([polynomials(0 * xi, xi), polynomials(eta, 0 * eta)], axis=1)
    before = network(forms, L, X, causal=True)
    skew = np.triu(np.ones((d, d), dtype=int), 1)
    cases = []
    for i in range(depth):
        changed = forms.copy()
        changed[i] += skew - skew.T
        order = valuation(network(changed, L, X, causal=True) - before)
        cases.append(equal(f"causal, l = {depth}: skew part of M_{i + 1}", 2 * 3**i, order))
    return cases


def inner_expansion(seed: int, depth: int, d: int) -> Case:
    """Inner skip, tokens x and ε ξ: column 2 is ε L(ξ + a x) + O(ε²) (inner-skip).

    a = Σ_i c_{i−1}² (xᵀ M_i ξ) ∏_{k>i} p_k, p_i = 1 + c_{i−1}² S_i(x), c_i = p_1 ⋯ p_i.
    """
    forms, L, (x, xi, _) = draw(seed, depth, d)
    X = np.stack([polynomials(x, 0 * x), polynomials(0 * xi, xi)], axis=1)
    column = network(forms, L, X, inner=True)[:, 1]
    c = 1
    p: list[int] = []
    terms: list[int] = []
    for M in forms:
        terms.append(c**2 * int(x @ M @ xi))
        p.append(1 + c**2 * int(x @ M @ x))
        c *= p[-1]
    a = sum(term * prod(p[i + 1 :]) for i, term in enumerate(terms))
    expected = [int(v) + a * int(w) for v, w in zip(L @ xi, L @ x, strict=True)]
    found = [int(value[1]) for value in column]
    return equal(f"inner skip, l = {depth}: order ε", expected, found)
