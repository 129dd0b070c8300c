"""Faults planted in half precision at real sizes: what is caught, and what stays undecided.

`pytest tests/checkpoints/test_planted_faults.py -m slow -s` prints the table of the documentation.
"""

import ml_dtypes
import numpy as np
import pytest
from models import CONFIGS, make_model, save_model, tensors_of
from test_half_precision import DTYPES, FAMILIES
from test_same_models import (
    _exchange_heads_against_keys,
    _transpose_output,
    moved,
    permuted,
)

from neuromanifold.checkpoints.checkpoint import open_checkpoint
from neuromanifold.checkpoints.equality.same import same
from neuromanifold.checkpoints.gauge.group import act, random_element

MAPS = ("query", "key", "value", "output", "up", "gate", "down")
SIZES = {"largest": 1.0, "median": 0.5, "quarter": 0.25, "tenth": 0.1, "hundredth": 0.01}
WIDTH_KEYS = ("hidden_size", "n_embd", "d_model")


def wide(name, width):
    """A family's configuration with another width."""
    config = dict(CONFIGS[name])
    sizes = dict.fromkeys(WIDTH_KEYS, width) | {"vocab_size": 3 * width, "d_kv": width // 4}
    sizes |= dict.fromkeys(("intermediate_size", "d_ff"), 2 * width)
    sizes |= dict.fromkeys(("head_dim", "query_pre_attn_scalar"), width // 4)
    sizes |= dict.fromkeys(("rotary_pct", "partial_rotary_factor"), 0.5)
    sizes |= {"embedding_size": width // 2}
    return config | {key: value for key, value in sizes.items() if key in config}


def random_tensors(config, seed):
    width = next(config[key] for key in WIDTH_KEYS if key in config)
    tensors = tensors_of(config, seed, np.float64)
    factor = (24 / width) ** 0.5
    return {n: v * factor if v.ndim > 1 else v for n, v in tensors.items()}


def sign_at(name, share):
    """Flip the sign of the number below which this share of a tensor's numbers is."""

    def edit(w, block):
        flat = w[name].reshape(-1)
        flat[np.argsort(np.abs(flat))[min(int(share * flat.size), flat.size - 1)]] *= -1

    return edit


def two_rows(name):
    def edit(w, block):
        rows = w[name][0, 0] if name.endswith(".output") else w[name].reshape(-1, w[name].shape[-1])
        rows[[0, 1]] = rows[[1, 0]]

    return edit


def turned(name):
    def edit(w, block):
        at_end = name.endswith(".output")
        n = w[name].shape[-1 if at_end else -2]
        R = np.linalg.qr(np.random.default_rng(n).normal(size=(n, n)))[0]
        w[name] = w[name] @ R if at_end else R @ w[name]

    return edit


def faults(block, seed):
    """Kinds of faults, and edits; each map in a layer of its own."""
    generator, last = np.random.default_rng(seed), block.stored_layers - 1
    for part in (part for part in MAPS if part in block.layer_shapes):
        name = f"layers.{generator.integers(last + 1)}.{part}"
        for words, share in SIZES.items():
            yield f"sign, {words} number", sign_at(name, share)
        yield "two rows", two_rows(name)
    for part in MAPS[:4]:
        yield "one-sided rotation", turned(f"layers.{last}.{part}")
    yield "heads against keys", _exchange_heads_against_keys
    if block.attention.heads * block.attention.value_size == block.width:
        yield "transposed block", _transpose_output
    yield "sign, a token", sign_at("tokens" if "tokens" in block.shapes else "patch", 0.4)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", FAMILIES)
def test_no_fault_at_a_real_width_passes_for_the_same_function(tmp_path, name, dtype):
    seed, config = list(FAMILIES).index(name), wide(name, 96)
    full = open_checkpoint(save_model(tmp_path / name, config, random_tensors(config, seed)))
    half = moved(tmp_path, full, full.weights(), dtype, "half")
    assert same(full, half).verdict == "same"
    undecided = set()
    for k, (kind, edit) in enumerate(faults(full.block, seed)):
        weights = {key: value.copy() for key, value in half.weights().items()}
        edit(weights, full.block)
        found = same(half, moved(tmp_path, full, weights, dtype, str(k)))
        assert found.verdict != "same", (kind, found)
        undecided |= {kind} if found.verdict == "undecided" else set()
    assert undecided <= {"sign, hundredth number", "sign, tenth number"}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_sign_smaller_than_the_rounding_of_its_row_is_undecided_and_never_the_same(
    tmp_path, dtype
):
    for name in ("llama", "bert"):
        full = open_checkpoint(make_model(tmp_path / name, name))
        half = moved(tmp_path, full, full.stored, dtype, f"{name} half")
        for k, part in enumerate(("query", "value", "output", "up", "down")):
            weights = {key: value.copy() for key, value in half.weights().items()}
            sign_at(f"layers.1.{part}", 0.0)(weights, full.block)
            found = same(half, moved(tmp_path, full, weights, dtype, f"{name} {k}"))
            assert found.verdict == "undecided", (name, part)
            if not found.differences:
                assert f"1 stored number(s), the first in layers.1.{part}" in found.reason
                assert "smaller than the rounding of its row" in found.reason


@pytest.mark.parametrize("name", [pytest.param("llama-tied", marks=pytest.mark.slow), "gpt2"])
def test_a_wrong_sign_in_half_precision_is_caught_behind_permutations(tmp_path, name):
    bfloat16 = np.dtype(ml_dtypes.bfloat16)
    config = wide(name, 64)
    first = open_checkpoint(save_model(tmp_path / "a", config, random_tensors(config, 1)))
    half = moved(tmp_path, first, first.weights(), bfloat16, "half")
    weights = {k: v.copy() for k, v in permuted(first.block, half.weights(), seed=3).items()}
    assert same(half, moved(tmp_path, first, weights, bfloat16, "right")).level == "exact"
    sign_at("layers.0.value", 0.25)(weights, first.block)
    assert same(half, moved(tmp_path, first, weights, bfloat16, "wrong")).verdict == "different"


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("amount", [1e-3, 1e-2, 0.1, 1.0])
def test_a_symmetry_rounded_to_half_precision_is_never_called_a_fault(tmp_path, dtype, amount):
    for seed, name in enumerate(FAMILIES):
        config = wide(name, 64)
        first = open_checkpoint(save_model(tmp_path / name, config, random_tensors(config, seed)))
        element = random_element(first.block, seed=seed)
        small = {part: {k: amount * v for k, v in one.items()} for part, one in element.items()}
        weights = act(first.block, small, first.weights())
        weights = permuted(first.block, {n: np.array(v) for n, v in weights.items()}, seed)
        pair = [
            moved(tmp_path, first, w, dtype, f"{name} {i}")
            for i, w in enumerate((first.weights(), weights))
        ]
        assert same(*pair).verdict != "different", name
        assert same(first, pair[1]).verdict != "different", name


def test_numbers_that_are_roundings_of_common_ones_are_the_same_however_they_cancel(tmp_path):
    config = wide("phi", 96)
    full = open_checkpoint(save_model(tmp_path / "a", config, random_tensors(config, 5)))
    half = moved(tmp_path, full, full.weights(), np.dtype(ml_dtypes.bfloat16))
    found = same(full, half)
    assert (found.verdict, found.level) == ("same", "equal to rounding")
    assert found.reason.startswith(
        "every number that is seen of one is to rounding that of the other"
    )
