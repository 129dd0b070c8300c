"""Checks of the lemmas behind the dimensions of lightning networks with one head.

Everything is a polynomial with integer coefficients: tokens have polynomials in ε for entries, and
identities are compared coefficient by coefficient.
"""

from math import prod

import numpy as np
from flint import fmpz_poly

from neuromanifold.paper.checks.evaluation import from_forms
from neuromanifold.paper.checks.trial import Trial

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


def valuation(values: Polynomials) -> int | None:
    """The lowest power of ε with a non-zero coefficient; None if all vanish."""
    orders = [
        next(k for k, c in enumerate(value.coeffs()) if c != 0)
        for value in values.ravel()
        if value != 0
    ]
    return min(orders, default=None)


def draw(seed: int, depth: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forms, a linear map with two rows, and three vectors, of Python integers."""
    generator = np.random.default_rng((seed, 51, depth, d))
    forms = generator.integers(-3, 4, (depth, d, d)) + np.eye(d, dtype=int)
    L, vectors = generator.integers(1, 4, (2, d)), generator.integers(1, 4, (3, d))
    return forms.astype(object), L.astype(object), vectors.astype(object)


def one_vector(trial: Trial, depth: int, d: int) -> None:
    """One token: φ(x) = L x ∏ S_i(x)^{3^{l−i}}, S_i(x) = xᵀ M_i x (one-token)."""
    forms, L, (x, z, _) = draw(trial.seed, depth, d)
    X = polynomials(x, z)[:, None]
    square = [X[:, 0] @ (M @ X[:, 0]) for M in forms]
    scalar = prod((S ** (3 ** (depth - i)) for i, S in enumerate(square, 1)), start=fmpz_poly([1]))
    same = all(from_forms(forms, X, L)[:, 0] == scaled(L @ X[:, 0], scalar))
    trial.equal(f"one token, l = {depth}, d = {d}: product of forms", True, same)


def rank_one_layer(trial: Trial, depth: int, j: int, d: int) -> None:
    """M_j = k qᵀ: φ = (L u) yᵀ |y|^{2e} ∏_{i>j} S_i(u)^{3^{l−i}} (all-widths).

    Y the tokens before layer j, u = Y Yᵀ k, y = Yᵀ q, e = (3^{l−j} − 1)/2.
    """
    forms, L, (k, q, x) = draw(trial.seed, depth, d)
    forms[j - 1] = np.outer(k, q)
    X = np.stack([polynomials(x, k), polynomials(q, x)], axis=1)
    Y = from_forms(forms[: j - 1], X, np.eye(d, dtype=object)) if j > 1 else X
    y, u = Y.T @ q, Y @ (Y.T @ k)
    scalar = (y @ y) ** ((3 ** (depth - j) - 1) // 2)
    for i in range(j + 1, depth + 1):
        scalar *= (u @ (forms[i - 1] @ u)) ** (3 ** (depth - i))
    same = bool((from_forms(forms, X, L) == scaled(np.outer(L @ u, y), scalar)).all())
    trial.equal(f"rank one in layer {j} of {depth}, d = {d}: product of factors", True, same)


def two_tokens(trial: Trial, depth: int) -> None:
    """φ(X) = N(X Xᵀ) X with N of degree m = (3^l − 1)/2, so that two tokens show N (all-widths).

    For R Rᵀ = 25 that says φ(X R) = 25^m φ(X) R.
    """
    forms, L, (x, z, _) = draw(trial.seed, depth, 2)
    X = np.stack([polynomials(x, z), polynomials(z, 0 * x)], axis=1)
    R = np.array([[3, -4], [4, 3]], dtype=object)
    power = 25 ** ((3**depth - 1) // 2)
    same = bool((from_forms(forms, X @ R, L) == from_forms(forms, X, L) @ (power * R)).all())
    trial.equal(f"two tokens, l = {depth}: φ(X R) = 25^m φ(X) R", True, same)


def causal_orders(trial: Trial, depth: int, d: int) -> None:
    """Tokens ε ξ, η: the skew part of M_i is seen at order 2·3^{i−1} (causal-mask)."""
    forms, L, (xi, eta, _) = draw(trial.seed, depth, d)
    X = np.stack([polynomials(0 * xi, xi), polynomials(eta, 0 * eta)], axis=1)
    before = from_forms(forms, X, L, mask="causal")
    skew = np.triu(np.ones((d, d), dtype=int), 1)
    for i in range(depth):
        changed = forms.copy()
        changed[i] += skew - skew.T
        order = valuation(from_forms(changed, X, L, mask="causal") - before)
        trial.equal(f"causal, l = {depth}: skew part of M_{i + 1}", 2 * 3**i, order)


def inner_expansion(trial: Trial, depth: int, d: int) -> None:
    """Inner skip, tokens x and ε ξ: column 2 is ε L(ξ + a x) + O(ε²) (inner-skip).

    a = Σ_i c_{i−1}² (xᵀ M_i ξ) ∏_{k>i} p_k, p_i = 1 + c_{i−1}² S_i(x), c_i = p_1 ⋯ p_i.
    """
    forms, L, (x, xi, _) = draw(trial.seed, depth, d)
    X = np.stack([polynomials(x, 0 * x), polynomials(0 * xi, xi)], axis=1)
    column = from_forms(forms, X, L, skip="inner")[:, 1]
    c = 1
    p: list[int] = []
    terms: list[int] = []
    for M in forms:
        terms.append(c**2 * (x @ M @ xi))
        p.append(1 + c**2 * (x @ M @ x))
        c *= p[-1]
    a = sum(term * prod(p[i + 1 :]) for i, term in enumerate(terms))
    found = [int(value[1]) for value in column]
    trial.equal(f"inner skip, l = {depth}: order ε", L @ xi + a * (L @ x), found)
