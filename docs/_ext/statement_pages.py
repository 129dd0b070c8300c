"""The registry in the documentation.

The directive `statements` writes out every statement with the modules that cite it and the tests
that are marked with it; the role `st` links to one of them, and refuses an id that is not there.
"""

from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import ReferenceRole, SphinxDirective

from citations import ROOT, cited_by, covered_by
from neuromanifold.statements import STATEMENTS, Statement

IDS = {statement.id for statement in STATEMENTS}


class StatementRole(ReferenceRole):
    """A link to a statement, shown as its id."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        if self.target not in IDS:
            message = self.inliner.reporter.error(f"no statement has the id {self.target!r}")
            return [], [message]
        reference = addnodes.pending_xref(
            "",
            nodes.inline("", self.title),
            refdomain="std",
            reftype="ref",
            reftarget=f"statement-{self.target}",
            refexplicit=True,
            refwarn=True,
            refdoc=self.env.docname,
        )
        return [reference], []


class StatementsDirective(SphinxDirective):
    """All statements, a section each."""

    def run(self) -> list[nodes.Node]:
        code, tests = cited_by(), covered_by()
        for path in {path for paths in (*code.values(), *tests.values()) for path in paths}:
            self.env.note_dependency(str(path))
        return [
            self.section(statement, code.get(statement.id, []), tests.get(statement.id, []))
            for statement in STATEMENTS
        ]

    def section(self, statement: Statement, code: list[Path], tests: list[Path]) -> nodes.section:
        label = f"statement-{statement.id}"
        section = nodes.section(ids=[nodes.make_id(label)], names=[label], classes=["statement"])
        section += nodes.title("", f"{statement.id}: {statement.title}")
        section += nodes.paragraph("", statement.claim)
        section += self.facts(statement, code, tests)
        self.state.document.note_explicit_target(section)
        return section

    def facts(self, statement: Statement, code: list[Path], tests: list[Path]) -> nodes.field_list:
        fields = nodes.field_list()
        status = "no claim" if statement.status == "none" else statement.status
        fields += _field("Source", [_text(f"{statement.source} ({statement.kind})")])
        fields += _field("Status", [_text(status)])
        if statement.hypotheses:
            needs = "; ".join(hypothesis.text for hypothesis in statement.hypotheses)
            fields += _field("Needs", [_text(needs)])
        if statement.correction:
            fields += _field("Correction", [_text(statement.correction)])
        if statement.prior:
            fields += _field("Prior work", [_text(statement.prior)])
        paths = (nodes.literal("", str(path.relative_to(ROOT))) for path in tests)
        fields += _field("Code", list(_separated(map(self.module, code))))
        fields += _field("Tests", list(_separated(paths)))
        return fields

    def module(self, path: Path) -> nodes.Node:
        parts = path.relative_to(ROOT / "src").with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        return addnodes.pending_xref(
            "",
            nodes.literal("", name),
            refdomain="py",
            reftype="mod",
            reftarget=name,
            refexplicit=True,
            refdoc=self.env.docname,
        )


def _field(name: str, content: list[nodes.Node]) -> nodes.field:
    body = nodes.field_body("", nodes.paragraph("", "", *content))
    return nodes.field("", nodes.field_name("", name), body)


def _text(text: str) -> nodes.Text:
    return nodes.Text(text)


def _separated(items: Iterator[nodes.Node]) -> Iterator[nodes.Node]:
    """The items with commas between them, or a word that there are none."""
    number = None
    for number, item in enumerate(items):
        if number:
            yield _text(", ")
        yield item
    if number is None:
        yield _text("none yet")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("statements", StatementsDirective)
    app.add_role("st", StatementRole())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
