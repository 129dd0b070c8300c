"""Vector fields on weights, nearly all affine in them: where `discover` looks for symmetries.

    δT = Σ_k X_k acting on axis k of T + C + Σ_S (S contracted with c along one axis)

with constant matrices X_k, a constant tensor C, and constant vectors c for the tensors S that have
the shape of T and one axis more. Changes of basis, scalings, dead parameters, shifts between tables
and biases absorbed by the next one are of this form. Such a field is a symmetry if it lies in the
kernel of the Jacobian at all weights; for a row r = uᵀJ that is one linear equation in (X, C, c):

    Σ ⟨r_T Tᵀ, X⟩ + ⟨r_T, C⟩ + ⟨r_T · S, c⟩ = 0,

the products taken along the axis concerned. An array whose first axes number copies of something
is a stack of matrices, each with fields of its own: heads. One of three axes or more may be read as
a stack too, or as one tensor: the kernel of a convolution, the core of a Tucker decomposition.
There c may be a tensor, contracted along several axes.

What a centred norm with gain v and shift s puts out lies on the hyperplane ⟨1/v, y − s⟩ = 0, so a
map W that reads it may get u ⊗ g with g = 1/v, at the price of the constant u ⟨g, s⟩
(layernorm-centring). Divided by ⟨g, s⟩ the price is a constant, and the field is

    δW = u ⊗ h,        h = g / ⟨g, s⟩        or, without s,        h = g

with a constant vector u. A map W that reads such an output in one place and something else in
another may not. But if what a tensor M writes there is not seen along some vector c otherwise, the
shears x ↦ x + a c ⟨g, x − s⟩ move that and nothing that the norm puts out, and W takes them back
(stream-one). Divided by ⟨g, s⟩ they are again affine but for matrices X of rank one on an axis,

    X = c ⊗ h   for M, which is measured by h, and        X = h ⊗ c   for W, which moves along h:

⟨h, s⟩ = 1 is the constant that the bias of M gets besides, and c contracted with W what that of W
gets. These three are the only fields here that are not affine in the weights.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, combinations, product, takewhile
from math import prod
from typing import Literal

import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.prime_field import PrimeField, Residues
from neuromanifold.networks.network import Network
from neuromanifold.networks.space import Space

Kind = Literal["axis", "constant", "contraction", "gain", "measured", "along"]
Rows = Float[np.ndarray, "points rows columns"]
Weights = Float[np.ndarray, "points columns"]


@dataclass(frozen=True, slots=True)
class Part:
    """A tensor, or one matrix of a stack.

    Attributes:
        name: the tensor and the place in its stack: `layers.0.key[1]`.
        start: its first column.
        shape: its shape; a number has one axis of size 1.
        is_factor: whether it is 1 and no weight, and is only scaled.
    """

    name: str
    start: int
    shape: tuple[int, ...]
    is_factor: bool = False

    @property
    def columns(self) -> slice:
        """Its columns of the Jacobian."""
        return slice(self.start, self.start + prod(self.shape))


@dataclass(frozen=True, slots=True)
class Field:
    """One of the unknowns X, C, c or u, a stretch of the vector of unknowns.

    Attributes:
        kind: which of them; `measured` and `along` for the c of a matrix c ⊗ h or h ⊗ c.
        part: what is moved.
        axis: the axis acted on, contracted, or along which a gain's reciprocals are added.
        source: the tensor that is contracted, or the gain v; None for v = 1.
        size: how many unknowns it has.
        shift: the vector s beside a gain.
        start: its first place among the unknowns.
    """

    kind: Kind
    part: Part
    axis: int
    source: Part | None
    size: int
    shift: Part | None = None
    start: int = 0

    @property
    def unknowns(self) -> slice:
        """Its places among the unknowns."""
        return slice(self.start, self.start + self.size)

    def coefficients(
        self, field: PrimeField, rows: Rows, weights: Weights
    ) -> Float[np.ndarray, "points rows unknowns"]:
        """The equation that each row of the Jacobian gives, in these unknowns."""
        mine = rows[..., self.part.columns]
        if self.kind == "constant":
            return mine
        if self.kind == "contraction":
            return field.matmul(mine, _unfolded(self._source, self.axis, weights).mT)
        points, count, n = len(rows), rows.shape[1], self.part.shape[self.axis]
        front = np.moveaxis(mine.reshape(points, count, *self.part.shape), self.axis + 2, 2)
        left = front.reshape(points, count, n, -1)
        if self.kind == "gain":
            return self._times(field, left.mT, weights)
        right = _unfolded(self.part, self.axis, weights)
        product = field.matmul(left.reshape(points, count * n, -1), right.mT)
        if self.kind == "axis":
            return product.reshape(points, count, -1)
        product = product.reshape(points, count, n, n)
        return self._times(field, product if self.kind == "measured" else product.mT, weights)

    def _times(
        self, field: PrimeField, matrices: Float[np.ndarray, "points rows m n"], weights: Weights
    ) -> Float[np.ndarray, "points rows m"]:
        """Matrices at each point times the vector h."""
        h = self._direction(field, weights)[:, None, :, None]
        return field.matmul(np.ascontiguousarray(matrices), h)[..., 0]

    def motion(
        self, field: PrimeField, values: Residues, weights: Residues
    ) -> Float[np.ndarray, "count entries"]:
        """What given values of these unknowns do to the part, one row for each."""
        count, shape, at = len(values), self.part.shape, weights[None]
        if self.kind == "constant":
            return values
        if self.kind == "contraction":
            return field.matmul(values, _unfolded(self._source, self.axis, at)[0])
        n = shape[self.axis]
        if self.kind == "axis":
            matrices = values.reshape(count, n, n)
        else:
            outer = field.multiply(values[..., None], self._direction(field, at)[0])
            matrices = outer if self.kind == "measured" else outer.mT
        if self.kind == "gain":
            moved = matrices
        else:
            right = _unfolded(self.part, self.axis, at)[0]
            moved = field.matmul(np.ascontiguousarray(matrices), right)
        moved = moved.reshape(count, n, *np.delete(shape, self.axis))
        return np.moveaxis(moved, 1, self.axis + 1).reshape(count, -1)

    @property
    def _source(self) -> Part:
        assert self.source is not None
        return self.source

    def _direction(
        self, field: PrimeField, weights: Weights
    ) -> Float[np.ndarray, "points entries"]:
        """The reciprocals g of a gain, or g / ⟨g, s⟩."""
        g = np.ones((len(weights), self.part.shape[self.axis]))
        if self.source is not None:
            g = field.inverse(weights[:, self.source.columns])
        if self.shift is None:
            return g
        product = field.matmul(g[:, None], weights[:, self.shift.columns, None])[:, 0]
        return field.multiply(g, field.inverse(product))


def _unfolded(part: Part, axis: int, weights: Weights) -> Float[np.ndarray, "points n rest"]:
    """A part as a matrix at each point, with one of its axes in front."""
    tensor = weights[:, part.columns].reshape(-1, *part.shape)
    front = np.moveaxis(tensor, axis + 1, 1)
    return np.ascontiguousarray(front.reshape(len(tensor), part.shape[axis], -1))


@dataclass(frozen=True, slots=True)
class Gain:
    """A vector whose reciprocals may take part in how a part moves along an axis.

    Attributes:
        part: what is moved.
        axis: the axis.
        vector: the gain; None for 1.
        shifted: whether a constant has to be taken back.
        kind: `gain`, where the reciprocals are added, or a shear's `measured` or `along`.
    """

    part: Part
    axis: int
    vector: Part | None
    shifted: bool
    kind: Kind = "gain"

    def fields(self, parts: Sequence[Part] = ()) -> Iterator[Field]:
        """Its unknowns, without a shift or with each of these parts that can be one."""
        n = self.part.shape[self.axis]
        size = prod(self.part.shape) // n if self.kind == "gain" else n
        shifts = [s for s in parts if s.shape == (n,) and s != self.vector]
        for shift in shifts if self.shifted else [None]:
            yield Field(self.kind, self.part, self.axis, self.vector, size, shift)


def readings_of(network: Network) -> tuple[tuple[Part, ...], ...]:
    """What the weights may consist of: tensors of any order, or matrices and vectors."""
    return tuple(dict.fromkeys(_parts(network, order) for order in (None, 2)))


def _parts(network: Network, order: int | None) -> tuple[Part, ...]:
    """The tensors that arrays are stacks of; all of at most some order, if one is given."""
    numbers: set[Space] = set()  # the spaces whose indices number tensors
    for tensor in network.tensors:
        beyond = 0 if order is None else len(tensor.shape) - order
        numbers.update(tensor.spaces[: max(len(network.leading(tensor)), beyond)])
    found: list[Part] = []
    start = 0
    for tensor in network.tensors:
        leading = tuple(space.size for space in takewhile(numbers.__contains__, tensor.spaces))
        shape = tensor.shape[len(leading) :] or (1,)
        for index in product(*map(range, leading)):
            name = f"{tensor.name}[{','.join(map(str, index))}]" if index else tensor.name
            found.append(Part(name, start, shape, tensor.name in network.constants))
            start += prod(shape)
    return tuple(found)


def ansatz(
    parts: Sequence[Part],
    dead: frozenset[Part] = frozenset(),
    gains: Sequence[Gain] = (),
) -> tuple[Field, ...]:
    """All unknowns of the module's docstring, the constants last; of dead parts only these.

    Args:
        parts: what the weights consist of.
        dead: parts that the function does not see.
        gains: parts with an axis along which a gain's reciprocals may move them, and that gain.
    """
    alive = [part for part in parts if part not in dead]
    fields = [f for gain in gains for f in gain.fields(alive)]
    for part in alive:
        fields += [Field("axis", part, axis, None, n * n) for axis, n in enumerate(part.shape)]
    for part, source in product(alive, alive):
        for axis, flat in _flattenings(source):
            if flat.shape[:axis] + flat.shape[axis + 1 :] == part.shape:
                fields.append(Field("contraction", part, axis, flat, flat.shape[axis]))
    return numbered(fields + constants(part for part in parts if not part.is_factor))


def _flattenings(part: Part) -> Iterator[tuple[int, Part]]:
    """A tensor with some neighbouring axes made one, by the place of that one."""
    for first, last in combinations(range(len(part.shape) + 1), 2):
        flat = prod(part.shape[first:last])
        yield first, replace(part, shape=(*part.shape[:first], flat, *part.shape[last:]))


def constants(parts: Iterable[Part]) -> list[Field]:
    """The unknowns of constant motions of some parts."""
    return [Field("constant", part, 0, None, prod(part.shape)) for part in parts]


def numbered(fields: Sequence[Field]) -> tuple[Field, ...]:
    """Fields with their places among the unknowns, one after the other."""
    starts = accumulate((f.size for f in fields), initial=0)
    return tuple(replace(f, start=start) for f, start in zip(fields, starts, strict=False))


def equations(
    fields: tuple[Field, ...], field: PrimeField, rows: Rows, weights: Weights
) -> Float[np.ndarray, "equations unknowns"]:
    """The linear equations that rows of the Jacobian at some weights put on the unknowns."""
    found = [f.coefficients(field, rows, weights) for f in fields]
    return np.concatenate(found, axis=2).reshape(rows.shape[0] * rows.shape[1], -1)


def motions(
    fields: tuple[Field, ...], field: PrimeField, values: Residues, weights: Residues
) -> Float[np.ndarray, "count columns"]:
    """The tangent vectors at these weights of some values of the unknowns, one row each."""
    moved = np.zeros((len(values), len(weights)))
    for f in fields:
        here = np.ascontiguousarray(values[:, f.unknowns])
        if np.any(here):
            columns = f.part.columns
            moved[:, columns] = field.reduce(moved[:, columns] + f.motion(field, here, weights))
    return moved
