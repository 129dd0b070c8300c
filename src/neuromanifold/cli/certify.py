"""`neuromanifold certify`: prove a dimension and write the proof to a file."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from neuromanifold.architecture import Readout
from neuromanifold.cli.limits import DEFAULT_LIMITS, LimitOptions
from neuromanifold.cli.options import (
    DEFAULT_NETWORK,
    Force,
    Json,
    NetworkOptions,
    Prime,
    Seed,
    weights_given,
)
from neuromanifold.cli.output import print_json, print_lines
from neuromanifold.cost import certifying, sizes_of


def certify(
    function: Annotated[
        str | None, Parameter(help="module.py:function, instead of a built-in network")
    ] = None,
    /,
    network: NetworkOptions = DEFAULT_NETWORK,
    *,
    out: Annotated[Path, Parameter(help="the file to write (JSON)")],
    readout: Annotated[Readout, Parameter(help="what is finally looked at")] = "logits",
    weights: Annotated[Path | None, Parameter(help="a weights file: prove it there")] = None,
    reading: Annotated[
        Literal["residues", "balls"],
        Parameter(help="balls: prove the rank at the weights in ball arithmetic"),
    ] = "residues",
    seed: Seed = 0,
    prime: Prime = None,
    force: Force = False,
    limits: LimitOptions = DEFAULT_LIMITS,
    json: Json = False,
) -> None:
    """Prove bounds for a dimension over a prime field and write the certificate to a file.

    For a function of your own, module.py defines function(weights, X) in JAX, and `weights` and
    `inputs` as arrays of the shapes to use; `symmetries` may list actions (s, weights) -> weights.
    The module is executed, with all that it does: name only modules that you would run. In balls
    the rank is proved at the weights that the module defines, or at those of --weights.

    Example: neuromanifold certify --widths 4,2,3 --ranks 2,2 --tokens 3 --out dimension.json
    """
    from neuromanifold.files import check_writable

    check_writable(out, force=force)
    if function is not None:
        from neuromanifold.symmetry.user_function import network_and_weights, network_sizes

        mine, values = network_and_weights(function)
        with limits.spend(certifying(network_sizes(mine)), "certifying"):
            from neuromanifold.algebra.prime_field import DEFAULT_PRIME
            from neuromanifold.certificates.exact import certify as prove

            certificate = prove(
                mine,
                seed=seed,
                prime=DEFAULT_PRIME if prime is None else prime,
                weights=values if reading == "balls" else None,
                reading=reading,
            )
    else:
        given = None if weights is None else weights_given(weights, network, limits)
        architecture = network.architecture() if given is None else given.architecture
        with limits.spend(certifying(sizes_of(architecture)), "certifying"):
            from neuromanifold.algebra.prime_field import DEFAULT_PRIME
            from neuromanifold.certificates.exact import certify as prove

            certificate = prove(
                architecture,
                seed=seed,
                prime=DEFAULT_PRIME if prime is None else prime,
                weights=given,
                readout=readout,
                reading=reading,
            )
    certificate.save(out, force=force)
    if json:
        print_json(certificate.to_dict())
    else:
        print_lines(str(certificate), f"Written to {out}.")
