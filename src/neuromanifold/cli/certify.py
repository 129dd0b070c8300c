"""`neuromanifold certify`: prove a dimension and write the proof to a file."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from neuromanifold.cli.options import SUBJECT, Force, Function, SubjectOptions, read_subject
from neuromanifold.cli.run import RUN, RunOptions
from neuromanifold.cost import certifying
from neuromanifold.errors import ArgumentError
from neuromanifold.files import check_writable


def certify(
    function: Function = None,
    /,
    subject: SubjectOptions = SUBJECT,
    *,
    out: Annotated[Path, Parameter(help="the file to write (JSON)")],
    reading: Annotated[
        Literal["residues", "balls"],
        Parameter(help="balls: prove the rank at the weights in ball arithmetic"),
    ] = "residues",
    force: Force = False,
    run: RunOptions = RUN,
) -> None:
    """Prove bounds for a dimension over a prime field and write the certificate to a file.

    For a function of your own, module.py defines function(weights, X) in JAX, and `weights` and
    `inputs` as arrays of the shapes to use; `symmetries` may list actions (s, weights) -> weights.
    The module is executed, with all that it does: name only modules that you would run. In balls
    the rank is proved at the weights that the module defines, or at those of --weights.

    Example: neuromanifold certify --widths 4,2,3 --ranks 2,2 --tokens 3 --out dimension.json
    """
    check_writable(out, force=force)
    network, weights, sizes = read_subject(function, subject, run)
    if reading == "balls" and weights is None:
        raise ArgumentError(
            "balls prove a rank at given weights; give --weights, or a module that defines them"
        )
    if function is not None and reading == "residues":
        weights = None
    with run.spend(certifying(sizes), "certifying"):
        from neuromanifold.certificates.exact import certify as prove

        certificate = prove(network, weights=weights, reading=reading, **subject.ranks.chosen)
    certificate.save(out, force=force)
    run.show(certificate, f"Written to {out}.")
