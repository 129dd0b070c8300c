"""What the documentation shows is what happens: its Python sessions and commands are run.

Every page is run from top to bottom in a fresh namespace and an empty folder. `pycon` blocks are
doctests; `console` blocks are calls of `neuromanifold`, with what they print and `echo $?`.
"""

import doctest
import re
import shlex
from pathlib import Path

import pytest

import neuromanifold as nm
from neuromanifold.cli import main

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(pycon|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page):
    """The kind, text and first line number of every block to be run, in order."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        yield match[1], match[2], text.count("\n", 0, match.start(2))


def run_python(text, line, names, page):
    test = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), line)
    runner, report = doctest.DocTestRunner(optionflags=FLAGS), []
    runner.run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    assert runner.failures == 0, "".join(report)


def run_commands(text, line, capsys):
    code = 0
    for command in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        words, _, wanted = command.partition("\n")
        while words.endswith("\\"):
            more, _, wanted = wanted.partition("\n")
            words = words[:-1] + more
        if words == "echo $?":
            came = f"{code}\n"
        else:
            program, *arguments = shlex.split(words)
            assert program == "neuromanifold", words
            capsys.readouterr()
            code = main(arguments)
            captured = capsys.readouterr()
            came = captured.err + captured.out
        assert doctest.OutputChecker().check_output(wanted, came, FLAGS), (
            f"line {line}: $ {words}\nwanted:\n{wanted}\ncame:\n{came}"
        )


PAGES = [page for page in sorted(DOCS.rglob("*.md")) if "_build" not in page.parts]


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(blocks(page))],
    ids=lambda page: str(page.relative_to(DOCS)),
)
def test_the_page_shows_what_happens(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("neuromanifold.waiting._PATIENCE", 3600.0)  # no progress lines
    names = {}
    for kind, text, line in blocks(page):
        if kind == "pycon":
            run_python(text, line, names, page)
        else:
            run_commands(text, line, capsys)


def test_a_wrong_number_on_a_page_is_noticed(tmp_path, capsys):
    page = tmp_path / "page.md"
    with pytest.raises(AssertionError, match="Expected"):
        run_python(">>> 1 + 1\n3\n", 0, {}, page)
    with pytest.raises(AssertionError, match="wanted"):
        run_commands("$ neuromanifold statements thm-3.7\nthm-3.8\n", 0, capsys)


def test_every_tutorial_is_run():
    for page in (DOCS / "tutorials").glob("*.md"):
        if page.name != "index.md":
            assert any(blocks(page)), f"{page} shows nothing that can be run"


def test_every_public_name_has_its_place_and_an_example():
    page = (DOCS / "reference" / "public.md").read_text(encoding="utf-8")
    code = "".join(re.findall(r"^```[a-z]+\n(.*?)^```", page, re.DOTALL | re.MULTILINE))
    missing = [
        name
        for name in nm.__all__
        if name != "__version__"
        and not (f"`nm.{name}`" in page and re.search(rf"\bnm\.{name}\b", code))
    ]
    assert missing == [], "add them to docs/reference/public.md, with an example"
