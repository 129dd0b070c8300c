"""How Sphinx builds these pages: `make docs`, with warnings as errors."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [
    str(ROOT / "docs" / "_ext"),
    str(ROOT / "tests"),  # for `citations`, which finds what cites a statement
    str(ROOT / "src"),
]

project = "neuromanifold"
copyright = "the neuromanifold maintainers"
author = "the neuromanifold maintainers"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinxcontrib.bibtex",
    "sphinx_copybutton",
    "mathml",
    "docstrings",
    "module_pages",
    "statement_pages",
    "command_pages",
    "import_graph",
]
exclude_patterns = ["_build"]

myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "attrs_inline"]
myst_heading_anchors = 3

# What is copied leaves out prompts and what was printed.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

bibtex_bibfiles = ["references.bib"]
bibtex_reference_style = "author_year"

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
toc_object_entries = False  # the sidebar lists pages, not every function
napoleon_use_ivar = True  # attributes of a class as a list, not as members documented twice

html_theme = "furo"
html_title = "neuromanifold"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_math_renderer = "mathml"  # readable without a network
html_show_sphinx = False
