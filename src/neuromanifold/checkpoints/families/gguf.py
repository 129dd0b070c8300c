"""GGUF's own names, for llama (whose queries and keys are interleaved) and qwen2."""

from dataclasses import replace

import numpy as np

from neuromanifold.checkpoints.block.block import Block, Shapes
from neuromanifold.checkpoints.families import llama
from neuromanifold.checkpoints.families.layout import Family
from neuromanifold.checkpoints.families.rotary import rotary
from neuromanifold.checkpoints.families.settings import Settings
from neuromanifold.errors import NotCoveredError

_TABLE = {
    "token_embd": "tokens",
    "output_norm": "final_norm",
    "output": "unembedding",
    **{f"blk.{{L}}.attn_{n[0]}": n for n in ("query", "key", "value")},
    "blk.{L}.attn_output": "output",
    **{f"blk.{{L}}.ffn_{n}": n for n in ("gate", "up", "down")},
    "blk.{L}.attn_norm": "attention_norm",
    "blk.{L}.ffn_norm": "mlp_norm",
    "rope_freqs": "frequencies",
}
_IDLE = ("context_length", "vocab_size")
_LAYOUTS = {"llama": "interleaved", "qwen2": "half"}


def read(settings: Settings, held: Shapes) -> Block:
    """The block of GGUF metadata: that of a Llama configuration which says the same."""
    word = settings.word("general.architecture")
    if word not in _LAYOUTS:
        raise NotCoveredError(
            f"GGUF of architecture {word!r} is not covered, only {', '.join(_LAYOUTS)}; convert it "
            "back to safetensors, or describe it with --family FILE"
        )
    if "frequencies" in held:
        raise NotCoveredError("GGUF with scaled rotary frequencies (rope_freqs) is not covered")

    def whole(key: str, default: int | None = None) -> int:
        return settings.whole(f"{word}.{key}", default=default)

    def real(key: str, default: float | None = None) -> float:
        # GGUF rounds numbers to float32: meant is the shortest decimal that this rounds to
        return float(str(np.float32(settings.real(f"{word}.{key}", default=default))))

    d, heads = whole("embedding_length"), whole("attention.head_count")
    size = whole("attention.key_length", d // heads)
    said = Settings(
        {
            "hidden_size": d,
            "num_attention_heads": heads,
            "num_key_value_heads": whole("attention.head_count_kv", heads),
            "head_dim": size,
            "num_hidden_layers": whole("block_count"),
            "intermediate_size": whole("feed_forward_length"),
            "rms_norm_eps": real("attention.layer_norm_rms_epsilon"),
            "rope_theta": real("rope.freq_base", 10000.0),
            "rope_layout": _LAYOUTS[word],
            "vocab_size": held.get("tokens", (0,))[0],
            "tie_word_embeddings": "unembedding" not in held,
        }
    )
    found = llama.read(said, held)
    turning = rotary(said, whole("rope.dimension_count", size))
    values = whole("attention.value_length", size)
    attention = replace(found.attention, rotary=turning, value_size=values)
    own = {key for key in settings.unread if key.startswith(f"{word}.")}
    for key in sorted(own - {f"{word}.{idle}" for idle in _IDLE}):
        if settings.config[key] != 0:
            raise NotCoveredError(f"GGUF that says {key} ({settings.config[key]}) is not covered")
    settings.asked.update(own)  # what is left of them changes no function
    return replace(found, family="gguf", attention=attention)


FAMILY = Family(name="gguf", read=read, tensors=_TABLE)
