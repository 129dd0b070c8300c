"""The network of a JAX function, whose weights are the real arrays of any pytree."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from neuromanifold.errors import ArgumentError, DiagramError
from neuromanifold.networks.family import Family
from neuromanifold.networks.network import Network
from neuromanifold.networks.space import Tensor


def _shown(tree: Any) -> str:
    """A structure in Python's own words, with a star for each array."""
    return shorten(str(tree).removeprefix("PyTreeDef(").removesuffix(")"), 200, placeholder=" …")


@dataclass(frozen=True)
class Structure:
    """The form in which a user holds weights: a pytree, some leaves of which are the weights.

    Attributes:
        tree: the pytree's structure.
        leaves: the name of each leaf that is a weight, else None.
        others: the leaves that are no weights, as they are.
    """

    tree: Any
    leaves: tuple[str | None, ...]
    others: tuple[Any, ...]

    def named(self, weights: Any) -> dict[str, Any]:
        """The weights by name."""
        leaves, tree = jax.tree.flatten(weights, is_leaf=_is_none)
        if tree != self.tree:
            if isinstance(weights, Mapping) and set(weights) >= {n for n in self.leaves if n}:
                return dict(weights)
            raise ArgumentError(f"weights like {_shown(self.tree)} were wanted; got {_shown(tree)}")
        return {name: leaf for name, leaf in zip(self.leaves, leaves, strict=True) if name}

    def rebuilt(self, weights: Mapping[str, Any]) -> Any:
        """The user's pytree of weights by name."""
        others = iter(self.others)
        leaves = [weights[name] if name is not None else next(others) for name in self.leaves]
        return jax.tree.unflatten(self.tree, leaves)


Axes = Sequence[Any]
"""A space or an axis for each index of a tensor."""


def function_network(
    f: Callable[[Any, Any], Any],
    weights: Any,
    inputs: Any,
    *,
    spaces: Mapping[str, Axes] | None = None,
    absorbs: Mapping[str, Sequence[str]] | None = None,
    families: Sequence[Family] = (),
    name: str | None = None,
    **fields: Any,
) -> Network:
    """The network of a JAX function of weights and one input.

    Args:
        f: the function.
        weights: any pytree with the shapes of the weights, modules of Equinox or Flax included; its
            real arrays are the weights, all else is part of the function.
        inputs: a pytree with the shapes of one input.
        spaces: the axes of every weight by its name, `layers.0.query`; without it nothing is known
            about the weights.
        absorbs: for a bias, the tensors whose translations it takes up.
        families: symmetries that are no change of basis.
        name: what to call the network.
        **fields: further fields of `Network`.
    """
    name = name or getattr(f, "__name__", "function")
    paths, tree = jax.tree_util.tree_flatten_with_path(weights, is_leaf=_is_none)
    names = tuple(_leaf_name(path) if _is_weight(leaf) else None for path, leaf in paths)
    structure = Structure(tree, names, tuple(leaf for _, leaf in paths if not _is_weight(leaf)))
    shapes = {n: tuple(leaf.shape) for n, (_, leaf) in zip(names, paths, strict=True) if n}
    for what, leaves in (
        ("weights", [leaf for _, leaf in paths]),
        ("inputs", jax.tree.leaves(inputs)),
    ):
        if any(getattr(getattr(leaf, "dtype", None), "kind", "") == "c" for leaf in leaves):
            raise ArgumentError(
                f"{name} has complex {what}, which are not covered: give real and imaginary parts "
                "as real arrays"
            )
    if not shapes:
        raise ArgumentError(f"{name} has no weights; give a pytree with at least one real array")
    tensors = _tensors(name, shapes, spaces, absorbs or {})
    inputs = jax.tree.map(_as_jax_takes_it, inputs)

    def apply(named: Mapping[str, Any], X: Any) -> Any:
        return f(structure.rebuilt(named), X)

    return Network(
        tensors, apply, inputs, tuple(families), name=name, structure=structure, **fields
    )


def _tensors(
    name: str,
    shapes: dict[str, tuple[int, ...]],
    spaces: Mapping[str, Axes] | None,
    absorbs: Mapping[str, Sequence[str]],
) -> tuple[Tensor, ...]:
    """The tensors of these shapes with their declared axes, or with axes of their own."""
    if spaces is None:
        return tuple(Tensor.alone(n, shape) for n, shape in shapes.items())
    for wanted in (*spaces, *absorbs):
        if wanted not in shapes:
            raise DiagramError(
                f"{name} has no weight {wanted}; its weights are {', '.join(shapes)}"
            )
    tensors = []
    for n, shape in shapes.items():
        if n not in spaces:
            raise DiagramError(
                f"the weight {n} of shape {shape} has no axes; give it one space an axis"
            )
        tensor = Tensor(n, tuple(spaces[n]), tuple(absorbs.get(n, ())))
        if tensor.shape != shape:
            raise DiagramError(
                f"{n} has shape {shape}, and its spaces "
                f"{', '.join(space.name for space in tensor.spaces)} have sizes {tensor.shape}"
            )
        tensors.append(tensor)
    return tuple(tensors)


def _as_jax_takes_it(leaf: Any) -> Any:
    """An input of whole numbers in the type in which JAX computes with it, and overflows."""
    whole = isinstance(leaf, int | np.integer | np.ndarray) and not isinstance(leaf, bool)
    if not whole or not np.issubdtype(np.asarray(leaf).dtype, np.integer):
        return leaf
    array = np.asarray(leaf)
    return array.astype(jax.dtypes.canonicalize_dtype(array.dtype))


def _is_none(leaf: Any) -> bool:
    return leaf is None


def _is_weight(leaf: Any) -> bool:
    """Whether a leaf is a real array, or the shape of one."""
    return hasattr(leaf, "shape") and jnp.issubdtype(getattr(leaf, "dtype", bool), np.floating)


def _leaf_name(path: tuple[Any, ...]) -> str:
    """`layers.0.query` for the leaf at weights.layers[0].query; `weights` for weights itself."""
    words = [
        str(getattr(key, "name", getattr(key, "key", getattr(key, "idx", key)))) for key in path
    ]
    return ".".join(words) or "weights"
