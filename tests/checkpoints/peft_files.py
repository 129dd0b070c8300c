"""Small adapters in PEFT's layout."""

import json

import numpy as np

from neuromanifold.checkpoints.writing import write_safetensors

PREFIX = "base_model.model.model.layers.{}.self_attn.{}_proj"
SHAPES = {"q": (12, 10), "v": (6, 10)}


def factors(seed=0, r=4, layers=2, dtype=np.float32):
    """Random B and A of every module."""
    random = np.random.default_rng(seed)
    return {
        PREFIX.format(layer, word): (
            random.normal(size=(out, r)).astype(dtype),
            random.normal(size=(r, size)).astype(dtype),
        )
        for layer in range(layers)
        for word, (out, size) in SHAPES.items()
    }


def write_adapter(folder, pairs, others=None, **config):
    """Write the folder; the configuration's r is that of the first module unless given."""
    folder.mkdir()
    r = next(iter(pairs.values()))[1].shape[0]
    config = {"peft_type": "LORA", "r": r, "lora_alpha": 2 * r, "target_modules": ["q"], **config}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    tensors = dict(others or {})
    for name, (B, A) in pairs.items():
        tensors[f"{name}.lora_A.weight"] = A
        tensors[f"{name}.lora_B.weight"] = B
    layout = {name: (array.dtype, array.shape) for name, array in tensors.items()}
    write_safetensors(folder / "adapter_model.safetensors", layout, tensors.__getitem__)
    return folder


def regauged(pairs, seed=1, condition=10.0, dtype=None):
    """The same products with other factors: B G, G^-1 A."""
    random = np.random.default_rng(seed)
    moved = {}
    for name, (B, A) in pairs.items():
        r = A.shape[0]
        U, V = (np.linalg.qr(random.normal(size=(r, r)))[0] for _ in range(2))
        G = U @ np.diag(np.geomspace(1, condition, r)) @ V
        moved[name] = (
            (B.astype(np.float64) @ G).astype(dtype or B.dtype),
            np.linalg.solve(G, A.astype(np.float64)).astype(dtype or A.dtype),
        )
    return moved
