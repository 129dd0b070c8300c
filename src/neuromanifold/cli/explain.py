"""`neuromanifold explain`: where all the parameters of a network go."""

from collections.abc import Mapping, Sequence

from neuromanifold.cli.options import SUBJECT, Function, SubjectOptions, read_subject
from neuromanifold.cli.output import columns
from neuromanifold.cli.run import RUN, RunOptions
from neuromanifold.cost import certifying


def explain(
    function: Function = None, /, subject: SubjectOptions = SUBJECT, *, run: RunOptions = RUN
) -> None:
    """Split the parameters into the dimension, the symmetries, and what is left unexplained.

    Directions that no symmetry explains are shown by how strongly they move each tensor.
    A module is executed, with all that it does: name only modules that you would run.

    Example: neuromanifold explain --widths 3,3 --ranks 3 --tokens 3 --heads 2
    """
    network, weights, sizes = read_subject(function, subject, run)
    with run.spend(2 * certifying(sizes), "explaining"):
        from neuromanifold.certificates.ledger import explain as account

        at = None if function else weights
        ledger = account(network, weights=at, **subject.ranks.chosen)
    rows = [("dimensions", "what", "statement")]
    rows += [
        (str(line.dimension), line.name, line.statement or "")
        for line in ledger.lines
        if line.dimension or line is ledger.lines[-1]  # that nothing is unexplained is an answer
    ]
    rows.append((str(ledger.parameters), "parameters", ""))
    remarks = [ledger.remark] if ledger.remark else []
    if ledger.kernel is not None:
        remarks += _directions(ledger.kernel.directions)
    run.show(ledger, *columns(rows), *remarks, subject=ledger.certificate.subject)


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
