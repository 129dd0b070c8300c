"""Deep softmax networks, layer after layer near equal tokens, to many digits (softmax-fibers).

Tokens on a line, c + s_k z, stay on it: a layer with the form M only mixes the numbers s_k, with
the weights softmax_k(s_k (zᵀMc + s_j zᵀMz)/τ), and the output is L c + σ L z. Equal tokens show L.
If the layers before k are known, so are the numbers s that enter it, with mean m and variance v;
when they lie within η of each other, the layer makes all of them m + v zᵀM_k(c + m z)/τ + O(η³),
and later layers change that by O(η⁶) (consensus). So every output shows

    zᵀ M_k (c + m z) = τ (σ − m)/v + O(η),

and d² of these, for z and c from two bases, are linear equations for M_k. Inputs within δ of each
other have η = δ^(3^(k−1)) at layer k: what float64 loses is kept by asking for more digits. With

    g_l the bits wanted,    s_k = g_k / 3^(k−1),    δ_k = 2^−s_k,

layer k is found to g_k bits if layer j < k is known to g_k + 2 s_k (3^(k−1) − 3^(j−1)) of them, and
the oracle is asked for g_k + 2 g_k bits: 230 digits at depth 2, then about 2.5 times as many with
every layer. Of several random z the one with the largest zᵀM_jz is taken, as these let the
differences of tokens through; a skew form has none, and the layers after it are refused.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import flint
import numpy as np

from neuromanifold.algebra.balls.arrays import midpoints
from neuromanifold.networks.evaluation import evaluate
from neuromanifold.recovery.factorise import factorise
from neuromanifold.recovery.fit import Point
from neuromanifold.recovery.oracle import BlackBox, as_balls
from neuromanifold.recovery.result import Recovery, Refusal, nothing

DIGITS = 18
"""Digits of the last form; float64 holds 16."""

_MARGINS = (30, 120)
"""Bits for constants: sizes of forms, of inverse bases, of later orders; the second is tried when
the first was not enough."""

_CANDIDATES = 12

_GUARD = 30
_ROUNDED = 1e-13
"""The relative error of a form after it was rounded to float64 and pulled back by others."""

_CHECKS = 3
"""Fresh lines on which every form is tested."""


def recover_deep_softmax(box: BlackBox, blank: Recovery) -> Recovery:
    """The answer to `DIGITS` digits, as float64 weights."""
    L, forms, error = _peel_and_check(box, blank.seed)
    if not forms:
        return replace(nothing(blank, np.zeros(1)), fit_error=error, fresh_inputs=_CHECKS)
    found = Point.virtual([midpoints(M) for M in forms], midpoints(L), box.architecture)
    errors = [_ROUNDED * float(np.linalg.norm(block)) for block in found.blocks]
    weights = factorise(found, errors)
    return replace(
        blank, verdict="identified", weights=weights, fit_error=error, fresh_inputs=_CHECKS
    )


def _peel_and_check(box: BlackBox, seed: int) -> tuple[np.ndarray, list[np.ndarray], float]:
    """L, the forms and their error on fresh inputs, with more digits when few do not suffice."""
    if box.architecture.tokens < 2:
        raise Refusal("softmax on one token is linear: the forms cannot be seen")
    for margin in _MARGINS:
        planned = plan(box.architecture.depth, margin)
        with flint.ctx.workdps(planned.digits + _GUARD):
            try:
                L, forms = _peel(box, planned, random.Random(f"{seed} lines"))
                fresh = random.Random(f"{seed} fresh")
                return L, forms, _check_fresh(box, L, forms, fresh)
            except Refusal:
                if margin == _MARGINS[-1]:
                    raise
    raise AssertionError


def _check_fresh(
    box: BlackBox, L: np.ndarray, forms: Sequence[np.ndarray], generator: random.Random
) -> float:
    """The largest relative error on random inputs, to the digits wanted, or a refusal."""
    architecture = box.architecture
    d, t = architecture.widths[0], architecture.tokens
    layers = [{"query": M[None]} for M in forms]
    worst = 0.0
    for _ in range(_CHECKS):
        X = np.stack([_draw(generator, d) for _ in range(t)], axis=1)
        output = box.ask(X, DIGITS + _GUARD)
        value = L @ evaluate(layers, as_balls(X), architecture)
        size = max(float(abs(x).mid()) for x in output.ravel()) if forms else 1.0
        apart = max(float(abs(x).upper()) for x in (value - output).ravel())
        worst = max(worst, apart / size)
    if not worst <= 10.0**-DIGITS:
        raise Refusal(
            f"the best {architecture.name} found misses fresh inputs by {worst:.1e} relative, so "
            "the function is none"
        )
    return worst


@dataclass(frozen=True, slots=True)
class _Plan:
    """How close tokens are for every layer, and how many bits that takes.

    Attributes:
        bits: g_k, to which every form is found.
        steps: s_k; tokens differ by 2^−s_k.
        digits: what the oracle is asked for.
        margin: the bits for constants.
    """

    bits: tuple[int, ...]
    steps: tuple[int, ...]
    digits: int
    margin: int


def plan(depth: int, margin: int) -> _Plan:
    """The cheapest plan with the last form to `DIGITS` digits."""
    bits = [round(DIGITS * math.log2(10)) + margin] * depth
    steps = [0] * depth
    for k in reversed(range(depth)):
        steps[k] = max(2, -(-bits[k] // 3**k))
        for j in range(k):
            bits[j] = max(bits[j], bits[k] + margin + 2 * steps[k] * (3**k - 3**j))
    asked = max(g + 2 * s * 3**k for k, (g, s) in enumerate(zip(bits, steps, strict=True)))
    return _Plan(tuple(bits), tuple(steps), round((asked + margin) * math.log10(2)) + 1, margin)


def _peel(
    box: BlackBox, planned: _Plan, generator: random.Random
) -> tuple[np.ndarray, list[np.ndarray]]:
    """L and M_1, …, M_l in balls."""
    d, t = box.architecture.widths[0], box.architecture.tokens
    units = np.vectorize(Fraction, otypes=[object])(np.eye(d, dtype=int))
    equal = [np.stack([e] * t, axis=1) for e in units]
    L = np.stack([box.ask(X, planned.digits)[:, 0] for X in equal], axis=1)
    if not any(abs(x) > flint.arb(10) ** (10 - planned.digits) for x in L.ravel()):
        return L, []
    forms: list[np.ndarray] = []
    for k in range(box.architecture.depth):
        lines = [_Line.drawn(generator, forms, L) for _ in range(d * d + _CHECKS)]
        shown = [line.shown(box, L, forms, planned) for line in lines]
        forms.append(_solve(shown, d, k, planned))
    return L, forms


def _draw(generator: random.Random, size: int) -> np.ndarray:
    """A vector of tenths between −0.9 and 0.9."""
    return np.array([Fraction(generator.randint(-9, 9), 10) for _ in range(size)], dtype=object)


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """The line c + s z."""

    z: np.ndarray
    c: np.ndarray

    @classmethod
    def drawn(cls, generator: random.Random, forms: Sequence[np.ndarray], L: np.ndarray) -> "_Line":
        """A random line along which L is not small, nor a form that is known."""
        d = L.shape[1]

        def seen(z: np.ndarray) -> float:
            ball = as_balls(z)
            images = [ball[None] @ M @ ball for M in forms] + [L @ ball]
            return math.prod(float(np.abs(midpoints(image)).max()) for image in images)

        z = max((_draw(generator, d) for _ in range(_CANDIDATES)), key=seen)
        return cls(z, _draw(generator, d))

    def shown(
        self, box: BlackBox, L: np.ndarray, forms: Sequence[np.ndarray], planned: _Plan
    ) -> tuple[np.ndarray, flint.arb]:
        """The row zᵀ ⊗ (c + m z) of the equation for the next form, and its right side."""
        architecture = box.architecture
        z, c = as_balls(self.z), as_balls(self.c)
        step = Fraction(1, 2 ** planned.steps[len(forms)])
        steps = [step, -step, *[Fraction(0)] * (architecture.tokens - 2)]
        X = np.stack([self.c + s * self.z for s in steps], axis=1)
        tau = flint.arb(architecture.temperature)
        s = as_balls(np.array(steps, dtype=object))
        for M in forms:
            slopes = (z @ M @ c + s * (z @ M @ z)) / tau
            powers = np.exp(np.multiply.outer(s, slopes))
            s = s @ (powers / powers.sum(axis=0))
        mean = s.sum() / len(s)
        variance = ((s - mean) ** 2).sum() / len(s)
        seen = L @ z
        row = max(range(len(seen)), key=lambda r: float(abs(seen[r]).mid()))
        if not variance > 0 or not abs(seen[row]) > 0:
            raise Refusal(
                f"nothing passes the first {len(forms)} forms on some line: one of them is skew"
            )
        sigma = (box.ask(X, planned.digits)[row, 0] - (L @ c)[row]) / seen[row]
        return np.multiply.outer(z, c + mean * z).ravel(), tau * (sigma - mean) / variance


def _solve(
    shown: Sequence[tuple[np.ndarray, flint.arb]], d: int, k: int, planned: _Plan
) -> np.ndarray:
    """The form from d² of the equations; the others must hold too."""
    rows, sides = zip(*shown, strict=True)
    try:
        solution = flint.arb_mat([list(row) for row in rows[: d * d]]).solve(
            flint.arb_mat([[side] for side in sides[: d * d]])
        )
    except ZeroDivisionError:
        raise Refusal(
            f"the lines do not determine the form of layer {k + 1}: take another seed"
        ) from None
    form = np.array(solution.entries(), dtype=object)
    size = max(1.0, *(float(abs(x).mid()) for x in form))
    allowed = size * flint.arb(2) ** (planned.margin // 2 - planned.bits[k])
    for row, side in zip(rows[d * d :], sides[d * d :], strict=True):
        if not abs(row @ form - side) < allowed:
            raise Refusal(
                f"the terms that should show the form of layer {k + 1} are no bilinear form: the "
                "function is no softmax network of this architecture, or earlier forms are so "
                "nearly skew that more digits are needed"
            )
    return form.reshape(d, d)
