"""The notebooks of the tutorials run from top to bottom."""

import pytest

from notebooks import TUTORIALS, needs, run

NOTEBOOKS = sorted(TUTORIALS.glob("*.ipynb"))


@pytest.mark.parametrize(
    "path", [path for path in NOTEBOOKS if needs(path) is None], ids=lambda path: path.stem
)
def test_the_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(path)


def test_there_are_three_and_one_is_for_pytorch():
    assert [needs(path) for path in NOTEBOOKS] == [None, None, "torch"]
