"""`neuromanifold atlas`: sweeps over many architectures, and what they found."""

import os
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number

from neuromanifold.cli.options import Force, Seconds
from neuromanifold.cli.output import columns as aligned
from neuromanifold.cli.output import print_answer, say
from neuromanifold.cli.run import RUN, Json, RunOptions
from neuromanifold.cost import Cost, duration_text
from neuromanifold.errors import ArgumentError
from neuromanifold.files import check_writable
from neuromanifold.waiting import progress

if TYPE_CHECKING:
    from neuromanifold.atlas.grid import Grid
    from neuromanifold.atlas.sweep import Progress
    from neuromanifold.atlas.tasks import Survey

Atlas = Annotated[Path, Parameter(help="an atlas file, or the name of a table of the package")]
Where = Annotated[str | None, Parameter(help="a condition, e.g. 'heads > 1 and depth == 2'")]
Columns = Annotated[str | None, Parameter(help="columns, with commas between them")]

atlas = App(name="atlas", help="Sweep over many architectures, and look at what came out.")

_SHOWN = "network,readout,seed,parameters,rank,upper,verdict,formula,status,agreement"


@atlas.command
def run(
    grid: Annotated[Path, Parameter(help="a grid (TOML), or the name of one of the package")],
    *,
    out: Annotated[
        Path | None,
        Parameter(help="the atlas file to write or to go on with; default NAME.sqlite"),
    ] = None,
    scheduler: Annotated[
        str | None, Parameter(help="a running Dask scheduler, tcp://HOST:PORT")
    ] = None,
    workers: Annotated[
        int | None,
        Parameter(help="local processes; default one a core", validator=Number(gte=1, lte=1000)),
    ] = None,
    time_limit: Seconds = 600.0,
    limit: Annotated[int, Parameter(help="more tasks than this need --yes")] = 10_000,
    yes: Annotated[bool, Parameter(negative="", help="however many tasks there are")] = False,
    retry: Annotated[bool, Parameter(negative="", help="do again what failed before")] = False,
    allowed: RunOptions = RUN,
) -> int:
    """Certify every architecture of a grid; the same command again goes on where it stopped.

    Example: neuromanifold atlas run heads
    """
    from neuromanifold.atlas.dask_cluster import dask_cluster
    from neuromanifold.atlas.grid import load_grid
    from neuromanifold.atlas.local_processes import local_processes
    from neuromanifold.atlas.store import open_for_writing
    from neuromanifold.atlas.sweep import run_sweep

    read, cores = load_grid(grid), workers or len(os.sched_getaffinity(0))
    out = out or Path(f"{Path(grid).stem}.sqlite")
    cluster = (
        partial(local_processes, cores) if scheduler is None else partial(dask_cluster, scheduler)
    )
    plan = _survey(read, None if yes else limit, allowed, cores if scheduler is None else 1)
    try:
        with open_for_writing(out) as store, progress(read.name) as bar:

            def report(now: "Progress") -> None:
                failed = f", {now.failed} failed" if now.failed else ""
                bar.doing = f"{now.tasks - now.left} of {now.tasks} done{failed}"
                bar.at(now.computed, now.computed + now.left)

            if damaged := store.discard_damaged():
                say(f"{out}: {damaged} damaged rows are taken away and computed again")
            done = run_sweep(
                plan,
                store,
                cluster,
                time_limit=time_limit,
                retry=retry,
                report=report,
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted; what is finished is in {out}: the same command goes on from there"
        ) from None
    print_answer(
        allowed.json,
        {"file": str(out), "grid": read.name, **asdict(done)},
        f"{out}: all {plan.tasks} tasks of {read.name} are done; {done.computed} were computed "
        f"now in {duration_text(done.seconds)}, of which {done.failed} failed",
    )
    return 0


@atlas.command
def status(file: Atlas, *, json: Json = False) -> None:
    """How far the sweeps of an atlas are: done, failed, left, speed.

    Example: neuromanifold atlas status heads.sqlite
    """
    from neuromanifold.atlas.queries import status as status_of
    from neuromanifold.atlas.table import open_atlas

    with open_atlas(file) as store:
        found = status_of(store)
    rows = [("sweep", "tasks", "done", "left", "tasks/s")]
    rows += [
        (s.name, str(s.tasks), str(s.done), str(s.left), f"{s.speed:.2f}" if s.speed else "-")
        for s in found.sweeps
    ]
    print_answer(
        json,
        found.to_dict(),
        f"{file}: {found.done} done, {found.exact} of them exact; {found.failed} failed; "
        f"{found.left} left",
        *(aligned(rows) if found.sweeps else ()),
    )


@atlas.command
def show(
    file: Atlas,
    *,
    where: Where = None,
    disagreements: Annotated[
        bool, Parameter(negative="", help="where the formula is not the rank found")
    ] = False,
    unexplained: Annotated[
        bool, Parameter(negative="", help="where the kernel exceeds the known symmetries")
    ] = False,
    columns: Columns = None,
    rows: Annotated[
        int, Parameter(help="at most so many lines; 0 for all", validator=Number(gte=0))
    ] = 50,
    json: Json = False,
) -> None:
    """List the records of an atlas.

    Example: neuromanifold atlas show heads --disagreements --where "depth == 1"
    """
    from neuromanifold.atlas.queries import select
    from neuromanifold.atlas.table import cell, check_columns, open_atlas

    wanted = check_columns((columns or _SHOWN).split(","))
    with open_atlas(file) as store:
        found = select(store, where, disagreements=disagreements, unexplained=unexplained)
        table = [
            {column: record.values()[column] for column in wanted}
            for record in islice(found, rows or None)
        ]
        more = sum(1 for _ in found)
    lines = aligned([tuple(wanted), *(tuple(map(cell, line.values())) for line in table)])
    count = f"{len(table) + more} records, {len(table)} shown"
    print_answer(json, {"records": table, "more": more}, *lines, count)


@atlas.command(name="map")
def draw(
    file: Atlas,
    *,
    out: Annotated[Path, Parameter(help="the figure's name; .png and .svg are added")],
    kind: Annotated[
        Literal["heat", "scatter", "growth"], Parameter(help="the kind of figure")
    ] = "heat",
    x: Annotated[str, Parameter(help="the field along the x axis")] = "ranks",
    y: Annotated[str, Parameter(help="the field along the y axis of a heat map")] = "heads",
    value: Annotated[
        Literal["dimension", "difference", "unexplained"],
        Parameter(help="what a heat map shows: the rank found, the formula minus it, or gaps"),
    ] = "dimension",
    where: Where = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Draw the records of an atlas: heat map, scatter of parameters and dimension, or growth.

    Example: neuromanifold atlas map heads --x ranks --y heads --value difference --out heads
    """
    from neuromanifold.atlas.maps import growth, heat_map, save_map, scatter
    from neuromanifold.atlas.queries import select
    from neuromanifold.atlas.table import open_atlas

    with open_atlas(file) as store:
        records = list(select(store, where))
    if kind == "heat":
        axes = heat_map(records, x, y, value)
    else:
        axes = growth(records, x) if kind == "growth" else scatter(records)
    names = [str(path) for path in save_map(axes, out, force=force)]
    answer = {"files": names, "records": len(records)}
    print_answer(json, answer, f"{len(records)} records drawn: {', '.join(names)}")


@atlas.command
def export(
    file: Atlas,
    *,
    csv: Annotated[Path | None, Parameter(help="write a CSV table")] = None,
    parquet: Annotated[Path | None, Parameter(help="write a Parquet table")] = None,
    where: Where = None,
    columns: Columns = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write the records of an atlas as a table.

    Example: neuromanifold atlas export heads.sqlite --csv heads.csv --columns network,rank,formula
    """
    from neuromanifold.atlas.queries import select
    from neuromanifold.atlas.record import COLUMNS
    from neuromanifold.atlas.table import check_columns, open_atlas, write_csv, write_parquet

    targets = [(csv, write_csv), (parquet, write_parquet)]
    if csv is None and parquet is None:
        raise ArgumentError("nothing to write; give --csv FILE or --parquet FILE")
    wanted = check_columns(columns.split(",") if columns else COLUMNS)
    for path, _ in targets:
        check_writable(path, force=force)
    written = {}
    with open_atlas(file) as store:
        for path, write in targets:
            if path is not None:
                written[str(path)] = write(select(store, where), path, wanted, force=force)
    print_answer(json, {"rows": written}, *(f"{path}: {n} rows" for path, n in written.items()))


_COMBINATIONS = 1_000_000
"""So many combinations are looked through in about a minute; more need --yes."""


def _survey(grid: "Grid", limit: int | None, allowed: RunOptions, workers: int) -> "Survey":
    """Say what is about to be done; more than the limits is refused."""
    from neuromanifold.atlas.tasks import count_text, survey, tasks_each

    looks = grid.combinations if grid.sample is None else min(grid.sample, grid.combinations)
    if limit is not None and looks > _COMBINATIONS:
        raise ArgumentError(
            f"the grid {grid.name} has {count_text(looks)} combinations, more than "
            f"{_COMBINATIONS}: say --yes to look through them all, or take a sample of the grid"
        )
    # An architecture and a task of it take a few hundred bytes each.
    with allowed.spend(
        Cost(500 * looks * tasks_each(grid), 4e-5 * looks), "looking through the grid"
    ):
        plan = survey(grid)
    dropped = "".join(f"; {count} combinations {why}" for why, count in plan.dropped.items())
    seconds = plan.cost.seconds / workers
    say(
        f"{grid.name}: {plan.tasks} tasks for {plan.architectures} architectures{dropped}; "
        f"roughly {duration_text(seconds)} on {workers} core{'s' * (workers > 1)}"
    )
    if limit is not None and plan.tasks > limit:
        raise ArgumentError(
            f"{plan.tasks} tasks are more than the limit of {limit}; "
            "say --yes to run them all, or sample the grid"
        )
    Cost(plan.cost.bytes * workers, 0).check(
        allowed.limits, f"the largest network of {grid.name} in {workers} workers"
    )
    return plan
