"""ViT: image patches, a class token, norms before; the classifier is the head."""

from collections.abc import Mapping

from neuromanifold.checkpoints.block import Block
from neuromanifold.checkpoints.block_parts import Attention, Head, Mlp, Norm, Patch
from neuromanifold.checkpoints.families.bert import layer_slots
from neuromanifold.checkpoints.families.layout import Family, Settings, Slot, plain
from neuromanifold.checkpoints.families.settings import activation, norm_slots


def _side(settings: Settings, key: str) -> tuple[int, int]:
    """A size that is given as one number or as height and width."""
    value = settings.config.get(key)
    if isinstance(value, list) and len(value) == 2 and all(isinstance(v, int) for v in value):
        return value[0], value[1]
    size = settings.whole(key)
    return size, size


def block(settings: Settings, shapes: Mapping[str, tuple[int, ...]]) -> Block:
    """The block of a ViT configuration."""
    d, heads = settings.whole("hidden_size"), settings.whole("num_attention_heads")
    (height, width), (tall, wide) = _side(settings, "image_size"), _side(settings, "patch_size")
    bias = settings.flag("qkv_bias", True)
    head = Head()
    if "classifier.weight" in shapes:
        head = Head(
            kind="untied",
            rows=shapes["classifier.weight"][0],
            bias="classifier.bias" in shapes,
        )
    return Block(
        family="vit",
        width=d,
        layers=settings.whole("num_hidden_layers"),
        attention=Attention(
            heads=heads,
            groups=heads,
            key_size=d // heads,
            value_size=d // heads,
            query_bias=bias,
            key_bias=bias,
            value_bias=bias,
            output_bias=True,
            scale=(d // heads) ** -0.5,
            causal=False,
        ),
        mlp=Mlp(
            size=settings.whole("intermediate_size"),
            activation=activation(settings, "hidden_act", default="gelu"),
            bias=True,
            output_bias=True,
        ),
        norm=Norm(kind="layer", shift=True, eps=settings.real("layer_norm_eps", default=1e-12)),
        final_norm=True,
        tables=(("positions", 1 + (height // tall) * (width // wide)),),
        patch=Patch(channels=settings.whole("num_channels", default=3), height=tall, width=wide),
        head=head,
    )


def slots(block: Block) -> list[Slot]:
    """The tensors of a ViT file."""
    outer, d, patch = block.global_shapes, block.width, block.patch
    sides = (d, patch.channels, patch.height, patch.width) if patch is not None else ()
    positions = outer["positions"]
    found = [
        plain("@embeddings.cls_token", "class_token", (d,), (1, 1, d)),
        plain("@embeddings.position_embeddings", "positions", positions, (1, *positions)),
        plain("@embeddings.patch_embeddings.projection.weight", "patch", outer["patch"], sides),
        plain("@embeddings.patch_embeddings.projection.bias", "patch_bias", (d,)),
        *norm_slots(outer, "final_norm", "@layernorm"),
    ]
    if "unembedding" in outer:
        found.append(plain("classifier.weight", "unembedding", outer["unembedding"]))
    if "unembedding_bias" in outer:
        found.append(plain("classifier.bias", "unembedding_bias", outer["unembedding_bias"]))
    for layer in range(block.layers):
        at, of = f"@encoder.layer.{layer}", f"layers.{layer}."
        found += layer_slots(
            block.layer_shapes,
            of,
            {n: f"{at}.attention.attention.{n}" for n in ("query", "key", "value")},
            f"{at}.attention.output.dense",
            (f"{at}.intermediate.dense", f"{at}.output.dense"),
            (f"{at}.layernorm_before", f"{at}.layernorm_after"),
        )
    return found


FAMILY = Family(
    name="vit",
    model_types=("vit",),
    block=block,
    slots=slots,
    signature=".attention.attention.query.weight",
    prefixes=("vit.", ""),
    outside=("pooler",),
)
