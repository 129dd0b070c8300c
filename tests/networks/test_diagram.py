"""The diagram of a network: every tensor between its spaces, and what every symmetry moves."""

from html.parser import HTMLParser

import numpy as np
import pytest

import neuromanifold as nm
from diagrams import EXTENSIONS, NETWORKS
from neuromanifold.algebra.linear import FloatingPoint
from neuromanifold.networks.diagram import LARGEST
from neuromanifold.symmetry.families import families_of

DEEP = nm.Architecture((4, 3, 2), (2, 2), 3, heads=2, value_ranks=(2, 1))


class Parts(HTMLParser):
    """Collects the names of the parts that are drawn, and notices tags that are not closed."""

    def __init__(self):
        super().__init__()
        self.open, self.spaces, self.tensors = [], [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        named = dict(attrs)
        self.spaces += [named["data-space"]] if "data-space" in named else []
        self.tensors += [named["data-tensor"]] if "data-tensor" in named else []

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_attention_goes_from_width_to_width_past_keys_and_values():
    diagram = nm.network(DEEP).diagram
    ends = {
        edge.name.removeprefix("layers."): (*edge.reads, *edge.writes) for edge in diagram.tensors
    }
    assert ends["0.query"] == ends["0.key"] == ("width 0", "keys of layer 0")
    assert ends["0.value"] == ("width 0", "values of layer 0")
    assert ends["0.output"] == ("values of layer 0", "width 1")
    assert ends["1.value"] == ("width 1", "values of layer 1")
    groups = {node.name: (node.copies, node.group) for node in diagram.spaces}
    assert groups["keys of layer 0"] == (2, "GL_2")
    assert groups["width 0"] == groups["width 2"] == (1, None)
    assert groups["width 1"] == (1, "GL_3")
    assert "heads of layer 0" not in groups


@pytest.mark.parametrize("network", EXTENSIONS, ids=lambda network: network.name)
def test_a_drawing_shows_every_space_and_tensor_once_and_none_on_another(network):
    diagram = network.diagram
    parts = Parts()
    parts.feed(diagram.svg())
    assert parts.open == []
    assert sorted(parts.tensors) == sorted(tensor.name for tensor in network.tensors)
    assert sorted(parts.spaces) == sorted(node.name for node in diagram.spaces)
    drawn = set(parts.spaces)
    assert {space.name for space in network.spaces if space.group} <= drawn
    assert all({*edge.reads, *edge.writes} <= drawn and edge.writes for edge in diagram.tensors)
    assert len({(node.column, node.row) for node in diagram.spaces}) == len(diagram.spaces)


def test_a_stream_that_is_written_again_stands_at_the_left():
    columns = {node.name: node.column for node in EXTENSIONS[-1].diagram.spaces}
    assert columns.pop("stream") == 0
    assert set(columns.values()) == {1}


def test_a_symmetry_moves_the_tensors_that_the_diagram_says():
    """The tensors that generators or random elements really change."""
    for network in (*NETWORKS, nm.network(DEEP, readout="decisions")):
        weights = network.draw(0)
        at = {**{name: np.ones(()) for name in network.constants}, **weights}
        said = {movement.name: set(movement.tensors) for movement in network.diagram.symmetries}
        assert list(said) == [family.name for family in families_of(network)]
        for family in families_of(network):
            blocks = family.generators(at, FloatingPoint())
            moved = {
                slot.tensor for block in blocks for slot, move in block.moves.items() if move.any()
            }
            elements = [
                family.random(np.random.default_rng(seed)) for seed in range(4) if family.is_group
            ]
            for after in (family.act(element, at) for element in elements):
                moved |= {name for name in at if not np.array_equal(after[name], at[name])}
            assert moved <= said[family.name]
            if family.name != "head mixing":
                # A gate has an axis of power 0, which permutations move and scalings do not.
                assert said[family.name] - moved <= {"gate"}


def test_names_are_escaped_and_what_is_too_large_is_not_drawn():
    import jax.numpy as jnp

    bad = nm.Space("<script>alert(1)</script>", 2)
    shown = nm.network(
        lambda w, x: w["a"] @ x, {"a": jnp.zeros((2, 2))}, jnp.zeros(2),
        spaces={"a": (nm.Space("b'>", 2), bad.dual)},
    )._repr_html_()  # fmt: skip
    assert "<script" not in shown
    assert "&lt;script" in shown
    assert "data-space='b&#x27;&gt;'" in shown
    long = nm.network(nm.Architecture((2,) * LARGEST, (1,) * (LARGEST - 1), 2))
    assert long.diagram.svg() == ""
    assert "<svg" not in long._repr_html_()
