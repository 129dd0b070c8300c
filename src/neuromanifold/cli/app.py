"""The commands. Their modules import what they compute with only when they are called."""

import logging
import re
from collections.abc import Sequence
from importlib import import_module
from inspect import cleandoc
from typing import Annotated, Any, get_args

from cyclopts import App, ArgumentCollection, Parameter

from neuromanifold import __version__
from neuromanifold.errors import ArgumentError


def _whole_numbers(_app: App, _commands: Sequence[str], arguments: ArgumentCollection) -> None:
    """Refuse 2.5 where a whole number is wanted, which the parser would round."""
    for argument in arguments:
        if argument.hint is int or int in get_args(argument.hint):
            for token in argument.tokens:
                if "." in token.value:
                    raise ArgumentError(
                        f"{argument.name} must be a whole number; got {token.value!r}"
                    )


app = App(
    name="neuromanifold",
    config=_whole_numbers,
    help="The exact geometry of attention networks: fibers, dimensions, singularities, recovery.",
    version=__version__,
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
)

app.meta.suppress_keyboard_interrupt = False
app.register_install_completion_command(add_to_startup=False)


@app.meta.default
def command(
    *words: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    debug: Annotated[  # noqa: ARG001 (`main` looks for it, since an error may come at any time)
        bool, Parameter(negative="", help="show the traceback of an error")
    ] = False,
    verbose: Annotated[
        bool, Parameter(name=("--verbose", "-v"), negative="", help="log what is done to stderr")
    ] = False,
) -> Any:
    """Run the command that the other words name."""
    if verbose:
        logging.basicConfig(format="%(asctime)s %(name)s: %(message)s", datefmt="%H:%M:%S")
        logging.getLogger("neuromanifold").setLevel(logging.INFO)
    return app(words, exit_on_error=False, print_error=False, result_action="return_value")


def _register(group: App, *places: str) -> App:
    """Add commands to a group, each given by its module and its name there."""
    for place in places:
        module, _, name = place.partition(":")
        group.command(getattr(import_module(f"neuromanifold.cli.{module}"), name or module))
    return group


_ADAPTER = ("audit", "canonical", "merge", "compare", "shrink")
adapter = _register(
    App(name="adapter", help="Low-rank adapters: their updates, whatever the factors."),
    *(f"checkpoint_adapter:{word}" for word in _ADAPTER),
)
checkpoint = _register(
    App(name="checkpoint", help="Real models in files, and what their function ignores."),
    *(f"checkpoint:{word}" for word in ("audit", "canonical", "same")),
    *(f"checkpoint_compare:{word}" for word in ("compare", "align", "fingerprint")),
    *(f"checkpoint:{word}" for word in ("convert_rope", "fold_norms")),
)
checkpoint.command(adapter)
_register(app, "dim", "explain", "identifiable", "discover", "certify", "verify", "redundancy")
_register(app, "fiber", "classify", "recover", "atlas", "sensitivity", "statements", "weights")
app.command(checkpoint)
_register(app, "paper", "explore")


def _reflow(group: App) -> None:
    """Make every paragraph of the help one line, to be broken where the terminal ends."""
    for name in group:
        one = group[name]
        if not name.startswith("-"):
            one.help = re.sub(r"(?<=\S)\n(?=\S)", " ", cleandoc(one.help))
            _reflow(one)


_reflow(app)
