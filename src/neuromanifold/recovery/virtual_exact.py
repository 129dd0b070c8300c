"""Virtual weights over Q or GF(p), and the function they give (eq-8)."""

from dataclasses import dataclass

import numpy as np

from neuromanifold.recovery.exact_field import ExactField


@dataclass(frozen=True, slots=True, eq=False)
class ExactVirtual:
    """Virtual weights of a lightning network in exact arrays.

    Attributes:
        forms: M_1, …, M_l, each d_0 × d_0.
        linear: L, shape d_l × d_0.
        field: where the entries live.
    """

    forms: tuple[np.ndarray, ...]
    linear: np.ndarray
    field: ExactField

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """φ(X) = L Y_l with Y_0 = X and Y_i = Y_{i-1} Y_{i-1}ᵀ M_i Y_{i-1}.

        The output tokens of layer i are L_i Y_i, and V_i L_{i-1} = L_i.
        """
        Y = X
        for M in self.forms:
            Y = self.field.product(Y, Y.T, M, Y)
        return self.field.product(self.linear, Y)
