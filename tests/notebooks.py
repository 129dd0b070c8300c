"""Running a notebook's cells, one after another, as Jupyter would."""

import json
from pathlib import Path

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"


def needs(path):
    """The extra that a notebook needs, or None."""
    return json.loads(path.read_text())["metadata"].get("neuromanifold", {}).get("extra")


def run(path):
    """Run every code cell of a notebook in one namespace, and return the namespace."""
    names = {}
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    for number, cell in enumerate(cells):
        exec(compile("".join(cell["source"]), f"{path.name} cell {number}", "exec"), names)
    return names
