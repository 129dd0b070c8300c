"""The kind of a network is asked for by its traits; a few packages alone read its words."""

import ast
from pathlib import Path

import pytest

import neuromanifold as nm
from architectures import ARCHITECTURES

SOURCE = Path(nm.__file__).parent
ASKING = ("networks", "formula", "geometry", "recovery", "paper", "atlas", "architecture.py")
"""Where an `Architecture` may be asked for its words."""
OTHERS = ("statements", "checkpoints", "algebra")
"""What knows no architecture: records of facts, blocks of real models, arrays."""
WORDS = {"attention", "skip", "mask", "value_ranks"}


def questions(text):
    """The lines that read a word of an architecture, other than to hand it on by its name.

    The matrix A of a member of a slice is called its attention too.
    """
    tree = ast.parse(text)
    handed_on = {
        id(value)
        for node in ast.walk(tree)
        for value in (node.values if isinstance(node, ast.Dict) else [getattr(node, "value", None)])
        if isinstance(node, ast.Dict | ast.keyword)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for part in (node.left, *node.comparators):
                if isinstance(part, ast.Attribute) and part.attr == "heads":
                    yield node.lineno
        asks = isinstance(node, ast.Attribute) and node.attr in WORDS and id(node) not in handed_on
        if asks and getattr(node.value, "id", None) != "member":
            yield node.lineno


def files():
    for path in sorted(SOURCE.rglob("*.py")):
        top = path.relative_to(SOURCE).parts[0]
        if top not in ASKING + OTHERS:
            yield path


def test_no_other_file_asks_an_architecture_for_its_words():
    asked = {
        f"{path.relative_to(SOURCE)}:{line}"
        for path in files()
        for line in questions(path.read_text())
        if not text_of_options(path, line)
    }
    assert asked == set()


def text_of_options(path, line):
    """The options of the command line have these names, and are no architecture yet."""
    return "self." in path.read_text().splitlines()[line - 1] and path.name == "options.py"


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ('net.skip == "residual"', True),
        ("net.architecture.mask in words", True),
        ("if one.attention: pass", True),
        ("net.heads > 1", True),
        ("net.adds_input", False),
        ("net.heads * 2", False),
        ('{"mask": net.mask}', False),
        ("f(mask=net.mask)", False),
    ],
)
def test_the_rule_sees_what_asks(text, asks):
    assert bool(list(questions(text))) == asks


def test_every_kind_is_one_of_each():
    """The alternatives of each word exclude each other, so that no kind is answered for twice."""
    for net in ARCHITECTURES:
        assert net.is_linear_in_scores + net.averages_tokens == 1
        assert net.adds_nothing + net.adds_input + net.adds_values == 1
        assert net.attends_to_all + net.attends_to_past == 1


def test_an_unknown_kind_has_no_trait():
    """A new word must not silently say yes."""
    net = nm.Architecture((3, 3), (2,), 3)
    for name in ("attention", "skip", "mask"):
        object.__setattr__(net, name, "new")
    object.__setattr__(net, "heads", 2)
    asked = [
        name
        for name, value in vars(nm.Architecture).items()
        if isinstance(value, property) and value.fget.__annotations__["return"] is bool
    ]
    assert len(asked) >= 13
    assert not any(getattr(net, name) for name in asked)
