"""PyTorch modules become JAX functions that compute the same."""

from dataclasses import dataclass

import jax
import numpy as np
import pytest
import torch
from models import MODELS, model

from neuromanifold.certificates.exact import certify
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.frontends.pytorch import from_torch, torch_function

# Parameters that reach the output: of a language model those without the token embedding.
PARAMETERS = {
    "MultiheadAttention": 80,
    "TransformerEncoderLayer relu": 154,
    "TransformerEncoderLayer gelu": 154,
    "GPT-2": 478,
    "BERT": 566,
    "Llama": 360,
    "Qwen2": 376,
    "Qwen3": 368,
    "Gemma": 360,
    "NeoX": 446,
    "ViT": 606,
}


def tensors(result):
    if isinstance(result, torch.Tensor):
        return [result]
    values = result.values() if isinstance(result, dict) else result
    return [leaf for value in values for leaf in tensors(value)]


@pytest.mark.parametrize("name", MODELS)
def test_the_function_is_the_module_in_double_precision(name):
    module, inputs = model(name)
    function = torch_function(module, inputs)
    with jax.enable_x64(True):
        found = jax.jit(function.apply)(function.weights, function.inputs)
    module = module.double()
    double = lambda x: x.double() if isinstance(x, torch.Tensor) else x  # noqa: E731
    if isinstance(inputs, dict):
        expected = module(**{key: double(value) for key, value in inputs.items()})
    else:
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        expected = module(*map(double, inputs))
    assert len(found) == len(tensors(expected))
    for a, b in zip(found, tensors(expected), strict=True):
        # Norms and rotations of some models are computed in single precision in any case.
        single = name in {"Llama", "Qwen2", "Qwen3"}
        tolerance = 1e-6 if single else 1e-9
        np.testing.assert_allclose(a, b.detach().numpy(), rtol=tolerance, atol=tolerance)
    assert sum(x.size for x in function.weights.values()) == PARAMETERS[name]


def test_attention_of_pytorch_loses_what_no_one_can_see():
    # Of 80 parameters: GL_2 of keys and of values in each of two heads (16), the key bias, which
    # softmax does not see (4), and the value bias, which the output bias takes up (4).
    module, inputs = model("MultiheadAttention")
    certificate = certify(from_torch(module, inputs, output=lambda result: result[0]))
    assert certificate.parameters == 80
    assert certificate.lower == 56


def test_the_norm_of_a_class_token_is_a_root_of_weights():
    module, inputs = model("ViT")
    certificate = certify(from_torch(module, inputs, output=lambda r: r.last_hidden_state))
    assert certificate.lower_is_proved
    roots = next(o for o in certificate.obligations if o.name == "square roots")
    assert roots.columns == 15  # three norms of five tokens


def test_frozen_parameters_and_buffers_are_constants():
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 2)).eval()
    module[0].requires_grad_(False)
    assert set(torch_function(module, torch.zeros(2)).weights) == {"1.weight", "1.bias"}
    norm = torch.nn.BatchNorm1d(2).eval()
    assert set(torch_function(norm, torch.zeros(3, 2)).weights) == {"weight", "bias"}


def test_the_module_itself_is_not_changed():
    module = torch.nn.Linear(2, 3)
    torch_function(module, torch.zeros(2))
    assert module.training
    assert module.weight.dtype == torch.float32


def test_tokens_are_drawn_up_to_the_largest_of_the_example():
    table = torch.nn.Embedding(3, 2)
    found = certify(from_torch(table, torch.tensor([0, 2])))
    assert (found.verdict, found.rank) == ("exact", 6)
    with pytest.raises(ArgumentError, match="no entry above 0"):
        certify(from_torch(table, torch.zeros(2, dtype=int)))


class Masked(torch.nn.Module):
    """Attention with a mask that is made where it is used."""

    def __init__(self):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(2, 1)

    def forward(self, x):
        mask = torch.triu(torch.ones(3, 3, dtype=torch.bool), 1)
        return self.attention(x, x, x, attn_mask=mask)[0] * torch.tensor([1.0, 2.0])


def test_tensors_that_a_module_makes_itself_are_constants():
    """24 parameters less GL_2 twice, the key bias (2) and the shift of the value bias (2)."""
    found = certify(from_torch(Masked().eval(), torch.zeros(3, 1, 2)))
    assert (found.rank, found.lower_is_proved) == (12, True)


def test_a_mask_of_minus_infinity_is_a_constant():
    """Tokens that see themselves alone: one affine map, of 24 parameters 6."""

    class Given(Masked):
        def forward(self, x, mask):
            return self.attention(x, x, x, attn_mask=mask)[0]

    mask = torch.full((3, 3), -torch.inf).fill_diagonal_(0.0)
    inputs = (torch.zeros(3, 1, 2), mask)
    assert set(torch_function(Given().eval(), inputs).inputs) == {"0"}
    assert certify(from_torch(Given().eval(), inputs)).lower == 6


def test_a_mask_of_ones_beside_tokens_is_a_constant():
    class Hidden(torch.nn.Embedding):
        def forward(self, tokens, mask):
            return super().forward(tokens) * mask[:, None]

    inputs = {"tokens": torch.tensor([0, 2]), "mask": torch.tensor([1, 0])}
    assert set(torch_function(Hidden(3, 2), inputs).inputs) == {"tokens"}
    assert set(torch_function(torch.nn.Embedding(2, 2), torch.tensor([0, 1])).inputs) == {"0"}


class Remembers(torch.nn.Linear):
    """A module with tensors that it does not register, and a memory."""

    def __init__(self):
        super().__init__(2, 2)
        self.table, self.seen, self.again = None, [], [self.weight]
        self.mask = torch.tensor([1.0, 0.0])
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        if self.table is None:
            self.table = torch.cos(torch.arange(2.0))
        self.calls += 1
        self.seen.append(super().forward(x) * self.mask + self.again[0] @ self.table)
        return self.calls * sum(self.seen)


def test_every_call_is_the_first_one():
    """Half of the bias and of the weight are masked, but the weight is added as it is."""
    found = certify(from_torch(Remembers().eval(), torch.zeros(2)))
    assert (found.parameters, found.lower, found.lower_is_proved) == (6, 4, True)


@dataclass
class Pair:
    """A result that is neither a tuple nor a dictionary."""

    first: torch.Tensor
    second: torch.Tensor


def test_tensors_in_dataclasses_are_looked_at():
    class Paired(torch.nn.Bilinear):
        def forward(self, x):
            return x.sum(), Pair(self.weight[0] @ x, self.bias * x)

    found = certify(from_torch(Paired(2, 2, 2), torch.zeros(2)))
    assert (found.verdict, found.parameters, found.lower) == ("probable", 10, 6)


def test_nested_arguments_vary_too():
    """An LSTM cell: the two biases shift against each other, and nothing else is lost."""
    cell, state = torch.nn.LSTMCell(2, 2).eval(), (torch.zeros(1, 2), torch.zeros(1, 2))
    assert set(torch_function(cell, (torch.zeros(1, 2), state)).inputs) == {"0", "1.0", "1.1"}
    assert set(torch_function(cell, {"input": state[0], "hx": state}).inputs) >= {"input", "hx.1"}
    found = certify(from_torch(cell, (torch.zeros(1, 2), state)))
    assert (found.parameters, found.lower) == (48, 40)


class Solved(torch.nn.Module):
    """A linear system of two matrices, which torchax solves with the second transposed."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.eye(2))

    def forward(self, x):
        return torch.linalg.solve(self.w, x)


class Noisy(Solved):
    """A module that is no function."""

    def forward(self, x):
        return x @ self.w + torch.randn(2)


class SolvedInSingle(Solved):
    """The same, which has no value in double precision."""

    def forward(self, x):
        return torch.linalg.solve(self.w, x.float())


class Dropping(Solved):
    """A module that drops entries in evaluation mode too."""

    def forward(self, x):
        return torch.nn.functional.dropout(x @ self.w)


class Valueless(Solved):
    """A module that PyTorch cannot evaluate."""

    def forward(self, x):
        return torch.matmul(x.half(), self.w)


class Uncopied(torch.nn.Linear):
    """A module with something that cannot be copied."""

    def __deepcopy__(self, memo):
        raise RuntimeError("Only one of these")


def test_a_weight_that_is_kept_of_its_direction_and_length():
    """Both lengths of directions are lost."""
    with pytest.warns(FutureWarning):
        module = torch.nn.utils.weight_norm(torch.nn.Linear(2, 2)).eval()
    found = certify(from_torch(module, torch.zeros(2)))
    assert (found.parameters, found.lower) == (8, 6)


@pytest.mark.parametrize(
    ("module", "inputs", "text"),
    [
        (torch.nn.Dropout(0.5), torch.zeros(2), "training mode, in which Dropout is no function"),
        (torch.nn.BatchNorm1d(2), torch.zeros(3, 2), "training mode, in which BatchNorm1d is no"),
        (lambda x: x, torch.zeros(2), "a torch.nn.Module was wanted; got function"),
        (torch.nn.Linear(2, 2), 3, "inputs must be a tensor, a tuple .*; got int"),
        (
            torch.nn.Identity(),
            torch.zeros(2, dtype=bool),
            "no input is a tensor of real numbers or",
        ),
        (torch.nn.Linear(2, 2), torch.zeros(2, device="meta"), "an input has no values to read"),
        (torch.nn.Linear(2, 2), ({"a": 1, 2: 3},), "the inputs have no order"),
        (Solved(), torch.eye(2), "Solved is another function in JAX than in PyTorch"),
        (SolvedInSingle(), torch.eye(2), "SolvedInSingle is another function in JAX than in Py"),
        (Noisy(), torch.eye(2), "it draws random numbers, or torchax translates"),
        (Dropping(), torch.eye(2), "Dropping is another function in JAX than in PyTorch"),
        (Valueless(), torch.eye(2), "Valueless has no value in PyTorch at random weights in"),
        (torch.nn.LazyLinear(2), torch.zeros(2), "LazyLinear has parameters without a shape yet"),
        (torch.nn.ReLU(), torch.zeros(2), "no parameter of ReLU that requires a gradient reaches"),
        (torch.nn.Linear(2, 2), torch.zeros(3), "Linear cannot be traced"),
        (Uncopied(2, 2), torch.zeros(2), "Uncopied cannot be copied: RuntimeError: Only"),
    ],
)
def test_what_cannot_be_translated_is_refused_in_a_sentence(module, inputs, text):
    with pytest.raises(ArgumentError, match=text):
        torch_function(module, inputs)
