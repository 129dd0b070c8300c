"""One lightning layer as the pair (A, V), in floats or in residues."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.architecture import Architecture
from neuromanifold.errors import HypothesisError, NotCoveredError
from neuromanifold.networks.weights import Tensor, Weights
from neuromanifold.statements import Facts, get, unmet

Matrix = Float64[np.ndarray, "_ _"]


def check_layer(architecture: Architecture, statement: str) -> None:
    """Raise unless the network is one lightning layer that meets the statement's hypotheses."""
    failures = unmet(get(statement), Facts.of(architecture))
    if not failures:
        return
    another_network = (
        architecture.attention != "lightning"
        or architecture.depth > 1
        or architecture.heads > 1
        or architecture.skip != "none"
        or architecture.mask != "none"
    )
    wanted = ", ".join(hypothesis.text for hypothesis in get(statement).hypotheses)
    error = NotCoveredError if another_network else HypothesisError
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
        named = {name: _float64(x) for name, x in weights.layers[0].tensors().items()}
        return cls(named["query"], named["key"], named["value"], named.get("output"))

    def residues(self, field: PrimeField) -> "Factors":
        """The same matrices mod p: every float is a dyadic rational, taken at its exact value."""
        output = None if self.output is None else _residues(self.output, field)
        return Factors(
            _residues(self.query, field),
            _residues(self.key, field),
            _residues(self.value, field),
            output,
        )

    @property
    def attention(self) -> Matrix:
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


def _float64(tensor: Tensor) -> Matrix:
    return np.asarray(tensor[0], dtype=np.float64)


def _residues(matrix: Matrix, field: PrimeField) -> Matrix:
    return field.from_floats(matrix)
