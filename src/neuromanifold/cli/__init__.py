"""The command line: one file a command, no mathematics.

Exit codes: 0 answered, 1 a claim is refuted, 2 misuse or a corrupt file.
"""

import sys
from collections.abc import Sequence

from neuromanifold.cli.app import app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; errors a caller can put right are one sentence and exit code 2."""
    from cyclopts import CycloptsError

    from neuromanifold.errors import NeuromanifoldError

    try:
        code = app(
            sys.argv[1:] if arguments is None else list(arguments),
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
        return code if isinstance(code, int) else 0
    except (CycloptsError, NeuromanifoldError) as error:
        sentence = " ".join(str(error).split())
        sys.stderr.write(f"neuromanifold: {sentence}\n")
        return 2
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has left: say nothing more
        return 0
    except KeyboardInterrupt:
        sys.stderr.write("neuromanifold: interrupted; nothing was written\n")
        return 130
