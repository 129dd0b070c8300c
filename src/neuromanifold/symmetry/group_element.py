"""`GroupElement`: one element of every family at once, and the group they form.

The element (C, D, B, λ, σ, g) of key-query C, value-output D, inter-layer B, scaling λ, head
permutation σ and head mixing g acts as

    C · D · λ · B · σ · g,    g first.

All but σ and g commute with each other. Since σ puts head σ(h) at place h, σ C = C[σ] σ, where C[σ]
holds C_σ(h) at place h; and g commutes with changes of basis, and acts on heads by matrices, as do
λ and σ together, by m = diag(λ) P_σ. So the product of two elements is, family by family,

    (C, D, B, λ, σ, g) (C', D', B', λ', σ', g')
        = (C C'[σ], D D'[σ], B B', λ λ'[σ], σ σ', m'^{-1} g m' g').

Head mixing is a part where it commutes with changes of basis: a = d, and v = d' where values are
factored (head-mixing; `HeadMixing.composes`).
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy

from neuromanifold.architecture import Architecture
from neuromanifold.display import Recorded
from neuromanifold.errors import ArchitectureError, FileFormatError
from neuromanifold.files import write_file
from neuromanifold.networks.family import Element, Family
from neuromanifold.networks.weights import Weights
from neuromanifold.symmetry.attention import attention_network, named
from neuromanifold.symmetry.families import families_of
from neuromanifold.symmetry.heads import HeadMixing

PARTS = ("head_mixing", "head_permutation", "inter_layer", "scaling", "value_output", "key_query")
"""The families in the order in which they act."""

_PER_HEAD = ("scaling", "value_output", "key_query")
_HEADER = "architecture"


@dataclass(frozen=True, slots=True)
class GroupElement(Recorded):
    """An element of the group of all families together; a family that does not hold has ().

    Attributes:
        architecture: the network whose weights it acts on.
        head_mixing: g for each layer, shape (H, H).
        head_permutation: σ for each layer, shape (H,).
        inter_layer: C_1, …, C_{l-1}, between layers.
        scaling: λ for each layer, shape (H,).
        value_output: D for each layer, shape (H, v, v).
        key_query: C for each layer, shape (H, a, a).
    """

    architecture: Architecture
    head_mixing: Element = field(default=())
    head_permutation: Element = field(default=())
    inter_layer: Element = field(default=())
    scaling: Element = field(default=())
    value_output: Element = field(default=())
    key_query: Element = field(default=())

    @classmethod
    def identity(cls, architecture: Architecture) -> "GroupElement":
        """The neutral element."""
        return cls(
            architecture,
            **{name: family.identity() for name, family in parts_of(architecture).items()},
        )

    @classmethod
    def random(
        cls,
        architecture: Architecture,
        generator: np.random.Generator,
        condition: float = 10.0,
        *,
        mixed: bool = False,
    ) -> "GroupElement":
        """A random element whose matrices have condition number at most `condition`.

        Heads are mixed with `mixed` only: a normal form does not see through it.
        """
        parts = {
            name: family.random(generator, condition)
            if mixed or name != "head_mixing"
            else family.identity()
            for name, family in parts_of(architecture).items()
        }
        return cls(architecture, **parts)

    def act(self, weights: Weights) -> Weights:
        """The weights moved by this element; their function stays."""
        moved = named(weights)
        for name, family in parts_of(self.architecture).items():
            element = getattr(self, name)
            if element:
                moved = family.act(element, moved)
        return Weights.from_named(self.architecture, moved)

    def compose(self, second: "GroupElement") -> "GroupElement":
        """The element that acts like `second` and then like this one."""
        parts = {}
        for name, family in parts_of(self.architecture).items():
            g, h = getattr(self, name), getattr(second, name)
            if name in _PER_HEAD and self.head_permutation:
                h = tuple(
                    part[order] for part, order in zip(h, self.head_permutation, strict=False)
                )
            if name == "head_mixing":
                g = second._brought_before(g)
            parts[name] = family.compose(g, h) if g and h else g or h
        return GroupElement(self.architecture, **parts)

    def _brought_before(self, mixing: Element) -> Element:
        """m^{-1} g m for every layer: what g does after this element, done before it."""
        moved = []
        for i, g in enumerate(mixing):
            m = np.eye(len(g))
            m = m[self.head_permutation[i]] if self.head_permutation else m
            m = self.scaling[i][:, None] * m if self.scaling else m
            moved.append(np.linalg.solve(m, g @ m))
        return tuple(moved)

    @property
    def mixes_heads(self) -> bool:
        """Whether the part of head mixing is not the identity."""
        return not all(np.array_equal(g, np.eye(len(g))) for g in self.head_mixing)

    @property
    def families(self) -> tuple[str, ...]:
        """The names of the families that hold, in the order in which they act."""
        parts = parts_of(self.architecture).items()
        return tuple(family.name for name, family in parts if getattr(self, name))

    @property
    def condition(self) -> float:
        """The largest condition number among the matrices."""
        matrices = (*self.head_mixing, *self.inter_layer, *self.value_output, *self.key_query)
        return max((float(np.linalg.cond(part).max()) for part in matrices), default=1.0)

    def component(self) -> tuple[str, ...]:
        """Why no path in the group leads to the identity: empty in the identity component.

        GL_n over the reals has two components, told apart by the sign of the determinant.
        """
        reasons = []
        for i, order in enumerate(self.head_permutation):
            if not np.array_equal(order, np.arange(len(order))):
                reasons.append(f"the heads of layer {i} are permuted")
        for i, factors in enumerate(self.scaling):
            reasons += [
                f"the scaling of layer {i} head {h} is negative"
                for h, factor in enumerate(factors)
                if factor < 0
            ]
        for i, g in enumerate(self.head_mixing):
            if np.linalg.det(g) < 0:
                reasons.append(f"the mixing of the heads of layer {i} has determinant < 0")
        for i, C in enumerate(self.inter_layer):
            if np.linalg.det(C) < 0:
                reasons.append(f"the matrix between layers {i} and {i + 1} has determinant < 0")
        for name in ("value_output", "key_query"):
            for i, C in enumerate(getattr(self, name)):
                reasons += [
                    f"the {name.replace('_', '-')} matrix of layer {i} head {h} has determinant < 0"
                    for h, sign in enumerate(np.linalg.slogdet(C).sign)
                    if sign < 0
                ]
        return tuple(reasons)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a safetensors file with tensors `key_query.0`, …; replace one only with `force`."""
        tensors = {
            f"{name}.{i}": np.ascontiguousarray(part)
            for name in PARTS
            for i, part in enumerate(getattr(self, name))
        }
        header = {_HEADER: self.architecture.to_json()}
        write_file(path, safetensors.numpy.save(tensors, metadata=header), force=force)

    @classmethod
    def load(cls, path: str | Path) -> "GroupElement":
        """Read a file that `save` wrote; names and shapes are checked."""
        path = Path(path)
        try:
            with safetensors.safe_open(path, framework="numpy") as file:
                architecture = Architecture.from_json((file.metadata() or {})[_HEADER])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (safetensors.SafetensorError, OSError, ArchitectureError, KeyError) as error:
            raise FileFormatError(
                f"{path} is not a file with a group element ({error}); write it with "
                "`neuromanifold fiber transport`"
            ) from None
        parts: dict[str, Element] = {}
        wanted = cls.identity(architecture)
        for name in PARTS:
            shapes = [part.shape for part in getattr(wanted, name)]
            if name == "head_mixing" and not any(key.startswith(name) for key in tensors):
                parts[name] = wanted.head_mixing  # files of elements that mix no heads
                continue
            found = [tensors.pop(f"{name}.{i}", np.empty(0)) for i in range(len(shapes))]
            if [part.shape for part in found] != shapes:
                raise FileFormatError(
                    f"{path}: {name} of {architecture.name} must have arrays of shapes {shapes}; "
                    f"got {[part.shape for part in found]}"
                )
            parts[name] = tuple(found)
        if tensors:
            raise FileFormatError(f"{path} holds {min(tensors)}, which is no part of an element")
        return cls(architecture, **parts)


def parts_of(architecture: Architecture) -> dict[str, Family]:
    """The families of an architecture that are part of an element, in the order of acting."""
    found = {
        family.name.replace("-", "_").replace(" ", "_"): family
        for family in families_of(attention_network(architecture))
        if not isinstance(family, HeadMixing) or family.composes
    }
    return {name: found[name] for name in PARTS if name in found}
