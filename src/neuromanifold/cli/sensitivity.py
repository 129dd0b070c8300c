"""`neuromanifold sensitivity`: how strongly the function sees each tensor."""

from typing import Annotated

from cyclopts import Parameter

from neuromanifold.cli.figures import FigureFile, check_figure
from neuromanifold.cli.options import DEFAULT_NETWORK, Force, NetworkOptions, Seed
from neuromanifold.cli.run import RUN, RunOptions
from neuromanifold.cost import sensing, sizes_of


def sensitivity(
    network: NetworkOptions = DEFAULT_NETWORK,
    *,
    spread: Annotated[float, Parameter(help="how far the tokens of an input are apart")] = 0.1,
    inputs: Annotated[int, Parameter(help="the number of inputs")] = 32,
    figure: FigureFile = None,
    seed: Seed = 0,
    force: Force = False,
    run: RunOptions = RUN,
) -> None:
    """Say how strongly the function sees each tensor, on tokens that are close to each other.

    Example: neuromanifold sensitivity --widths 3,3,3 --ranks 2,2 --tokens 3 --attention softmax
    """
    architecture = network.architecture()
    check_figure(figure, force=force)
    cost = sensing(sizes_of(architecture), max(inputs, 1))
    with run.spend(cost, "computing singular values"):
        from neuromanifold.certificates.sensitivity import sensitivity as compute

        answer = compute(architecture, spread=spread, inputs=inputs, seed=seed)
    if figure is not None:
        from neuromanifold.plots import plot_sensitivity
        from neuromanifold.style import figure_of, save_figure

        save_figure(figure_of(plot_sensitivity(answer)), figure, force=force)
    run.show(answer)
