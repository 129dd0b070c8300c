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
        """φ(X) = L C_l X, where C_0 = 1, C_i = C_{i-1} S C_{i-1}ᵀ M_i C_{i-1} and S = X Xᵀ.

        For X C_{i-1} = Z_{i-1} of the recursion in Z: the tokens of layer i are L_i C_i X.
        """
        tokens = self.field.matrix(X)
        S = tokens * tokens.transpose()
        C = self.field.matrix(self.field.read(np.eye(len(X), dtype=int)))
        for form in self.forms:
            C = C * S * C.transpose() * self.field.matrix(form) * C
        return self.field.array(self.field.matrix(self.linear) * C * tokens)
