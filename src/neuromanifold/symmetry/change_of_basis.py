"""Change of basis: the one family behind most symmetries (lemma-3.1, eq-9).

Let the space S have the group G. For g ∈ G every tensor is multiplied by g along its axes in S and
by g^{-T} along those in the dual, so that contractions over S stay what they are:

    keys of a head     K ↦ C K,  Q ↦ C^{-T} Q                     (lemma-3.1)
    values of a head   V ↦ C V,  O ↦ O C^{-1}                     (lemma-3.1)
    width of a layer   V_i ↦ C V_i,  (Q, K, V)_{i+1} ↦ (Q, K, V)_{i+1} C^{-1}   (eq-9)

For an affine group a point b ↦ g b + c, and what a reader T of the space would see of c is taken up
by the tensors that absorb T: b' ↦ b' − T' c, T' = T g^{-1}. The generators are the derivatives of
all this: ξ along an axis, −ξᵀ along a dual one, k ξ along one of power k.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.linear import LinearAlgebra
from neuromanifold.networks.diagram import moved_by
from neuromanifold.networks.family import Element, Family, GeneratorBlock, Slot, Tensors
from neuromanifold.networks.network import Network
from neuromanifold.networks.space import Group, Space, Tensor


@dataclass(frozen=True, eq=False)
class ChangeOfBasis(Family):
    """The groups of some spaces of a network; an element holds a stack of matrices for each.

    Attributes:
        line: the line of a ledger that these spaces count for.
        spaces: the spaces with a group.
        network: the network whose tensors are moved.
    """

    line: str
    spaces: tuple[Space, ...]
    network: Network
    is_group = True

    @property
    def name(self) -> str:
        """The line of a ledger."""
        return self.line

    @property
    def statement(self) -> str | None:
        """That of the first space."""
        return self.spaces[0].statement

    @property
    def dimension(self) -> int:
        """The sum over all copies of all spaces."""
        return sum(group_of(space).dimension * len(list(_copies(space))) for space in self.spaces)

    def moves(self, tensor: str) -> bool:
        """What has an axis in the spaces, or absorbs their translations."""
        return tensor in moved_by(self.spaces, self.network.tensors)

    def identity(self) -> Element:
        """Identity matrices."""
        return tuple(
            np.broadcast_to(one := group_of(space).identity(), (*_sizes(space), *one.shape))
            for space in self.spaces
        )

    def random(self, generator: np.random.Generator, condition: float = 10.0) -> Element:
        """Independent random elements of all copies."""
        elements = []
        for space in self.spaces:
            group = group_of(space)
            m = group.size + group.affine
            stack = np.empty((*_sizes(space), m, m))
            for index in _copies(space):
                stack[index] = group.random(generator, condition)
            elements.append(stack)
        return tuple(elements)

    def act(self, element: Element, weights: Tensors) -> dict[str, np.ndarray]:
        """Every tensor multiplied along its axes in these spaces; points translated."""
        moved = {name: np.asarray(tensor) for name, tensor in weights.items()}
        for space, matrices in zip(self.spaces, element, strict=True):
            group, n = group_of(space), space.size
            linear = matrices[..., :n, :n]
            for tensor in self.network.tensors:
                for k, axis in enumerate(tensor.axes):
                    if axis.space is space:
                        g = group.power(linear, axis.exponent)
                        moved[tensor.name] = _along(g, moved[tensor.name], tensor, k)
            if group.affine:
                self._translate(space, matrices[..., :n, n], moved)
        return moved

    def generators(self, weights: Tensors, linear: LinearAlgebra) -> list[GeneratorBlock]:
        """One block for each copy of each space: entries of the weights, hardly any arithmetic."""
        blocks = []
        for space in self.spaces:
            basis = group_of(space).generators()
            if not len(basis):
                continue
            for index in _copies(space):
                moves: dict[Slot, np.ndarray] = {}
                at = _Copy(space, index, basis, weights, linear)
                for tensor in self.network.tensors:
                    if space in tensor.spaces:
                        moves |= self._turned(at, tensor)
                    if tensor.absorbs and group_of(space).affine:
                        for slot, seen in self._absorbed(at, tensor):
                            before = moves.get(slot, np.zeros_like(seen))
                            moves[slot] = linear.subtract(before, seen)
                blocks.append(GeneratorBlock(self.name, moves))
        return blocks

    def _turned(self, at: "_Copy", tensor: Tensor) -> dict[Slot, np.ndarray]:
        """What the Lie algebra does to the parts of one tensor that belong to one copy."""
        moves: dict[Slot, np.ndarray] = {}
        space, basis, linear = at.space, at.basis, at.linear
        n, leading = space.size, self.network.leading(tensor)
        for part in product(*(_choices(base, space, at.index) for base in leading)):
            value = np.asarray(at.weights[tensor.name])[part]
            total = np.zeros((len(basis), *value.shape))
            for k, axis in enumerate(tensor.axes[len(leading) :]):
                if axis.space is not space:
                    continue
                xi = axis.exponent * (basis if axis.exponent > 0 else basis.mT)[:, :n, :n]
                turned = np.moveaxis(np.tensordot(xi, value, (2, k)), 1, k + 1)
                total = linear.subtract(total, -turned)
                if axis.is_point:
                    c = basis[:, :n, n:].squeeze(-1) if basis.shape[1] > n else 0 * xi[:, 0]
                    shape = [len(basis), *(n if j == k else 1 for j in range(value.ndim))]
                    total = linear.subtract(total, -np.broadcast_to(c.reshape(shape), total.shape))
            moves[Slot(tensor.name, part)] = total
        return moves

    def _absorbed(self, at: "_Copy", tensor: Tensor) -> Iterator[tuple[Slot, np.ndarray]]:
        """T y for every translation y, where the tensor absorbs T: δb = −T y."""
        n = at.space.size
        for reader in self._readers(at.space, tensor):
            stack = np.zeros((len(at.basis), *_sizes(at.space), n))
            stack[(slice(None), *at.index)] = at.basis[:, :n, n]
            seen = [self._seen(at.space, reader, tensor, c, at.weights) for c in stack]
            yield Slot(tensor.name, ()), np.stack(seen)

    def _translate(self, space: Space, c: np.ndarray, moved: dict[str, np.ndarray]) -> None:
        """Points move by c, and what readers see of it is absorbed."""
        for tensor in self.network.tensors:
            for k, axis in enumerate(tensor.axes):
                if axis.space is space and axis.is_point:
                    shift = np.expand_dims(c, tuple(range(len(space.over), len(tensor.axes) - 1)))
                    moved[tensor.name] = moved[tensor.name] + _placed(shift, space, tensor, k)
            for reader in self._readers(space, tensor):
                seen = self._seen(space, reader, tensor, c, moved)
                moved[tensor.name] = moved[tensor.name] - seen

    def _readers(self, space: Space, tensor: Tensor) -> Iterator[Tensor]:
        """The tensors that `tensor` absorbs and that read the space."""
        for other in self.network.tensors:
            reads = any(axis.space is space and axis.exponent == -1 for axis in other.axes)
            if reads and other.name in tensor.absorbs:
                yield other

    def _seen(
        self, space: Space, reader: Tensor, tensor: Tensor, c: np.ndarray, weights: Tensors
    ) -> np.ndarray:
        """The reader contracted with c, summed over all axes that the absorbing tensor lacks."""
        letters = {axis: chr(97 + j) for j, axis in enumerate(reader.spaces)}
        mine = "".join(letters[s] for s in reader.spaces)
        shift = "".join(letters[base] for base in space.over) + letters[space]
        kept = "".join(letters[s] for s in tensor.spaces)
        return np.einsum(f"{mine},{shift}->{kept}", np.asarray(weights[reader.name]), c)


@dataclass(frozen=True, eq=False)
class _Copy:
    """One copy of a space, with its Lie algebra and the weights that it moves."""

    space: Space
    index: tuple[int, ...]
    basis: Float[np.ndarray, "count m m"]
    weights: Tensors
    linear: LinearAlgebra


def group_of(space: Space) -> Group:
    """The group of a space that has one."""
    if space.group is None:
        raise TypeError(f"{space.name} has no group")
    return space.group


def _sizes(space: Space) -> tuple[int, ...]:
    return tuple(base.size for base in space.over)


def _copies(space: Space) -> Iterator[tuple[int, ...]]:
    """The indices of the copies of a space."""
    return product(*map(range, _sizes(space)))


def _choices(base: Space, space: Space, index: tuple[int, ...]) -> range:
    """The places along a leading axis that one copy of a space moves."""
    if base in space.over:
        place = index[space.over.index(base)]
        return range(place, place + 1)
    return range(base.size)


def _along(g: np.ndarray, value: np.ndarray, tensor: Tensor, k: int) -> np.ndarray:
    """A stack of matrices, one for each copy of the axis's space, times a tensor along axis k."""
    over = tensor.axes[k].space.over
    front = [tensor.spaces.index(base) for base in over]
    moved = np.moveaxis(value, (*front, k), range(len(front) + 1))
    flat = moved.reshape(*moved.shape[: len(front) + 1], -1)
    return np.moveaxis((g @ flat).reshape(moved.shape), range(len(front) + 1), (*front, k))


def _placed(shift: np.ndarray, space: Space, tensor: Tensor, k: int) -> np.ndarray:
    """A translation, laid along axis k and the axes that number the copies of its space."""
    front = [tensor.spaces.index(base) for base in space.over]
    rest = [j for j in range(len(tensor.axes)) if j not in (*front, k)]
    return np.transpose(shift, np.argsort([*front, *rest, k]))
