"""`neuromanifold explain`: where all the parameters of a network go."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from neuromanifold.architecture import Readout
from neuromanifold.cli.limits import DEFAULT_LIMITS, LimitOptions
from neuromanifold.cli.options import (
    DEFAULT_NETWORK,
    Json,
    NetworkOptions,
    Prime,
    Seed,
    weights_given,
)
from neuromanifold.cli.output import columns, print_json, print_lines
from neuromanifold.cost import certifying, sizes_of


def explain(
    network: NetworkOptions = DEFAULT_NETWORK,
    *,
    readout: Annotated[Readout, Parameter(help="what is finally looked at")] = "logits",
    weights: Annotated[
        Path | None, Parameter(help="a weights file: explain its kernel there")
    ] = None,
    seed: Seed = 0,
    prime: Prime = None,
    limits: LimitOptions = DEFAULT_LIMITS,
    json: Json = False,
) -> None:
    """Split the parameters into the dimension, the symmetries, and what is left unexplained.

    Directions that no symmetry explains are shown by how strongly they move each tensor.

    Example: neuromanifold explain --widths 3,3 --ranks 3 --tokens 3 --heads 2
    """
    given = None if weights is None else weights_given(weights, network, limits)
    architecture = network.architecture() if given is None else given.architecture
    with limits.spend(2 * certifying(sizes_of(architecture)), "explaining"):
        from neuromanifold.algebra.prime_field import DEFAULT_PRIME
        from neuromanifold.certificates.ledger import explain as account

        ledger = account(
            architecture,
            seed=seed,
            prime=DEFAULT_PRIME if prime is None else prime,
            readout=readout,
            weights=given,
        )
    if json:
        print_json(ledger.to_dict())
        return
    rows = [("dimensions", "what", "statement")]
    rows += [(str(line.dimension), line.name, line.statement or "") for line in ledger.lines]
    rows.append((str(ledger.parameters), "parameters", ""))
    print_lines(str(ledger), *columns(rows), *([ledger.remark] if ledger.remark else []))
    if ledger.kernel is not None:
        print_lines(*_directions(ledger.kernel.directions))


def _directions(directions: Sequence[Mapping[str, float]]) -> list[str]:
    """A table of how strongly each direction moves each tensor."""
    names = list(directions[0])
    rows = [("direction", *names)]
    for number, direction in enumerate(directions, start=1):
        rows.append((str(number), *(f"{direction[name]:.2f}" for name in names)))
    return [
        "Directions that no symmetry group explains, and how far they move each tensor:",
        *columns(rows),
    ]
