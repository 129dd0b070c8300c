"""GGUF's own names, for llama (whose queries and keys are interleaved) and qwen2."""

from collections.abc import Mapping
from functools import partial

from neuromanifold.checkpoints.block import Block
from neuromanifold.checkpoints.block_parts import Attention, Head, Layout, Mlp, Norm
from neuromanifold.checkpoints.families.layout import Family, Settings, table_slots
from neuromanifold.checkpoints.families.rotary import rotary
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
}
_IDLE = ("context_length", "vocab_size")
_LAYOUTS: dict[str, Layout] = {"llama": "interleaved", "qwen2": "half"}


def block(settings: Settings, shapes: Mapping[str, tuple[int, ...]]) -> Block:
    """The block of GGUF metadata."""
    word = settings.word("general.architecture")
    if word not in _LAYOUTS:
        raise NotCoveredError(
            f"GGUF of architecture {word!r} is not covered, only {', '.join(_LAYOUTS)}; convert it "
            "back to safetensors, or describe it with --family FILE"
        )
    if "rope_freqs.weight" in shapes:
        raise NotCoveredError("GGUF with scaled rotary frequencies (rope_freqs) is not covered")
    d, heads = (
        settings.whole(f"{word}.embedding_length"),
        settings.whole(f"{word}.attention.head_count"),
    )
    size = settings.whole(f"{word}.attention.key_length", default=d // heads)
    vocabulary = shapes.get("token_embd.weight", (0,))[0]
    turning = Settings({"rope_theta": settings.real(f"{word}.rope.freq_base", default=10000.0)})
    bias = {n: f"blk.0.attn_{n}.bias" in shapes for n in ("q", "k", "v", "output")}
    untied = "output.weight" in shapes
    found = Block(
        family="gguf",
        width=d,
        layers=settings.whole(f"{word}.block_count"),
        attention=Attention(
            heads=heads,
            groups=settings.whole(f"{word}.attention.head_count_kv", default=heads),
            key_size=size,
            value_size=settings.whole(f"{word}.attention.value_length", default=size),
            query_bias=bias["q"],
            key_bias=bias["k"],
            value_bias=bias["v"],
            output_bias=bias["output"],
            rotary=rotary(
                turning,
                settings.whole(f"{word}.rope.dimension_count", default=size),
                _LAYOUTS[word],
            ),
            scale=size**-0.5,
        ),
        mlp=Mlp(size=settings.whole(f"{word}.feed_forward_length"), activation="silu", gated=True),
        norm=Norm(kind="rms", eps=settings.real(f"{word}.attention.layer_norm_rms_epsilon")),
        final_norm=True,
        tables=(("tokens", vocabulary),),
        head=Head(kind="untied" if untied else "tied", rows=vocabulary),
    )
    strange = settings.unread.keys() - {f"{word}.{idle}" for idle in _IDLE}
    for key in sorted(strange):
        if key.startswith(f"{word}.") and settings.config[key] != 0:
            raise NotCoveredError(f"GGUF that says {key} ({settings.config[key]}) is not covered")
    return found


FAMILY = Family(name="gguf", model_types=(), block=block, slots=partial(table_slots, table=_TABLE))
