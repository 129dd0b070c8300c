"""The change of basis that brings factors nearest to others, within the group that is free."""

import numpy as np
import scipy.optimize

STEPS = 30
"""Iterations of the descent that follows the closed form."""
SINGULAR = 1e-12
"""Products with a smaller ratio of singular values leave the basis alone: it is not determined."""


def nearest_basis(
    left: np.ndarray,
    right: np.ndarray,
    other_left: np.ndarray,
    other_right: np.ndarray,
    *,
    descend: bool = True,
) -> np.ndarray:
    """The C for which (C^-T L′, C R′), whose product is that of (L′, R′), is near to (L, R).

    First both pairs are balanced, L = G^T L̂ and R = G^-1 R̂ with L̂ L̂ᵀ = R̂ R̂ᵀ diagonal; balanced
    factors of one product differ by an orthogonal U, which the polar decomposition of
    L̂ L̂′ᵀ + R̂ R̂′ᵀ finds, so C = G^-1 U G′ carries (L′, R′) to (L, R) exactly when some C does.
    Otherwise ‖C R′ − R‖² + ‖C^-T L′ − L‖² is lowered from there if `descend`. Only Gram matrices of
    the size of C are used. Arrays are (n, width).
    """
    G, H = balancing(left, right), balancing(other_left, other_right)
    if G is None or H is None:
        return np.eye(len(left))
    cross = np.linalg.solve(G.T, left @ other_left.T) @ np.linalg.inv(H)
    cross = cross + G @ (right @ other_right.T) @ H.T
    U, _, V = np.linalg.svd(cross)
    C = np.linalg.solve(G, U @ V @ H)
    return _descend(C, left, right, other_left, other_right) if descend else C


def balancing(left: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    """The G with G R Rᵀ Gᵀ = G^-T L Lᵀ G^-1, diagonal; None when the product lacks rank.

    With Lᵀ = Q A, Rᵀ = Q′ B and A Bᵀ = U Σ Vᵀ it is Σ^-½ Uᵀ A = Σ^½ Vᵀ B^-T: no Gram matrix, whose
    condition is the square of the gauge's.
    """
    A, B = (np.asarray(np.linalg.qr(factor.T, mode="r")) for factor in (left, right))
    U, S, _ = np.linalg.svd(A @ B.T)
    if len(S) < len(left) or not S[-1] > SINGULAR * S[0]:
        return None
    return (U.T @ A) / np.sqrt(S)[:, None]


def _descend(
    start: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    other_left: np.ndarray,
    other_right: np.ndarray,
) -> np.ndarray:
    """Lower f(C) = ‖C R′ − R‖² + ‖D L′ − L‖², D = C^-T, from `start` by L-BFGS.

    ∇f = E − D Nᵀ D with E = 2 (C R′ − R) R′ᵀ and N = 2 (D L′ − L) L′ᵀ; C = start (1 + X).
    """
    S, P = other_right @ other_right.T, right @ other_right.T
    T, Q = other_left @ other_left.T, left @ other_left.T
    size = np.sum(left**2) + np.sum(right**2)
    n = len(start)

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        C = start @ (np.eye(n) + flat.reshape(n, n))
        try:
            D = np.linalg.inv(C).T
        except np.linalg.LinAlgError:
            return np.inf, np.zeros(n * n)
        total = np.sum(C * (C @ S - 2 * P)) + np.sum(D * (D @ T - 2 * Q)) + size
        E, N = 2 * (C @ S - P), 2 * (D @ T - Q)
        return float(total / size), (start.T @ (E - D @ N.T @ D)).ravel() / size

    zero = np.zeros(n * n)
    before = value(zero)[0]
    if before < 1e-15:  # equal already; the difference of large sums says no more
        return start
    found = scipy.optimize.minimize(
        value, zero, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}
    )
    return start @ (np.eye(n) + found.x.reshape(n, n)) if found.fun < before else start


def nearest_scale(
    first: np.ndarray,
    second: np.ndarray,
    other_first: np.ndarray,
    other_second: np.ndarray,
    *,
    signed: bool = True,
    power: int = 1,
) -> np.ndarray:
    """For rows x, y and x′, y′ the numbers c for which c x′, y′/c̄ are nearest to x, y.

    With |c| = e^t the squared distance is e^2t‖x′‖² + e^-2t‖y′‖² − 2|p e^t + q e^-t| plus a
    constant, for p = ⟨x, x′⟩, q = ⟨y, y′⟩ and the best phase (or sign); without `signed` c is
    positive, and y′ may be divided by another `power` of it, with e^-nt in the place of e^-t. t is
    found on finer and finer grids, all rows at once, and then by Newton's method.
    """
    a, b = (np.sum(np.abs(part) ** 2, -1) for part in (other_first, other_second))
    p = np.sum(np.conj(first) * other_first, -1)
    q = np.sum(np.conj(second) * other_second, -1)
    sizes = [np.sqrt(np.sum(np.abs(part) ** 2, -1)) for part in (first, second)]
    alive = (a > 0) & (b > 0) & (sizes[0] > 0) & (sizes[1] > 0)
    a, b = np.where(alive, a, 1.0), np.where(alive, b, 1.0)
    ends = [
        np.log(np.where(alive, sizes[0], 1.0) / np.sqrt(a)),
        np.log(np.sqrt(b) / np.where(alive, sizes[1], 1.0)) / power,
    ]
    middle = (ends[0] + ends[1]) / 2
    reach = abs(ends[0] - ends[1]) / 2 + 2.0
    grid = np.linspace(-1, 1, 33)
    for _ in range(4):
        logs = middle[..., None] + reach[..., None] * grid
        w = p[..., None] * np.exp(logs) + q[..., None] * np.exp(-power * logs)
        gain = np.abs(w) if signed else w.real
        sizes = a[..., None] * np.exp(2 * logs), b[..., None] * np.exp(-2 * power * logs)
        cost = sizes[0] + sizes[1] - 2 * gain
        best = np.argmin(cost, axis=-1)
        middle = np.take_along_axis(logs, best[..., None], -1)[..., 0]
        reach = reach / 12
    middle = _polished(middle, a, b, p, q, signed, power)
    w = p * np.exp(middle) + q * np.exp(-power * middle)
    size = np.abs(w)
    phase = np.where(size > 0, np.conj(w) / np.where(size > 0, size, 1.0), 1.0) if signed else 1.0
    return np.where(alive, np.exp(middle) * phase, 1.0)


def _polished(
    t: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    p: np.ndarray,
    q: np.ndarray,
    signed: bool,
    n: int,
) -> np.ndarray:
    """Newton's steps for a e^2t + b e^-2nt − 2|w|, w = p e^t + q e^-nt (or its real part).

    The derivatives of |w| are Re(w̄ w′)/|w| and (|w′|² + Re(w̄ w″))/|w| − Re(w̄ w′)²/|w|³. Values of
    the function tell minima to half the digits only.
    """
    for _ in range(4):
        up, down = np.exp(t), np.exp(-n * t)
        w, dw, ddw = p * up + q * down, p * up - n * q * down, p * up + n**2 * q * down
        if signed:
            size = np.where(np.abs(w) > 0, np.abs(w), 1.0)
            first = (np.conj(w) * dw).real / size
            second = (np.abs(dw) ** 2 + (np.conj(w) * ddw).real) / size - first**2 / size
        else:
            first, second = dw.real, ddw.real
        slope = a * up**2 - n * b * down**2 - first
        bend = 2 * a * up**2 + 2 * n**2 * b * down**2 - second
        step = np.divide(slope, bend, out=np.zeros_like(slope), where=bend > 0)
        t = t - np.clip(step, -0.1, 0.1)
    return t
