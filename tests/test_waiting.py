"""What takes long says how far it is: on a terminal, in a notebook and in a log."""

import sys
import time
from types import SimpleNamespace

import pytest

from neuromanifold import waiting


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(waiting, "_PATIENCE", 0.05)


def test_progress_says_what_is_left(capsys):
    with waiting.progress("thinking", 60.0):
        time.sleep(0.3)
    lines = capsys.readouterr().err.splitlines()
    assert 2 <= len(lines) <= 5  # at growing distances
    assert all(line.startswith("thinking: 0.") for line in lines)
    assert lines[0].endswith("roughly 59.9 s left")
    with waiting.progress("thinking", 0.0):
        time.sleep(0.1)
    assert "longer than was expected" in capsys.readouterr().err
    with waiting.progress("thinking", 0.0):
        pass
    assert capsys.readouterr().err == ""


class Notebook:
    """What a kernel offers, and what was shown with it."""

    def __init__(self, monkeypatch):
        self.shown = []
        cell = SimpleNamespace(update=self.shown.append)

        def display(what, **_):
            self.shown.append(what)
            return cell

        module = SimpleNamespace(HTML=str, display=display)
        kernel = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=None), display=module)
        monkeypatch.setitem(sys.modules, "IPython", kernel)
        monkeypatch.setitem(sys.modules, "IPython.display", module)


def test_in_a_notebook_a_bar_grows_and_goes_at_the_end(monkeypatch, capsys):
    notebook = Notebook(monkeypatch)
    with waiting.progress("<sweep>") as bar:
        time.sleep(0.12)
        bar.at(3, 4)
        time.sleep(0.12)
    first, *_, last, end = notebook.shown
    assert first.startswith("<progress></progress> &lt;sweep&gt;: 0.")
    assert last.startswith("<progress value='0.7500'></progress> &lt;sweep&gt;: 0.")
    assert end == ""
    assert capsys.readouterr().err == ""


def test_what_is_quick_shows_nothing_in_a_notebook(monkeypatch):
    notebook = Notebook(monkeypatch)
    with waiting.progress("thinking"):
        pass
    assert notebook.shown == []


def test_on_a_terminal_one_line_counts_and_goes(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with waiting.progress("thinking", 60.0):
        time.sleep(0.2)
    lines = capsys.readouterr().err.split("\r\x1b[K")
    assert lines[1].startswith("thinking: 0.")
    assert lines[-1] == ""
