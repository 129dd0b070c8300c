"""`neuromanifold identifiable`: does the function determine a quantity of the weights?"""

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
from neuromanifold.cli.output import print_json, print_lines
from neuromanifold.cost import certifying, sizes_of


def identifiable(
    quantity: Annotated[
        str, Parameter(help="A.0[0,1,2], V.0[…], M.1[i,j], L[i,j], norm(A.0), x/y")
    ],
    /,
    network: NetworkOptions = DEFAULT_NETWORK,
    *,
    readout: Annotated[Readout, Parameter(help="what is finally looked at")] = "logits",
    weights: Annotated[
        Path | None, Parameter(help="a weights file: decide to first order there")
    ] = None,
    seed: Seed = 0,
    prime: Prime = None,
    limits: LimitOptions = DEFAULT_LIMITS,
    json: Json = False,
) -> None:
    """Say whether the network's function determines a quantity of its weights, locally.

    With --weights to first order there: whether directions that the function does not see move it.

    Quantities: an entry layers.0.query[head,row,column] of a tensor, A.0[head,row,column] of an
    attention matrix, V.0[…] of a value map, M.1[row,column] or L[row,column] of the virtual
    weights, norm(A.0) for a squared norm, and a ratio x/y of two of these. Layers count from 0.

    Example: neuromanifold identifiable "A.0[0,0,1]/A.0[0,1,0]" --widths 3,2 --ranks 2 --tokens 3
    """
    given = None if weights is None else weights_given(weights, network, limits)
    architecture = network.architecture() if given is None else given.architecture
    with limits.spend(certifying(sizes_of(architecture)), "computing ranks"):
        from neuromanifold.algebra.prime_field import DEFAULT_PRIME
        from neuromanifold.certificates.identifiable import identifiable as decide
        from neuromanifold.certificates.quantity import parse_quantity

        name, function = parse_quantity(quantity, architecture)
        answer = decide(
            architecture,
            function,
            seed=seed,
            prime=DEFAULT_PRIME if prime is None else prime,
            readout=readout,
            name=name,
            weights=given,
        )
    if json:
        print_json(answer.to_dict())
    else:
        print_lines(str(answer))
