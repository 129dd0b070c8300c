"""Llama, Mistral, SmolLM, Qwen2, Qwen3, Gemma 2, Phi-3: RMS norms, gated MLPs, rotary positions."""

from collections.abc import Mapping

from neuromanifold.checkpoints.block import Block, Placement, Shapes
from neuromanifold.checkpoints.block_parts import Attention, Mlp, Norm
from neuromanifold.checkpoints.families.layout import (
    Family,
    Settings,
    Slot,
    from_heads,
    plain,
    rows,
    stacked,
)
from neuromanifold.checkpoints.families.rotary import rotary
from neuromanifold.checkpoints.families.settings import (
    activation,
    head_slots,
    language_head,
    norm_slots,
    windows,
)


def _attention(settings: Settings, shapes: Mapping[str, tuple[int, ...]], model: str) -> Attention:
    d, heads = settings.whole("hidden_size"), settings.whole("num_attention_heads")
    size = settings.whole("head_dim", default=d // heads)
    share = settings.real("partial_rotary_factor", default=1.0)
    scale = settings.real("query_pre_attn_scalar", default=float(size)) ** -0.5
    bias = {n: f"@layers.0.self_attn.{n}_proj.bias" in shapes for n in "qkvo"}
    normed = "@layers.0.self_attn.q_norm.weight" in shapes
    return Attention(
        heads=heads,
        groups=settings.whole("num_key_value_heads", default=heads),
        key_size=size,
        value_size=size,
        query_bias=bias["q"],
        key_bias=bias["k"],
        value_bias=bias["v"],
        output_bias=bias["o"],
        rotary=rotary(settings, int(size * share)),
        qk_norm="rms_head" if normed else None,
        qk_norm_eps=settings.real("rms_norm_eps", default=1e-6) if normed else 0.0,
        scale=scale,
        softcap=(
            settings.real("attn_logit_softcapping")
            if "attn_logit_softcapping" in settings
            else None
        ),
        windows=windows(settings, settings.whole("num_hidden_layers"), every=model != "gemma2"),
    )


def block(settings: Settings, shapes: Mapping[str, tuple[int, ...]]) -> Block:
    """The block of a configuration of this kind."""
    model = settings.word("model_type", default="llama")
    d, vocabulary = settings.whole("hidden_size"), settings.whole("vocab_size")
    gemma = model == "gemma2"
    placement: Placement = "sandwich" if gemma else "pre"
    softcap = (
        settings.real("final_logit_softcapping") if "final_logit_softcapping" in settings else None
    )
    return Block(
        family={"gemma2": "gemma2", "phi3": "phi3"}.get(model, "llama"),
        width=d,
        layers=settings.whole("num_hidden_layers"),
        attention=_attention(settings, shapes, model),
        mlp=Mlp(
            size=settings.whole("intermediate_size"),
            activation=activation(settings, "hidden_activation", "hidden_act", default="silu"),
            gated=True,
            bias="@layers.0.mlp.up_proj.bias" in shapes,
            output_bias="@layers.0.mlp.down_proj.bias" in shapes,
        ),
        norm=Norm(
            kind="rms",
            eps=settings.real("rms_norm_eps", default=1e-6),
            offset=1.0 if gemma else 0.0,
        ),
        placement=placement,
        final_norm=True,
        embed_scale=d**0.5 if gemma else 1.0,
        tables=(("tokens", vocabulary),),
        head=language_head(settings, shapes, vocabulary, tied=gemma, softcap=softcap),
    )


def _layer_norms(block: Block, at: str, of: str) -> list[Slot]:
    names = {"attention_norm": "input_layernorm", "mlp_norm": "post_attention_layernorm"}
    if block.placement == "sandwich":
        names = {
            "attention_norm": "input_layernorm",
            "attention_out_norm": "post_attention_layernorm",
            "mlp_norm": "pre_feedforward_layernorm",
            "mlp_out_norm": "post_feedforward_layernorm",
        }
    inner = block.layer_shapes
    return [
        slot for name, file in names.items() for slot in norm_slots(inner, name, f"{at}.{file}", of)
    ]


def _attention_slots(inner: Shapes, at: str, of: str) -> list[Slot]:
    found = [from_heads(f"{at}.self_attn.o_proj.weight", f"{of}output", inner["output"])]
    for name in ("query", "key", "value", "output"):
        file = f"{at}.self_attn.{name[0]}_proj"
        if name != "output":
            found.append(rows(f"{file}.weight", of + name, inner[name]))
        if f"{name}_bias" in inner:
            found.append(rows(f"{file}.bias", f"{of}{name}_bias", inner[f"{name}_bias"]))
    return found + [
        plain(f"{at}.self_attn.{name[0]}_norm.weight", of + name, inner[name])
        for name in ("query_norm", "key_norm")
        if name in inner
    ]


def _mlp_slots(inner: Shapes, at: str, of: str) -> list[Slot]:
    found = []
    for name in ("gate", "up", "down"):
        found.append(plain(f"{at}.mlp.{name}_proj.weight", of + name, inner[name]))
        if f"{name}_bias" in inner:
            found.append(
                plain(f"{at}.mlp.{name}_proj.bias", f"{of}{name}_bias", inner[f"{name}_bias"])
            )
    return found


def _outer_slots(block: Block) -> list[Slot]:
    outer = block.global_shapes
    return [
        plain("@embed_tokens.weight", "tokens", outer["tokens"]),
        *norm_slots(outer, "final_norm", "@norm"),
        *(head_slots(outer, "tokens") if block.head.kind != "none" else []),
    ]


def slots(block: Block) -> list[Slot]:
    """The tensors of a file of this kind."""
    found, inner = _outer_slots(block), block.layer_shapes
    for layer in range(block.layers):
        at, of = f"@layers.{layer}", f"layers.{layer}."
        found += _attention_slots(inner, at, of)
        found += _mlp_slots(inner, at, of)
        found += _layer_norms(block, at, of)
    return found


def phi3_slots(block: Block) -> list[Slot]:
    """The tensors of a Phi-3 file: query, key and value in one, gate and up in one."""
    found, inner = _outer_slots(block), block.layer_shapes
    for layer in range(block.layers):
        at, of = f"@layers.{layer}", f"layers.{layer}."
        found += [
            stacked(
                f"{at}.self_attn.qkv_proj.weight",
                {of + name: inner[name] for name in ("query", "key", "value")},
            ),
            from_heads(f"{at}.self_attn.o_proj.weight", f"{of}output", inner["output"]),
            stacked(
                f"{at}.mlp.gate_up_proj.weight",
                {of + name: inner[name] for name in ("gate", "up")},
            ),
            plain(f"{at}.mlp.down_proj.weight", f"{of}down", inner["down"]),
            *_layer_norms(block, at, of),
        ]
    return found


_BUFFERS = (".rotary_emb.inv_freq",)
LLAMA = Family(
    name="llama",
    model_types=("llama", "mistral", "qwen2", "qwen3", "smollm"),
    block=block,
    slots=slots,
    prefixes=("model.", ""),
    buffers=_BUFFERS,
)
GEMMA2 = Family(
    name="gemma2",
    model_types=("gemma2",),
    block=block,
    slots=slots,
    prefixes=("model.", ""),
    buffers=_BUFFERS,
)
PHI3 = Family(
    name="phi3",
    model_types=("phi3",),
    block=block,
    slots=phi3_slots,
    prefixes=("model.", ""),
    buffers=_BUFFERS,
)
