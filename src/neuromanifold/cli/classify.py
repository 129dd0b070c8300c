"""`neuromanifold classify`: what kind of point of the neuromanifold given weights are."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from neuromanifold.cli.options import Json
from neuromanifold.cli.output import print_json, print_lines


def classify(
    file: Annotated[Path, Parameter(help="a weights file of one lightning layer")],
    *,
    tolerance: Annotated[
        float | None, Parameter(help="relative size of what counts as zero; default by dtype")
    ] = None,
    json: Json = False,
) -> None:
    """Say whether weights of one lightning layer are critical, on the boundary, or singular.

    Example: neuromanifold classify layer.safetensors
    """
    from neuromanifold.geometry.classify import classify as place
    from neuromanifold.networks.files import load_weights

    answer = place(load_weights(file), tolerance=tolerance)
    if json:
        print_json(answer.to_dict())
    else:
        print_lines(str(answer))
