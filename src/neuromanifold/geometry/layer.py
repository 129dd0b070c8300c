"""One lightning layer as the pair (A, V), in floats or in residues."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.architecture import Architecture
from neuromanifold.errors import HypothesisError, NotCoveredError
from neuromanifold.networks.weights import Weights
from neuromanifold.statements import Facts, get, unmet

Matrix = Float64[np.ndarray, "_ _"]


def check_layer(architecture: Architecture, statement: str) -> None:
    """Raise unless the network is one lightning layer that meets the statement's hypotheses."""
    failures = unmet(get(statement), Facts.of(architecture))
    if not failures:
        return
    one = architecture.is_linear_in_scores and architecture.is_plain
    one = one and architecture.depth == 1 and architecture.has_one_head
    wanted = ", ".join(hypothesis.text for hypothesis in get(statement).hypotheses)
    error = HypothesisError if one else NotCoveredError
    raise error(
        f"this geometry ({statement}) is known for: {wanted}; "
        f"got {architecture.name}: {'; '.join(failures)}"
    )


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """The matrices of one layer; a float array of numbers, or of residues mod p.

    Attributes:
        query: Q, a × d.
        key: K, a × d.
        value: V, d' × d, or the inner factor, v × d.
        output: None, or the outer factor O of the value map, d' × v.
    """

    query: Matrix
    key: Matrix
    value: Matrix
    output: Matrix | None

    @classmethod
    def of(cls, weights: Weights) -> "Factors":
        """The matrices of the only head of the only layer, in float64."""
        layer = {n: T[0].astype(np.float64) for n, T in weights.layers[0].arrays().items()}
        return cls(layer["query"], layer["key"], layer["value"], layer.get("output"))

    def each(self, function: Callable[[Matrix], Matrix]) -> "Factors":
        """The images of all matrices."""
        output = None if self.output is None else function(self.output)
        return Factors(function(self.query), function(self.key), function(self.value), output)

    def residues(self, field: PrimeField) -> "Factors":
        """The same matrices mod p: every float is a dyadic rational, taken at its exact value."""
        return self.each(field.from_floats)

    @property
    def form(self) -> Matrix:
        """A = Kᵀ Q in floats (eq-3)."""
        return self.key.T @ self.query

    @property
    def value_map(self) -> Matrix:
        """V, or O V, in floats."""
        return self.value if self.output is None else self.output @ self.value

    def pair_mod(self, field: PrimeField) -> tuple[Matrix, Matrix]:
        """(A, V) when the matrices are residues."""
        V = self.value if self.output is None else field.matmul(self.output, self.value)
        return field.matmul(self.key.T, self.query), V
