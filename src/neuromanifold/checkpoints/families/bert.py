"""BERT, MiniLM, RoBERTa, ALBERT: norms after the sum; what reads the hidden states is outside."""

from collections.abc import Mapping

from neuromanifold.checkpoints.block import Block, Shapes
from neuromanifold.checkpoints.block_parts import Attention, Mlp, Norm
from neuromanifold.checkpoints.families.layout import (
    Family,
    Settings,
    Slot,
    from_heads,
    plain,
    rows,
)
from neuromanifold.checkpoints.families.settings import activation, norm_slots
from neuromanifold.errors import NotCoveredError

_OUTSIDE = ("pooler", "cls.", "classifier", "qa_outputs", "lm_head", "predictions.", "sop_")


def bert_block(settings: Settings, shapes: Mapping[str, tuple[int, ...]]) -> Block:
    """The block of a BERT or RoBERTa configuration."""
    offset = 0
    if settings.word("model_type", default="bert") != "bert":
        offset = settings.whole("pad_token_id", default=1) + 1
    return _block(settings, "bert", offset)


def albert_block(settings: Settings, shapes: Mapping[str, tuple[int, ...]]) -> Block:
    """The block of an ALBERT configuration."""
    if (
        settings.whole("num_hidden_groups", default=1) != 1
        or settings.whole("inner_group_num", default=1) != 1
    ):
        raise NotCoveredError("ALBERT with several groups of layers is not covered")
    return _block(settings, "albert", 0, settings.whole("embedding_size", default=128))


def _block(settings: Settings, family: str, offset: int, embed: int | None = None) -> Block:
    d, heads = settings.whole("hidden_size"), settings.whole("num_attention_heads")
    kind = settings.word("position_embedding_type", default="absolute")
    if kind != "absolute":
        raise NotCoveredError(f"positions of type {kind!r} are not covered; absolute ones are")
    tables = (
        ("tokens", settings.whole("vocab_size")),
        ("positions", settings.whole("max_position_embeddings")),
        ("types", settings.whole("type_vocab_size", default=2)),
    )
    return Block(
        family=family,
        width=d,
        layers=settings.whole("num_hidden_layers"),
        attention=Attention(
            heads=heads,
            groups=heads,
            key_size=d // heads,
            value_size=d // heads,
            query_bias=True,
            key_bias=True,
            value_bias=True,
            output_bias=True,
            scale=(d // heads) ** -0.5,
            causal=settings.flag("is_decoder", False),
        ),
        mlp=Mlp(
            size=settings.whole("intermediate_size"),
            activation=activation(settings, "hidden_act", default="gelu"),
            bias=True,
            output_bias=True,
        ),
        norm=Norm(kind="layer", shift=True, eps=settings.real("layer_norm_eps", default=1e-12)),
        placement="post",
        shared=family == "albert",
        embed_norm=True,
        embed_width=embed,
        tables=tables,
        position_offset=offset,
    )


def _table_slots(shapes: Shapes) -> list[Slot]:
    files = {"tokens": "word", "positions": "position", "types": "token_type"}
    return [
        *(
            plain(f"@embeddings.{file}_embeddings.weight", name, shapes[name])
            for name, file in files.items()
        ),
        *norm_slots(shapes, "embed_norm", "@embeddings.LayerNorm"),
    ]


def bert_slots(block: Block) -> list[Slot]:
    """The tensors of a BERT file."""
    found = _table_slots(block.global_shapes)
    for layer in range(block.layers):
        at, of = f"@encoder.layer.{layer}", f"layers.{layer}."
        found += layer_slots(
            block.layer_shapes,
            of,
            {n: f"{at}.attention.self.{n}" for n in ("query", "key", "value")},
            f"{at}.attention.output.dense",
            (f"{at}.intermediate.dense", f"{at}.output.dense"),
            (f"{at}.attention.output.LayerNorm", f"{at}.output.LayerNorm"),
        )
    return found


def albert_slots(block: Block) -> list[Slot]:
    """The tensors of an ALBERT file: one layer."""
    outer, at = block.global_shapes, "@encoder.albert_layer_groups.0.albert_layers.0"
    into = "@encoder.embedding_hidden_mapping_in"
    return [
        *_table_slots(outer),
        plain(f"{into}.weight", "embed_map", outer["embed_map"]),
        plain(f"{into}.bias", "embed_map_bias", outer["embed_map_bias"]),
        *layer_slots(
            block.layer_shapes,
            "layers.0.",
            {n: f"{at}.attention.{n}" for n in ("query", "key", "value")},
            f"{at}.attention.dense",
            (f"{at}.ffn", f"{at}.ffn_output"),
            (f"{at}.attention.LayerNorm", f"{at}.full_layer_layer_norm"),
        ),
    ]


def layer_slots(
    inner: Shapes,
    of: str,
    reads: Mapping[str, str],
    output: str,
    mlp: tuple[str, str],
    norms: tuple[str, str],
) -> list[Slot]:
    """The slots of a layer whose maps are all stored one by one."""
    found = []
    for name, file in reads.items():
        found.append(rows(f"{file}.weight", of + name, inner[name]))
        if f"{name}_bias" in inner:
            found.append(rows(f"{file}.bias", f"{of}{name}_bias", inner[f"{name}_bias"]))
    up, down = mlp
    return [
        *found,
        from_heads(f"{output}.weight", f"{of}output", inner["output"]),
        plain(f"{output}.bias", f"{of}output_bias", inner["output_bias"]),
        plain(f"{up}.weight", f"{of}up", inner["up"]),
        plain(f"{up}.bias", f"{of}up_bias", inner["up_bias"]),
        plain(f"{down}.weight", f"{of}down", inner["down"]),
        plain(f"{down}.bias", f"{of}down_bias", inner["down_bias"]),
        *norm_slots(inner, "attention_norm", norms[0], of),
        *norm_slots(inner, "mlp_norm", norms[1], of),
    ]


_ALIASES = ((".LayerNorm.weight", ".LayerNorm.gamma"), (".LayerNorm.bias", ".LayerNorm.beta"))

BERT = Family(
    name="bert",
    model_types=("bert", "roberta", "xlm-roberta", "camembert"),
    block=bert_block,
    slots=bert_slots,
    signature=".attention.self.query.weight",
    prefixes=("bert.", "roberta.", ""),
    buffers=("embeddings.position_ids", "embeddings.token_type_ids"),
    outside=_OUTSIDE,
    aliases=_ALIASES,
)
ALBERT = Family(
    name="albert",
    model_types=("albert",),
    block=albert_block,
    slots=albert_slots,
    signature=".albert_layers.0.ffn.weight",
    prefixes=("albert.", ""),
    buffers=("embeddings.position_ids", "embeddings.token_type_ids"),
    outside=_OUTSIDE,
    aliases=_ALIASES,
)
