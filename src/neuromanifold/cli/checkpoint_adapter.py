"""`neuromanifold checkpoint adapter`: low-rank adapters, whatever their factors."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from neuromanifold.cli.options import Dtype, Force, dtype_of
from neuromanifold.cli.output import columns, print_answer
from neuromanifold.cli.run import RUN, RunOptions
from neuromanifold.cost import Cost, factoring

if TYPE_CHECKING:
    from neuromanifold.checkpoints.adapters.reduce import Reduced

Folder = Annotated[Path, Parameter(help="an adapter's folder, or its weights file")]
Out = Annotated[Path, Parameter(help="the folder to write")]
Rank = Annotated[int | None, Parameter(help="keep at most this rank")]
Error = Annotated[float | None, Parameter(help="keep as little as this relative error allows")]


def _cost(*adapters: Path) -> Cost:
    """What a look at some adapters costs, from the sizes of their files."""
    files = [file for path in adapters for file in (path.iterdir() if path.is_dir() else [path])]
    return factoring(sum(file.stat().st_size for file in files if file.is_file()))


def audit(adapter: Folder, *, run: RunOptions = RUN) -> None:
    """Give the true rank and the spectrum of every update s·B·A of an adapter.

    Example: neuromanifold checkpoint adapter audit my-adapter
    """
    from neuromanifold.checkpoints.adapters.peft import load_adapter

    with run.spend(_cost(adapter), "reading the factors"):
        found = load_adapter(adapter).audit()
    rows = [("module", "shape", "r", "rank", "how", "to rounding", "norm", "singular values")]
    for module in found.modules:
        values = module.singular_values
        rows.append(
            (
                module.name,
                "×".join(map(str, module.shape)),
                str(module.size),
                "?" if module.rank is None else str(module.rank),
                module.verdict,
                str(module.rank_to_rounding),
                f"{module.norm:.4g}",
                f"{values[0]:.3g} … {values[-1]:.3g}",
            )
        )
    print_answer(run.json, found.to_dict(), *columns(rows), *found.adapter.notes, str(found))


def canonical(
    adapter: Folder,
    *,
    out: Out,
    dtype: Dtype = None,
    force: Force = False,
    run: RunOptions = RUN,
) -> None:
    """Write the same updates with factors that depend on the updates alone.

    Example: neuromanifold checkpoint adapter canonical my-adapter --out canonical
    """
    shrink(adapter, out=out, dtype=dtype, force=force, run=run)


def merge(
    *adapters: Folder,
    out: Out,
    weights: Annotated[str | None, Parameter(help="one number each, e.g. 0.5,0.5")] = None,
    rank: Rank = None,
    error: Error = None,
    dtype: Dtype = None,
    force: Force = False,
    run: RunOptions = RUN,
) -> None:
    """Write the adapter whose updates are the weighted sum of those given, exactly.

    Example: neuromanifold checkpoint adapter merge a b --weights 0.5,0.5 --out merged
    """
    from neuromanifold.checkpoints.adapters.reduce import merge_adapters
    from neuromanifold.errors import ArgumentError

    try:
        numbers = None if weights is None else [float(part) for part in weights.split(",")]
    except ValueError:
        raise ArgumentError(
            f"--weights must be numbers with commas between them, like 0.5,0.5; got {weights!r}"
        ) from None
    with run.spend(_cost(*adapters), "merging"):
        made = merge_adapters(adapters, numbers, rank=rank, error=error, dtype=dtype_of(dtype))
    _finish(made, out, force, run)


def shrink(
    adapter: Folder,
    *,
    out: Out,
    rank: Rank = None,
    error: Error = None,
    dtype: Dtype = None,
    force: Force = False,
    run: RunOptions = RUN,
) -> None:
    """Write the nearest adapter of lower rank, with its error; by default only drop null parts.

    Example: neuromanifold checkpoint adapter shrink my-adapter --error 0.01 --out small
    """
    from neuromanifold.checkpoints.adapters.peft import load_adapter
    from neuromanifold.checkpoints.adapters.reduce import shrink_adapter

    with run.spend(_cost(adapter), "shrinking"):
        loaded = load_adapter(adapter)
        made = shrink_adapter(loaded, rank=rank, error=error, dtype=dtype_of(dtype))
    _finish(made, out, force, run)


def compare(*adapters: Folder, run: RunOptions = RUN) -> None:
    """Give the distances of all pairs of adapters, and which of them are the same.

    Example: neuromanifold checkpoint adapter compare a b c
    """
    from neuromanifold.checkpoints.adapters.compare import compare_adapters, duplicate_groups

    with run.spend(len(adapters) * _cost(*adapters), "comparing"):
        distances = compare_adapters(adapters)
    groups = duplicate_groups(distances)
    answer = {"pairs": [one.to_dict() for one in distances], "duplicates": groups}
    same = [f"The same adapter: {', '.join(group)}." for group in groups]
    print_answer(run.json, answer, *map(str, distances), *same)


def _finish(made: "Reduced", out: Path, force: bool, run: RunOptions) -> None:
    """Write what was made and say what it cost."""
    made.save(out, force=force)
    run.show(made, *made.notes, f"Written to {out}.", folder=str(out))
