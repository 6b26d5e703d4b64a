"""The files of the folder `page/`: fills its templates with facts, and reads its style and scripts.

Templates are Jinja's. Every value is escaped, except where a template says `safe`: the style, the script, the
JSON of `script_json`, and the SVG of `cd_diagram`.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

from ...core.errors import ConfigError
from ..words import checkpoint, counted, p_value
from .comparisons import TESTS

if TYPE_CHECKING:
    from jinja2 import Environment

_SCRIPTS = (
    "data.js",
    "state.js",
    "charts.js",
    "ranges.js",
    "better.js",
    "over_time.js",
    "slices.js",
    "curves.js",
    "table.js",
    "page.js",
)
"""The files of the page's script, in order."""


def render(template: str, **facts: Any) -> str:
    """Fill a template of the page. Raises ConfigError where Jinja is not installed."""
    return _environment().get_template(template).render(facts)


def asset(name: str) -> str:
    """Return the text of a file of the page."""
    return (resources.files(__package__) / "page" / name).read_text("utf-8")


def script() -> str:
    """Return the page's code as one script."""
    code = "\n".join(asset(name) for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{code}\n}})();'


def plotly_source() -> str:
    """Return the plotting library's code. Raises ConfigError where it is not installed."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise _missing("drawn", "plotly") from None
    return str(get_plotlyjs())


def check_packages() -> None:
    """Raise ConfigError where a package of the extra `report` is not installed."""
    _environment()
    plotly_source()


def _environment() -> Environment:
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError:
        raise _missing("written", "jinja2") from None
    environment = Environment(
        loader=FunctionLoader(asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "checkpoint": checkpoint,
        "counted": counted,
        "p_value": p_value,
        "test_name": lambda test: TESTS.get(test, test),
        "thousands": "{:,}".format,
    }
    return environment


def _missing(done: str, package: str) -> ConfigError:
    return ConfigError(
        f"the report is {done} by {package}, which is not installed; pip install 'rocsteady[report]'"
    )
