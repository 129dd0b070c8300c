"""Results look like something in a notebook, and become tables where pandas is there."""

import json
import re
import sys
from dataclasses import fields
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import neuromanifold as nm
from neuromanifold.display import Recorded
from neuromanifold.errors import MissingExtraError
from neuromanifold.fibers.fingerprint import fingerprint
from neuromanifold.files import as_json
from neuromanifold.recovery.oracle import network_oracle

NET = nm.Architecture((3, 2), (2,), 3)


class Balanced(HTMLParser):
    """Collects the text, and notices tags that are not closed."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def shown(value):
    page = Balanced()
    page.feed(value._repr_html_())
    assert page.open == []
    return " ".join(page.text)


@pytest.fixture(scope="module")
def values():
    weights = nm.random_weights(NET, 0)
    point = nm.sample_fiber(weights, 1)
    certificate = nm.certify(NET)
    return [
        NET,
        nm.dimension_formula(NET),
        nm.redundancy(NET),
        certificate,
        nm.explain(NET),
        nm.verify(certificate),
        nm.estimate(NET),
        nm.discover(NET),
        point,
        nm.same_function(weights, point.points[0]),
        nm.walk(weights, point.points[0], steps=2),
        nm.describe_fiber(weights),
        nm.canonical_form(weights),
        nm.count_fiber(nm.Architecture((2, 1), (1,), 2)),
        fingerprint(weights),
        nm.classify(weights),
        nm.recover(network_oracle(weights), NET),
    ]


def test_every_result_shows_its_sentence_and_escapes_it(values):
    for value in values:
        text = shown(value)
        assert str(value) in text.replace("\xa0", " ")
        assert "<script" not in value._repr_html_()


def test_a_ledger_is_a_bar_and_a_table_that_add_up(values):
    ledger = next(value for value in values if type(value).__name__ == "Ledger")
    page = ledger._repr_html_()
    widths = [float(width) for width in re.findall(r"width:([\d.]+)%", page)]
    assert sum(widths) == pytest.approx(100, abs=0.1)
    assert page.count("<tr>") == len(ledger.lines) + 1


def test_names_with_markup_are_escaped():
    import jax.numpy as jnp

    name = "<img src=x onerror=alert(1)>"
    found = nm.certify_function(lambda w, X: w @ X, jnp.zeros((2, 2)), jnp.zeros(2), name=name)
    assert "<img" not in found._repr_html_()
    assert "&lt;img" in found._repr_html_()


@pytest.mark.parametrize(
    ("fields", "latex"),
    [
        (
            {},
            r"$\mathbb{R}^{3 \times 3} \to \mathbb{R}^{2 \times 3}, \quad X \mapsto V X \, "
            r"X^\top K^\top Q X$",
        ),
        (
            {"attention": "softmax", "heads": 2},
            r"\sum_{h=1}^{2} V_h X \, "
            r"\operatorname{softmax}(X^\top K_h^\top Q_h X)$",
        ),
        ({"value_ranks": (1,)}, r"X \mapsto O V X \, X^\top K^\top Q X$"),
        ({"skip": "inner"}, r"X \mapsto V X + V X \, X^\top K^\top Q X$"),
    ],
)
def test_an_architecture_is_a_formula(fields, latex):
    assert nm.Architecture((3, 2), (2,), 3, **fields)._repr_latex_().endswith(latex)


def test_without_pandas_a_frame_is_refused_with_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="pip install pandas"):
        nm.redundancy(NET).to_frame()


def test_a_frame_has_a_row_for_each_part():
    frame = nm.redundancy(NET).to_frame()
    assert frame["dimension"].sum() == NET.parameters


def recorded(cls=Recorded):
    return [cls, *(below for child in cls.__subclasses__() for below in recorded(child))]


def test_the_json_form_names_attributes_that_exist(values):
    checked = {
        cls for cls in recorded() if cls._json and cls.__module__.startswith("neuromanifold")
    }
    assert len(checked) >= 10
    for cls in checked:
        for entry in cls._json.split():
            path = entry.partition("=")[2] or entry
            known = {field.name for field in fields(cls)} | set(dir(cls))
            assert path.split(".")[0] in known, f"{cls.__name__} has no {path}"


def test_numbers_that_json_does_not_have_are_null_and_arrays_lists():
    value = {"a": np.array([1.5, np.inf]), "b": (Fraction(1, 4), nm.Architecture((2, 1), (1,), 2))}
    value["c"] = Path("a") / "b"
    found = as_json(value)
    assert found["c"] == str(value["c"])
    assert found["a"] == [1.5, None]
    assert found["b"][0] == 0.25
    assert found["b"][1]["widths"] == [2, 1]
    assert json.loads(json.dumps(found, allow_nan=False)) == found
