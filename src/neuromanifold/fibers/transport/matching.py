"""Which head of one layer is which head of another, and by what factor it was scaled.

Heads are compared by their forms M_h (attention matrices in coordinates that both layers share)
and, where the outputs share coordinates too, by their value maps V_h. Where scaling is a symmetry a
form counts up to a factor, so the cost of a pair is the distance of the forms divided by their
sizes, with the better sign; else it is their distance relative to the larger.
"""

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment

Stack = Float[np.ndarray, "head _ _"]

_LARGEST_COST = 1e6  # costs of matrices that are floats are at most 2


def match_heads(
    forms: Stack, new_forms: Stack, values: Stack | None, new_values: Stack | None, *, scaled: bool
) -> Int[np.ndarray, " head"]:
    """The order σ such that head σ(h) of the first layer matches head h of the second."""
    cost = _costs(new_forms, forms, scaled=scaled)
    if values is not None and new_values is not None:
        cost = cost + _costs(new_values, values, scaled=scaled)
    overflowed = np.nan_to_num(cost, nan=_LARGEST_COST, posinf=_LARGEST_COST)
    return linear_sum_assignment(overflowed)[1].astype(np.int64)


def scale_factor(form: Float[np.ndarray, "m n"], new_form: Float[np.ndarray, "m n"]) -> float:
    """λ with M' = λ M in the sense of least squares, and 1 where that would be 0/0 or 0."""
    size = float(np.vdot(form, form))
    factor = float(np.vdot(form, new_form)) / size if size else 0.0
    return factor or 1.0


def _costs(rows: Stack, columns: Stack, *, scaled: bool) -> Float[np.ndarray, "head head"]:
    """The cost of pairing each matrix of `rows` with each of `columns`: 0 for a match."""
    R, C = rows.reshape(len(rows), -1), columns.reshape(len(columns), -1)
    if scaled:
        R, C = _normalised(R), _normalised(C)
        products = R @ C.T
        signs = np.where(products < 0, -1.0, 1.0)
        return np.linalg.norm(R[:, None] - signs[..., None] * C[None], axis=-1)
    sizes = np.maximum(np.linalg.norm(R, axis=1)[:, None], np.linalg.norm(C, axis=1))
    distances = np.linalg.norm(R[:, None] - C[None], axis=-1)
    return np.divide(distances, sizes, out=np.zeros_like(distances), where=sizes > 0)


def _normalised(rows: Float[np.ndarray, "head n"]) -> Float[np.ndarray, "head n"]:
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, sizes, out=np.zeros_like(rows), where=sizes > 0)
