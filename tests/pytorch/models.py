"""Modules of PyTorch and models of Hugging Face in tiny configurations, each with one input."""

import torch
import transformers

SIZES = {
    "vocab_size": 5,
    "hidden_size": 8,
    "intermediate_size": 6,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
}
TINY = {**SIZES, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
ONE_KEY_HEAD = {"num_key_value_heads": 1, "head_dim": 4}


def tokens(**options):
    return {"inputs_embeds": torch.randn(1, 2, 8), **options}


def multihead():
    return torch.nn.MultiheadAttention(4, 2, batch_first=True), tuple(torch.randn(3, 1, 3, 4))


def encoder(activation):
    layer = torch.nn.TransformerEncoderLayer(4, 2, 6, activation=activation, batch_first=True)
    return layer, torch.randn(1, 3, 4)


def gpt2():
    sizes = {"vocab_size": 5, "n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 4}
    configuration = transformers.GPT2Config(
        **sizes, n_inner=6, bos_token_id=None, eos_token_id=None
    )
    return transformers.GPT2Model(configuration), tokens(use_cache=False)


def vit():
    picture = {"image_size": 4, "patch_size": 2, "num_channels": 1}
    sizes = {name: size for name, size in SIZES.items() if name != "vocab_size"}
    model = transformers.ViTModel(transformers.ViTConfig(**sizes, **picture))
    return model, {"pixel_values": torch.randn(1, 1, 4, 4)}


def hugging_face(name, **options):
    configuration = getattr(transformers, f"{name}Config")(**TINY, **options)
    return getattr(transformers, f"{name}Model")(configuration), tokens(use_cache=False)


MODELS = {
    "MultiheadAttention": multihead,
    "TransformerEncoderLayer relu": lambda: encoder("relu"),
    "TransformerEncoderLayer gelu": lambda: encoder("gelu"),
    "GPT-2": gpt2,
    "BERT": lambda: hugging_face("Bert", max_position_embeddings=4),
    "Llama": lambda: hugging_face("Llama", **ONE_KEY_HEAD),
    "Qwen2": lambda: hugging_face("Qwen2", num_key_value_heads=1),
    "Qwen3": lambda: hugging_face("Qwen3", **ONE_KEY_HEAD),
    "Gemma": lambda: hugging_face("Gemma", **ONE_KEY_HEAD),
    "NeoX": lambda: hugging_face("GPTNeoX"),
    "ViT": vit,
}


def model(name):
    """A model in evaluation mode with weights of a fixed seed, and one input."""
    torch.manual_seed(0)
    module, inputs = MODELS[name]()
    return module.eval(), inputs
