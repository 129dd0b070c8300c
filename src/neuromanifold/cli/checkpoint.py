"""`neuromanifold checkpoint`: real models in files."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from neuromanifold.cli.figures import check_figure
from neuromanifold.cli.options import Dtype, Force, Seed, dtype_of
from neuromanifold.cli.output import columns
from neuromanifold.cli.run import RUN, RunOptions
from neuromanifold.cost import Cost, ModelSizes, looking

if TYPE_CHECKING:
    from neuromanifold.checkpoints.audits.audit import Audit
    from neuromanifold.checkpoints.face import RealModel

Model = Annotated[
    Path, Parameter(help="a folder with config.json, a .safetensors, .bin, .pt or .gguf file")
]
Readout = Annotated[
    Literal["logits", "probabilities"], Parameter(help="what is looked at of the output")
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """What a model's file does not say itself."""

    config: Annotated[
        Path | None, Parameter(help="the configuration, when none lies beside the file")
    ] = None
    heads: Annotated[
        int | None, Parameter(help="query heads, when the configuration does not say")
    ] = None
    family: Annotated[
        Path | None, Parameter(help="a description of a model of no known family")
    ] = None

    def open(self, model: Path) -> "RealModel":
        """The model in a file."""
        from neuromanifold.checkpoints.face import checkpoint

        return checkpoint(model, config=self.config, heads=self.heads, family=self.family)


MODEL = ModelOptions()


def cost_of(*models: "RealModel") -> Cost:
    """What a look at every layer of some models costs, from their configurations."""
    from math import prod

    return looking(
        *(
            ModelSizes(
                layers=one.block.layers,
                layer=sum(map(prod, one.block.layer_shapes.values())),
                outside=sum(map(prod, one.block.global_shapes.values())),
                width=one.block.width,
            )
            for one in models
        )
    )


def audit(
    model: Model,
    *,
    described: ModelOptions = MODEL,
    readout: Readout = "logits",
    figure: Annotated[Path | None, Parameter(help="draw layers × heads into this file")] = None,
    html: Annotated[Path | None, Parameter(help="write a page into this file")] = None,
    certify: Annotated[
        bool, Parameter(negative="", help="prove the count for a small model of the same kind")
    ] = False,
    force: Force = False,
    run: RunOptions = RUN,
) -> None:
    """Count the redundant parameters of a model part by part, and look at every head.

    Example: neuromanifold checkpoint audit my-model --html audit.html
    """
    from neuromanifold.files import check_writable, write_file

    check_figure(figure, force=force)
    if html is not None:
        check_writable(html, force=force)
    opened = described.open(model)
    with run.spend(cost_of(opened), "reading the layers"):
        found = opened.audit(readout, certify=certify)
    if figure is not None:
        from neuromanifold.checkpoints.audits.picture import audit_figure
        from neuromanifold.style import figure_of, save_figure

        save_figure(figure_of(audit_figure(found)[0]), figure, force=force)
    if html is not None:
        from neuromanifold.checkpoints.audits.picture import audit_page

        write_file(html, audit_page(found).encode(), force=force)
    run.show(found, *_audit_lines(found))


def _audit_lines(found: "Audit") -> list[str]:
    from neuromanifold.checkpoints.audits.picture import notes

    rows = [("part", "dimension", "formula", "statement")]
    rows += [(p.name, f"{p.dimension:,}", p.formula, p.statement) for p in found.parts]
    return ["", *columns(rows), "", *notes(found)]


def canonical(
    model: Model,
    *,
    out: Annotated[Path, Parameter(help="the safetensors file to write")],
    fold: Annotated[
        bool, Parameter(negative="", help="only fold norms into their readers")
    ] = False,
    drop_dead: Annotated[
        bool, Parameter(negative="", help="only zero what the function does not see")
    ] = False,
    balance: Annotated[
        bool, Parameter(negative="", help="only balance the factors of heads and neurons")
    ] = False,
    dtype: Dtype = None,
    described: ModelOptions = MODEL,
    force: Force = False,
    run: RunOptions = RUN,
) -> None:
    """Write the normal form of a model: the same for all weights that gauge makes equal.

    It has the names, shapes and (without --dtype) dtypes of the original, and its function. With
    --fold, --drop-dead or --balance only these steps are taken.

    Example: neuromanifold checkpoint canonical my-model --out normal.safetensors
    """
    from neuromanifold.checkpoints.normal_form.canonical import Steps, write_canonical
    from neuromanifold.checkpoints.writing import check_safetensors

    check_safetensors(out, force=force)
    some = fold or drop_dead or balance
    steps = Steps(fold=fold, drop_dead=drop_dead, balance=balance, order=False) if some else Steps()
    opened = described.open(model)
    with run.spend(cost_of(opened), "computing the normal form"):
        report = write_canonical(opened, out, steps, dtype=dtype_of(dtype), force=force)
    run.show(report)


def same(
    before: Model,
    after: Model,
    *,
    adapter: Annotated[
        Path | None, Parameter(help="AFTER is to be BEFORE with this adapter (PEFT) merged into it")
    ] = None,
    rtol: Annotated[
        float | None, Parameter(help="relative rounding of what is stored; by default the dtype's")
    ] = None,
    element_out: Annotated[
        Path | None, Parameter(help="write the symmetry from BEFORE to AFTER here")
    ] = None,
    seed: Seed = 0,
    described: ModelOptions = MODEL,
    force: Force = False,
    run: RunOptions = RUN,
) -> int:
    """Say whether two files hold the same function, by which symmetry, or what broke.

    With --adapter, whether AFTER holds BEFORE with the adapter merged into it. Exits with 1 when
    they are different.

    Example: neuromanifold checkpoint same before.safetensors after.gguf
    """
    from neuromanifold.checkpoints.adapters.peft import load_adapter
    from neuromanifold.checkpoints.writing import check_safetensors
    from neuromanifold.errors import ArgumentError

    if rtol is not None and not 0 < rtol < 1:
        raise ArgumentError(f"--rtol lies between 0 and 1; got {rtol}")
    if element_out is not None:
        check_safetensors(element_out, force=force)
    first, second = (described.open(path) for path in (before, after))
    update = None if adapter is None else load_adapter(adapter)
    rounds = 0 if update is None else 2 * -(-len(update.modules) // first.block.layers)
    cost = (2 + rounds) * cost_of(first, second)
    with run.spend(cost, "comparing the layers"):
        found = first.same(second, adapter=update, rtol=rtol, seed=seed)
    if element_out is not None and found.verdict == "same":
        found.save_element(element_out, force=force)
    run.show(found, *map(str, found.differences[:8]))
    return 1 if found.verdict == "different" else 0


def convert_rope(
    source: Model,
    out: Annotated[Path, Parameter(help="the folder to make")],
    *,
    to: Annotated[Literal["half", "interleaved"], Parameter(help="the layout to write")],
    described: ModelOptions = MODEL,
    run: RunOptions = RUN,
) -> None:
    """Write a model with the other layout of rotary positions, queries and keys permuted together.

    The layout is noted in the new config.json as rope_layout.

    Example: neuromanifold checkpoint convert-rope my-model converted --to interleaved
    """
    opened = described.open(source)
    with run.spend(cost_of(opened), "converting"):
        made = opened.convert_rope(out, to)
    run.show(made)


def fold_norms(
    source: Model,
    out: Annotated[Path, Parameter(help="the folder to make")],
    *,
    untie: Annotated[
        bool, Parameter(negative="", help="give a tied model a head of its own, to fold into")
    ] = False,
    described: ModelOptions = MODEL,
    run: RunOptions = RUN,
) -> None:
    """Write a model whose norms have gain one, their gains and shifts folded into what reads them.

    Example: neuromanifold checkpoint fold-norms my-model folded --untie
    """
    opened = described.open(source)
    with run.spend(cost_of(opened), "folding"):
        made = opened.fold_norms(out, untie=untie)
    run.show(made)
