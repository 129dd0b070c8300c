"""Figures draw what was computed, into the axes that they are given."""

from matplotlib.figure import Figure

import neuromanifold as nm
from neuromanifold.atlas.maps import growth, heat_map, scatter
from neuromanifold.atlas.queries import select
from neuromanifold.atlas.table import open_atlas

NET = nm.Architecture((3, 2), (2,), 3)


def test_a_ledger_is_a_bar_as_long_as_the_parameters():
    axes = Figure().add_subplot()
    ledger = nm.explain(NET)
    assert nm.plot_ledger(ledger, ax=axes) is axes
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == [line.dimension for line in ledger.lines if line.dimension]
    assert sum(widths) == NET.parameters
    assert nm.plot_ledger(ledger).figure is not axes.figure


def test_a_spectrum_shows_every_singular_value_and_the_rank():
    found = nm.estimate(NET)
    axes = nm.plot_spectrum(found)
    (line, rank) = axes.lines
    assert len(line.get_ydata()) == len(found.singular_values)
    assert rank.get_xdata()[0] == found.rank + 0.5


def test_sensitivities_stand_by_layer_and_family_beside_the_predicted_orders():
    net = nm.Architecture((2, 2, 2), (1, 1), 2, "softmax")
    found = nm.sensitivity(net, spread=0.1, inputs=8)
    axes = nm.plot_sensitivity(found, ax=Figure().add_subplot())
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert names[:3] == ["query\nlayer 1", "key\nlayer 1", "value\nlayer 1"]
    assert [len(line.get_ydata()) for line in axes.lines[:-1]] == [
        sum(value > 1e-17 * found.tensors[2].singular_values[0] for value in one.singular_values)
        for one in found.tensors
    ]
    texts = [text.get_text() for text in axes.texts]
    assert [text.split("theory ")[1] for text in texts] == ["1", "1", "5", "5"]
    assert abs(float(texts[0].split("\n")[0]) - 1) < 0.1
    assert abs(float(texts[2].split("\n")[0]) - 5) < 0.3


def test_maps_of_an_atlas_draw_into_the_axes_they_are_given():
    with open_atlas("heads") as table:
        records = list(select(table, "heads < 3 and widths[0] == 2 and tokens == 2"))
    figure = Figure()
    places = figure.subplots(3)
    drawn = [
        heat_map(records, "ranks", "heads", ax=places[0]),
        scatter(records, ax=places[1]),
        growth(records, "heads", ax=places[2]),
    ]
    assert drawn == list(places)
    written = {text.get_text() for text in places[0].texts}
    here = [r.rank for r in records if r.values()["ranks"] == (1,) and r.values()["heads"] == 1]
    assert f"{min(here)}…{max(here)}" in written
