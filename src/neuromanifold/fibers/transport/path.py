"""Paths in the identity component of the symmetry groups.

A real matrix C of positive determinant is R P, R a rotation and P positive definite (its polar
decomposition). R = exp(S) with S skew-symmetric, and P = exp(T) with T symmetric, so

    C(s) = exp(s S) exp(s T),    0 ≤ s ≤ 1,

leads from 1 to C, and its condition number never exceeds that of C. A mixing of heads that fixes
the vector of ones, as it must with the inner skip, is [[1, r], [0, R]] in a basis that begins with
that vector: its path is [[1, s r], [0, R(s)]].
"""

import numpy as np
import scipy.linalg
from jaxtyping import Float

from neuromanifold.errors import ArgumentError
from neuromanifold.symmetry.group_element import GroupElement
from neuromanifold.symmetry.heads import ones_first

Square = Float[np.ndarray, "n n"]


def path_to(element: GroupElement, steps: int) -> list[GroupElement]:
    """`steps` + 1 elements on a path from the identity to `element`, both included."""
    obstructions = element.component()
    if obstructions:
        raise ArgumentError(
            "a path needs an element in the identity component; here " + ", ".join(obstructions)
        )
    times = np.linspace(0.0, 1.0, steps + 1)
    parts = {
        name: [_stack_path(part, times) for part in getattr(element, name)]
        for name in ("inter_layer", "value_output", "key_query")
    }
    fixes_ones = element.architecture.adds_values
    mixing = [_mixing_path(g, times, fixes_ones=fixes_ones) for g in element.head_mixing]
    return [
        GroupElement(
            element.architecture,
            head_mixing=tuple(path[k] for path in mixing),
            head_permutation=element.head_permutation,
            scaling=tuple(factor**s for factor in element.scaling),
            **{name: tuple(path[k] for path in paths) for name, paths in parts.items()},
        )
        for k, s in enumerate(times)
    ]


def _mixing_path(
    g: Square, times: Float[np.ndarray, " k"], *, fixes_ones: bool
) -> Float[np.ndarray, "k n n"]:
    """The path of a mixing, through mixings that fix the vector of ones if it must."""
    if not fixes_ones:
        return matrix_path(g, times)
    basis = ones_first(len(g))
    block = basis.T @ g @ basis
    path = np.stack([np.eye(len(g))] * len(times))
    path[:, 0, 1:] = times[:, None] * block[0, 1:]
    path[:, 1:, 1:] = matrix_path(block[1:, 1:], times)
    return basis @ path @ basis.T


def matrix_path(C: Square, times: Float[np.ndarray, " k"]) -> Float[np.ndarray, "k n n"]:
    """C(s) of the module's docstring at the given times."""
    R, P = map(np.asarray, scipy.linalg.polar(C))
    sizes, axes = np.linalg.eigh(P)
    planes, basis = _rotation_planes(R)
    stretched = [(axes * sizes**s) @ axes.T for s in times]
    turned = [basis @ _turn(planes, s, len(C)) @ basis.T for s in times]
    return np.stack([R_s @ P_s for R_s, P_s in zip(turned, stretched, strict=True)])


def _stack_path(stack: np.ndarray, times: np.ndarray) -> Float[np.ndarray, "k *heads n n"]:
    """The paths of all matrices of a stack."""
    if stack.ndim == 2:
        return matrix_path(stack, times)
    return np.stack([matrix_path(C, times) for C in stack], axis=1)


def _rotation_planes(R: Square) -> tuple[list[tuple[int, int, float]], Square]:
    """Planes (i, j) and angles of a rotation, in the basis of its real Schur form.

    The real Schur form of an orthogonal matrix is block diagonal: 2 × 2 rotations, and 1 × 1 blocks
    ±1. Since det R = 1 the −1 come in pairs: each pair is a rotation by π.
    """
    T, basis = map(np.asarray, scipy.linalg.schur(R, output="real"))
    planes: list[tuple[int, int, float]] = []
    flips: list[int] = []
    i = 0
    while i < len(R):
        if i + 1 < len(R) and abs(T[i + 1, i]) > 1e-12:
            planes.append((i, i + 1, float(np.arctan2(T[i + 1, i], T[i, i]))))
            i += 2
            continue
        if T[i, i] < 0:
            flips.append(i)
        i += 1
    planes += [(i, j, float(np.pi)) for i, j in zip(flips[::2], flips[1::2], strict=True)]
    return planes, basis


def _turn(planes: list[tuple[int, int, float]], s: float, n: int) -> Square:
    """The rotation by s times the angles."""
    turned = np.eye(n)
    for i, j, angle in planes:
        c, sine = np.cos(s * angle), np.sin(s * angle)
        turned[[i, i, j, j], [i, j, i, j]] = c, -sine, sine, c
    return turned
