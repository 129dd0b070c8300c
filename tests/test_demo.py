"""`make demo` finds what it says: three dimensions that a named symmetry explains."""

import importlib.util
from pathlib import Path

DEMO = Path(__file__).parents[1] / "examples" / "demo.py"


def test_the_demo_explains_the_block_and_writes_its_page(tmp_path, capsys):
    specification = importlib.util.spec_from_file_location("demo", DEMO)
    demo = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(demo)
    demo.main(tmp_path)
    said = capsys.readouterr().out
    assert "81 dimension + 8 keys + 8 values + 3 unexplained (probable" in said
    assert "3 neurons + 8 keys + 8 values + 0 unexplained (exact given symmetries" in said
    assert "Same function" in said
    page = (tmp_path / "index.html").read_text()
    assert page.count("<svg") == 3
    assert page.count("data-space='neurons'") == 2
    assert "scalings of 3" in page
