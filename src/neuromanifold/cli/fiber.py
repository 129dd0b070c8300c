"""`neuromanifold fiber`: weights with the same function."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from neuromanifold.cli.options import (
    DEFAULT_NETWORK,
    ONE_OR_MORE,
    Force,
    NetworkOptions,
    Seed,
    read_weights,
)
from neuromanifold.cli.run import RUN, RunOptions
from neuromanifold.cost import Cost, certifying, counting, holding, sizes_of, transforming
from neuromanifold.files import check_writable, make_folder

if TYPE_CHECKING:
    from neuromanifold.networks.weights import Weights

fiber = App(name="fiber", help="Compare and move weights that have the same function.")

First = Annotated[Path, Parameter(help="a weights file")]
Second = Annotated[Path, Parameter(help="another weights file")]
Folder = Annotated[Path, Parameter(help="the folder for the weights files")]


@fiber.command
def same(
    first: First,
    second: Second,
    *,
    exact: Annotated[
        bool, Parameter(help="take the floats as the rationals they are", negative="")
    ] = False,
    seed: Seed = 0,
    run: RunOptions = RUN,
) -> int:
    """Say whether two weights files have the same function, and why or where not.

    Same and different are up to rounding, unless --exact. Exits with 1 when they are different.

    Example: neuromanifold fiber same a.safetensors b.safetensors
    """
    with _reading(run, "comparing", first, second) as (one, other):
        from neuromanifold.fibers.same import same_function

        comparison = same_function(one, other, seed=seed, exact=exact)
    run.show(comparison)
    return 1 if comparison.verdict == "different" else 0


@fiber.command
def transport(
    first: First,
    second: Second,
    *,
    out: Annotated[Path | None, Parameter(help="write the group element here")] = None,
    force: Force = False,
    run: RunOptions = RUN,
) -> int:
    """Find the symmetry that carries one weights file to another.

    Exits with 1 when no symmetry does.

    Example: neuromanifold fiber transport a.safetensors b.safetensors --out g.safetensors
    """
    check_writable(out, force=force)
    with _reading(run, "looking for a symmetry", first, second) as (one, other):
        from neuromanifold.fibers.transport.transport import transport as find

        found = find(one, other)
    if out is not None and found.found:
        found.element.save(out, force=force)
    run.show(found, element=found.element.to_dict())
    return 0 if found.found else 1


@fiber.command
def canonical(
    file: First,
    *,
    out: Annotated[Path, Parameter(help="write the normal form here")],
    form: Annotated[
        Literal["normal", "balanced"],
        Parameter(help="normal (one for each orbit) or balanced (Q Qᵀ = K Kᵀ, diagonal)"),
    ] = "normal",
    force: Force = False,
    run: RunOptions = RUN,
) -> None:
    """Write the normal form of weights, the same for all weights on one orbit.

    Example: neuromanifold fiber canonical a.safetensors --out normal.safetensors
    """
    check_writable(out, force=force)
    with _reading(run, "normalising", file) as (weights,):
        from neuromanifold.fibers.fingerprint import fingerprint
        from neuromanifold.fibers.normal_form.balanced import balanced
        from neuromanifold.fibers.normal_form.canonical import canonical_form
        from neuromanifold.networks.files import save_weights

        found = canonical_form(weights)
        written = form == "balanced" or found.verdict == "numerical"
        if written:
            save_weights(found.weights if form == "normal" else balanced(weights), out, force=force)
        mark = fingerprint(weights)
    where = f"Written to {out} ({form} form)." if written else "Nothing was written."
    file_written = str(out) if written else None
    run.show(found, f"{mark} {where}", file=file_written, form=form, fingerprint=mark.hash)


@fiber.command
def sample(
    file: First,
    *,
    out_dir: Folder,
    count: Annotated[int, Parameter(help="how many points", validator=ONE_OR_MORE)] = 1,
    condition: Annotated[float, Parameter(help="largest condition of the group elements")] = 10.0,
    seed: Seed = 0,
    force: Force = False,
    run: RunOptions = RUN,
) -> None:
    """Write random weights with the same function.

    Example: neuromanifold fiber sample a.safetensors --count 3 --out-dir points
    """
    with _reading(run, "sampling", file, points=count) as (weights,):
        from neuromanifold.fibers.sample import sample_fiber

        found = sample_fiber(weights, count, seed=seed, condition=condition)
        files = _save_all(found.points, out_dir, "point", force)
    run.show(found, *files, files=files)


@fiber.command
def walk(
    first: First,
    second: Second,
    *,
    out_dir: Annotated[Path | None, Parameter(help="write the points of the path here")] = None,
    steps: Annotated[int, Parameter(help="steps of the path", validator=ONE_OR_MORE)] = 16,
    seed: Seed = 0,
    force: Force = False,
    run: RunOptions = RUN,
) -> int:
    """Walk from one weights file to another along weights with the same function.

    Exits with 1 when there is no such path.

    Example: neuromanifold fiber walk a.safetensors b.safetensors --out-dir path
    """
    files: list[str] = []
    with _reading(run, "walking", first, second, points=steps) as (
        one,
        other,
    ):
        from neuromanifold.fibers.walk import walk as find

        path = find(one, other, steps=steps, seed=seed)
        if out_dir is not None and path.points:
            files = _save_all(path.points, out_dir, "step", force)
    run.show(path, *files, files=files)
    return 0 if path.points else 1


@fiber.command
def describe(file: First, *, run: RunOptions = RUN) -> None:
    """Describe all weights with the same function as a weights file.

    Example: neuromanifold fiber describe a.safetensors
    """
    weights = read_weights(file, run)
    cost = 2 * certifying(sizes_of(weights.architecture))
    with run.spend(cost, "describing"):
        from neuromanifold.fibers.describe import describe_fiber

        description = describe_fiber(weights)
    run.show(description)


@fiber.command
def count(
    network: NetworkOptions = DEFAULT_NETWORK,
    *,
    monomials: Annotated[
        int,
        Parameter(help="how many monomials are eliminated together at most", validator=ONE_OR_MORE),
    ] = 4000,
    seed: Seed = 0,
    run: RunOptions = RUN,
) -> None:
    """Count the weights modulo symmetries that have the function of generic weights.

    Example: neuromanifold fiber count --widths 2,2,1 --ranks 1,1 --tokens 2
    """
    architecture = network.architecture()
    with run.spend(counting(monomials), "counting"):
        from neuromanifold.fibers.count import count_fiber

        found = count_fiber(architecture, seed=seed, monomials=monomials)
    run.show(found)


@contextmanager
def _reading(
    run: RunOptions, doing: str, *files: Path, points: int = 1
) -> "Iterator[tuple[Weights, ...]]":
    """The weights in the files, for a few factorisations of each, and so many points of them."""
    read = tuple(read_weights(file, run) for file in files)
    cost = Cost(0, 0)
    for weights in read:
        sizes = sizes_of(weights.architecture)
        each = transforming(sizes)
        kept = holding(sizes, copies=points)
        cost += Cost(each.bytes + kept.bytes, each.seconds + points * each.seconds / 8)
    with run.spend(cost, doing):
        yield read


def _save_all(points: "Sequence[Weights]", folder: Path, name: str, force: bool) -> list[str]:
    """Write the points as numbered weights files; all names are checked before the first."""
    from neuromanifold.networks.files import save_weights

    make_folder(folder)
    files = [folder / f"{name}-{number:03d}.safetensors" for number in range(len(points))]
    for file in files:
        check_writable(file, force=force)
    for file, point in zip(files, points, strict=True):
        save_weights(point, file, force=force)
    return [str(file) for file in files]
