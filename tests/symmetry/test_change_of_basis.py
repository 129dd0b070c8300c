"""One family, change of basis, is what key-query, value-output and inter-layer were.

The three are written out below as they stand in the paper, entry by entry in plain integers; over a
prime field their tangent vectors span the same space as those of the one family.
"""

import flint
import numpy as np
import pytest

import neuromanifold as nm
from architectures import ARCHITECTURES
from neuromanifold.algebra.linear import Modular
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.symmetry.change_of_basis import ChangeOfBasis
from neuromanifold.symmetry.families import families_of

FIELD = PrimeField()
P = FIELD.modulus


def left(T, p, q):
    """E_pq T for every head: row p is row q of T."""
    moved = np.zeros_like(T)
    moved[:, p] = T[:, q]
    return moved


def right(T, p, q):
    """T E_pq for every head."""
    return left(T.swapaxes(1, 2), q, p).swapaxes(1, 2)


def one_head(T, h):
    kept = np.zeros_like(T)
    kept[h] = T[h]
    return kept


def tangents(architecture, W):
    """(family, tensors that move) for every generator of the three families."""
    for i, shapes in enumerate(architecture.shapes):
        at = f"layers.{i}."
        H, a, d = shapes["query"]
        Q, K, V = (W[at + name] for name in ("query", "key", "value"))
        for h, p, q in np.ndindex(H, a, a):
            moves = {at + "key": left(K, p, q), at + "query": -left(Q, q, p)}
            yield "key-query", {name: one_head(T, h) for name, T in moves.items()}
        if "output" in shapes:
            v = shapes["value"][1]
            for h, p, q in np.ndindex(H, v, v):
                moves = {at + "value": left(V, p, q), at + "output": -right(W[at + "output"], p, q)}
                yield "value-output", {name: one_head(T, h) for name, T in moves.items()}
        if i and architecture.skip in ("none", "inner"):
            before = f"layers.{i - 1}."
            written = before + ("output" if before + "output" in W else "value")
            for p, q in np.ndindex(d, d):
                read = {at + name: -right(W[at + name], p, q) for name in ("query", "key", "value")}
                yield "inter-layer", {written: left(W[written], p, q)} | read


def rank(rows):
    if not len(rows):
        return 0
    entries = [int(x) % P for x in np.ravel(rows)]
    return flint.nmod_mat(len(rows), len(rows[0]), entries, P).rank()


@pytest.mark.statement("lemma-3.1")
@pytest.mark.statement("eq-9")
def test_changes_of_basis_are_the_three_families_of_the_paper():
    seen = set()
    for architecture in ARCHITECTURES:
        network = nm.network(architecture)
        W = network.assemble(FIELD.random(3, "weights", (network.columns,)))
        old = {}
        for name, moves in tangents(architecture, W):
            zero = {n: np.zeros_like(T) for n, T in W.items()}
            old.setdefault(name, []).append(network.flatten(zero | moves))
        families = [f for f in families_of(network) if isinstance(f, ChangeOfBasis)]
        assert [family.name for family in families] == [
            name for name in ("key-query", "value-output", "inter-layer") if name in old
        ]
        for family in families:
            blocks = family.generators(W, Modular(FIELD))
            new = np.concatenate([network.dense(block) for block in blocks])
            theirs = np.stack(old[family.name])
            assert rank(new) == rank(theirs) == rank(np.concatenate([new, theirs]))
            assert len(new) == len(theirs) == family.dimension
            seen.add(family.name)
    assert seen == {"key-query", "value-output", "inter-layer"}
