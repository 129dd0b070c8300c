"""`neuromanifold verify`: recompute a certificate by other means."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from neuromanifold.cli.options import SubjectOptions, read_subject, read_weights
from neuromanifold.cli.run import RUN, RunOptions
from neuromanifold.cost import sizes_of, verifying
from neuromanifold.errors import ArgumentError


def verify(
    file: Annotated[Path, Parameter(help="a certificate (JSON)")],
    *,
    prime: Annotated[
        int | None, Parameter(help="the prime, 2^20 < p < 2^23; default the recorded one")
    ] = None,
    weights: Annotated[
        Path | None, Parameter(help="the weights file, for a certificate of given weights")
    ] = None,
    function: Annotated[
        str | None, Parameter(help="module.py:function, for a certificate of a function")
    ] = None,
    run: RunOptions = RUN,
) -> int:
    """Recompute a certificate from its seed, with python-flint and plain integers.

    Exits with 1 when a recorded value does not hold. The module of --function is executed, with all
    that it does: name only modules that you would run.

    Example: neuromanifold verify dimension.json
    """
    from neuromanifold.certificates.certificate import load_certificate

    certificate = load_certificate(file)
    network = given = None
    if function is not None:
        network, values, sizes = read_subject(function, SubjectOptions(weights=weights), run)
        given = None if certificate.weights is None else values
    elif certificate.architecture is not None:
        given = None if weights is None else read_weights(weights, run)
        sizes = sizes_of(certificate.architecture)
    else:
        raise ArgumentError(
            f"the certificate is about the function {certificate.subject}; "
            "name it with --function module.py:function"
        )
    with run.spend(verifying(sizes, certificate.inputs), "verifying"):
        from neuromanifold.certificates.verify import verify as recompute

        verification = recompute(
            certificate, network, prime=prime, weights=given, limits=run.limits
        )
    run.show(verification)
    return 0 if verification.agrees else 1
