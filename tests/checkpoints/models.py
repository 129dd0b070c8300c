"""Small random models of every family, as folders with config.json and model.safetensors."""

import json

import numpy as np
from safetensors.numpy import save_file

from neuromanifold.checkpoints.families.layout import Settings
from neuromanifold.checkpoints.families.registry import FAMILIES

_LLAMA = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 20,
    "vocab_size": 60,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-6,
}
_BERT = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 20,
    "vocab_size": 60,
    "max_position_embeddings": 16,
}
_GPT2 = {"n_embd": 24, "n_layer": 2, "n_head": 4, "vocab_size": 60, "n_positions": 16}
_T5 = {"d_model": 24, "d_kv": 6, "num_layers": 2, "num_heads": 4, "d_ff": 20, "vocab_size": 60}
CONFIGS = {
    "gpt2": {"model_type": "gpt2", **_GPT2},
    "gpt2-untied": {"model_type": "gpt2", "tie_word_embeddings": False, **_GPT2},
    "gpt2-relu2": {"model_type": "gpt2", "activation_function": "relu2", **_GPT2},
    "gptj": {"model_type": "gptj", "rotary_dim": 4, "tie_word_embeddings": False, **_GPT2},
    "bert": {"model_type": "bert", **_BERT},
    "roberta": {"model_type": "roberta", "type_vocab_size": 1, **_BERT},
    "albert": {"model_type": "albert", "embedding_size": 12, **_BERT},
    "vit": {"model_type": "vit", "image_size": 8, "patch_size": 4, **_BERT},
    "neox": {**_BERT, "model_type": "gpt_neox", "rotary_pct": 0.34},
    "llama": {"model_type": "llama", **_LLAMA},
    "llama-tied": {"model_type": "llama", "tie_word_embeddings": True, **_LLAMA},
    "qwen2": {"model_type": "qwen2", **_LLAMA},
    "qwen3": {"model_type": "qwen3", "head_dim": 8, **_LLAMA},
    "gemma2": {
        "model_type": "gemma2",
        "head_dim": 8,
        "query_pre_attn_scalar": 8,
        "sliding_window": 4,
        "attn_logit_softcapping": 5.0,
        "final_logit_softcapping": 3.0,
        "hidden_activation": "gelu_pytorch_tanh",
        **_LLAMA,
    },
    "phi": {**_BERT, "model_type": "phi", "partial_rotary_factor": 0.34},
    "phi-tied": {
        **_BERT,
        "model_type": "phi",
        "partial_rotary_factor": 0.34,
        "tie_word_embeddings": True,
    },
    "phi3": {"model_type": "phi3", **_LLAMA},
    "t5": {"model_type": "t5", **_T5},
    "t5-gated-relu": {"model_type": "t5", "feed_forward_proj": "gated-relu", **_T5},
    "t5-gated": {"model_type": "t5", "feed_forward_proj": "gated-gelu", **_T5},
}


class _Everything(dict):
    """Stands for the shapes of a file that has whatever is asked for."""

    def __init__(self, config):
        super().__init__()
        model = config["model_type"]
        for name in ("q", "k", "v"):
            if model == "qwen2":
                self[f"@layers.0.self_attn.{name}_proj.bias"] = ()
        if model == "qwen3":
            self["@layers.0.self_attn.q_norm.weight"] = ()
        if model == "vit":
            self["classifier.weight"] = (5, config["hidden_size"])
            self["classifier.bias"] = (5,)
        if config.get("tie_word_embeddings") is not True:
            self["lm_head.weight"] = self["embed_out.weight"] = ()
        if model in ("phi", "gptj"):
            self["lm_head.bias"] = ()


def family(config):
    return next(f for f in FAMILIES if config["model_type"] in f.model_types)


def block_of(config):
    return family(config).block(Settings(config), _Everything(config))


def tensors_of(config, seed=0, dtype=np.float32):
    """Random tensors by their names in the file."""
    found, block = family(config), block_of(config)
    generator = np.random.default_rng(seed)
    values = {}
    for name, shape in block.shapes.items():
        value = generator.normal(size=shape) * (0.35 if len(shape) > 1 else 0.2)
        if name.split(".")[-1].endswith("norm"):
            value = np.exp(value) - block.norm.offset
        values[name] = value.astype(dtype)
    prefix = found.prefixes[0]
    return {
        slot.file.replace("@", prefix, 1): slot.join(values)
        for slot in found.slots(block)
        if not slot.copy
    }


def save_model(folder, config, tensors):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(
        {k: np.ascontiguousarray(v) for k, v in tensors.items()}, folder / "model.safetensors"
    )
    return folder


def make_model(folder, name, seed=0, dtype=np.float32):
    """A folder with a model of this family."""
    config = CONFIGS[name]
    return save_model(folder, config, tensors_of(config, seed, dtype))
