"""`neuromanifold checkpoint compare`, `align` and `fingerprint`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from neuromanifold.cli.checkpoint import MODEL, Model, ModelOptions, cost_of
from neuromanifold.cli.figures import check_figure
from neuromanifold.cli.options import Dtype, Force, Seed, dtype_of
from neuromanifold.cli.output import columns, print_answer
from neuromanifold.cli.run import RUN, RunOptions


def compare(
    first: Model,
    second: Model,
    *,
    described: ModelOptions = MODEL,
    figure: Annotated[Path | None, Parameter(help="draw layers × heads into this file")] = None,
    force: Force = False,
    run: RunOptions = RUN,
) -> None:
    """Give distances of two models by layer and head that no gauge changes.

    Heads, neurons and the stream are matched first. Distances are relative: 0 is equal, 1.41 is
    unrelated; whether models are related is yours to say.

    Example: neuromanifold checkpoint compare base fine-tuned --figure moved.png
    """
    check_figure(figure, force=force)
    one, other = described.open(first), described.open(second)
    with run.spend(2 * cost_of(one, other), "comparing"):
        found = one.compare(other)
    if figure is not None:
        from neuromanifold.checkpoints.distance.heatmap import compare_figure
        from neuromanifold.style import figure_of, save_figure

        save_figure(figure_of(compare_figure(found)[0]), figure, force=force)
    rows = [("layer", "scores", "writing", "MLP", "heads moved", "neurons moved", "unchanged")]
    rows += [
        (
            str(layer.layer),
            _spread(layer.scores),
            _spread(layer.writes),
            "" if layer.mlp is None else f"{layer.mlp:.3g}",
            str(sum(head != number for number, head in enumerate(layer.heads))),
            str(layer.neurons),
            "yes" if layer.unchanged else "",
        )
        for layer in found.layers
    ]
    outside = [(name, f"{value:.3g}") for name, value in found.outer.items()]
    lines = [*columns(rows), "", *columns([("outside", ""), *outside]), "", str(found)]
    print_answer(run.json, found.to_dict(), *lines)


def _spread(values: tuple[float, ...]) -> str:
    return f"{min(values):.3g} … {max(values):.3g}"


def align(
    first: Model,
    second: Model,
    *,
    out: Annotated[Path, Parameter(help="the safetensors file to write")],
    dtype: Dtype = None,
    described: ModelOptions = MODEL,
    seed: Seed = 0,
    force: Force = False,
    run: RunOptions = RUN,
) -> None:
    """Move the second model along its fiber towards the first; its function stays.

    Example: neuromanifold checkpoint align base sibling --out aligned.safetensors
    """
    from neuromanifold.checkpoints.distance.align import align as find
    from neuromanifold.checkpoints.writing import check_safetensors

    check_safetensors(out, force=force)
    one, other = described.open(first), described.open(second)
    with run.spend(4 * cost_of(one, other), "aligning"):
        report = find(one, other, out, dtype=dtype_of(dtype), force=force, seed=seed)
    run.show(report)


def fingerprint(
    model: Model,
    *,
    described: ModelOptions = MODEL,
    run: RunOptions = RUN,
) -> None:
    """Give numbers of a model, and their hash, that no exact symmetry changes.

    Example: neuromanifold checkpoint fingerprint my-model
    """
    opened = described.open(model)
    with run.spend(cost_of(opened), "reading the layers"):
        found = opened.fingerprint()
    run.show(found)
