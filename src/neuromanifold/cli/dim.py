"""`neuromanifold dim`: how large the space of functions of a network is."""

from typing import Annotated

from cyclopts import Parameter

from neuromanifold.architecture import Readout
from neuromanifold.cli.options import DEFAULT_NETWORK, Json, NetworkOptions
from neuromanifold.cli.output import print_json, print_lines


def dim(
    network: NetworkOptions = DEFAULT_NETWORK,
    *,
    readout: Annotated[Readout, Parameter(help="what is finally looked at")] = "logits",
    json: Json = False,
) -> None:
    """The dimension of the space of functions of a network, and how it is known.

    Example: neuromanifold dim --widths 4,2,3 --ranks 2,2 --tokens 3
    """
    from neuromanifold.dimension.formula import dimension_formula

    architecture = network.architecture()
    formula = dimension_formula(architecture, readout)
    if json:
        print_json(
            {
                "architecture": architecture.to_dict(),
                "readout": readout,
                "parameters": architecture.parameters,
                "formula": {
                    "dimension": formula.dimension,
                    "status": formula.status,
                    "statement": formula.statement,
                    "unmet": list(formula.unmet),
                },
                "certificate": None,
                "estimate": None,
            }
        )
        return
    print_lines(
        f"network     {architecture}",
        f"parameters  {architecture.parameters}",
        f"formula     {formula}",
    )
