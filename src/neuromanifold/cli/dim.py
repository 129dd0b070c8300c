"""`neuromanifold dim`: how large the space of functions of a network is."""

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
from neuromanifold.cost import certifying, estimating, sizes_of


def dim(
    network: NetworkOptions = DEFAULT_NETWORK,
    *,
    readout: Annotated[Readout, Parameter(help="what is finally looked at")] = "logits",
    weights: Annotated[
        Path | None, Parameter(help="a weights file: answer at these weights")
    ] = None,
    certify: Annotated[
        bool, Parameter(negative="", help="prove bounds by ranks over a prime field")
    ] = False,
    estimate: Annotated[
        bool, Parameter(negative="", help="estimate by a rank in floating point")
    ] = False,
    inputs: Annotated[int | None, Parameter(help="use exactly so many inputs")] = None,
    seed: Seed = 0,
    prime: Prime = None,
    limits: LimitOptions = DEFAULT_LIMITS,
    json: Json = False,
) -> None:
    """The dimension of the space of functions of a network, and how it is known.

    With --weights everything is at those weights, so there is no formula: the certificate and the
    estimate are then of the local dimension.

    Example: neuromanifold dim --widths 4,2,3 --ranks 2,2 --tokens 3 --certify
    """
    from neuromanifold.formula.formula import dimension_formula, no_formula

    given = None if weights is None else weights_given(weights, network, limits)
    architecture = network.architecture() if given is None else given.architecture
    formula = dimension_formula(architecture, readout)
    if given is not None:
        formula = no_formula("weights are given, and formulas are about generic ones")
    certificate = estimated = None
    sizes = sizes_of(architecture)
    if certify:
        with limits.spend(certifying(sizes, inputs), "certifying"):
            from neuromanifold.algebra.prime_field import DEFAULT_PRIME
            from neuromanifold.certificates.exact import certify as prove

            certificate = prove(
                architecture,
                seed=seed,
                prime=DEFAULT_PRIME if prime is None else prime,
                weights=given,
                readout=readout,
                inputs=inputs,
            )
    if estimate:
        with limits.spend(estimating(sizes, inputs), "estimating"):
            from neuromanifold.certificates.numeric import estimate as measure

            estimated = measure(
                architecture, weights=given, seed=seed, inputs=inputs, readout=readout
            )
    if json:
        print_json(
            {
                "architecture": architecture.to_dict(),
                "readout": readout,
                "parameters": architecture.parameters,
                "formula": formula.to_dict(),
                "certificate": certificate and certificate.summary(),
                "estimate": estimated and estimated.to_dict(),
            }
        )
        return
    print_lines(
        f"network      {architecture}",
        f"parameters   {architecture.parameters}",
        f"formula      {formula}",
        *([f"certificate  {certificate}"] if certificate else []),
        *([f"estimate     {estimated}"] if estimated else []),
    )
