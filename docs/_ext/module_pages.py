"""A page for each package and module of the library, written before the build from what is there.

Packages inside packages are described by their own docstring only: their modules are internal.
"""

from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

NOT_A_LIBRARY = ("cli",)  # commands have a page of their own


def write_pages(app: Sphinx) -> None:
    """Write `reference/modules`, touching only what has changed."""
    package = Path(app.confdir).parent / "src" / "neuromanifold"
    folder = Path(app.srcdir) / "reference" / "modules"
    folder.mkdir(exist_ok=True)
    pages = dict(_pages(package))
    pages["index.rst"] = _index(sorted(pages))
    for stale in folder.glob("*.rst"):
        if stale.name not in pages:
            stale.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _pages(package: Path) -> Iterator[tuple[str, str]]:
    """The file name and text of each page."""
    for path in sorted(package.iterdir()):
        name = path.stem
        if name.startswith("_") or name in NOT_A_LIBRARY:
            continue
        if path.suffix == ".py":
            yield f"{name}.rst", _page(f"neuromanifold.{name}", [])
        elif (path / "__init__.py").exists():
            yield f"{name}.rst", _page(f"neuromanifold.{name}", _modules(path, name))


def _modules(path: Path, name: str) -> list[str]:
    return sorted(
        f"neuromanifold.{name}.{child.stem}"
        for child in path.iterdir()
        if not child.stem.startswith("_")
        and (child.suffix == ".py" or (child / "__init__.py").exists())
    )


def _page(name: str, modules: list[str]) -> str:
    # The names that a package takes over from its modules are documented there, each once.
    members = "" if modules else "   :members:\n"
    text = f"{_title(name, '=')}.. automodule:: {name}\n{members}\n"
    for module in modules:
        text += f"{_title(module, '-')}.. automodule:: {module}\n   :members:\n\n"
    return text


def _index(pages: list[str]) -> str:
    listed = "".join(f"   {Path(page).stem}\n" for page in pages)
    return f"{_title('Modules', '=')}.. toctree::\n   :maxdepth: 1\n\n{listed}"


def _title(text: str, line: str) -> str:
    escaped = text.replace("_", r"\_")
    return f"{escaped}\n{line * len(escaped)}\n\n"


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
