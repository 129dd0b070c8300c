"""`neuromanifold recover`: from a black box back to weights, compared with the truth."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from neuromanifold.cli.options import Force, Seed, read_weights
from neuromanifold.cli.run import RUN, RunOptions
from neuromanifold.cost import recovering, sizes_of
from neuromanifold.files import check_writable


def recover(
    file: Annotated[Path, Parameter(help="a weights file, used as a black box")],
    *,
    out: Annotated[Path | None, Parameter(help="write the recovered weights here")] = None,
    max_calls: Annotated[int | None, Parameter(help="the most calls of the black box")] = None,
    noise: Annotated[
        float | None, Parameter(help="add noise of this relative size to the outputs, and allow it")
    ] = None,
    seed: Seed = 0,
    force: Force = False,
    run: RunOptions = RUN,
) -> int:
    """Recover weights from the function of a weights file alone, and compare them with the file.

    Lightning of depth 3 is asked over the rational numbers, softmax from depth 3 on to many digits.
    Exits with 1 when the recovered weights are further from the file's fiber than their error bars.

    Example: neuromanifold recover w.safetensors --out found.safetensors
    """
    check_writable(out, force=force)
    truth = read_weights(file, run)
    with run.spend(recovering(sizes_of(truth.architecture)), "recovering"):
        from neuromanifold.fibers.same import same_function
        from neuromanifold.networks.files import save_weights
        from neuromanifold.recovery.oracle import oracle_of
        from neuromanifold.recovery.recover import MAX_CALLS
        from neuromanifold.recovery.recover import recover as find

        found = find(
            oracle_of(truth, noise, seed),
            truth.architecture,
            seed=seed,
            max_calls=MAX_CALLS if max_calls is None else max_calls,
            noise=noise,
        ).in_float64()
        comparison = None if found.weights is None else same_function(truth, found.weights)
    if out is not None and found.weights is not None:
        save_weights(found.weights, out, force=force)
    if comparison is None:
        run.show(found, comparison=None)
        return 0
    run.show(found, str(comparison), comparison=comparison.to_dict())
    bar = max(found.error_bars.values(), default=0.0)
    return 1 if comparison.verdict == "different" and comparison.error > bar else 0
