"""Lightning networks of depth at most 3 from an exact black box, over Q or GF(p) (thm-3.7).

With q_i(x) = xᵀ M_i x, one token alone gives

    φ(x) = L x · ∏_i q_i(x)^{3^{l-i}}.

1. On a line u + s w that is a polynomial in s. The squarefree factorisation separates the q_i by
   their multiplicities; dividing each by its value at s = 0 means q_i(u) = 1 on every line through
   u at once, and fixes the scale of every M_i (eq-13). Its coefficients are the values of the
   symmetric part of M_i on (u, w) and (w, w); lines through u along w_j and w_j + w_k, for a basis
   w_1, …, w_d, determine it.
2. L x = φ(x)/∏ q_i(x)^{3^{l-i}}.
3. Tokens x and ε z: φ_2/ε = B(x xᵀ + u z zᵀ) z, a polynomial in u = ε². Its coefficient at
   u^{(3^{i-1}−1)/2} depends on the skew parts Σ_1, …, Σ_i only, and is affine in Σ_i: the terms
   with a later Σ_j cancel against their reflections (the induction of thm-3.7, at x_1 = x_3 = z).
   So xᵀ Σ_i z follows, layer after layer, from two values of the model. Two tokens suffice.

When L has rank one, L x is ℓ(x) times a constant vector, and the multiplicity 1 belongs to ℓ q_l.
That cubic form is interpolated and factored; each of its linear factors is tried as ℓ.
"""

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from neuromanifold.algebra.exact_field import ExactField, Number
from neuromanifold.architecture import Architecture
from neuromanifold.networks.virtual import degrees
from neuromanifold.recovery.factorise import ExactVirtual
from neuromanifold.recovery.oracle import BlackBox
from neuromanifold.recovery.result import Refusal

_ATTEMPTS = 5
"""Draws of u and the basis; unlucky ones (a zero of some q_i, a singular basis) are repeated."""


class _UnluckyDrawError(Exception):
    """The random point lies on a hypersurface that the method must avoid."""


@dataclass(frozen=True, slots=True, eq=False)
class _Probe:
    """The black box with the random base point u and basis w_1, …, w_d (rows) it is probed at."""

    box: BlackBox
    architecture: Architecture
    field: ExactField
    base: np.ndarray
    basis: np.ndarray

    def tokens(self, *tokens: np.ndarray) -> np.ndarray:
        """φ at these tokens, all others zero."""
        X = self.field.read(
            np.zeros((self.architecture.widths[0], self.architecture.tokens), dtype=int)
        )
        for k, token in enumerate(tokens):
            X[:, k] = token
        return self.box(X)

    def multiplicities(self) -> list[int]:
        """The exponents 3^{l-i} of the q_i, i = 1, …, l."""
        return degrees(self.architecture.depth)[:-1]


def recover_exact_lightning(
    box: BlackBox, architecture: Architecture, field: ExactField, generator: random.Random
) -> tuple[ExactVirtual, ...]:
    """(M, L) in the scale q_i(u) = 1; several candidates only when L has rank one (thm-3.7)."""
    if architecture.tokens < 2:
        raise Refusal(
            "one token shows only the symmetric parts of the forms; at least 2 are needed"
        )
    d = architecture.widths[0]
    for _ in range(_ATTEMPTS):
        u, W = field.random(generator, d), field.random(generator, d, d)
        probe = _Probe(box, architecture, field, u, W)
        try:
            points = [_with_skew_parts(probe, point) for point in _symmetric_points(probe)]
        except (_UnluckyDrawError, ZeroDivisionError):
            continue
        if points:
            return tuple(points)
    raise Refusal(
        "its values on lines are not a linear map times powers of l coprime quadratic forms, as "
        "thm-3.7 needs (forms that are not skew, of rank at least 2)"
    )


def _symmetric_points(probe: _Probe) -> list[ExactVirtual]:
    """The symmetric parts and L; one candidate for each linear factor when L has rank one."""
    inverse = probe.field.inverse(probe.basis)
    d, exponents = len(probe.base), probe.multiplicities()
    lines = {
        (j, k): _quadratics_on_line(probe, probe.basis[j] + probe.basis[k] * int(j != k))
        for j in range(d)
        for k in range(j + 1)
    }
    forms = []
    for exponent in exponents:
        if any(exponent not in line for line in lines.values()):
            break
        squares = {jk: line[exponent][2] for jk, line in lines.items()}
        forms.append(_form_from_squares(probe.field, squares, inverse))
    if len(forms) == len(exponents):
        return [_with_linear_map(probe, forms, inverse)]
    if len(forms) < len(exponents) - 1:
        raise _UnluckyDrawError
    return [
        _with_linear_map(probe, [*forms, last], inverse)
        for last in _last_forms(probe, forms, inverse)
    ]


def _quadratics_on_line(probe: _Probe, w: np.ndarray) -> dict[int, list[Number]]:
    """For each multiplicity the coefficients [1, c_1, c_2] of q_i(u + s w)/q_i(u).

    The multiplicity 1 is left out when its factor has degree 3: then it contains L x too.
    """
    field, degree = probe.field, 3**probe.architecture.depth
    nodes = [s - degree // 2 for s in range(degree + 1)]
    values = np.stack([probe.tokens(field.reduce(probe.base + s * w))[:, 0] for s in nodes])
    coefficients = field.interpolate(nodes, values)
    if not coefficients.any():
        raise Refusal("it vanishes on one-token inputs: the form of some layer is skew, or L is 0")
    quadratics = {}
    for c, multiplicity in field.squarefree_content(coefficients):
        if not c[0] or multiplicity not in probe.multiplicities():
            raise _UnluckyDrawError
        if multiplicity == 1 and len(c) == 4:
            continue
        if len(c) > 3:
            raise _UnluckyDrawError
        padded = field.read(np.array([*c, 0, 0][:3], dtype=object))
        quadratics[multiplicity] = list(field.divide(padded, c[0]))
    return quadratics


def _form_from_squares(
    field: ExactField, squares: dict[tuple[int, int], Number], inverse: np.ndarray
) -> np.ndarray:
    """The symmetric N with the values wᵀ N w at w_j and w_j + w_k."""
    d = len(inverse)
    gram = field.read(np.zeros((d, d), dtype=int))
    for j, k in squares:
        if j == k:
            gram[j, j] = squares[j, j]
        else:
            mixed = squares[j, k] - squares[j, j] - squares[k, k]
            gram[j, k] = gram[k, j] = field.divide(np.array([mixed], dtype=object), 2)[0]
    return field.product(inverse, gram, inverse.T)


def _known_factor(probe: _Probe, forms: list[np.ndarray], x: np.ndarray) -> Number:
    """∏ q_i(x)^{3^{l-i}} over the forms known so far."""
    value: Number = 1
    for form, exponent in zip(forms, probe.multiplicities(), strict=False):
        value *= probe.field.number(x @ form @ x) ** exponent
    value = probe.field.number(value)
    if not value:
        raise _UnluckyDrawError
    return value


def _with_linear_map(probe: _Probe, forms: list[np.ndarray], inverse: np.ndarray) -> ExactVirtual:
    """L from its values φ(w_j)/∏ q_i(w_j)^{3^{l-i}} on the basis."""
    field = probe.field
    columns = [
        field.divide(probe.tokens(w)[:, 0], _known_factor(probe, forms, w)) for w in probe.basis
    ]
    L = field.product(np.stack(columns, axis=1), inverse.T)
    return ExactVirtual(tuple(forms), L, field)


def _last_forms(probe: _Probe, forms: list[np.ndarray], inverse: np.ndarray) -> list[np.ndarray]:
    """Candidates for M_l's symmetric part when L has rank one: ℓ q_l over each linear factor.

    Coordinates are those of the basis. A cubic form is determined by its values at the points with
    whole coordinates e ≥ 0, Σ e_j = 3: the principal lattice of a simplex.
    """
    field, d = probe.field, len(probe.base)
    component = int(np.flatnonzero(probe.tokens(probe.base)[:, 0])[0])
    triples = itertools.combinations_with_replacement(range(d), 3)
    exponents = [tuple(triple.count(i) for i in range(d)) for triple in triples]
    values = []
    for e in exponents:
        x = field.reduce(np.array(e, dtype=object) @ probe.basis)
        output = probe.tokens(x)[component, :1]
        values.append(field.divide(output, _known_factor(probe, forms, x))[0])
    design = np.array([_monomials(e, exponents) for e in exponents], dtype=object)
    cubic = field.reduce(field.inverse(field.read(design)) @ np.array(values, dtype=object))
    factors = field.linear_factors(dict(zip(exponents, cubic, strict=True)), d)
    return [
        _form_from_squares(field, _quotient_squares(field, exponents, cubic, factor), inverse)
        for factor in factors
    ]


def _monomials(point: Sequence[int], exponents: list[tuple[int, ...]]) -> list[int]:
    """The values of the monomials at a point with whole coordinates."""
    return [math.prod(x**k for x, k in zip(point, e, strict=True)) for e in exponents]


def _quotient_squares(
    field: ExactField, exponents: list[tuple[int, ...]], cubic: np.ndarray, factor: np.ndarray
) -> dict[tuple[int, int], Number]:
    """The values of (cubic form)/(linear form) at the coordinates of w_j and w_j + w_k."""
    d = len(factor)
    squares = {}
    for j, k in itertools.product(range(d), repeat=2):
        if k <= j:
            point = [int(i in (j, k)) for i in range(d)]
            value = np.array(_monomials(point, exponents), dtype=object) @ cubic
            divisor = field.number(np.array(point, dtype=object) @ factor)
            squares[j, k] = field.divide(np.array([value], dtype=object), divisor)[0]
    return squares


def _with_skew_parts(probe: _Probe, point: ExactVirtual) -> ExactVirtual:
    """The same with the skew parts Σ_i added, from the tokens w_j and ε w_k, for all j < k."""
    field, W = probe.field, probe.basis
    inverse = field.inverse(W)
    grams = [field.product(W, form, W.T) for form in point.forms]
    images = field.product(point.linear, W.T)
    for j, k in itertools.combinations(range(len(W)), 2):
        pair = [j, k]
        local = ExactVirtual(
            tuple(gram[np.ix_(pair, pair)] for gram in grams), images[:, pair], field
        )
        solved = _solve_skew_parts(local, _two_token_terms(probe, W[j], W[k]))
        for gram, form in zip(grams, solved, strict=True):
            gram[np.ix_(pair, pair)] = form
    forms = [field.product(inverse, gram, inverse.T) for gram in grams]
    return ExactVirtual(tuple(forms), point.linear, field)


def _two_token_terms(probe: _Probe, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The coefficients in u = ε² of φ(x, ε z)_2/ε, one row each, constant term first."""

    def values(step: int) -> np.ndarray:
        return probe.tokens(x, probe.field.reduce(step * z))[:, 1]

    return _terms(probe.field, values, probe.architecture.depth)


def _terms(field: ExactField, values: Callable[[int], np.ndarray], depth: int) -> np.ndarray:
    """Coefficients in ε² of the odd polynomial `values(ε)`/ε of degree 3^l − 1."""
    steps = range(1, (3**depth - 1) // 2 + 2)
    quotients = np.stack([field.divide(values(step), step) for step in steps])
    return field.interpolate([step**2 for step in steps], quotients)


def _solve_skew_parts(local: ExactVirtual, terms: np.ndarray) -> list[np.ndarray]:
    """The 2 × 2 Gram matrices on (x, z) with their skew parts, layer after layer."""
    field, forms = local.field, list(local.forms)
    skew = field.read(np.array([[0, 1], [-1, 0]]))
    for i in range(len(forms)):
        order = (3**i - 1) // 2

        def model(form: np.ndarray, i: int = i, order: int = order) -> np.ndarray:
            trial = ExactVirtual((*forms[:i], form, *forms[i + 1 :]), local.linear, field)

            def values(step: int) -> np.ndarray:
                return trial(field.read(np.diag([1, step])))[:, 1]

            return _terms(field, values, len(forms))[order]

        start = model(forms[i])
        slope = field.reduce(model(field.reduce(forms[i] + skew)) - start)
        seen = np.flatnonzero(slope)
        if not len(seen):
            raise _UnluckyDrawError
        missing = field.reduce(terms[order] - start)[seen[:1]]
        forms[i] = field.reduce(forms[i] + field.divide(missing, slope[seen[0]])[0] * skew)
    return forms
