"""What a readout adds to the symmetries: changes of the last layer that it does not see (readouts).

Probabilities see the differences of output coordinates, so the last value maps may be shifted by
V_h → V_h + 1 cᵀ: every output coordinate of a token gains the same number. Decisions see those
differences up to one positive constant, so without residual skip the last value maps may also be
scaled together. To speak of "up to a constant" the constant is made a parameter: the map is
(W, μ) ↦ μ f_W, and scaling moves V by V and μ by −1.
"""

import numpy as np

from neuromanifold.architecture import Readout
from neuromanifold.networks.weights import Weights
from neuromanifold.symmetry.family import GeneratorBlock, Slot

CONSTANT = Slot(-1, "constant", 0)
"""The slot of μ, a 1 × 1 matrix after all the weights."""


def readout_generators(weights: Weights, readout: Readout) -> list[GeneratorBlock]:
    """Tangent vectors of what the readout does not see."""
    if readout == "logits":
        return []
    architecture, last = weights.architecture, weights.architecture.depth - 1
    layer = weights.layers[last]
    name = "value" if layer.output is None else "output"
    written = np.asarray(layer.tensors()[name])
    rows, columns = written.shape[1:]
    shift = np.repeat(np.eye(columns)[:, None, :], rows, axis=1)
    blocks = [
        GeneratorBlock("output shift", f"layer {last} head {h}", {Slot(last, name, h): shift})
        for h in range(architecture.heads)
    ]
    # With one output coordinate the shift is all of it, and nothing is left to be scaled.
    if readout == "decisions" and rows > 1 and architecture.skip != "residual":
        moves = {Slot(last, name, h): written[h : h + 1] for h in range(architecture.heads)}
        moves[CONSTANT] = -np.ones((1, 1, 1))
        blocks.append(GeneratorBlock("output scaling", f"layer {last}", moves))
    return blocks
