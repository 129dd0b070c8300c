"""Level `exact` of `same`: a proof, for every family, and no proof where a bit is wrong."""

import numpy as np
import pytest
from models import CONFIGS, block_of, family, save_model, tensors_of
from test_same_models import families, moved, permuted

from neuromanifold.algebra.prime_field import DEFAULT_PRIME
from neuromanifold.checkpoints.checkpoint import open_checkpoint
from neuromanifold.checkpoints.equality.agreement import LayerAgreement
from neuromanifold.checkpoints.equality.exact import proved_same
from neuromanifold.checkpoints.equality.same import same
from neuromanifold.checkpoints.gauge.group import act, random_element
from neuromanifold.errors import ArgumentError

INEXACT = ("rotation", "table rotation", "shear", "MLP scale")
"""Parts whose elements are exponentials or quotients, which no float holds."""


def dyadic_model(folder, name, seed=1):
    """A model of small multiples of 1/8, whose gains are powers of two."""
    config, random = CONFIGS[name], np.random.default_rng(seed)
    block, found, values = block_of(config), family(config), {}
    for tensor, shape in block.shapes.items():
        values[tensor] = random.integers(-16, 17, shape) / 16
        if tensor.split(".")[-1].endswith("norm"):
            values[tensor] = 2.0 ** random.integers(-1, 2, shape) - block.norm.offset
    prefix = found.prefixes[0]
    tensors = {
        s.file.replace("@", prefix, 1): s.join(values) for s in found.slots(block) if not s.copy
    }
    return open_checkpoint(save_model(folder, config, tensors))


def exact_element(block, seed):
    """An element of every part that is exact in float64: multiples of 1/8, powers of two."""
    random, element = np.random.default_rng(seed), random_element(block, seed)
    for part, parameters in element.items():
        for name, value in parameters.items():
            numbers = random.integers(-8, 9, value.shape) / 8
            served = block.head.bias if name == "final_norm" else block.attention.query_bias
            bare = part == "norm shifts" and not served
            if part in INEXACT or bare:  # rows without bias take a shift up by a quotient
                numbers = np.zeros(value.shape)
            elif part in ("norm gains", "query–key norm") or name == "plane":
                numbers = 2.0 ** random.integers(-1, 2, value.shape) - 1
                if name == "plane":  # a real factor, and with it the imaginary part zero
                    numbers[..., 1] = 0.0
            elif name in ("rest", "change"):  # unipotent, so that the inverse is whole
                numbers = np.triu(random.integers(-1, 2, value.shape), 1).astype(float)
            parameters[name] = numbers
    return element


def scaled(block, weights, seed):
    """Neurons scaled by powers of two, with signs where they are free, and heads turned."""
    random, mlp, a = np.random.default_rng(seed), block.mlp, block.attention
    weights = dict(weights)
    for at in (f"layers.{layer}." for layer in range(block.stored_layers)):
        for name, power in mlp.scalings.items():
            factor = 2.0 ** random.integers(-2, 3, mlp.size)
            if name != mlp.homogeneous:
                factor *= random.choice([-1.0, 1.0], mlp.size)
            for row in (name, f"{name}_bias"):
                if at + row in weights:
                    weights[at + row] = (factor * weights[at + row].T).T
            weights[f"{at}down"] = weights[f"{at}down"] / factor**power
        if a.rotary is not None and a.qk_norm is None:
            i, j = a.rotary.planes[0]  # multiplication by the imaginary unit on one plane
            for name in ("query", "key", "query_bias", "key_bias"):
                if at + name in weights:
                    value = np.moveaxis(
                        weights[at + name].copy(), -2 if "bias" not in name else -1, 0
                    )
                    value[i], value[j] = -value[j].copy(), value[i].copy()
                    weights[at + name] = np.moveaxis(value, 0, -2 if "bias" not in name else -1)
    return weights


def as_they_are(block):
    """The orders of heads and neurons of a model with itself."""
    orders = np.arange(block.attention.heads), np.arange(block.mlp.size)
    return [LayerAgreement((), *orders)] * block.stored_layers


@families("gpt2", "albert", "gemma2")
def test_every_edit_that_is_exact_in_floats_is_proved(tmp_path, name):
    first = dyadic_model(tmp_path / "first", name)
    weights = act(first.block, exact_element(first.block, 1), first.weights())
    weights = permuted(first.block, scaled(first.block, weights, 2), seed=3)
    found = same(first, moved(tmp_path, first, weights))
    assert (found.verdict, found.level) == ("same", "exact"), found
    assert found.primes > 0
    assert found.to_dict()["evidence"].startswith("a proof")


def unseen(block, name):
    """Which entries of a tensor no function sees, or only its stream's mean."""
    last, a = name.split(".")[-1], block.attention
    hidden = np.zeros(block.shapes[name], bool)
    if last == "key_bias" and a.constants_die:
        hidden[..., a.rotated :] = True
    if last == "positions":
        hidden[block.unused("positions")] = True
    if last == "score_table":
        hidden[len(hidden) // 2] = True
    return hidden


@families("gpt2", "albert", "qwen3", "neox")
def test_one_bit_of_any_tensor_is_no_longer_proved(tmp_path, name):
    first = dyadic_model(tmp_path / "first", name)
    orders, random = as_they_are(first.block), np.random.default_rng(0)
    assert proved_same(first, first, None, orders) == 0
    for tensor, value in first.weights().items():
        hidden = unseen(first.block, tensor)
        for entries, is_seen in ((~hidden & (value != 0), True), (hidden, False)):
            if not entries.any():
                continue
            weights = first.weights()
            weights[tensor][tuple(random.choice(np.argwhere(entries)))] += 2.0**-49
            other = moved(tmp_path, first, weights, name=f"{tensor} {is_seen}")
            assert (proved_same(first, other, None, orders) is None) == is_seen, tensor


def test_a_dyadic_rotation_of_the_stream_is_proved_and_a_nearly_orthogonal_one_not(tmp_path):
    first = dyadic_model(tmp_path / "first", "llama")
    hadamard = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
    R = np.kron(np.eye(6), hadamard)[np.random.default_rng(0).permutation(24)]
    weights = {}
    for name, value in first.weights().items():
        last = name.split(".")[-1]
        norm = {"query": "attention", "key": "attention", "value": "attention"}.get(last, "mlp")
        at = name.removesuffix(last)
        if last in ("query", "key", "value", "up", "gate"):
            weights[name] = (value * first.tensor(f"{at}{norm}_norm")) @ R.T
        elif last == "unembedding":
            weights[name] = (value * first.tensor("final_norm")) @ R.T
        elif last == "tokens":
            weights[name] = value @ R.T
        else:
            weights[name] = np.ones_like(value) if last.endswith("norm") else R @ value
    second = moved(tmp_path, first, weights)
    found = same(first, second)
    assert (found.verdict, found.level, found.symmetries[0]) == ("same", "exact", "stream rotated")
    orders = as_they_are(first.block)
    assert proved_same(first, second, R.T, orders) > 0
    assert proved_same(first, second, R.T + 5e-3, orders) is None
    assert proved_same(first, second, R.T[::-1], orders) is None


def test_a_negative_factor_of_relu_is_not_proved(tmp_path):
    first = dyadic_model(tmp_path / "first", "gpt2-relu2")
    for sign, proved in ((2.0, True), (-2.0, False)):
        weights = first.weights()
        for name in ("up", "up_bias"):
            weights[f"layers.0.{name}"][3] *= sign
        weights["layers.0.down"][:, 3] /= sign**2
        other = moved(tmp_path, first, weights, name=str(sign))
        found = proved_same(first, other, None, as_they_are(first.block))
        assert (found is not None) == proved


def test_frequencies_that_differ_a_little_are_no_proof(tmp_path):
    config = {**CONFIGS["llama"], "rope_theta": 10000.0}
    first = open_checkpoint(save_model(tmp_path / "a", config, tensors_of(config)))
    config["rope_theta"] *= 1 + 1e-8
    second = open_checkpoint(save_model(tmp_path / "b", config, tensors_of(config)))
    found = same(first, second)
    assert found.level == "equal to rounding"
    assert found.error > 0


def test_frequencies_that_differ_by_more_than_their_rounding_are_refused(tmp_path):
    config = {**CONFIGS["llama"], "rope_theta": 1e27}
    first = open_checkpoint(save_model(tmp_path / "a", config, tensors_of(config)))
    for change in ({"rope_theta": 2e27}, {"rope_scaling": {"type": "linear", "factor": 1 + 5e-7}}):
        other = {**config, **change}
        folder = save_model(tmp_path / next(iter(change)), other, tensors_of(config))
        with pytest.raises(ArgumentError, match="different kinds"):
            same(first, open_checkpoint(folder))


def test_the_row_that_padding_reads_is_seen(tmp_path):
    first = dyadic_model(tmp_path / "first", "roberta")
    for row, level in ((0, "exact"), (1, "different")):
        weights = {key: np.array(value) for key, value in first.weights().items()}
        weights["positions"][row, 0] += 1
        assert same(first, moved(tmp_path, first, weights, name=f"{row}")).level == level


def test_the_rows_of_padding_are_seen_together(tmp_path):
    """A pad token has the row of padding for its position, and no other token has."""
    first = dyadic_model(tmp_path / "first", "roberta")
    for row, level in ((1, "exact"), (2, "different")):
        weights = {key: np.array(value) for key, value in first.weights().items()}
        weights["positions"][row, 0] += 1
        weights["tokens"][row, 0] -= 1
        assert same(first, moved(tmp_path, first, weights, name=f"{row}")).level == level


def test_a_difference_that_the_first_prime_divides_is_seen_by_the_others(tmp_path):
    first = dyadic_model(tmp_path / "first", "llama")
    weights = first.weights()
    weights["layers.1.value"][0, 0, 0] += DEFAULT_PRIME * 2.0**-26
    other = moved(tmp_path, first, weights)
    assert proved_same(first, other, None, as_they_are(first.block)) is None


def test_the_gain_of_a_norm_after_the_sum_is_seen(tmp_path):
    first = dyadic_model(tmp_path / "first", "bert")
    weights = first.weights()
    weights["embed_norm"][2] *= 2
    weights["embed_norm_shift"][2] *= 2
    for reader in ("query", "key", "value"):
        weights[f"layers.0.{reader}"][..., 2] /= 2
    weights["layers.0.output_bias"][2] -= first.tensor("embed_norm_shift")[2]
    other = moved(tmp_path, first, weights)
    assert proved_same(first, other, None, as_they_are(first.block)) is None


def test_a_change_of_basis_that_is_not_orthogonal_proves_nothing(tmp_path):
    first = dyadic_model(tmp_path / "first", "llama")
    readers = ("query", "key", "value", "up", "gate", "unembedding")
    halved = (*readers, "tokens", "output", "down")
    weights = {n: v / 2 if n.split(".")[-1] in halved else v for n, v in first.weights().items()}
    other = moved(tmp_path, first, weights)
    assert proved_same(first, other, 2 * np.eye(24), as_they_are(first.block)) is None
