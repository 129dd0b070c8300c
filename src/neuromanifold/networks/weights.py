"""`Weights`: the tensors of a network, as a pytree, with the architecture they belong to."""

from collections.abc import Callable, Iterator, Mapping
from math import prod

import equinox as eqx
import numpy as np
from jaxtyping import Array, Shaped

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArchitectureError, ArgumentError, WeightsError

Numeric = Array | np.ndarray
Tensor = Shaped[Numeric, "*batch head _ _"]


class Layer(eqx.Module):
    """The tensors of one layer; the leading axis counts the heads.

    Attributes:
        query: Q, shape (H, a, d).
        key: K, shape (H, a, d).
        value: V, shape (H, d', d), or (H, v, d) when the value map is factored.
        output: O, shape (H, d', v), or None: the value map of a head is then O V.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor | None = None

    def tensors(self) -> dict[str, Tensor]:
        """The tensors by name, in the order of the weights file."""
        named = {"query": self.query, "key": self.key, "value": self.value}
        return named if self.output is None else {**named, "output": self.output}

    def arrays(self) -> dict[str, np.ndarray]:
        """The same as arrays of NumPy."""
        return {name: np.asarray(tensor) for name, tensor in self.tensors().items()}

    def attention_matrices(self) -> Shaped[Numeric, "*batch head d d"]:
        """A = Kᵀ Q of every head (eq-3)."""
        return self.key.swapaxes(-1, -2) @ self.query

    def value_maps(self) -> Shaped[Numeric, "*batch head d_next d"]:
        """V of every head, or O V when it is factored."""
        return self.value if self.output is None else self.output @ self.value


class Weights(eqx.Module):
    """The weights W of a network (def-1, def-2).

    The shapes are checked on construction, and not when JAX rebuilds the tree, so that the same
    class carries batches, tangent vectors and tracers.

    Attributes:
        layers: one `Layer` for each layer of the architecture.
        architecture: the network that these are weights of (static).
    """

    layers: tuple[Layer, ...]
    architecture: Architecture = eqx.field(static=True)

    def __check_init__(self) -> None:
        wanted = self.architecture.shapes
        if len(self.layers) != len(wanted):
            raise WeightsError(
                f"{self.architecture.name} has {len(wanted)} layers; got {len(self.layers)}"
            )
        for i, (layer, shapes) in enumerate(zip(self.layers, wanted, strict=True)):
            came = {name: tuple(tensor.shape) for name, tensor in layer.tensors().items()}
            for name in sorted(shapes.keys() | came.keys()):
                if shapes.get(name) != came.get(name):
                    wanted_here = f"have shape {shapes[name]}" if name in shapes else "be left out"
                    raise WeightsError(
                        f"layers.{i}.{name} of {self.architecture.name} must {wanted_here}; "
                        f"got {came.get(name, 'nothing')}"
                    )

    @classmethod
    def from_tensors(
        cls, architecture: Architecture, tensors: list[dict[str, np.ndarray]]
    ) -> "Weights":
        """Weights from one dictionary of named tensors a layer."""
        return cls(tuple(Layer(**layer) for layer in tensors), architecture)

    @classmethod
    def made(
        cls, architecture: Architecture, make: Callable[[str, tuple[int, int, int]], np.ndarray]
    ) -> "Weights":
        """Weights whose tensors are made one by one, of a name `layers.0.query` and a shape."""
        if not isinstance(architecture, Architecture):
            raise ArchitectureError(
                f"an Architecture was wanted; got {type(architecture).__name__}: give "
                "Architecture(widths, ranks, tokens)"
            )
        return cls.from_tensors(
            architecture,
            [
                {name: make(f"layers.{i}.{name}", shape) for name, shape in shapes.items()}
                for i, shapes in enumerate(architecture.shapes)
            ],
        )

    @classmethod
    def from_named(cls, architecture: Architecture, tensors: Mapping[str, np.ndarray]) -> "Weights":
        """Weights from tensors by the names of `named_tensors`."""
        return cls.made(architecture, lambda name, _: tensors[name])

    def named_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Every tensor with its name `layers.0.query`, …, in the order of the weights file."""
        for i, layer in enumerate(self.layers):
            for name, tensor in layer.tensors().items():
                yield f"layers.{i}.{name}", tensor

    def flatten(self) -> np.ndarray:
        """All entries as one vector, tensor by tensor in the order of `named_tensors`."""
        return np.concatenate([np.asarray(tensor).ravel() for _, tensor in self.named_tensors()])


def replace_layers(weights: Weights, layers: list[dict[str, np.ndarray]]) -> Weights:
    """The weights with each layer's named tensors replaced."""
    changed = [
        {**layer.tensors(), **new} for layer, new in zip(weights.layers, layers, strict=True)
    ]
    return Weights(tuple(Layer(**tensors) for tensors in changed), weights.architecture)


def scale_output(weights: Weights, exponent: int) -> Weights:
    """The weights with what writes the output times 2^`exponent`."""
    *before, last = (layer.arrays() for layer in weights.layers)
    name = list(last)[-1]
    scaled = {name: np.ldexp(last[name], exponent)}
    return replace_layers(weights, [*({} for _ in before), scaled])


def unflatten(architecture: Architecture, vector: np.ndarray) -> Weights:
    """The weights whose `flatten` is `vector`."""
    vector = np.asarray(vector)
    if vector.shape != (architecture.parameters,):
        raise WeightsError(
            f"{architecture.name} has {architecture.parameters} parameters; "
            f"got a vector of shape {vector.shape}"
        )
    sizes = [prod(shape) for shapes in architecture.shapes for shape in shapes.values()]
    parts = iter(np.split(vector, np.cumsum(sizes)[:-1]))
    return Weights.made(architecture, lambda _, shape: next(parts).reshape(shape))


def random_weights(
    architecture: Architecture, seed: int, *, dtype: type[np.floating] = np.float64
) -> Weights:
    """Normal weights, each tensor scaled by one over the root of the size it sums over.

    So the entries of Q x, K x, V x keep the size of those of x; queries and keys are scaled once
    more by a^(−1/4), which keeps the attention weights (K x_j)·(Q x_i) of that size too.
    """
    generator = generator_of(seed)

    def tensor(name: str, shape: tuple[int, int, int]) -> np.ndarray:
        _, rows, columns = shape
        once_more = rows**-0.25 if name.endswith(("query", "key")) else 1.0
        return (columns**-0.5 * once_more * generator.standard_normal(shape)).astype(dtype)

    return Weights.made(architecture, tensor)


def conditioned_weights(
    architecture: Architecture,
    seed: int,
    *,
    condition: float = 2.0,
) -> Weights:
    """Weights whose every matrix has singular values spread evenly over [1/√κ, √κ], κ `condition`.

    Random orthogonal factors around fixed singular values: no matrix is close to a smaller rank, so
    these are the weights to measure rounding errors on.
    """
    if not condition >= 1:
        raise ArgumentError(f"condition must be at least 1; got {condition}")
    generator = generator_of(seed)

    def matrix(rows: int, columns: int) -> np.ndarray:
        rank, sign = min(rows, columns), generator.choice([-1.0, 1.0])
        left = np.linalg.qr(generator.standard_normal((rows, rank)))[0]
        right = np.linalg.qr(generator.standard_normal((columns, rank)))[0]
        return sign * (left * np.geomspace(condition**0.5, condition**-0.5, rank)) @ right.T

    return Weights.made(
        architecture, lambda _, shape: np.stack([matrix(*shape[1:]) for _ in range(shape[0])])
    )


def generator_of(seed: int, *stream: int) -> np.random.Generator:
    """The generator of a seed, or one of its further streams."""
    return np.random.default_rng((checked_seed(seed), *stream) if stream else checked_seed(seed))


def checked_seed(seed: int) -> int:
    """The seed, once it is seen to be one that files can hold."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise ArgumentError(f"seed must be a whole number from 0 to 2^63 − 1; got {seed!r}")
    return seed
