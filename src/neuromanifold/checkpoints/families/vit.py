"""ViT: image patches, a class token, norms before; the classifier is the head."""

from neuromanifold.checkpoints.block.block import Block, Shapes
from neuromanifold.checkpoints.block.parts import Head, Patch
from neuromanifold.checkpoints.families.layout import Family, Slot, plain
from neuromanifold.checkpoints.families.settings import Settings, plain_attention, usual_block

_LAYER = "@encoder.layer.{L}"
_TABLE = {
    "@layernorm": "final_norm",
    "classifier": "unembedding",
    **{f"{_LAYER}.attention.attention.{name}": name for name in ("query", "key", "value")},
    f"{_LAYER}.attention.output.dense": "output",
    f"{_LAYER}.intermediate.dense": "up",
    f"{_LAYER}.output.dense": "down",
    f"{_LAYER}.layernorm_before": "attention_norm",
    f"{_LAYER}.layernorm_after": "mlp_norm",
}


def _side(settings: Settings, key: str) -> tuple[int, int]:
    """A size that is given as one number or as height and width."""
    value = settings.config[key] if key in settings else None
    if isinstance(value, list) and len(value) == 2 and all(isinstance(v, int) for v in value):
        return value[0], value[1]
    size = settings.whole(key)
    return size, size


def read(settings: Settings, held: Shapes) -> Block:
    """The block of a ViT configuration."""
    d, heads = settings.whole("hidden_size"), settings.whole("num_attention_heads")
    (height, width), (tall, wide) = _side(settings, "image_size"), _side(settings, "patch_size")
    bias, head = settings.flag("qkv_bias", True), Head()
    if "unembedding" in held:
        rows = held["unembedding"][0]
        head = Head(kind="untied", rows=rows, bias="unembedding_bias" in held)
    return usual_block(
        settings,
        plain_attention(d, heads, bias=bias, output_bias=True, causal=False),
        act="gelu",
        eps=1e-12,
        family="vit",
        final_norm=True,
        tables=(("positions", 1 + (height // tall) * (width // wide)),),
        patch=Patch(channels=settings.whole("num_channels", default=3), height=tall, width=wide),
        head=head,
    )


def _in_other_shapes(block: Block) -> list[Slot]:
    outer, d, patch = block.global_shapes, block.width, block.patch
    sides = (d, patch.channels, patch.height, patch.width) if patch is not None else ()
    positions, projection = outer["positions"], "@embeddings.patch_embeddings.projection"
    return [
        plain("@embeddings.cls_token", "class_token", (d,), (1, 1, d)),
        plain("@embeddings.position_embeddings", "positions", positions, (1, *positions)),
        plain(f"{projection}.weight", "patch", outer["patch"], sides),
        plain(f"{projection}.bias", "patch_bias", (d,)),
    ]


FAMILY = Family(
    name="vit",
    model_types=("vit",),
    read=read,
    tensors=_TABLE,
    others=_in_other_shapes,
    signature=".attention.attention.query.weight",
    prefixes=("vit.", ""),
    outside=("pooler",),
)
