"""`neuromanifold identifiable`: does the function determine a quantity of the weights?"""

from typing import Annotated

from cyclopts import Parameter

from neuromanifold.cli.options import SUBJECT, Function, SubjectOptions, read_subject
from neuromanifold.cli.run import RUN, RunOptions
from neuromanifold.cost import certifying
from neuromanifold.errors import ArgumentError


def identifiable(
    quantity: Annotated[
        str, Parameter(help="A.0[0,1,2], V.0[…], M.1[i,j], L[i,j], norm(A.0), x/y")
    ],
    function: Function = None,
    /,
    subject: SubjectOptions = SUBJECT,
    *,
    run: RunOptions = RUN,
) -> None:
    """Say whether the network's function determines a quantity of its weights, locally.

    With --weights to first order there: whether directions that the function does not see move it.

    Quantities: an entry layers.0.query[head,row,column] of a tensor, A.0[head,row,column] of an
    attention matrix, V.0[…] of a value map, M.1[row,column] or L[row,column] of the virtual
    weights, norm(A.0) for a squared norm, and a ratio x/y of two of these. Layers count from 0.
    Of a network of your own: its weights by name, as dense.kernel[0,1]. Its module is executed.

    Example: neuromanifold identifiable "A.0[0,0,1]/A.0[0,1,0]" --widths 3,2 --ranks 2 --tokens 3
    """
    if function is None and ".py:" in quantity:
        raise ArgumentError(
            f"a quantity comes before the network, as in: identifiable 'out[0,1]' {quantity}"
        )
    network, weights, sizes = read_subject(function, subject, run)
    with run.spend(certifying(sizes), "computing ranks"):
        from neuromanifold.certificates.identifiable import identifiable as decide

        at = None if function else weights
        answer = decide(network, quantity, weights=at, **subject.ranks.chosen)
    run.show(answer)
