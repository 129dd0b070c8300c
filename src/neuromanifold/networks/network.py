"""`Network`: tensors between spaces, and a JAX function of them.

Everything that asks about a function takes a `Network`, wherever it comes from: an `Architecture`,
a JAX function with its shapes, a module of another library, a real model in a small configuration.
Inside, weights are a dictionary from names to arrays, and the columns of a Jacobian are their
entries, tensor by tensor in the order of `Network.tensors`.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, product
from math import prod
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr
from jaxtyping import Float, Shaped

from neuromanifold.algebra.modular.tracing import live, output_shapes, programs_in, whole_jaxpr
from neuromanifold.architecture import Architecture, Readout
from neuromanifold.display import Displayed
from neuromanifold.errors import ArgumentError, DiagramError
from neuromanifold.formula.bounds import Bound
from neuromanifold.networks.diagram import Diagram, diagram_of
from neuromanifold.networks.family import Family, GeneratorBlock, Slot, Tensors
from neuromanifold.networks.space import Space, Tensor, check_diagram
from neuromanifold.networks.weights import generator_of

if TYPE_CHECKING:
    from neuromanifold.networks.function import Structure


@dataclass(frozen=True, eq=False)
class Network(Displayed):
    """A diagram of spaces: tensors, and a function of them.

    Attributes:
        tensors: all weights, in the order of the Jacobian's columns.
        apply: the JAX function of a dictionary of weights and one input.
        sample: a pytree with the shapes of one input.
        families: symmetries that are no change of basis in a space.
        bound: a proved upper bound for the dimension.
        name: what to call it.
        is_built_in: whether the groups and families are theorems; those of a user are checked at
            random points, which is no proof.
        constants: tensors that are 1 and no weights: the factor of a map known up to one.
        architecture: the attention network that this is the diagram of, if it is one.
        readout: what is looked at of that network's output.
        structure: how weights are put together for a user; a dictionary by default.
        initial: weights for a seed, of a size that is usual for the network; normal by default.
    """

    tensors: tuple[Tensor, ...]
    apply: Callable[[Mapping[str, Any], Any], Any]
    sample: Any
    families: tuple[Family, ...] = ()
    bound: Bound | None = None
    name: str = "network"
    is_built_in: bool = False
    constants: tuple[str, ...] = ()
    architecture: Architecture | None = None
    readout: Readout = "logits"
    structure: "Structure | None" = None
    initial: Callable[[int], Tensors] | None = None

    def __post_init__(self) -> None:
        check_diagram(self.tensors, self.name)
        if self.bound is not None and not isinstance(self.bound, Bound):
            raise DiagramError(f"the bound of {self.name} must be a Bound; got {self.bound!r}")
        for family in self.families:
            if not isinstance(family, Family):
                raise DiagramError(f"a family of {self.name} must be a Family; got {family!r}")

    @property
    def bare(self) -> "Network":
        """The same function of the same weights, and nothing that is known about it.

        Networks that differ in what is known have one, and it is what their programs are kept by.
        """
        what = (self.apply, self.sample, self.constants, self.structure, self.initial)
        shapes = tuple((t.name, t.shape) for t in self.tensors)
        key = (*map(id, what), shapes, self.name, self.architecture, self.readout)
        found = _BARE.get(key)  # an entry lives as long as its network, and so do these ids
        if found is None:
            alone = tuple(Tensor.alone(*shape) for shape in shapes)
            found = replace(self, tensors=alone, families=(), bound=None, is_built_in=False)
            _BARE[key] = found
        return found

    @cached_property
    def spaces(self) -> tuple[Space, ...]:
        """The spaces, in the order in which the tensors name them."""
        return tuple(dict.fromkeys(space for tensor in self.tensors for space in tensor.spaces))

    @cached_property
    def columns(self) -> int:
        """The number of columns of the Jacobian."""
        return sum(prod(tensor.shape) for tensor in self.tensors)

    @property
    def parameters(self) -> int:
        """The number of weights, constants not counted."""
        return self.columns - len(self.constants)

    @cached_property
    def places(self) -> dict[Slot, slice]:
        """Where each part of a tensor stands among the columns."""
        places: dict[Slot, slice] = {}
        start = 0
        for tensor in self.tensors:
            leading = [space.size for space in self.leading(tensor)]
            size = prod(tensor.shape[len(leading) :])
            for index in product(*map(range, leading)):
                places[Slot(tensor.name, index)] = slice(start, start + size)
                start += size
        return places

    def leading(self, tensor: Tensor) -> tuple[Space, ...]:
        """The leading axes of a tensor that number copies of other spaces."""
        count = 0
        while count < len(tensor.axes) and tensor.axes[count].space in self._bases:
            count += 1
        return tensor.spaces[:count]

    @cached_property
    def _bases(self) -> frozenset[Space]:
        return frozenset(base for space in self.spaces for base in space.over)

    @cached_property
    def output(self) -> Any:
        """The pytree of the output's shapes."""
        return output_shapes(*self._live)

    @property
    def program(self) -> ClosedJaxpr:
        """The function as JAX traces it in float64, without dead code."""
        return self._live[0]

    @cached_property
    def _live(self) -> tuple[ClosedJaxpr, Any]:
        return live(*self._whole)

    @cached_property
    def _whole(self) -> tuple[ClosedJaxpr, Any]:
        return whole_jaxpr(self.apply, self.shapes)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the traced function and of all arrays in it."""
        if (bare := self.bare) is not self:
            return bare.fingerprint
        closed, _ = self._whole
        digest = hashlib.sha256(str(closed.jaxpr).encode())
        for array in chain.from_iterable(program.consts for program in programs_in(closed)):
            value = np.asarray(array)
            digest.update(f"{value.dtype}{value.shape}".encode())
            digest.update(np.ascontiguousarray(value).tobytes())
        return digest.hexdigest()

    @property
    def shapes(self) -> tuple[dict[str, Any], Any]:
        """Shapes of weights and of one input, in float64 where they are real."""
        shapes = {t.name: jax.ShapeDtypeStruct(t.shape, np.float64) for t in self.tensors}
        return shapes, jax.tree.map(_float64_shape, self.sample)

    @cached_property
    def diagram(self) -> Diagram:
        """Its spaces as nodes with their groups, its tensors as edges, and what moves what."""
        return diagram_of(self.tensors, self.families)

    def __str__(self) -> str:
        groups = sum(space.group is not None for space in self.spaces)
        return (
            f"{self.name}: {self.parameters} weights in {len(self.tensors)} tensors between "
            f"{len(self.spaces)} spaces, {groups} of them with a group."
        )

    def _entries(self) -> list[dict[str, Any]]:
        return [
            {
                "space": node.name,
                "size": node.size,
                "copies": node.copies,
                "group": node.group,
                "tensors": ", ".join(
                    edge.name
                    for edge in self.diagram.tensors
                    if node.name in edge.reads + edge.writes
                ),
            }
            for node in self.diagram.spaces
        ]

    def _picture(self) -> str:
        return self.diagram.svg()

    def assemble(
        self, vector: Shaped[np.ndarray, "*batch columns"], batch: tuple[int, ...] = ()
    ) -> dict[str, np.ndarray]:
        """The weights whose entries, tensor by tensor along the last axis, are `vector`."""
        ends = np.cumsum([prod(tensor.shape) for tensor in self.tensors])[:-1]
        return {
            tensor.name: np.ascontiguousarray(part).reshape((*batch, *tensor.shape))
            for part, tensor in zip(np.split(vector, ends, axis=-1), self.tensors, strict=True)
        }

    def flatten(self, weights: Tensors) -> Shaped[np.ndarray, " columns"]:
        """All entries as one vector; a constant that is left out is 1."""
        parts = [
            np.ones(1)
            if tensor.name in self.constants and tensor.name not in weights
            else np.asarray(weights[tensor.name]).ravel()
            for tensor in self.tensors
        ]
        return np.concatenate([np.zeros(0), *parts])

    def rows(self, stacks: Tensors) -> Shaped[np.ndarray, "count columns"]:
        """Stacks of tensors by name, each of the same length, as rows over all columns."""
        parts = [stacks[tensor.name] for tensor in self.tensors]
        return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)

    def values(self, weights: Any) -> dict[str, np.ndarray]:
        """Given weights by name: a user's own form or a dictionary, checked and finite."""
        theirs: Any = getattr(weights, "architecture", self.architecture)
        if theirs != self.architecture:
            raise ArgumentError(f"weights of {self.name} were wanted; got those of {theirs.name}")
        named = self.named(weights)
        if not isinstance(named, Mapping):
            raise ArgumentError(
                f"weights of {self.name} are a dictionary from names to arrays; got "
                f"{type(weights).__name__}"
            )
        return {
            tensor.name: _checked(self.name, tensor, named)
            for tensor in self.tensors
            if tensor.name not in self.constants
        }

    def named(self, weights: Any) -> Any:
        """Weights in the form of the user's own functions, by name."""
        return self.structure.named(weights) if self.structure else weights

    def rebuilt(self, weights: Mapping[str, Any]) -> Any:
        """Weights by name, in the form that the user's own functions take."""
        return self.structure.rebuilt(weights) if self.structure else dict(weights)

    def draw(self, seed: int) -> dict[str, np.ndarray]:
        """Random weights in float64."""
        if self.initial is not None:
            return {name: np.asarray(value) for name, value in self.initial(seed).items()}
        generator = generator_of(seed)
        return {
            tensor.name: np.asarray(
                generator.standard_normal(tensor.shape)
                * (tensor.shape[-1] if tensor.shape else 1) ** -0.5
            )
            for tensor in self.tensors
            if tensor.name not in self.constants
        }

    def dense(self, block: GeneratorBlock) -> Float[np.ndarray, "count columns"]:
        """A block's tangent vectors as rows over all columns."""
        rows = np.zeros((block.count, self.columns))
        for slot, moved in block.moves.items():
            rows[:, self.places[slot]] = moved.reshape(block.count, -1)
        return rows


_BARE: WeakValueDictionary[tuple[Any, ...], Network] = WeakValueDictionary()


def _checked(network: str, tensor: Tensor, weights: Mapping[str, Any]) -> np.ndarray:
    """One tensor of given weights, once it is seen to fit."""
    if tensor.name not in weights:
        raise ArgumentError(f"the weights of {network} lack {tensor.name}")
    value = np.asarray(weights[tensor.name])
    if value.shape != tensor.shape:
        raise ArgumentError(
            f"{tensor.name} of {network} has shape {tensor.shape}; got {value.shape}"
        )
    if not np.issubdtype(value.dtype, np.floating):
        raise ArgumentError(f"{tensor.name} must be real floats; got {value.dtype}")
    if not np.isfinite(value).all():
        raise ArgumentError("the weights have entries that are NaN or infinite; mend them")
    return value


def _float64_shape(leaf: Any) -> jax.ShapeDtypeStruct:
    value = leaf if hasattr(leaf, "shape") and hasattr(leaf, "dtype") else np.asarray(leaf)
    real = jnp.issubdtype(value.dtype, np.floating)
    return jax.ShapeDtypeStruct(value.shape, np.float64 if real else value.dtype)
