"""`neuromanifold classify`: what kind of point of the neuromanifold given weights are."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from neuromanifold.cli.options import read_weights
from neuromanifold.cli.run import RUN, RunOptions
from neuromanifold.cost import classifying, sizes_of


def classify(
    file: Annotated[Path, Parameter(help="a weights file of one lightning layer")],
    *,
    tolerance: Annotated[
        float | None,
        Parameter(
            help="relative size of what counts as zero; default by dtype",
            validator=Number(gte=0, lt=1),
        ),
    ] = None,
    run: RunOptions = RUN,
) -> None:
    """Say whether weights of one lightning layer are critical, on the boundary, or singular.

    Example: neuromanifold classify layer.safetensors
    """
    weights = read_weights(file, run)
    with run.spend(classifying(sizes_of(weights.architecture)), "classifying"):
        from neuromanifold.geometry.classify import classify as place

        answer = place(weights, tolerance=tolerance)
    run.show(answer)
