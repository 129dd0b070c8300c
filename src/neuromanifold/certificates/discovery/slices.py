"""Slices: where a torus of symmetries is used up by setting vectors of weights to 1.

Let symmetries that multiply every weight by a number form a torus, t_j for j = 1, …, n, which acts
on the entries of a vector v of weights as v_j ↦ t_j v_j: the gain of a norm whose readers take it
back. Then every weight w with no v_j zero is moved by t = v^{-1} to the slice v = 1, and

    kernel at w = torus directions ⊕ t^{-1} · (kernel of the function on the slice at t · w).

On the slice a vector field may be affine that is not so elsewhere: behind gains Γ a rotation A of
the stream moves a reader W by W Γ Aᵀ Γ^{-1}, and on the slice by W Aᵀ.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from neuromanifold.algebra.echelon import EchelonForm
from neuromanifold.algebra.elimination import Indices
from neuromanifold.algebra.prime_field import PrimeField, Residues
from neuromanifold.algebra.rank import null_space, rank
from neuromanifold.certificates.discovery.blocks import Block
from neuromanifold.certificates.discovery.vector_fields import Field, Part, motions
from neuromanifold.networks.network import Network

_HEIGHT = 8
"""Exponents of a torus: what is larger is no small whole number mod p, and is not believed."""


@dataclass(frozen=True, eq=False)
class Slice:
    """The weights at which some vectors are 1.

    Attributes:
        network: the function there, of the other weights.
        vectors: the vectors that are 1, by the names of their tensors.
        fixed: their columns.
        kept: the other columns.
        exponents: how the torus element that moves a fixed column acts on each kept one.
    """

    network: Network
    vectors: tuple[Part, ...]
    fixed: Indices
    kept: Indices
    exponents: Int[np.ndarray, "fixed kept"]

    def parts(self, parts: Sequence[Part]) -> tuple[Part, ...]:
        """The parts that are kept, in the columns kept."""
        left = [p for p in parts if p not in self.vectors]
        return tuple(replace(p, start=int(np.searchsorted(self.kept, p.start))) for p in left)

    def transported(
        self,
        tangents: Callable[[Residues], Float[np.ndarray, "count kept"]],
        weights: Residues,
        field: PrimeField,
    ) -> Float[np.ndarray, "count columns"]:
        """The tangent vectors at any weights, from those on the slice."""
        factor = np.ones(len(self.kept))
        for value, row in zip(weights[self.fixed], self.exponents, strict=True):
            for exponent in np.unique(row[row != 0]):
                at = row == exponent
                power = field.power(np.array(value), int(exponent))
                factor[at] = field.multiply(factor[at], power)
        there = tangents(field.multiply(weights[self.kept], field.inverse(factor)))
        moved = np.zeros((len(there), len(weights)))
        moved[:, self.kept] = field.multiply(there, factor)
        return moved

    def blocks(self, parts: Sequence[Part]) -> list[Block]:
        """The scalings that the slice uses up."""
        weights = np.zeros((len(self.fixed), len(self.fixed) + len(self.kept)))
        weights[:, self.kept] = self.exponents
        found = []
        for v in self.vectors:
            mine = np.isin(self.fixed, np.r_[v.columns])
            others = [p.name for p in parts if np.any(weights[mine][:, p.columns])]
            found.append(Block(f"scalings of {v.shape[0]}", v.shape[0], (v.name, *others)))
        return found


def whole(network: Network) -> Slice:
    """All weights: no vector is 1."""
    everything = np.arange(network.columns)
    none = np.zeros((0, network.columns), dtype=np.int64)
    return Slice(network, (), everything[:0], everything, none)


def slices(
    network: Network, fields: Sequence[Field], solutions: Residues, field: PrimeField
) -> list[Slice]:
    """Slices for a torus among vector fields: with the first vectors it acts on, and the last."""
    parts = list(dict.fromkeys(f.part for f in fields))
    torus = _torus(network, fields, solutions, field)
    moved = {f.part for f in fields if f.kind != "axis" and np.any(solutions[:, f.unknowns])}
    shapes = {t.name: t.shape for t in network.tensors}
    vectors = [p for p in parts if shapes.get(p.name) == p.shape and len(p.shape) == 1]
    vectors = [p for p in vectors if p.shape[0] > 1 and p not in moved]
    found: list[Slice] = []
    for order in (vectors, vectors[::-1]):
        chosen: list[Part] = []
        for v in order:
            columns = np.concatenate([np.r_[p.columns] for p in (*chosen, v)])
            if rank(np.ascontiguousarray(torus[:, columns]), field) == columns.size:
                chosen.append(v)
        new = _slice(network, chosen, torus, field) if chosen else None
        if new is not None and all(set(new.vectors) != set(old.vectors) for old in found):
            found.append(new)
    return found


def _torus(
    network: Network, fields: Sequence[Field], solutions: Residues, field: PrimeField
) -> Float[np.ndarray, "torus columns"]:
    """The solutions that multiply every weight by a number: these numbers."""
    diagonal = np.zeros(solutions.shape[1], dtype=bool)
    for f in fields:
        if f.kind == "axis":
            diagonal[f.unknowns] = np.eye(f.part.shape[f.axis], dtype=bool).ravel()
    off = np.ascontiguousarray(solutions[:, ~diagonal].T)
    scalings = field.matmul(np.ascontiguousarray(null_space(off, field).T), solutions)
    return motions(tuple(fields), field, scalings, np.ones(network.columns))


def _slice(
    network: Network, vectors: Sequence[Part], torus: Residues, field: PrimeField
) -> Slice | None:
    """The slice where these vectors are 1, if the torus acts by whole numbers."""
    fixed = np.concatenate([np.r_[v.columns] for v in vectors])
    kept = np.delete(np.arange(network.columns), fixed)
    form = EchelonForm(network.columns, field)
    form.add(np.ascontiguousarray(torus[:, np.concatenate([fixed, kept])]))
    exponents = form.basis[: fixed.size, fixed.size :]
    if np.abs(exponents).max(initial=0) > _HEIGHT:
        return None
    names = {v.name: v.shape for v in vectors}

    def apply(weights: Mapping[str, Any], X: Any) -> Any:
        return network.apply({**weights, **{n: jnp.ones(s) for n, s in names.items()}}, X)

    tensors = tuple(t for t in network.tensors if t.name not in names)
    sliced = replace(
        network, tensors=tensors, apply=apply, families=(), architecture=None, initial=None
    )
    return Slice(sliced, tuple(vectors), fixed, kept, exponents.astype(np.int64))
