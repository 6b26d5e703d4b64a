"""What the tables of the sections on many models share: lines that the page's script finds and pages through.

The first LINES lines are in the HTML itself. All of them are packed for the script, as markup, so a line
looks the same with and without JavaScript.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ....core.arrays import FloatArray, Int64Array
from ..data import packed_text, script_json
from ..sparkline import spark

LINES = 25
"""The number of lines that a table shows at once, and that the HTML itself holds."""


class Section(NamedTuple):
    """A section of the page.

    name       of the section, of its blocks and of its templates: NAME.html and NAME_line.html
    noun       what a line is of
    sentences  what the section shows
    lines      facts for the template of a line: named tuples with a field `words`, the text that a line is
               found by
    facts      further facts for the section's template
    chart      what the script draws, as JSON; None: no chart
    places     by the name and the slice that an alert gives: the place in the chart
    """

    name: str
    noun: str
    sentences: Sequence[str]
    lines: Sequence[Any]
    facts: dict[str, Any]
    chart: dict[str, Any] | None = None
    places: Mapping[tuple[str, str], int] = MappingProxyType({})

    def blocks(self, render: Callable[..., str]) -> dict[str, str]:
        """Return the section's blocks for the script. `render` fills a template."""
        lines = [
            {"words": line.words.lower(), "html": render(f"{self.name}_line.html", line=line)}
            for line in self.lines
        ]
        found = {self.name: packed_text(script_json(lines))}
        if self.chart is not None:
            found[f"{self.name}_chart"] = packed_text(script_json(self.chart))
        return found

    def meta(self) -> dict[str, Any]:
        """Return what the script must know before it unpacks a block."""
        return {"noun": self.noun, "lines": len(self.lines), "chart": self.chart is not None}


def signed(value: float) -> str:
    """Write a difference of AUCs with its sign.

    >>> signed(-0.0652), signed(0.01), signed(-0.0001)
    ('−0.065', '+0.010', '0.000')
    """
    text = f"{abs(value):.3f}"
    return text if text == "0.000" else f"{'+' if value > 0 else chr(0x2212)}{text}"


def signed_interval(low: float | None, high: float | None) -> str:
    """Write the interval of a difference; "" if it is not known.

    >>> signed_interval(-0.09, 0.0391), signed_interval(None, None)
    ('[−0.090, +0.039]', '')
    """
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return ""
    return f"[{signed(low)}, {signed(high)}]"


def banded(
    across: FloatArray, ends: Sequence[FloatArray], rows: Int64Array, least: float, level: float = math.nan
) -> str:
    """Return a small drawing of values with their interval; "" for fewer than two that are not null.

    across       where each row stands
    ends         the values, the low and the high ends of their intervals
    rows         the rows to draw, in order
    least, level as of `sparkline.spark`
    """
    rows = rows[np.isfinite(ends[0][rows])]
    if len(rows) < 2:
        return ""
    middle, low, high = (np.where(np.isnan(end[rows]), ends[0][rows], end[rows]) for end in ends)
    return spark(across[rows], middle, low, high, least, level=level)
