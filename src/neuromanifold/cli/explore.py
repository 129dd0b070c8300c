"""`neuromanifold explore`: the library as a local web page."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from neuromanifold.cli.options import Seconds


def explore(
    *files: Annotated[
        Path,
        Parameter(
            help="weights, certificates, atlases, models, results.json of a report, or "
            "module.py:function for a network of your own"
        ),
    ],
    host: Annotated[str, Parameter(help="the address to answer at")] = "127.0.0.1",
    port: Annotated[
        int | None, Parameter(help="the port; default the first free from 8642")
    ] = None,
    token: Annotated[
        str | None,
        Parameter(help="keep this token, so that bookmarks stay valid; default a new one"),
    ] = None,
    time_limit: Seconds = 300.0,
    browser: Annotated[bool, Parameter(help="open the page")] = True,
) -> int:
    """Look at networks, fibers, surfaces, atlases and models on a local web page.

    The page answers on this machine only, to whoever has its address with the token. It reads the
    files named here and those dropped into it, and nothing else; a module that is named is executed
    when the page asks about it. Stop it with Ctrl-C.

    Example: neuromanifold explore heads.sqlite a.safetensors b.safetensors
    """
    from neuromanifold.explorer.serve import serve

    def announce(url: str) -> None:
        sys.stdout.write(f"The explorer is at {url}\nStop it with Ctrl-C.\n")
        sys.stdout.flush()

    serve(
        files,
        host=host,
        port=port,
        token=token,
        time_limit=time_limit,
        browser=browser,
        announce=announce,
    )
    return 0
