"""The diagram of an attention network (lemma-3.1, eq-9, readouts).

    spaces      heads of a layer; keys and values of each head; the width between layers
    tensors     query (heads, keys*, width*), key (heads, keys, width*), value, output
    families    scaling, head mixing, head permutation; what the readout does not see

(* marks the dual.) Input and output have fixed coordinates. A residual skip adds X itself, so it
fixes those of all widths; the inner skip does not, since there X passes through V.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from neuromanifold.architecture import Architecture, Readout
from neuromanifold.formula.bounds import proved_bounds
from neuromanifold.networks.attention import attention
from neuromanifold.networks.family import Family
from neuromanifold.networks.function import function_network
from neuromanifold.networks.network import Network
from neuromanifold.networks.readout import check_readout, read_out
from neuromanifold.networks.space import Axis, Space, Tensor
from neuromanifold.networks.weights import Weights, random_weights, unflatten
from neuromanifold.symmetry.groups import GL
from neuromanifold.symmetry.heads import HeadMixing, HeadPermutation, Scaling
from neuromanifold.symmetry.readouts import CONSTANT, OutputScaling, OutputShift


@lru_cache(maxsize=64)
def attention_network(architecture: Architecture, readout: Readout = "logits") -> Network:
    """The diagram of an attention network with its readout.

    For decisions, known up to a constant, the map is (W, μ) ↦ μ f_W: its image is the cone over
    what is to be measured, one dimension more.
    """
    check_readout(readout)
    weights = unflatten(architecture, np.zeros(architecture.parameters))
    bounds = proved_bounds(architecture, readout)
    plain = function_network(
        lambda w, X: read_out(attention(w, X), readout),
        weights,
        np.zeros((architecture.widths[0], architecture.tokens)),
        spaces=_axes(architecture),
        families=_families(architecture, readout),
        bound=bounds[0] if bounds else None,
        name=architecture.name,
        is_built_in=True,
        architecture=architecture,
        readout=readout,
        initial=partial(_initial, architecture),
    )
    return plain if readout != "decisions" else _up_to_a_constant(plain)


def _initial(architecture: Architecture, seed: int) -> dict[str, np.ndarray]:
    return named(random_weights(architecture, seed))


def _up_to_a_constant(network: Network) -> Network:
    """The network of μ f_W, with μ among the tensors."""

    def apply(named: Mapping[str, Any], X: Any) -> Any:
        return named[CONSTANT] * network.apply(named, X)

    tensors = (*network.tensors, Tensor(CONSTANT, ()))
    return replace(network, tensors=tensors, apply=apply, constants=(CONSTANT,))


def _axes(architecture: Architecture) -> dict[str, tuple[Axis, ...]]:
    """The axes of every tensor."""
    last = architecture.depth
    fixed = architecture.adds_input
    widths = [
        Space(f"width {i}", d)
        if fixed or i in (0, last)
        else Space(f"width {i}", d, GL(d), family="inter-layer", statement="eq-9")
        for i, d in enumerate(architecture.widths)
    ]
    axes: dict[str, tuple[Axis, ...]] = {}
    for i, shapes in enumerate(architecture.shapes):
        heads = Space(f"heads of layer {i}", architecture.heads)
        keys = _head_space(f"keys of layer {i}", shapes["key"][1], heads, "key-query")
        before, after = widths[i], widths[i + 1]
        axes[f"layers.{i}.query"] = (heads.axis, keys.dual, before.dual)
        axes[f"layers.{i}.key"] = (heads.axis, keys.axis, before.dual)
        if "output" not in shapes:
            axes[f"layers.{i}.value"] = (heads.axis, after.axis, before.dual)
            continue
        values = _head_space(f"values of layer {i}", shapes["value"][1], heads, "value-output")
        axes[f"layers.{i}.value"] = (heads.axis, values.axis, before.dual)
        axes[f"layers.{i}.output"] = (heads.axis, after.axis, values.dual)
    return axes


def _head_space(name: str, size: int, heads: Space, family: str) -> Space:
    """The keys or values of each head: nothing sees their basis."""
    return Space(name, size, GL(size), over=(heads,), family=family, statement="lemma-3.1")


def _families(architecture: Architecture, readout: Readout) -> tuple[Family, ...]:
    """The symmetries that are no change of basis, in the order in which a ledger counts them."""
    depth, heads = architecture.depth, architecture.heads
    found: list[Family] = []
    if architecture.trades_scale:
        found.append(Scaling(depth, heads))
    if not architecture.has_one_head:
        if architecture.is_linear_in_scores:
            found.append(HeadMixing(architecture, architecture.adds_values))
        found.append(HeadPermutation(depth, heads))
    if readout != "logits":
        name, shape = list(architecture.shapes[-1].items())[-1]
        written = f"layers.{depth - 1}.{name}"
        found.append(OutputShift(written, shape))
        # With one output coordinate the shift is all of it, and nothing is left to be scaled.
        if readout == "decisions" and shape[1] > 1 and not architecture.adds_input:
            found.append(OutputScaling(written, heads))
    return tuple(found)


def named(weights: Weights) -> dict[str, np.ndarray]:
    """Weights of an architecture by name."""
    return {name: np.asarray(tensor) for name, tensor in weights.named_tensors()}
