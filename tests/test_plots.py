"""Figures draw what was computed, into the axes that they are given."""

from matplotlib.figure import Figure

import neuromanifold as nm

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
