"""`neuromanifold discover`: the symmetries of a network that nobody has told of."""

from neuromanifold.cli.options import (
    DEFAULT_NETWORK,
    RANKS,
    Function,
    NetworkOptions,
    RankOptions,
    SubjectOptions,
    read_subject,
)
from neuromanifold.cli.output import columns, print_answer
from neuromanifold.cli.run import RUN, RunOptions
from neuromanifold.cost import discovering


def discover(
    function: Function = None,
    /,
    network: NetworkOptions = DEFAULT_NETWORK,
    *,
    ranks: RankOptions = RANKS,
    run: RunOptions = RUN,
) -> None:
    """Find symmetries that are affine in the weights, by linear algebra over a prime field.

    Nothing is told of the network: changes of basis, scalings, dead parameters, shifts, absorbed
    biases, and what gains of norms hide are found, checked at fresh weights, and named by the group
    and the tensors they move.
    A module is executed, with all that it does: name only modules that you would run.

    Example: neuromanifold discover --widths 3,2,3 --ranks 2,2 --tokens 3
    """
    subject, _, sizes = read_subject(function, SubjectOptions(network=network), run)
    with run.spend(discovering(sizes), "discovering"):
        from neuromanifold.certificates.discovery.discover import discover as find

        found = find(subject, **ranks.chosen)
    rows = [(str(b.dimension), b.name, ", ".join(b.moves)) for b in found.blocks]
    print_answer(
        run.json,
        found.to_dict(),
        f"{found.certificate.subject}: {found.account}.",
        *(columns([("dimensions", "group", "moves"), *rows]) if rows else ()),
        str(found.certificate),
    )
