"""`neuromanifold dim`: how large the space of functions of a network is."""

from typing import Annotated

from cyclopts import Parameter

from neuromanifold.cli.options import SUBJECT, SubjectOptions
from neuromanifold.cli.output import print_answer
from neuromanifold.cli.run import RUN, RunOptions
from neuromanifold.cost import certifying, estimating


def dim(
    subject: SubjectOptions = SUBJECT,
    *,
    certify: Annotated[
        bool, Parameter(negative="", help="prove bounds by ranks over a prime field")
    ] = False,
    estimate: Annotated[
        bool, Parameter(negative="", help="estimate by a rank in floating point")
    ] = False,
    inputs: Annotated[int | None, Parameter(help="use exactly so many inputs")] = None,
    run: RunOptions = RUN,
) -> None:
    """The dimension of the space of functions of a network, and how it is known.

    With --weights everything is at those weights, so there is no formula: the certificate and the
    estimate are then of the local dimension.

    Example: neuromanifold dim --widths 4,2,3 --ranks 2,2 --tokens 3 --certify
    """
    from neuromanifold.formula.formula import dimension_formula, no_formula

    architecture, weights, sizes = subject.read(run)
    readout = subject.ranks.readout
    formula = dimension_formula(architecture, readout)
    if weights is not None:
        formula = no_formula("weights are given, and formulas are about generic ones")
    certificate = estimated = None
    if certify:
        with run.spend(certifying(sizes, inputs), "certifying"):
            from neuromanifold.certificates.exact import certify as prove

            certificate = prove(
                architecture, weights=weights, inputs=inputs, **subject.ranks.chosen
            )
    if estimate:
        with run.spend(estimating(sizes, inputs), "estimating"):
            from neuromanifold.certificates.numeric import estimate as measure

            seed = subject.ranks.seed
            estimated = measure(
                architecture, weights=weights, seed=seed, inputs=inputs, readout=readout
            )
    print_answer(
        run.json,
        {
            "architecture": architecture.to_dict(),
            "readout": readout,
            "parameters": architecture.parameters,
            "formula": formula.to_dict(),
            "certificate": certificate and certificate.summary(),
            "estimate": estimated and estimated.to_dict(),
        },
        f"network      {architecture}",
        f"parameters   {architecture.parameters}",
        f"formula      {formula}",
        *([f"certificate  {certificate}"] if certificate else []),
        *([f"estimate     {estimated}"] if estimated else []),
    )
