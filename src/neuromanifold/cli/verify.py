"""`neuromanifold verify`: recompute a certificate by other means."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from neuromanifold.cli.limits import DEFAULT_LIMITS, LimitOptions
from neuromanifold.cli.options import Json, Prime, read_weights
from neuromanifold.cli.output import print_json, print_lines
from neuromanifold.cost import sizes_of, verifying
from neuromanifold.errors import ArgumentError


def verify(
    file: Annotated[Path, Parameter(help="a certificate (JSON)")],
    *,
    prime: Prime = None,
    weights: Annotated[
        Path | None, Parameter(help="the weights file, for a certificate of given weights")
    ] = None,
    function: Annotated[
        str | None, Parameter(help="module.py:function, for a certificate of a function")
    ] = None,
    limits: LimitOptions = DEFAULT_LIMITS,
    json: Json = False,
) -> int:
    """Recompute a certificate from its seed, with python-flint and plain integers.

    Exits with 1 when a recorded value does not hold. The module of --function is executed, with all
    that it does: name only modules that you would run.

    Example: neuromanifold verify dimension.json
    """
    from neuromanifold.certificates.certificate import load_certificate

    certificate = load_certificate(file)
    if function is not None:
        from neuromanifold.symmetry.user_function import network_and_weights, network_sizes

        mine, values = network_and_weights(function)
        with limits.spend(verifying(network_sizes(mine), certificate.inputs), "verifying"):
            from neuromanifold.certificates.verify import verify as recompute

            at = None if certificate.weights is None else values
            verification = recompute(certificate, mine, prime=prime, weights=at)
    else:
        given = None if weights is None else read_weights(weights, limits)
        if certificate.architecture is None:
            raise ArgumentError(
                f"the certificate is about the function {certificate.subject}; "
                "name it with --function module.py:function"
            )
        with limits.spend(
            verifying(sizes_of(certificate.architecture), certificate.inputs), "verifying"
        ):
            from neuromanifold.certificates.verify import verify as recompute

            verification = recompute(certificate, prime=prime, weights=given)
    if json:
        print_json(verification.to_dict())
    else:
        print_lines(str(verification))
    return 0 if verification.agrees else 1
