"""The critical-difference diagram of Demsar 2006 (section 3.2.4) as SVG: learners by average rank.

The axis shows average ranks, the best (1) to the right as in the paper. A line joins each learner's name to
its rank on the axis. Thick bars join learners that do not differ. A bar above the axis shows the critical
difference. The diagram is drawn in `currentColor` without a background: in a page it has the colour of the
page's text; in a file of its own it is black.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from ...core.errors import InputError
from ..words import letters

_LABEL = 30
"""The most letters of a name that are drawn; the label's title holds the whole name."""

_LETTER, _ROW, _BAR = 7.2, 22, 9
"""Pixels: the width of most letters, at most; between two names; between two bars."""

_EDGE, _AXIS = 12, 64
"""Pixels: around the drawing; from its top to the axis."""

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML forbids, also as character references."""


def cd_diagram(
    ranks: Sequence[float],
    names: Sequence[str],
    critical_difference: float,
    groups: Sequence[Sequence[int]],
    title: str = "Critical difference diagram",
) -> str:
    """Return the diagram of k learners as the text of an SVG element, which is also a valid SVG file.

    ranks   average ranks, from 1 (best) to k
    groups  places of learners that do not differ, as `FriedmanTest.groups`

    O(k log k). Raises InputError for fewer than two learners, or ranks that are not within 1 and k.

    >>> cd_diagram([1.2, 2.1, 2.7], ["tree", "bayes", "majority"], 1.05, [(0, 1), (1, 2)])[:44]
    '<svg xmlns="http://www.w3.org/2000/svg" role'
    """
    k = len(ranks)
    if k < 2 or len(names) != k:
        raise InputError(
            f"{k} ranks and {len(names)} names: a diagram needs two learners and a name for each"
        )
    if bad := [rank for rank in (*ranks, critical_difference) if not math.isfinite(rank)]:
        raise InputError(f"a rank or critical difference is {bad[0]}: leave out learners without a rank")
    if not 1 - 1e-9 <= min(ranks) <= max(ranks) <= k + 1e-9:
        raise InputError(
            f"average ranks from {min(ranks)} to {max(ranks)} of {k} learners: they are 1 to {k}"
        )
    order = sorted(range(k), key=lambda place: ranks[place])
    right, left = order[: (k + 1) // 2], order[: (k - 1) // 2 : -1]
    labels = [_shortened(_legal(name)) for name in names]
    sides = [
        _LETTER * max((letters(labels[place]) for place in side), default=0) + 58 + _EDGE
        for side in (left, right)
    ]
    span = max(320.0, 30.0 * (k - 1))
    begin, unit = sides[0], span / (k - 1)
    bar = critical_difference * unit
    width = max(begin + span + sides[1], begin + bar + _EDGE)

    def across(rank: float) -> float:
        return begin + (k - rank) * unit

    bars, tiers = _bars(ranks, groups)
    first = _AXIS + 14 + _BAR * tiers + 14
    height = first + _ROW * (len(right) - 1) + 16
    svg = ET.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "role": "img",
            "viewBox": f"0 0 {width:.0f} {height:.0f}",
            "width": f"{width:.0f}",
            "height": f"{height:.0f}",
            "font-family": "Helvetica, Arial, sans-serif",
            "font-size": "13",
            "fill": "currentColor",
        },
    )
    _part(svg, "title", title)
    _part(svg, "desc", _described(ranks, names, critical_difference, groups, order))
    _line(svg, begin, 26, begin + bar, 26, 1.5)
    for x in (begin, begin + bar):
        _line(svg, x, 21, x, 31, 1.5)
    _part(svg, "text", f"CD = {critical_difference:.2f}", x=f"{begin:.1f}", y="15")
    _line(svg, begin, _AXIS, begin + span, _AXIS, 1.5)
    for tick in range(1, k + 1):
        x = across(tick)
        _line(svg, x, _AXIS - 6, x, _AXIS, 1.5)
        _part(svg, "text", str(tick), x=f"{x:.1f}", y=str(_AXIS - 11), text_anchor="middle")
    for worst, best, tier in bars:
        y = _AXIS + 16 + _BAR * tier
        _line(svg, across(worst) - 4, y, across(best) + 4, y, 5)
    for side, edge, anchor in ((left, begin - 8, "end"), (right, begin + span + 8, "start")):
        for row, place in enumerate(side):
            x, y = across(ranks[place]), first + _ROW * row
            way = f"M{x:.1f} {_AXIS}V{y:.1f}H{edge:.1f}"
            _part(svg, "path", d=way, fill="none", stroke="currentColor")
            at = edge + (-4 if anchor == "end" else 4)
            label = _part(svg, "text", x=f"{at:.1f}", y=f"{y + 4.5:.1f}", text_anchor=anchor)
            _part(label, "title", names[place]).tail = f"{labels[place]} "
            _part(label, "tspan", f"({ranks[place]:.2f})", font_size="11.5")
    return ET.tostring(svg, encoding="unicode")


def _bars(
    ranks: Sequence[float], groups: Sequence[Sequence[int]]
) -> tuple[list[tuple[float, float, int]], int]:
    """Return the worst rank, best rank and tier of each group of two or more, and the number of tiers.

    A bar is drawn in the first tier in which it touches no other bar.
    """
    ends: list[float] = []
    bars = []
    held = [[ranks[place] for place in group] for group in groups if len(group) > 1]
    for best, worst in sorted((min(of), max(of)) for of in held):
        tier = next((place for place, end in enumerate(ends) if end < best), len(ends))
        ends[tier : tier + 1] = [worst]
        bars.append((worst, best, tier))
    return bars, len(ends)


def _described(
    ranks: Sequence[float], names: Sequence[str], critical_difference: float,
    groups: Sequence[Sequence[int]], order: Sequence[int],
) -> str:  # fmt: skip
    """Return a text description of the diagram, for readers who cannot see it."""
    ranked = ", ".join(f"{names[place]} {ranks[place]:.2f}" for place in order)
    alike = "; ".join(", ".join(names[place] for place in group) for group in groups if len(group) > 1)
    return f"Average ranks, the best first: {ranked}. Critical difference {critical_difference:.2f}. " + (
        f"Groups that do not differ: {alike}." if alike else "All pairs differ."
    )


def _part(of: ET.Element, tag: str, text: str = "", **attributes: str) -> ET.Element:
    """Add an element to the element `of`; "_" in the name of an attribute stands for "-"."""
    part = ET.SubElement(of, tag, {name.replace("_", "-"): value for name, value in attributes.items()})
    part.text = _legal(text)
    return part


def _line(svg: ET.Element, x1: float, y1: float, x2: float, y2: float, width: float) -> None:
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    places = {name: f"{value:.1f}" for name, value in ends.items()}
    _part(svg, "line", **places, stroke="currentColor", stroke_width=str(width))


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)


def _shortened(name: str) -> str:
    """Return a name, cut to the room for a label.

    >>> _shortened("x" * 40)
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'
    """
    while letters(name) > _LABEL:
        name = name[: min(len(name) - 2, _LABEL - 1)] + "…"
    return name
