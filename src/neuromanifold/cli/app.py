"""The commands and where they live; each is imported only when it is called or listed."""

from cyclopts import App

from neuromanifold import __version__

app = App(
    name="neuromanifold",
    help="The exact geometry of attention networks: fibers, dimensions, singularities, recovery.",
    version=__version__,
    help_format="plaintext",
)

weights = App(name="weights", help="Make and look at weights files.")
weights.command("neuromanifold.cli.weights:init", name="init")
weights.command("neuromanifold.cli.weights:show", name="show")

app.command("neuromanifold.cli.dim:dim", name="dim")
app.command("neuromanifold.cli.redundancy:redundancy", name="redundancy")
app.command("neuromanifold.cli.statements:statements", name="statements")
app.command(weights)
