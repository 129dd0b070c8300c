"""Which code cites a statement, and which tests are marked with it.

Read by the tests of the registry, and by the page of the documentation that lists both.
"""

import ast
import io
import re
import tokenize
from pathlib import Path

from neuromanifold.statements import STATEMENTS

ROOT = Path(__file__).parents[1]
IDS = [statement.id for statement in STATEMENTS]
NUMBERED = re.compile(r"\b(?:def|eq|lemma|thm|cor|prop|conj|fig)-(?:a\.)?\d+(?:\.\d+)?")


def prose(path):
    """The comments and docstrings of a module."""
    source = path.read_text(encoding="utf-8")
    comments = [
        token.string
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    ]
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = [
        ast.get_docstring(node) or ""
        for node in ast.walk(ast.parse(source))
        if isinstance(node, documented)
    ]
    return "\n".join(comments + docstrings)


def citations(text):
    """Numbered items anywhere, and other ids inside parentheses, where they are no plain words."""
    words = {
        word for group in re.findall(r"\(([^()]*)\)", text) for word in re.split(r"[\s,;:]+", group)
    }
    return set(NUMBERED.findall(text)) | (words & set(IDS))


def markers(path):
    """The ids in `pytest.mark.statement("…")` of a test module."""
    return {
        node.args[0].value
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "statement"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }


def sources():
    """The modules of the package that may cite a statement: all but the registry itself."""
    package = ROOT / "src" / "neuromanifold"
    return [
        path for path in sorted(package.rglob("*.py")) if package / "statements" not in path.parents
    ]


def cited_by():
    """For each cited id the modules that cite it."""
    return _inverted({path: citations(prose(path)) for path in sources()})


def covered_by():
    """For each covered id the test modules marked with it."""
    return _inverted({path: markers(path) for path in sorted((ROOT / "tests").rglob("test_*.py"))})


def _inverted(ids_of):
    paths = {}
    for path, ids in ids_of.items():
        for id_ in ids:
            paths.setdefault(id_, []).append(path)
    return paths
