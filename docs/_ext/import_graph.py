"""The picture of which package imports which, drawn before the build from the code as it is.

Layers come from the contract in `pyproject.toml`, arrows from grimp, the library behind
import-linter. Only arrows that follow from no others are drawn, so that the picture stays legible.
"""

import tomllib
from pathlib import Path

import grimp
from matplotlib.figure import Figure
from sphinx.application import Sphinx

WIDTH, BOX, GAP = 9.0, 1.55, 0.78


def layers(root: Path) -> list[list[str]]:
    """The packages of each layer, highest first."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]
    return [[name.strip(" ()") for name in layer.split("|")] for layer in contract["layers"]]


def arrows(packages: list[str]) -> set[tuple[str, str]]:
    """Importer and imported, without the arrows that others imply."""
    graph = grimp.build_graph("neuromanifold", cache_dir=None)
    direct: dict[str, set[str]] = {name: set() for name in packages}
    for module in graph.modules:
        importer = module.split(".")[1] if "." in module else ""
        for found in graph.find_modules_directly_imported_by(module):
            imported = found.split(".")[1] if "." in found else ""
            if importer in direct and imported in direct and importer != imported:
                direct[importer].add(imported)

    def below(name: str) -> set[str]:
        return direct[name].union(*(below(other) for other in direct[name]))

    return {
        (name, other)
        for name, others in direct.items()
        for other in others
        if not any(other in below(third) for third in others if third != other)
    }


def draw(root: Path) -> Figure:
    """Boxes in layers, arrows downwards."""
    rows = layers(root)
    figure = Figure(figsize=(WIDTH, 0.62 * len(rows) + 0.3))
    axes = figure.add_axes((0, 0, 1, 1))
    places: dict[str, tuple[float, float]] = {}
    for depth, row in enumerate(rows):
        for k, name in enumerate(row):
            places[name] = ((k - (len(row) - 1) / 2) * (BOX + 0.5), -depth * GAP)
    for importer, imported in sorted(arrows(list(places))):
        (x, y), (x2, y2) = places[importer], places[imported]
        axes.annotate(
            "",
            (x2, y2 + 0.2),
            (x, y - 0.2),
            arrowprops={
                "arrowstyle": "-|>",
                "color": "#8a919e",
                "lw": 0.9,
                "connectionstyle": f"arc3,rad={0.0 if abs(y - y2) < GAP * 1.5 else 0.25}",
            },
        )
    for name, (x, y) in places.items():
        style = {"boxstyle": "round,pad=0.32", "fc": "#eef3f9", "ec": "#2b6cb0"}
        axes.text(x, y, name, ha="center", va="center", fontsize=10, bbox=style, color="#22262e")
    axes.set_xlim(-WIDTH / 2, WIDTH / 2)
    axes.set_ylim(-GAP * len(rows) + 0.3, 0.5)
    axes.set_axis_off()
    return figure


def write(app: Sphinx) -> None:
    """Draw the picture into the static files, if it has changed."""
    root = Path(app.confdir).parent
    target = Path(app.srcdir) / "_static" / "import-graph.png"
    draw(root).savefig(target, dpi=160, facecolor="white", metadata={"Software": None})


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the step."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}
