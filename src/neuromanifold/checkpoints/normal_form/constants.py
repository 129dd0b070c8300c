"""The sizes of the terms that folding sums into constants, for the bounds of rounding."""

import numpy as np

from neuromanifold.checkpoints.checkpoint import Checkpoint
from neuromanifold.checkpoints.normal_form.fold import incoming


def constant_terms(model: Checkpoint, layer: int) -> dict[str, np.ndarray]:
    """The sizes of the terms that folding sums into constants and biases, in quadrature.

    A constant is b + W β, whose terms are rounded independently: √(b² + Σ W² β²). What is summed
    into the stream is spread evenly over its coordinates, as a rotation may do.
    """
    block, at = model.block, f"layers.{layer}."
    shifts = _shifts(model, layer)
    sizes: dict[str, np.ndarray] = {}
    for name in ("query", "key", "value", "up", "gate"):
        if name not in block.layer_shapes:
            continue
        weight, shift = (
            model.tensor(at + name),
            shifts["mlp" if name in ("up", "gate") else "attention"],
        )
        square = np.zeros(weight.shape[:-1]) if shift is None else weight**2 @ shift**2
        if f"{name}_bias" in block.layer_shapes:
            square = square + model.tensor(f"{at}{name}_bias") ** 2
        sizes[name] = np.sqrt(square)
    for name, shift in (("output_bias", shifts["attention"]), ("down_bias", shifts["mlp"])):
        if name in block.layer_shapes:
            output = model.tensor(f"{at}output") ** 2
            square = np.einsum("grdv,gv->d", output, sizes["value"] ** 2).sum()
            square += np.sum(model.tensor(at + name) ** 2)
            if block.placement == "post" and shift is not None:
                square += np.sum(shift**2)
            sizes[name] = np.full(block.width, np.sqrt(square / block.width))
    return sizes


def _shifts(model: Checkpoint, layer: int) -> dict[str, np.ndarray | None]:
    """The shifts of the norms that attention and MLP read."""
    block, at = model.block, f"layers.{layer}."

    def shift(norm: str) -> np.ndarray | None:
        return model.tensor(f"{at}{norm}_shift") if f"{norm}_shift" in block.layer_shapes else None

    if block.placement == "post":
        reads = incoming(block, model.tensor, layer)
        return {"attention": None if reads is None else reads.shift, "mlp": shift("attention_norm")}
    other = "mlp_norm" if "mlp_norm" in block.layer_shapes else "attention_norm"
    return {"attention": shift("attention_norm"), "mlp": shift(other)}
