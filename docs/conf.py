"""The site's configuration. `sphinx-build -W -n docs site` builds the site; a warning is an error.

Sphinx was chosen because it is maintained, and because it makes the whole site: pages of Markdown (MyST),
the Python domain, an index, and a search. The search is a script of the site itself, so it needs no network
and no server. MkDocs has had no release since 2024, and Material for MkDocs is in maintenance. Zensical,
its successor, is at version 0.1.

`pip install '.[docs]'` has all that a build needs: rocsteady itself, whose parser, docstrings and schemas
become the pages of docs/reference (`extensions.generated`), and scikit-learn and river for the names that
need them. A build needs no network.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))  # for the folder extensions

_PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]

project = _PROJECT["name"]
author = _PROJECT["authors"][0]["name"]
version = release = _PROJECT["version"]
project_copyright = f"2026, {author}. Apache License 2.0"

extensions = ["myst_parser", "extensions.generated", "extensions.terms"]
exclude_patterns = ["schemas"]
nitpicky = True
nitpick_ignore_regex = [
    # Types of other packages and of the standard library are no links, since a build needs no network.
    ("py:class", r"(beam|np|npt|nw|os|pa)\..*"),
    ("py:class", "DataFrame|Estimator|Figure|PCollection|PolarsFrame|Table|date|timedelta"),
]
python_maximum_signature_line_length = 90
add_module_names = False
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4
default_role = "code"
smartquotes = False  # quotes and --options stand as they are typed

html_theme = "furo"
html_title = f"rocsteady {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False


def setup(app: Sphinx) -> None:
    """Show files of comma-separated values as they are: Pygments has no lexer for them."""
    app.add_lexer("csv", TextLexer)
