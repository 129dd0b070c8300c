"""One and two softmax layers from float evaluations (thm-3.9, conj-3.10).

With all tokens equal to x every layer averages equal tokens, so φ(x, …, x) = L x in every column.

An input with two distinct tokens, x once and y in all t − 1 other places, keeps that pattern
through every layer. At a last layer with inputs y_0 (once) and y_1 (t − 1 times), output token k is
L y_1 + p L (y_0 − y_1), so it shows the weight p of the first token, and

    log p/(1 − p) + log(t − 1) = (y_0 − y_1)ᵀ M y_k / τ,    k = 0, 1:

linear equations for M. Under the causal mask token 2 sees one x and one y, which is the equation
for k = 1 and t = 2. For one layer y_k are the tokens themselves. For two layers without a mask they
are X P_1, known as soon as M_1 is, and M_1 comes from small inputs √u X: with H = 1 − 11ᵀ/t and x̄
the mean token, P_1 = 11ᵀ/t + u H Xᵀ M_1 X/(tτ) + O(u²) and P_2 = 11ᵀ/t + O(u²), so every column of
φ(√u X)/√u is

    L x̄ + u L X H Xᵀ M_1 x̄ / (tτ) + O(u²).

With the causal mask column 2 of φ(√u X)/√u is instead, δ = x_1 − x_2,

    L (3x_1 + x_2)/4 + u Lδ (δᵀ (M_1 + M_2/2) x_2 + δᵀ M_2 δ/4) / (8τ) + O(u²),

which shows M_1 + M_2/2 and the symmetric part of M_2; the skew part is left to a search.
"""

import numpy as np
from jaxtyping import Float64

from neuromanifold.architecture import Architecture
from neuromanifold.recovery.fit import Inputs, Outputs, Point, fit
from neuromanifold.recovery.oracle import value_at_zero
from neuromanifold.recovery.result import Refusal
from neuromanifold.recovery.units import Asked, Probe

Matrix = Float64[np.ndarray, "_ _"]

_SCALES = 2.0 ** np.arange(-6, 7)
"""Sizes of the two-token inputs: forms of norm 1e-3 … 1e3 have scores near 1 at one of them."""

_NODES = 8
_SMALL = 1e-3


def recover_softmax(
    probe: Probe,
) -> tuple[list[Point], dict[str, float]]:
    """(M, L) of one softmax layer, or of two without a mask."""
    ask, generator, architecture = probe.ask, probe.generator, probe.ask.architecture
    L = linear_map(ask)
    asked, answers = _two_token_samples(ask, generator)
    if architecture.depth == 1:
        form, condition = _form_from_ratios(L, asked, answers, architecture)
        return [Point.virtual([form], L, architecture)], {"equations for the form": condition}
    found: list[tuple[float, Point, dict[str, float]]] = []
    for small in _small_changes(ask.box.noise):
        M_1, first = _first_form(ask, L, generator, small)
        tokens = Point.virtual([M_1], np.eye(len(L.T)), architecture)(asked)
        M_2, second = _form_from_ratios(L, tokens, answers, architecture)
        point = Point.virtual([M_1, M_2], L, architecture)
        misfit = fit(point, probe.inputs, probe.outputs, ask.box.noise).residual
        names = ("equations for the first form", "equations for the second form")
        found.append((misfit, point, dict(zip(names, (first, second), strict=True))))
    _, point, conditions = min(found, key=lambda candidate: candidate[0])
    return [point], conditions


def _small_changes(noise: float) -> list[float]:
    """How far the outputs of small inputs may lie from L x̄, relative to the spread of L X.

    With noise several are tried: close to the limit the noise is large, far from it the next terms.
    """
    tried = [_SMALL, *(float(r * np.sqrt(noise)) for r in (1, 10, 100))]
    return [small for small in tried if max(_SMALL, 5 * noise) <= small < 1] or [0.5]


def linear_map(ask: Asked) -> Float64[np.ndarray, "d_l d0"]:
    """L, column by column, from equal tokens."""
    if ask.architecture.tokens < 2:
        raise Refusal("softmax on one token is linear: the forms cannot be seen")
    ones = np.ones(ask.architecture.tokens)
    units = np.eye(ask.architecture.widths[0])
    return np.stack([ask.update(np.outer(unit, ones)).mean(axis=1) for unit in units], axis=1)


def _two_token_samples(ask: Asked, generator: np.random.Generator) -> tuple[Inputs, Outputs]:
    """Inputs x, y, …, y of every size, enough at each size to determine a form, with outputs."""
    d, t = ask.architecture.widths[0], ask.architecture.tokens
    pairs = generator.standard_normal((len(_SCALES), d * d // 2 + 4, d, 2))
    pairs = (pairs * _SCALES[:, None, None, None]).reshape(-1, d, 2)
    inputs = pairs[:, :, [0] + [1] * (t - 1)]
    return inputs, np.stack([ask.update(X) for X in inputs])


def _form_from_ratios(
    L: Float64[np.ndarray, "d_l d0"], tokens: Inputs, outputs: Outputs, architecture: Architecture
) -> tuple[Float64[np.ndarray, "d0 d0"], float]:
    """M from the weight p that output tokens 0 and 1 give to token 0, by weighted least squares.

    An error δ in L y makes the error δ/(|L(y_0 − y_1)| p(1 − p)) in the logarithm, so equations are
    weighted with |L(y_0 − y_1)| p(1 − p)/|L y|: saturated ones drop out by themselves.
    """
    causal, temperature = architecture.mask == "causal", architecture.temperature
    others = 1 if causal else architecture.tokens - 1
    rows: list[np.ndarray] = []
    values: list[np.ndarray] = []
    for Y, output in zip(tokens, outputs, strict=True):
        difference = L @ (Y[:, 0] - Y[:, 1])
        length = np.linalg.norm(difference)
        for k in (1,) if causal else (0, 1):
            p = difference @ (output[:, k] - L @ Y[:, 1]) / length**2 if length > 0 else 0.0
            if not 0 < p < 1:
                continue
            weight = p * (1 - p) * length / np.linalg.norm(L @ Y[:, :2])
            rows.append(weight * np.kron(Y[:, 0] - Y[:, 1], Y[:, k]))
            values.append(weight * temperature * (np.log(p / (1 - p)) + np.log(others)))
    d = tokens.shape[1]
    if len(rows) < d * d:
        raise Refusal("too few attention weights lie between 0 and 1 at any size of the inputs")
    design = np.stack(rows)
    solution = np.linalg.lstsq(design, np.array(values), rcond=None)[0]
    M = solution.reshape(d, d)
    return M, _amplification(design, M, temperature)


def _amplification(design: Matrix, M: Matrix, temperature: float) -> float:
    """By how much relative errors of the outputs grow in M, compared with max(‖M‖, τ).

    The equations are weighted so that relative errors ε of the outputs are errors τε in them. A
    form much smaller than τ has scores near 0 at inputs of size 1: only its absolute error counts.
    """
    smallest = np.linalg.svd(design, compute_uv=False)[-1]
    scale = smallest * max(np.linalg.norm(M), temperature)
    return temperature * np.sqrt(len(design)) / scale if scale > 0 else np.inf


def _first_form(
    ask: Asked, L: Float64[np.ndarray, "d_l d0"], generator: np.random.Generator, small: float
) -> tuple[Float64[np.ndarray, "d0 d0"], float]:
    """M_1 from L X H Xᵀ M_1 x̄ / t = τ · (slope at u = 0), by least squares.

    The slope is a difference of outputs over u ≤ reach, hence the weight reach/|L X|.
    """
    architecture = ask.architecture
    d, t = architecture.widths[0], architecture.tokens
    inputs = generator.standard_normal((2 * d * d + 4, d, t))
    reach = min(_small_reach(ask, L, X, X.mean(axis=1), small) for X in inputs[:_NODES])
    rows: list[np.ndarray] = []
    values: list[np.ndarray] = []
    for X in inputs:
        mean = X.mean(axis=1)
        weight = reach / np.linalg.norm(L @ X)
        rows.append(weight / t * np.kron(L @ (X - mean[:, None]) @ X.T, mean))
        values.append(weight * architecture.temperature * _slope(ask, L @ mean, X, reach))
    design = np.concatenate(rows)
    solution = np.linalg.lstsq(design, np.concatenate(values), rcond=None)[0]
    M_1 = solution.reshape(d, d)
    return M_1, _amplification(design, M_1, architecture.temperature)


def causal_forms(ask: Asked, L: Matrix, generator: np.random.Generator) -> tuple[Matrix, Matrix]:
    """M_1 + M_2/2 and the symmetric part of M_2 of two layers with the causal mask."""
    d, tau = ask.architecture.widths[0], ask.architecture.temperature
    inputs = generator.standard_normal((3 * d * d + 4, d, ask.architecture.tokens))
    mean = np.array([3.0, 1.0]) / 4
    small = max(_SMALL, 10 * np.sqrt(ask.box.noise))
    reach = min(_small_reach(ask, L, X, X[:, :2] @ mean, small, 1) for X in inputs[:_NODES])
    rows: list[np.ndarray] = []
    values: list[float] = []
    for X in inputs:
        x, difference = X[:, 1], X[:, 0] - X[:, 1]
        seen = L @ difference
        slope = _slope(ask, L @ X[:, :2] @ mean, X, reach, 1)
        rows.append(np.concatenate([np.kron(difference, x), np.kron(difference, difference) / 4]))
        values.append(float(8 * tau * (seen @ slope) / (seen @ seen)))
    solution = np.linalg.lstsq(np.stack(rows), np.array(values), rcond=1e-10)[0]
    total, second = solution.reshape(2, d, d)
    return total, (second + second.T) / 2


def _small_reach(
    ask: Asked, L: Matrix, X: Matrix, mean: np.ndarray, small: float, column: int | None = None
) -> float:
    """The largest u = 4^k at which φ(√u X)/√u is still close to its limit, L times a mean."""
    center = (L @ mean)[:, None]
    spread = np.linalg.norm(L @ X - center)
    u = 4.0**6
    columns = slice(None) if column is None else [column]
    for _ in range(24):
        value = ask(np.sqrt(u) * X)[:, columns] / np.sqrt(u)
        if np.linalg.norm(value - center) <= small * spread:
            return u
        u /= 4
    raise Refusal("the outputs of small inputs do not approach the mean token: no softmax network")


def _slope(
    ask: Asked, center: np.ndarray, X: Matrix, reach: float, column: int | None = None
) -> Float64[np.ndarray, " d_l"]:
    """The derivative at u = 0 of a column of φ(√u X)/√u, or of the columns' mean, from its limit.

    It is the limit of the difference quotients (f(u) − f(0))/u.
    """

    def quotient(u: float) -> np.ndarray:
        output = ask(np.sqrt(u) * X) / np.sqrt(u)
        value = output.mean(axis=1) if column is None else output[:, column]
        return (value - center) / u

    return value_at_zero(quotient, reach=reach, nodes=_NODES)
