"""The commands. Their modules import what they compute with only when they are called."""

import logging
from typing import Annotated, Any

from cyclopts import App, Parameter

from neuromanifold import __version__
from neuromanifold.cli import checkpoint as checkpoint_commands
from neuromanifold.cli import checkpoint_adapter as adapter_commands
from neuromanifold.cli import checkpoint_compare as compare_commands
from neuromanifold.cli import fiber as fiber_commands
from neuromanifold.cli import weights as weights_commands
from neuromanifold.cli.atlas import atlas
from neuromanifold.cli.certify import certify
from neuromanifold.cli.classify import classify
from neuromanifold.cli.dim import dim
from neuromanifold.cli.discover import discover
from neuromanifold.cli.explain import explain
from neuromanifold.cli.explore import explore
from neuromanifold.cli.identifiable import identifiable
from neuromanifold.cli.paper import paper
from neuromanifold.cli.recover import recover
from neuromanifold.cli.redundancy import redundancy
from neuromanifold.cli.sensitivity import sensitivity
from neuromanifold.cli.statements import statements
from neuromanifold.cli.verify import verify

app = App(
    name="neuromanifold",
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


fiber = App(name="fiber", help="Compare and move weights that have the same function.")
for command in (
    fiber_commands.same,
    fiber_commands.transport,
    fiber_commands.canonical,
    fiber_commands.sample,
    fiber_commands.walk,
    fiber_commands.describe,
    fiber_commands.count,
):
    fiber.command(command)

adapter = App(name="adapter", help="Low-rank adapters: their updates, whatever the factors.")
for command in (
    adapter_commands.audit,
    adapter_commands.canonical,
    adapter_commands.merge,
    adapter_commands.compare,
    adapter_commands.shrink,
):
    adapter.command(command)

checkpoint = App(name="checkpoint", help="Real models in files, and what their function ignores.")
for command in (
    checkpoint_commands.audit,
    checkpoint_commands.canonical,
    checkpoint_commands.same,
    compare_commands.compare,
    compare_commands.align,
    compare_commands.fingerprint,
    checkpoint_commands.convert_rope,
    checkpoint_commands.fold_norms,
    adapter,
):
    checkpoint.command(command)

weights = App(name="weights", help="Make and look at weights files.")
for command in (weights_commands.init, weights_commands.show):
    weights.command(command)

for command in (
    dim,
    explain,
    identifiable,
    discover,
    certify,
    verify,
    redundancy,
    fiber,
    classify,
    recover,
    atlas,
    sensitivity,
    statements,
    weights,
    checkpoint,
    paper,
    explore,
):
    app.command(command)
