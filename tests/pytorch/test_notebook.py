"""The notebook about PyTorch modules runs from top to bottom."""

from notebooks import TUTORIALS, run


def test_the_notebook_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run(TUTORIALS / "your-pytorch-model.ipynb")
    assert names["ledger"].unexplained == 0
