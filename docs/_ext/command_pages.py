"""The directive `commands`: the help of every command, as the program prints it."""

import io
from collections.abc import Iterator

from cyclopts import App
from docutils import nodes
from rich.console import Console
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from neuromanifold.cli.app import app as program


class CommandsDirective(SphinxDirective):
    """A section for each command that can be called, with its help."""

    def run(self) -> list[nodes.Node]:
        return [self.section(words) for words in _commands(program, ())]

    def section(self, words: tuple[str, ...]) -> nodes.section:
        name = " ".join(("neuromanifold", *words))
        section = nodes.section(ids=[nodes.make_id(name)])
        section += nodes.title("", name)
        text = _help(words)
        section += nodes.literal_block(text, text, language="text")
        return section


def _commands(app: App, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The words of every command below an app that is no group of commands."""
    below = [name for name in app if not name.startswith("-")]
    if not below:
        yield words
    for name in below:
        yield from _commands(app[name], (*words, name))


def _help(words: tuple[str, ...]) -> str:
    text = io.StringIO()
    console = Console(file=text, width=96, color_system=None, force_terminal=False)
    program.help_print(list(words), console=console)
    return "\n".join(line.rstrip() for line in text.getvalue().strip().splitlines())


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("commands", CommandsDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
