"""What a function shows of its weights: exactly, or with the effect of rounding the weights.

For one head without residual skip these are the virtual weights (M_1, …, M_l, L) (eq-8), for one
lightning layer the table of products of linear forms Σ_h α_m ν_n (prop-a.5), for one softmax layer
with one head the pair (A, V) whatever the skip.

Rounding. Let L = B_n ⋯ B_1 be the chain of value maps (and their factors), S_k = B_n ⋯ B_{k+1}. An
error dB_k moves L by S_k dB_k L_{k-1}, and M = (K L)ᵀ (Q L) by

    (dK L)ᵀ (Q L) + (K L)ᵀ (dQ L) + dLᵀ Kᵀ(Q L) + (K L)ᵀQ dL.

With independent errors of root mean square N in each entry, E ‖P dB R‖² = Σ_pq N_pq² ‖P e_p‖²
‖e_qᵀ R‖²: sums of squares of rows and columns that cost no more than the products themselves. The
result is the size of what rounding does to this matrix; it knows that rows of C V and columns of
K C^{-1} are rounded each to its own size, and it grows with the condition of the weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations
from typing import Literal

import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.dyadic import Dyadic
from neuromanifold.architecture import Architecture
from neuromanifold.fibers.units import InUnits
from neuromanifold.networks.exact_virtual import exact_forms, exact_layers, exact_value_map
from neuromanifold.networks.weights import Weights

Matrix = Float[np.ndarray, "_ _"]
Kind = Literal["virtual weights", "table of products"]

_CLEAR = 8.0


@dataclass(frozen=True, slots=True)
class FormFacts:
    """What is known of a matrix; None where floats cannot tell.

    Attributes:
        name: of the matrix.
        zero: whether it is zero.
        skew: whether it is square and skew-symmetric.
        rank_two: whether its rank is at least two.
    """

    name: str
    zero: bool | None
    skew: bool | None
    rank_two: bool | None


@dataclass(frozen=True, slots=True)
class Invariant:
    """A matrix that the function shows, 2^`exponent` times `matrix`.

    Attributes:
        name: M_1, …, L, or T for the table.
        matrix: entries of ordinary size.
        noise: the root mean square of ‖d matrix‖ that rounding the weights causes.
        exponent: of the factor.
    """

    name: str
    matrix: Float[np.ndarray, "..."]
    noise: float
    exponent: int

    @property
    def size(self) -> float:
        """The Frobenius norm of `matrix`."""
        return float(np.linalg.norm(self.matrix))

    @property
    def relative_noise(self) -> float:
        """The noise relative to the matrix; 0 for an exact zero, infinite for zero up to noise."""
        if self.noise == 0:
            return 0.0
        return float(self.noise / self.size) if self.size else np.inf

    @property
    def facts(self) -> FormFacts:
        """What the noise leaves no doubt about."""
        M, clear = self.matrix, _CLEAR * self.noise
        zero = None
        if self.size > clear:
            zero = False
        elif self.size == self.noise == 0:
            zero = True
        if not _is_square(M):
            return FormFacts(self.name, zero, False, None)
        skew = False if np.linalg.norm(M + M.T) / 2 > clear else (True if zero else None)
        second = np.linalg.svd(M, compute_uv=False)[1] if len(M) > 1 else 0.0
        return FormFacts(self.name, zero, skew, True if second > clear else None)


@dataclass(frozen=True, slots=True, eq=False)
class ExactInvariant:
    """An invariant of the floats as they are.

    Attributes:
        name: M_1, …, L, or T and V.
        value: the array.
    """

    name: str
    value: Dyadic

    @property
    def facts(self) -> FormFacts:
        """All of them."""
        value = self.value
        if not _is_square(value.integers):
            return FormFacts(self.name, value.is_zero, False, None)
        return FormFacts(self.name, value.is_zero, value.is_skew, value.rank >= 2)


def _is_square(matrix: np.ndarray) -> bool:
    return matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]


def weight_facts(weights: Weights, found: Sequence[Invariant]) -> list[FormFacts]:
    """Facts that noise leaves no doubt about, and zeros and skew forms that are exact."""
    facts = [one.facts for one in found]
    if any(fact.zero is None or fact.skew is None for fact in facts):
        exact = [one.facts for one in exact_invariants(weights)]
        facts = [
            replace(
                fact,
                zero=True if one.zero else fact.zero,
                skew=True if fact.skew is None and one.skew else fact.skew,
            )
            for fact, one in zip(facts, exact, strict=True)
        ]
    return facts


def kind_of(architecture: Architecture) -> Kind | None:
    """Which invariants a network has; None for several heads or a residual skip in depth."""
    if architecture.depth == 1 and architecture.is_linear_in_scores:
        return "table of products"
    if architecture.has_virtual_weights:
        return "virtual weights"
    if architecture.depth == 1 and architecture.has_one_head:
        return "virtual weights"
    return None


def invariants(scaled: InUnits) -> tuple[Invariant, ...]:
    """The invariants of weights in units, for a network that has them (eq-8, prop-a.5)."""
    if kind_of(scaled.weights.architecture) == "table of products":
        return _tables(scaled)
    return virtual_invariants(scaled)


@dataclass(frozen=True, slots=True)
class _Link:
    """A factor B of the chain with its rounding, and L before it."""

    B: Matrix
    N: Matrix
    before: Matrix


def virtual_invariants(scaled: InUnits) -> tuple[Invariant, ...]:
    """M_1, …, M_l over the temperature, and L; those of one layer are A and V (eq-8)."""
    weights = scaled.weights
    L = np.eye(weights.architecture.widths[0])
    links: list[_Link] = []
    found = []
    for i, (layer, N) in enumerate(zip(weights.layers, scaled.rounding, strict=True), start=1):
        K, k = _unit(np.asarray(layer.key[0]))
        Q, q = _unit(np.asarray(layer.query[0]))
        N_K, N_Q = np.ldexp(N["key"][0], -k), np.ldexp(N["query"][0], -q)
        form, noise = _form(K, Q, N_K, N_Q, L, links)
        temperature, t = np.frexp(weights.architecture.temperature)
        found.append(
            Invariant(f"M_{i}", form / temperature, float(noise / temperature), k + q - int(t))
        )
        for name in ("value", "output"):
            if name in N:
                B = np.asarray(layer.tensors()[name][0])
                links.append(_Link(B, N[name][0], L))
                L = B @ L
    noise = np.sqrt(sum(_moved(S.T, link.N, link.before) for S, link in _tails(links, weights)))
    return (*found, Invariant("L", L, float(noise), scaled.output - scaled.input))


def _unit(matrix: Matrix) -> tuple[Matrix, int]:
    """The matrix with its largest entry between 1/2 and 1, and the exponent taken out."""
    exponent = int(np.frexp(np.abs(matrix).max(initial=0.0))[1])
    return np.ldexp(matrix, -exponent), exponent


def _form(
    K: Matrix, Q: Matrix, N_K: Matrix, N_Q: Matrix, L: Matrix, links: list[_Link]
) -> tuple[Matrix, float]:
    """M = (K L)ᵀ (Q L) and its noise, by the formula of the module's docstring."""
    P, R = K @ L, Q @ L
    square = _moved(R, N_K, L) + _moved(P, N_Q, L)
    S = np.eye(len(L))
    for link in reversed(links):
        # the two terms of one dB_k are not independent: (x + y)² ≤ 2 (x² + y²)
        square += 2 * _moved(R.T @ K @ S, link.N, link.before, columns=True)
        square += 2 * _moved(P.T @ Q @ S, link.N, link.before, columns=True)
        S = S @ link.B
    return P.T @ R, float(np.sqrt(square))


def _tails(links: list[_Link], weights: Weights) -> list[tuple[Matrix, _Link]]:
    """Every link with S_k, the product of those after it."""
    S = np.eye(weights.architecture.widths[-1])
    found = []
    for link in reversed(links):
        found.append((S, link))
        S = S @ link.B
    return found


def _moved(left: Matrix, N: Matrix, right: Matrix, *, columns: bool = False) -> float:
    """E ‖leftᵀ E right‖² (left E right with `columns`) for independent errors of size N."""
    norms = np.sum(left * left, axis=0 if columns else 1)
    return float(norms @ (N * N) @ np.sum(right * right, axis=1))


def _tables(scaled: InUnits) -> tuple[Invariant, ...]:
    """The table T[n, m, i, j] = Σ_h V_h[n, i] A_h[j, m], symmetric in i, j; ΣV with an inner skip.

    Token i is Σ_j (x_jᵀ A x_i) V x_j, so the polynomials Σ_ij T[n, m, i, j] y_i y_j z_m are shown
    by two tokens y and z, with and without the causal mask (prop-a.5); one token shows their values
    at z = y.
    """
    layer, N = scaled.weights.layers[0], scaled.rounding[0]
    architecture = scaled.weights.architecture
    table, square, total, square_V = 0.0, 0.0, 0.0, 0.0
    for h in range(architecture.heads):
        K, Q = np.asarray(layer.key[h]), np.asarray(layer.query[h])
        A, V = K.T @ Q, np.asarray(layer.value_maps()[h])
        one = np.eye(K.shape[1])
        noise_A = _moved(Q, N["key"][h], one) + _moved(K, N["query"][h], one)
        if layer.output is None:
            noise_V = float(np.sum(N["value"][h] ** 2))
        else:
            O_h, V_h = np.asarray(layer.output[h]), np.asarray(layer.value[h])
            noise_V = _moved(O_h.T, N["value"][h], one)
            noise_V += float(np.sum((N["output"][h] ** 2) @ np.sum(V_h * V_h, axis=1)))
        table = table + np.einsum("ni,jm->nmij", V, A)
        square += noise_V * float(np.sum(A * A)) + noise_A * float(np.sum(V * V))
        total, square_V = total + V, square_V + noise_V
    table = np.asarray(table)
    orders = table_orders(architecture.tokens)
    table = sum(table.transpose(order) for order in orders) / len(orders)
    exponent = scaled.output - scaled.input
    found = (Invariant("T", np.asarray(table), float(np.sqrt(square)), exponent),)
    if architecture.adds_values:
        found += (Invariant("V", np.asarray(total), float(np.sqrt(square_V)), exponent),)
    return found


def table_orders(tokens: int) -> tuple[tuple[int, ...], ...]:
    """The orders of the axes n, m, i, j that a table does not see; for one token m takes part."""
    if tokens > 1:
        return ((0, 1, 2, 3), (0, 1, 3, 2))
    return tuple((0, *order) for order in permutations((1, 2, 3)))


def exact_invariants(
    weights: Weights, temperature: Fraction = Fraction(1)
) -> tuple[ExactInvariant, ...]:
    """The invariants of the floats as they are; forms are multiplied by `temperature`.

    Two networks of temperatures τ and τ' are compared with forms multiplied by τ' and τ: that is
    comparing M/τ with M'/τ', without a division.
    """
    if kind_of(weights.architecture) == "table of products":
        return _exact_tables(weights, exact_layers(weights)[0])
    return exact_virtual(weights, temperature)


def exact_virtual(
    weights: Weights, temperature: Fraction = Fraction(1)
) -> tuple[ExactInvariant, ...]:
    """M_1, …, M_l, multiplied by `temperature`, and L of weights with one head (eq-8)."""
    forms, L = exact_forms(weights)
    shift = temperature.denominator.bit_length() - 1  # of a float: a power of two
    named = [
        ExactInvariant(f"M_{i}", Dyadic(M.integers * temperature.numerator, M.exponent - shift))
        for i, M in enumerate(forms, start=1)
    ]
    return (*named, ExactInvariant("L", L))


def _exact_tables(weights: Weights, layer: dict[str, list[Dyadic]]) -> tuple[ExactInvariant, ...]:
    """The symmetric table of one lightning layer, and ΣV with an inner skip (prop-a.5)."""
    tables: list[Dyadic] = []
    total: list[Dyadic] = []
    for h in range(weights.architecture.heads):
        A, V = layer["key"][h].T @ layer["query"][h], exact_value_map(layer, h)
        product = np.multiply.outer(V.integers, A.integers).transpose(0, 3, 1, 2)  # n, m, i, j
        orders = table_orders(weights.architecture.tokens)
        symmetric = sum(product.transpose(order) for order in orders)
        tables.append(Dyadic(np.asarray(symmetric), V.exponent + A.exponent))
        total.append(V)
    table, values = tables[0], total[0]
    for one, V in zip(tables[1:], total[1:], strict=True):
        table, values = table + one, values + V
    found = (ExactInvariant("T", table),)
    return (*found, ExactInvariant("V", values)) if weights.architecture.adds_values else found
