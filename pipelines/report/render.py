"""Fills the page's templates, and reads the style, the scripts and the plotting library that they include.

Templates are Jinja's. Every value is escaped, except where a template says `safe`: the JSON of
`data.script_json`, and the SVG of `cd_diagram` and `sparkline`. The template includes the style and the
scripts as they are.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from plotly.offline import get_plotlyjs

from ..words import checkpoint, counted, day, number, p_value, with_interval
from .comparisons import TESTS
from .data import packed_text


def render(template: str, **facts: Any) -> str:
    """Fill a template of the page."""
    return _environment().get_template(template).render(facts)


def asset(name: str) -> str:
    """Return the text of a file of the page."""
    return (resources.files(__package__) / "page" / name).read_text("utf-8")


@cache
def packed_library() -> str:
    """Return the plotting library's code, packed for the page: 0.2 s, which a process spends once."""
    return packed_text(str(get_plotlyjs()))


@cache
def _environment() -> Environment:
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
        "day": day,
        "number": number,
        "p_value": p_value,
        "test_name": lambda test: TESTS.get(test, test),
        "thousands": "{:,}".format,
        "with_interval": with_interval,
    }
    return environment
