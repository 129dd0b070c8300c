"""`neuromanifold dim`: how large the space of functions of a network is."""

from typing import Annotated

from cyclopts import Parameter

from neuromanifold.architecture import Architecture
from neuromanifold.cli.options import SUBJECT, Function, SubjectOptions, read_subject
from neuromanifold.cli.output import print_answer
from neuromanifold.cli.run import RUN, RunOptions
from neuromanifold.cost import certifying, estimating
from neuromanifold.errors import ArgumentError


def dim(
    function: Function = None,
    /,
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
    estimate are then of the local dimension. There is none for a network of your own either, whose
    module is executed; it says what can be proved and measured.

    Example: neuromanifold dim --widths 4,2,3 --ranks 2,2 --tokens 3 --certify
    """
    from neuromanifold.formula.formula import dimension_formula, no_formula

    if inputs is not None and not (certify or estimate):
        raise ArgumentError("--inputs is for a rank; add --certify or --estimate")
    if subject.ranks.prime is not None and not certify:
        raise ArgumentError("--prime is for a rank over a prime field; add --certify")
    network, weights, sizes = read_subject(function, subject, run)
    readout, weights = subject.ranks.readout, None if function else weights
    if not isinstance(network, Architecture):
        formula = no_formula("a formula is about an attention network of given sizes")
    elif weights is not None:
        formula = no_formula("weights are given, and formulas are about generic ones")
    else:
        formula = dimension_formula(network, readout)
    certificate = estimated = None
    if certify:
        with run.spend(certifying(sizes, inputs), "certifying"):
            from neuromanifold.certificates.exact import certify as prove

            certificate = prove(network, weights=weights, inputs=inputs, **subject.ranks.chosen)
    if estimate:
        with run.spend(estimating(sizes, inputs), "estimating"):
            from neuromanifold.certificates.numeric import estimate as measure

            seed = subject.ranks.seed
            estimated = measure(network, weights=weights, seed=seed, inputs=inputs, readout=readout)
    print_answer(
        run.json,
        {
            "architecture": network.to_dict() if isinstance(network, Architecture) else None,
            "readout": readout,
            "parameters": network.parameters,
            "formula": formula.to_dict(),
            "certificate": certificate and certificate.summary(),
            "estimate": estimated and estimated.to_dict(),
        },
        f"network      {network.name}",
        f"parameters   {network.parameters}",
        f"formula      {formula}",
        *([f"certificate  {certificate}"] if certificate else []),
        *([f"estimate     {estimated}"] if estimated else []),
    )
