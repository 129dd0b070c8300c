"""What determines the function of a model: polynomials in its tensors, modulo a prime.

A norm with gain γ and shift β gives y = γ∘n + β, n = Π n with Π = 1 − 11ᵀ/d where it subtracts the
mean and Π = 1 elsewhere. A map W, b that reads it sees A n + c with A = (W∘γ) Π and c = W β + b,
and what is added to the stream is seen through Π. Hence a model's function depends on its tensors
only through

- scores: [A_Q c_Q]ᵀ [A_K c_K] for every head, less the column that adds a constant to all scores of
  a query where softmax does not see it (gauge-qk, dead-key-bias); on a rotary plane, with complex
  rows, the rank-one form q̄ kᵀ (gauge-rope). Under a norm of queries and keys, on [A c] themselves
  and on the products of gains on a plane (gauge-qk-norm);
- writing: Π O A_V for every head, and, because rows of softmax sum to one, the constant
  Π (b_O + Σ O c_V) (gauge-ov, value-bias);
- neurons: rows and column, up to the factors that their activation lets through (mlp-scale);
- tables: the sums of their rows behind Π (tables); the head's A and c; and gains of norms that
  something else than a linear map reads (norm-absorption, layernorm-centring).

The order of heads and neurons and the basis R of the stream are symmetries whatever the weights, R
if it is orthogonal, and fixes 1 where means are subtracted; both are given.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.forms import Tensors, planes

Numbers = dict[str, np.ndarray]
INCOMING = "incoming"
"""The name of the norm whose output a layer reads, where norms follow the sum."""


@dataclass(frozen=True)
class Side:
    """Tensors of one model modulo a prime, and the basis in which its stream is seen.

    Attributes:
        block: what the tensors mean.
        field: the integers modulo a prime.
        numbers: the residues.
        turn: R, for what is written: R W; None for the identity.
    """

    block: Block
    field: PrimeField
    numbers: Numbers
    turn: np.ndarray | None

    def through(self, rows: np.ndarray, *, centred: bool) -> np.ndarray:
        """The rows w ↦ w d Π Rᵀ; the factor d, or 1, makes it a polynomial."""
        if centred:  # sums of d residues below 2^22, and d times one, are whole below 2^53
            rows = self.field.reduce(rows.shape[-1] * rows - rows.sum(axis=-1, keepdims=True))
        return rows if self.turn is None else self.field.matmul(rows, self.turn.T)

    def read(self, name: str, norm: str | None) -> np.ndarray:
        """[A c] of a map that reads a norm, or of one that reads the stream itself."""
        field, W = self.field, self.numbers[name]
        W = W.reshape(-1, W.shape[-1])
        c = self.numbers.get(f"{name}_bias", np.zeros(len(W))).reshape(-1, 1)
        A, inside = W, norm is not None and self.block.centred
        if norm is not None:
            offset = 0.0 if self.block.norm is None else self.block.norm.offset
            A = field.multiply(W, self.gain(norm, offset))
            if f"{norm}_shift" in self.numbers:
                c = field.reduce(c + field.matmul(W, self.numbers[f"{norm}_shift"][:, None]))
        return np.concatenate([self.through(A, centred=inside), c], axis=1)

    def gain(self, norm: str, offset: float) -> np.ndarray:
        """The gain of a norm, which is not always what is stored."""
        return self.field.reduce(self.numbers[norm] + self.field.from_floats(np.array(offset)))

    def written(self, rows: np.ndarray) -> np.ndarray:
        """Rows that are added to the stream, as the norms after them see them."""
        return self.through(rows, centred=self.loses_one)

    @property
    def loses_one(self) -> bool:
        """Whether every norm that sees the stream subtracts the mean."""
        return self.block.centred and (self.block.final_norm or self.block.placement == "post")

    def constant(self, names: Sequence[str]) -> np.ndarray:
        """The sum of some constants that are added to the stream."""
        found = [self.numbers[name] for name in names if name in self.numbers]
        return self.written(self.field.reduce(np.sum(found, axis=0))) if found else np.zeros(1)


def mlp_norm(block: Block) -> str | None:
    """The norm that the MLP reads."""
    if block.norm is None:
        return None
    separate = block.placement != "post" and "mlp_norm" in block.layer_shapes
    return "mlp_norm" if separate else "attention_norm"


def _alike(x: Side, y: Side, names: Sequence[str]) -> bool:
    """Whether tensors that are there are equal."""
    return all(np.array_equal(x.numbers[n], y.numbers[n]) for n in names if n in x.numbers)


def outer_agrees(x: Side, y: Side) -> bool:
    """Sums of the tables' rows, the map behind them, the head, and a table of score biases."""
    return all(np.array_equal(m, t) for m, t in zip(_outer(x), _outer(y), strict=True))


def _outer(s: Side) -> list[np.ndarray]:
    block = s.block
    raw: list[str] = []
    if block.embed_norm and (block.shared or block.placement != "post"):
        raw += ["embed_norm", "embed_norm_shift"] if block.embed_width is None else []
    if block.head.kind == "none":
        raw += ["final_norm", "final_norm_shift"]
    found = _starts(s) + [s.numbers[name] for name in raw if name in s.numbers]
    if block.embed_width is not None:
        found.append(s.read("embed_map", "embed_norm" if block.embed_norm else None))
    if block.head.kind != "none":
        found.append(_head(s))
    if "score_table" in s.numbers:
        found.append(_score_table(s))
    return found


def _starts(s: Side) -> list[np.ndarray]:
    """All sums of the tables' rows, by their differences and one sum."""
    block, t, field = s.block, s.numbers, s.field
    behind_norms = block.embed_width is None and s.loses_one and block.placement != "post"
    centred = block.centred and (block.embed_norm or behind_norms)
    if block.patch is not None:
        places = t["positions"][1:] + t["patch_bias"], t["positions"][:1] + t["class_token"]
        rows = [t["patch"].T, *places]
    else:
        rows = _sums_of_rows(block, t)
    return [s.through(field.reduce(part), centred=centred) for part in rows]


def _sums_of_rows(block: Block, t: Tensors) -> list[np.ndarray]:
    """One sum and all differences; what is read with padding only is a sum of its own."""
    tables = {name: block.used(name, t[name]) for name, _ in block.tables}
    if len(tables) == 1 or block.embed_scale != 1.0:
        return list(tables.values())
    alone: list[np.ndarray] = []
    if (padding := block.lone_padding) is not None:
        row = {"tokens": padding, "positions": 0}  # the first of the positions that are used
        alone = [np.sum([rows[row.get(name, 0)] for name, rows in tables.items()], axis=0)[None]]
        tables |= {name: np.delete(tables[name], k, axis=0) for name, k in row.items()}
    base = np.sum([rows[:1] for rows in tables.values()], axis=0)
    return [base, *(rows[1:] - rows[:1] for rows in tables.values()), *alone]


def _head(s: Side) -> np.ndarray:
    tied = {} if "unembedding" in s.numbers else {"unembedding": s.numbers["tokens"]}
    side = Side(s.block, s.field, s.numbers | tied, s.turn)
    return side.read("unembedding", "final_norm" if s.block.final_norm else None)


def _score_table(s: Side) -> np.ndarray:
    """Score biases up to a constant for each head; the row of a bucket without keys is not seen."""
    table = s.block.used("score_table", s.numbers["score_table"])
    return s.field.reduce(table[1:] - table[:1])


def attention_agrees(x: Side, y: Side) -> bool:
    """Scores, what is written, and the gains of norms that not only linear maps read."""
    block, a = x.block, x.block.attention
    if not _alike(x, y, (INCOMING, "attention_out_norm", "attention_out_norm_shift")):
        return False
    norm = "attention_norm" if block.placement != "post" and block.norm is not None else None
    carried = ("output_bias", "down_bias") if block.is_parallel else ("output_bias",)
    if block.placement == "post" and INCOMING in x.numbers:
        norm, carried = INCOMING, (*carried, f"{INCOMING}_shift")
    heads = [_Heads.of(s, norm, carried) for s in (x, y)]
    if not np.array_equal(heads[0].constant, heads[1].constant):
        return False
    (q, k), (q2, k2) = ((h.query, h.key) for h in heads)
    if a.qk_norm is not None:
        gains = _gain_products(x), _gain_products(y)
        if not all(np.array_equal(mine, yours) for mine, yours in ((q, q2), (k, k2), gains)):
            return False
    else:
        r = a.rotated
        if not _planes_agree(block, x.field, (q, k, q2, k2)):
            return False
        last = k.shape[-1] - (1 if a.constants_die else 0)
        if not _products_agree(x.field, q[:, r:], k[:, r:, :last], q2[:, r:], k2[:, r:, :last]):
            return False
    values = [(h.output, h.value) for h in heads]
    return _products_agree(x.field, *values[0], *values[1])


@dataclass(frozen=True)
class _Heads:
    """[A_Q c_Q], [A_K c_K] (H, d_k, d + 1), Oᵀ and A_V (H, d_v, d), and the written constant."""

    query: np.ndarray
    key: np.ndarray
    output: np.ndarray
    value: np.ndarray
    constant: np.ndarray

    @classmethod
    def of(cls, s: Side, norm: str | None, carried: Sequence[str]) -> "_Heads":
        a, d = s.block.attention, s.block.width
        query = s.read("query", norm).reshape(a.heads, a.key_size, -1)
        key = s.read("key", norm).reshape(a.groups, a.key_size, -1)
        value = s.read("value", norm).reshape(a.groups, a.value_size, -1)
        key, value = (np.repeat(part, a.sharing, axis=0) for part in (key, value))
        output = s.numbers["output"].reshape(a.heads, d, a.value_size)
        output = s.written(np.swapaxes(output, 1, 2))
        constants = value[..., -1].reshape(1, -1)
        constant = s.field.matmul(constants, output.reshape(-1, d))[0]
        return cls(
            query, key, output, value[..., :-1], s.field.reduce(constant + s.constant(carried))
        )


def _products_agree(
    field: PrimeField, L: np.ndarray, R: np.ndarray, L2: np.ndarray, R2: np.ndarray
) -> bool:
    """Whether LᵀR = L′ᵀR′ for every head."""
    return all(
        (np.array_equal(l, l2) and np.array_equal(r, r2))
        or np.array_equal(field.matmul(l.T, r), field.matmul(l2.T, r2))
        for l, r, l2, r2 in zip(L, R, L2, R2, strict=True)
    )


def _planes_agree(block: Block, field: PrimeField, rows: tuple[np.ndarray, ...]) -> bool:
    """Whether q̄_i k_j = q̄′_i k′_j on every plane, for all i and j.

    If q_I, q′_I, k_J, k′_J are invertible, it is enough that it holds for i = I and for j = J: then
    k′ = μ k and q̄′ = q̄/μ with μ = q̄_I/q̄′_I. A plane without such I, J must have the form zero.
    """
    a = block.attention
    if a.rotary is None:
        return True
    q, k, q2, k2 = (_Complex.of(field, planes(a, part)) for part in rows)
    both = [(z.size != 0) & (w.size != 0) for z, w in ((q, q2), (k, k2))]
    I, J = (np.argmax(usable, axis=-1)[..., None] for usable in both)
    alive = both[0].any(axis=-1) & both[1].any(axis=-1)
    zero = [~(z.any() & w.any()) for z, w in ((q, k), (q2, k2))]
    same = [
        q.conjugate().times(k.at(J)).equals(q2.conjugate().times(k2.at(J))),
        q.at(I).conjugate().times(k).equals(q2.at(I).conjugate().times(k2)),
    ]
    return bool(np.all((alive & same[0] & same[1]) | (zero[0] & zero[1])))


@dataclass(frozen=True)
class _Complex:
    """Pairs of residues, multiplied as complex numbers."""

    field: PrimeField
    real: np.ndarray
    imaginary: np.ndarray

    @classmethod
    def of(cls, field: PrimeField, values: np.ndarray) -> "_Complex":
        return cls(field, values.real.copy(), values.imag.copy())

    @property
    def size(self) -> np.ndarray:
        """|z|², which is not zero exactly when z is invertible."""
        return self.field.reduce(self.real**2 + self.imaginary**2)

    def any(self) -> np.ndarray:
        return np.any((self.real != 0) | (self.imaginary != 0), axis=-1)

    def at(self, index: np.ndarray) -> "_Complex":
        parts = (np.take_along_axis(part, index, -1) for part in (self.real, self.imaginary))
        return _Complex(self.field, *parts)

    def conjugate(self) -> "_Complex":
        return _Complex(self.field, self.real, -self.imaginary)

    def times(self, other: "_Complex") -> "_Complex":
        """Sums of two products of residues, at most 2^45."""
        x, y, u, v = self.real, self.imaginary, other.real, other.imaginary
        return _Complex(
            self.field, self.field.reduce(x * u - y * v), self.field.reduce(x * v + y * u)
        )

    def equals(self, other: "_Complex") -> np.ndarray:
        same = (self.real == other.real) & (self.imaginary == other.imaginary)
        return np.all(same, axis=-1)


def _gain_products(s: Side) -> np.ndarray:
    """γ_q γ_kᵀ on every plane, or on every coordinate that stays."""
    a, field = s.block.attention, s.field
    q, k = (s.gain(name, a.qk_norm_offset) for name in ("query_norm", "key_norm"))
    turning = () if a.rotary is None else a.rotary.planes
    pairs = [(i, j) for plane in turning for i in plane for j in plane]
    pairs += [(i, i) for i in range(a.rotated, a.key_size)]
    left, right = np.array(pairs).T
    return field.multiply(q[left], k[right])


def mlp_agrees(x: Side, y: Side, *, last: bool) -> bool:
    """Neurons with equal rows and columns, or with rows that are multiples and columns that pay.

    Rows r, r′ with r_I, r′_I ≠ 0 and r′_i r_I = r_i r′_I for all i have r′ = λ r; the columns pay
    if down ∏ r_I^n = down′ ∏ r′_I^n, whichever I is taken modulo each prime. An activation lets
    λ > 0 through only if it is homogeneous, and then the signs of two entries agree (mlp-scale); an
    odd one lets the sign through. After the sum the layer's own gains are seen, and in the `last`
    layer the shift.
    """
    mlp, field = x.block.mlp, x.field
    seen = ["mlp_out_norm", "mlp_out_norm_shift"]
    if x.block.placement == "post":
        seen += ["attention_norm", "mlp_norm"] + (["mlp_norm_shift"] if last else [])
    if mlp is None or not _alike(x, y, seen):
        return mlp is None
    norm = mlp_norm(x.block)
    carried = (f"{norm}_shift",) if x.block.placement == "post" else ()
    constants = [s.constant(("down_bias", *carried)) for s in (x, y)]
    if not np.array_equal(constants[0], constants[1]):
        return False
    columns = [s.written(s.numbers["down"].T) for s in (x, y)]
    flipped = np.all(columns[0] == -columns[1], axis=1) & (mlp.activation == "tanh")
    same, scaled = np.all(columns[0] == columns[1], axis=1), x.numbers["sign"] == y.numbers["sign"]
    for name in (name for name in ("gate", "up") if name in x.numbers):
        rows, others = (s.read(name, norm) for s in (x, y))
        same &= np.all(rows == others, axis=1)
        flipped &= np.all(rows == (-others if name == "up" else others), axis=1)
        power = mlp.scalings.get(name, 0)
        both = (rows != 0) & (others != 0)
        at = np.argmax(both, axis=1)[:, None]
        r, r2 = (np.take_along_axis(part, at, 1) for part in (rows, others))
        multiple = field.multiply(others, r) == field.multiply(rows, r2)
        scaled &= both.any(axis=1) & np.all(multiple if power else rows == others, axis=1)
        columns = [
            field.multiply(column, field.power(one, power))
            for column, one in zip(columns, (r, r2), strict=True)
        ]
    paid = scaled & np.all(columns[0] == columns[1], axis=1)
    return bool(np.all(same | flipped | paid))
