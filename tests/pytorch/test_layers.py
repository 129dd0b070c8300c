"""Layers of PyTorch, certified and beside the float64 rank of PyTorch's own derivatives."""

import numpy as np
import pytest
import torch

import neuromanifold as nm


def float_rank(module, inputs, *, gap=1e6):
    """The rank of the Jacobian in float64 at the module's weights, once its gap is clear."""
    weights = dict(module.named_parameters())

    def outputs(weights):
        return torch.stack([torch.func.functional_call(module, weights, (x,)) for x in inputs])

    jacobian = torch.func.jacrev(outputs)(weights)
    columns = [jacobian[name].reshape(-1, w.numel()) for name, w in weights.items()]
    singular = torch.linalg.svdvals(torch.cat(columns, 1).detach()).numpy()
    found = int(np.sum(singular > 1e-11 * singular[0]))
    assert found == singular.size or singular[found - 1] > gap * singular[found]
    return found


@pytest.mark.parametrize(("activation", "expected"), [("relu", 84), ("gelu", 87)])
def test_an_encoder_layer_has_the_rank_of_its_float_jacobian(activation, expected):
    # Of 127 parameters; a relu has three scalings that a gelu has not.
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(
        4, 2, 3, dropout=0.0, activation=activation, batch_first=True
    )
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    layer = layer.double().eval()
    certificate = nm.certify(nm.from_torch(layer, torch.zeros(1, 2, 4)))
    assert (certificate.parameters, certificate.lower) == (127, expected)
    inputs = torch.randn(30, 1, 2, 4, dtype=torch.double)
    assert float_rank(layer, inputs) == expected
