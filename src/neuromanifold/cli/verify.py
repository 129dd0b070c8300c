"""`neuromanifold verify`: recompute a certificate by other means."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from neuromanifold.cli.options import Json, Prime
from neuromanifold.cli.output import print_json, print_lines, progress


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
    json: Json = False,
) -> int:
    """Recompute a certificate from its seed, with python-flint and plain integers.

    Exits with 1 when a recorded value does not hold.

    Example: neuromanifold verify dimension.json
    """
    from neuromanifold.certificates.certificate import load_certificate
    from neuromanifold.certificates.verify import verify as recompute
    from neuromanifold.certificates.verify import verify_function

    certificate = load_certificate(file)
    with progress("verifying"):
        if function is None:
            from neuromanifold.networks.files import load_weights

            given = None if weights is None else load_weights(weights)
            verification = recompute(certificate, prime=prime, weights=given)
        else:
            from neuromanifold.cli.user_function import user_function

            mine = user_function(function)
            verification = verify_function(
                certificate,
                mine.f,
                mine.weights,
                mine.inputs,
                symmetries=mine.symmetries,
                prime=prime,
            )
    if json:
        print_json(verification.to_dict())
    else:
        print_lines(str(verification))
    return 0 if verification.agrees else 1
