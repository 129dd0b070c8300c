"""One and two softmax layers from real float64 evaluations (thm-3.9, conj-3.10).

With all tokens equal to x every layer averages equal tokens, so φ(x, …, x) = L x in every column.

An input with two distinct tokens, x once and y in all t − 1 other places, keeps that pattern
through every layer. At a last layer with inputs y_0 (once) and y_1 (t − 1 times), output token k is
L y_1 + p L (y_0 − y_1), so it shows the weight p of the first token, and

    log p/(1 − p) + log(t − 1) = (y_0 − y_1)ᵀ M y_k / τ,    k = 0, 1:

linear equations for M. For one layer y_k are the tokens themselves. For two layers they are X P_1,
known as soon as M_1 is, and M_1 comes from small inputs √u X: with H = 1 − 11ᵀ/t and x̄ the mean
token, P_1 = 11ᵀ/t + u H Xᵀ M_1 X/(tτ) + O(u²) and P_2 = 11ᵀ/t + O(u²), so every column of
φ(√u X)/√u is

    L x̄ + u L X H Xᵀ M_1 x̄ / (tτ) + O(u²).
"""

import numpy as np
import scipy.special
from jaxtyping import Float64

from neuromanifold.architecture import Architecture
from neuromanifold.networks.virtual import VirtualWeights
from neuromanifold.recovery.limit import value_at_zero
from neuromanifold.recovery.oracle import BlackBox
from neuromanifold.recovery.polish import polish
from neuromanifold.recovery.result import Refusal, Solution

Matrix = Float64[np.ndarray, "_ _"]
Inputs = Float64[np.ndarray, "sample d0 t"]
Outputs = Float64[np.ndarray, "sample d_l t"]

_SCALES = 2.0 ** np.arange(-6, 7)
"""Sizes of the two-token inputs: forms of norm 1e-3 … 1e3 have scores near 1 at one of them."""

_NODES = 8
_SMALL = 1e-3
"""How far the outputs of small inputs may lie from L x̄, relative to the spread of L X."""


def recover_softmax(
    box: BlackBox, architecture: Architecture, generator: np.random.Generator
) -> Solution:
    """(M, L) of one or two softmax layers."""
    if architecture.tokens < 2:
        raise Refusal("softmax on one token is linear: the forms cannot be seen")
    L = _linear_map(box, architecture)
    if architecture.depth == 1:
        inputs, outputs = _two_token_samples(box, architecture, generator)
        M_1, condition = _form_from_ratios(L, inputs, outputs, architecture.temperature)
        point = VirtualWeights((M_1,), L, architecture)
        return Solution((point,), {"equations for the form": condition})
    M_1, first_condition = _first_form(box, architecture, L, generator)
    inputs, outputs = _two_token_samples(box, architecture, generator)
    scores = inputs.swapaxes(1, 2) @ M_1 @ inputs / architecture.temperature
    tokens = inputs @ scipy.special.softmax(scores, axis=1)
    M_2, second_condition = _form_from_ratios(L, tokens, outputs, architecture.temperature)
    start = VirtualWeights((M_1, M_2), L, architecture)
    fit_inputs = _spread_inputs(architecture, M_1, generator)
    point = polish(start, fit_inputs, np.stack([box(X) for X in fit_inputs]))
    return Solution(
        (point,),
        {
            "equations for the first form": first_condition,
            "equations for the second form": second_condition,
        },
    )


def _linear_map(box: BlackBox, architecture: Architecture) -> Float64[np.ndarray, "d_l d0"]:
    """L, column by column, from equal tokens."""
    ones = np.ones(architecture.tokens)
    units = np.eye(architecture.widths[0])
    return np.stack([box(np.outer(unit, ones)).mean(axis=1) for unit in units], axis=1)


def _two_token_samples(
    box: BlackBox, architecture: Architecture, generator: np.random.Generator
) -> tuple[Inputs, Outputs]:
    """Inputs x, y, …, y of every size, enough at each size to determine a form, with outputs."""
    d, t = architecture.widths[0], architecture.tokens
    pairs = generator.standard_normal((len(_SCALES), d * d // 2 + 4, d, 2))
    pairs = (pairs * _SCALES[:, None, None, None]).reshape(-1, d, 2)
    inputs = pairs[:, :, [0] + [1] * (t - 1)]
    return inputs, np.stack([box(X) for X in inputs])


def _form_from_ratios(
    L: Float64[np.ndarray, "d_l d0"], tokens: Inputs, outputs: Outputs, temperature: float
) -> tuple[Float64[np.ndarray, "d0 d0"], float]:
    """M from the weight p that output tokens 0 and 1 give to token 0, by weighted least squares.

    An error δ in L y makes the error δ/(|L(y_0 − y_1)| p(1 − p)) in the logarithm, so equations are
    weighted with |L(y_0 − y_1)| p(1 − p)/|L y|: saturated ones drop out by themselves.
    """
    t = tokens.shape[2]
    rows: list[np.ndarray] = []
    values: list[np.ndarray] = []
    for Y, output in zip(tokens, outputs, strict=True):
        difference = L @ (Y[:, 0] - Y[:, 1])
        length = np.linalg.norm(difference)
        for k in (0, 1):
            p = difference @ (output[:, k] - L @ Y[:, 1]) / length**2 if length > 0 else 0.0
            if not 0 < p < 1:
                continue
            weight = p * (1 - p) * length / np.linalg.norm(L @ Y[:, :2])
            rows.append(weight * np.kron(Y[:, 0] - Y[:, 1], Y[:, k]))
            values.append(weight * temperature * (np.log(p / (1 - p)) + np.log(t - 1)))
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
    box: BlackBox,
    architecture: Architecture,
    L: Float64[np.ndarray, "d_l d0"],
    generator: np.random.Generator,
) -> tuple[Float64[np.ndarray, "d0 d0"], float]:
    """M_1 from L X H Xᵀ M_1 x̄ / t = τ · (slope at u = 0), by least squares.

    The slope is a difference of outputs over u ≤ reach, hence the weight reach/|L X|.
    """
    d, t = architecture.widths[0], architecture.tokens
    inputs = generator.standard_normal((2 * d * d + 4, d, t))
    reach = min(_small_reach(box, L, X) for X in inputs[:_NODES])
    rows: list[np.ndarray] = []
    values: list[np.ndarray] = []
    for X in inputs:
        mean = X.mean(axis=1)
        weight = reach / np.linalg.norm(L @ X)
        rows.append(weight / t * np.kron(L @ (X - mean[:, None]) @ X.T, mean))
        values.append(weight * architecture.temperature * _slope(box, L, X, reach))
    design = np.concatenate(rows)
    solution = np.linalg.lstsq(design, np.concatenate(values), rcond=None)[0]
    M_1 = solution.reshape(d, d)
    return M_1, _amplification(design, M_1, architecture.temperature)


def _small_reach(box: BlackBox, L: Matrix, X: Matrix) -> float:
    """The largest u = 4^k at which φ(√u X)/√u is still close to its limit L x̄."""
    center = L @ X.mean(axis=1, keepdims=True)
    spread = np.linalg.norm(L @ X - center)
    u = 4.0**6
    for _ in range(24):
        if np.linalg.norm(box(np.sqrt(u) * X) / np.sqrt(u) - center) <= _SMALL * spread:
            return u
        u /= 4
    raise Refusal("the outputs of small inputs do not approach the mean token: no softmax network")


def _slope(box: BlackBox, L: Matrix, X: Matrix, reach: float) -> Float64[np.ndarray, " d_l"]:
    """The derivative at u = 0 of the columns' mean of φ(√u X)/√u, its value there being L x̄.

    It is the limit of the difference quotients (f(u) − f(0))/u.
    """
    center = L @ X.mean(axis=1)

    def quotient(u: float) -> np.ndarray:
        return (box(np.sqrt(u) * X).mean(axis=1) / np.sqrt(u) - center) / u

    return value_at_zero(quotient, reach=reach, nodes=_NODES)


def _spread_inputs(
    architecture: Architecture, M_1: Matrix, generator: np.random.Generator
) -> Inputs:
    """Normal inputs at sizes where the scores of the first layer are about 1/4, 1, and 4."""
    d, t = architecture.widths[0], architecture.tokens
    unknowns = 2 * d * d + architecture.widths[-1] * d
    size = np.sqrt(architecture.temperature / max(np.linalg.norm(M_1), 1e-300))
    inputs = generator.standard_normal((3 * (-(-unknowns // t) + 4), d, t))
    return inputs * (size * np.resize([0.5, 1.0, 2.0], len(inputs)))[:, None, None]
