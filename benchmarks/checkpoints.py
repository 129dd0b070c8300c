"""Checkpoints: the audit against reading and QR, `same`, and a large model in little memory.

Run `python benchmarks/checkpoints.py [gpt2|large]`; models are made in a temporary folder.
"""

import json
import math
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from neuromanifold.checkpoints.audits.audit import audit
from neuromanifold.checkpoints.checkpoint import Checkpoint, open_checkpoint
from neuromanifold.checkpoints.equality.same import same
from neuromanifold.checkpoints.families.layout import Family, Settings
from neuromanifold.checkpoints.families.registry import FAMILIES
from neuromanifold.checkpoints.writing import write_safetensors

GPT2 = {
    "model_type": "gpt2",
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "vocab_size": 50257,
    "n_positions": 1024,
}
LARGE = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "intermediate_size": 11008,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
}


def seconds(since: float) -> float:
    """Processor time since a moment."""
    return round(time.process_time() - since, 2)


def peak() -> int:
    """The largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def family_of(config: dict[str, object]) -> Family:
    """The family of a configuration."""
    return next(f for f in FAMILIES if config["model_type"] in f.model_types)


def files_of(config: dict[str, object]) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the file of a configuration."""
    family = family_of(config)
    block = family.block(Settings(config), {"lm_head.weight": ()})
    prefix = family.prefixes[0]
    return {
        slot.file.replace("@", prefix, 1): slot.shape
        for slot in family.slots(block)
        if not slot.copy
    }


def make(folder: Path, config: dict[str, object], seed: int = 0) -> Path:
    """A random model in float32."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    generator = np.random.default_rng(seed)
    layout = {name: (np.dtype(np.float32), shape) for name, shape in files_of(config).items()}

    def tensor(name: str) -> np.ndarray:
        value = 0.02 * generator.standard_normal(layout[name][1], dtype=np.float32)
        return value + np.float32(1.0) if "ln_" in name and name.endswith("weight") else value

    write_safetensors(folder / "model.safetensors", layout, tensor)
    return folder


def make_sparse(folder: Path, config: dict[str, object], filled: tuple[int, ...]) -> Path:
    """A float16 model of zeros with a few random layers, whose file has holes."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    header, position = {}, 0
    for name, shape in files_of(config).items():
        end = position + 2 * int(np.prod(shape))
        header[name] = {"dtype": "F16", "shape": list(shape), "data_offsets": [position, end]}
        position = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    generator = np.random.default_rng(0)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        start = file.tell()
        file.truncate(start + position)
        for name, place in header.items():
            if any(f".layers.{layer}." in name for layer in filled):
                file.seek(start + place["data_offsets"][0])
                value = 0.02 * generator.standard_normal(place["shape"], dtype=np.float32)
                file.write(value.astype(np.float16).tobytes())
    return folder


def read_and_qr(checkpoint: Checkpoint) -> float:
    """The processor time of reading the file and of one QR of every head's tensors."""
    started = time.process_time()
    for name in checkpoint.model.names:
        checkpoint.model.tensor(name)
    for layer in range(checkpoint.block.layers):
        for name in ("query", "key", "value", "output"):
            for head in checkpoint.tensor(f"layers.{layer}.{name}").reshape(12, -1, 768):
                np.linalg.qr(head.T)
    return seconds(started)


def doubled(name: str, tensor: np.ndarray) -> np.ndarray:
    """Values twice and outputs half as large, which is exact in floats."""
    return {"value": 2.0, "value_bias": 2.0, "output": 0.5}.get(name.split(".")[-1], 1.0) * tensor


def broken(name: str, tensor: np.ndarray) -> np.ndarray:
    """One wrong sign."""
    if name == "layers.7.query":
        tensor = np.array(tensor)
        tensor.flat[np.abs(tensor).argmax()] *= -1
    return tensor


def edited(checkpoint: Checkpoint, edit: Callable[[str, np.ndarray], np.ndarray]) -> Path:
    """The model with every tensor edited."""
    other = checkpoint.path.with_name(edit.__name__)
    other.mkdir()
    (other / "config.json").write_bytes((checkpoint.path / "config.json").read_bytes())
    checkpoint.write(other / "model.safetensors", lambda name: edit(name, checkpoint.tensor(name)))
    return other


def gpt2(folder: Path) -> None:
    """GPT-2 small at random in its true shape."""
    checkpoint = open_checkpoint(make(folder / "gpt2", GPT2))
    yardstick = read_and_qr(checkpoint)
    started = time.process_time()
    found = audit(checkpoint)
    taken = seconds(started)
    print(found)
    print(
        f"audit {taken} s; reading and one QR a head {yardstick} s; ratio {taken / yardstick:.1f}"
    )
    layer = 8 * sum(math.prod(s) for s in checkpoint.block.layer_shapes.values()) // 2**20
    print(f"peak memory {peak()} MB; the largest layer in float64 {layer} MB")
    for other in (checkpoint.path, edited(checkpoint, doubled), edited(checkpoint, broken)):
        started = time.process_time()
        print(same(checkpoint, open_checkpoint(other)))
        print(f"same, with {other.name}: {seconds(started)} s; peak memory {peak()} MB")


def large(folder: Path) -> None:
    """Llama-2-7b's shape: zeros and two random layers, 13 GB of file that is mostly holes."""
    model = make_sparse(folder / "large", LARGE, filled=(3, 20))
    started = time.process_time()
    found = audit(open_checkpoint(model))
    print(found)
    print(f"audit {seconds(started)} s; peak memory {peak()} MB")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as path:
        for name in sys.argv[1:] or ["gpt2", "large"]:
            {"gpt2": gpt2, "large": large}[name](Path(path))
