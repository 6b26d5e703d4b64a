"""The critical-difference diagram: everything lies where the ranks say, and it is a file of its own."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from html import escape
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.compare.significance import alike, friedman_nemenyi
from rocsteady.core.errors import InputError
from rocsteady.pipelines.report.cd_diagram import cd_diagram

from tests.support.pages.report_tables import NASTIER, NASTY

SVG = "{http://www.w3.org/2000/svg}"


def drawn(ranks, names, difference, groups):
    """Return the parts of a diagram: root, ticks by rank, labels as (text, x, y), learners' lines, bars."""
    root = ET.fromstring(cd_diagram(ranks, names, difference, groups))
    texts = root.findall(f"{SVG}text")
    ticks = {int(one.text): float(one.get("x")) for one in texts if (one.text or "").isdigit()}
    labels = [
        (
            one.find(f"{SVG}title").text, float(one.get("x")), float(one.get("y")),
            one.get("text-anchor"), "".join(one.itertext()).removeprefix(one.find(f"{SVG}title").text),
        )
        for one in texts
        if one.find(f"{SVG}title") is not None
    ]  # fmt: skip
    lines = [one.get("d") for one in root.findall(f"{SVG}path")]
    bars = [
        tuple(float(one.get(name)) for name in ("x1", "x2", "y1"))
        for one in root.findall(f"{SVG}line")
        if one.get("stroke-width") == "5"
    ]
    return root, ticks, labels, lines, bars


@given(
    table=st.integers(2, 12).flatmap(
        lambda k: st.lists(st.lists(st.integers(0, 5), min_size=k, max_size=k), min_size=2, max_size=12)
    )
)
@settings(max_examples=60)
def test_lines_bars_and_labels_lie_where_the_ranks_say(table):
    test = friedman_nemenyi(np.array(table, float))
    k = len(test.ranks)
    names = [f"learner {place} {'x' * (3 * place)}" for place in range(k)]
    root, ticks, labels, lines, bars = drawn(test.ranks, names, test.critical_difference, test.groups)
    assert sorted(ticks) == list(range(1, k + 1))
    unit = (ticks[1] - ticks[k]) / (k - 1)
    assert unit > 0  # the best to the right

    def across(rank):
        return ticks[1] - (rank - 1) * unit

    begins = sorted(float(line[1:].split(" ")[0]) for line in lines)
    assert begins == pytest.approx(sorted(map(across, test.ranks)), abs=0.06)
    expected = sorted(
        (across(max(held)) - 4, across(min(held)) + 4)
        for held in ([test.ranks[place] for place in group] for group in test.groups)
    )
    assert sorted(bar[:2] for bar in bars) == [pytest.approx(one, abs=0.06) for one in expected]
    for tier in {bar[2] for bar in bars}:  # bars beside each other do not touch
        row = sorted(bar[:2] for bar in bars if bar[2] == tier)
        assert all(one[1] <= other[0] + 8 for one, other in pairwise(row))
    assert sorted(label[0] for label in labels) == sorted(names)
    width, height = (float(root.get(name)) for name in ("width", "height"))
    assert root.get("viewBox") == f"0 0 {width:.0f} {height:.0f}"
    for _, x, y, anchor, text in labels:
        room = x if anchor == "end" else width - x
        assert len(text) * 6.5 < room  # of a letter's mean width
        assert 0 < y < height
    sides = {anchor: sorted(y for _, _, y, of, _ in labels if of == anchor) for anchor in ("start", "end")}
    assert all(np.diff(ys).min(initial=99) >= 15 for ys in sides.values())
    begin, length = ticks[k], test.critical_difference * unit
    measured = [one for one in root.findall(f"{SVG}line") if one.get("y1") == "26.0"]
    assert float(measured[0].get("x2")) - begin == pytest.approx(length, abs=0.11)
    assert begin + length < width


def test_a_diagram_takes_any_name_and_the_colour_of_its_page():
    names = [NASTY, NASTIER, "\x00\x1b[31m\ud800 & co", "非常に長い名前の学習器" * 5]
    text = cd_diagram([1.0, 2.0, 3.5, 3.5], names, 1.2, alike(np.array([1.0, 2.0, 3.5, 3.5]), 1.2))
    root, _, labels, _, _ = drawn([1.0, 2.0, 3.5, 3.5], names, 1.2, [(0, 1), (2, 3)])
    assert {label[0] for label in labels} == {*names[:2], names[3], "\ufffd\ufffd[31m\ufffd & co"}
    assert "<script" not in text
    assert escape(NASTY) in text
    text.encode("utf-8")
    assert {one.get("stroke") for one in root.iter() if one.get("stroke")} == {"currentColor"}
    assert root.get("fill") == "currentColor"
    assert root.find(f"{SVG}title").text == "Critical difference diagram"
    assert "Average ranks, the best first: <script>" in root.find(f"{SVG}desc").text
    assert max(len(label[4]) for label in labels) < 45  # cut, with the whole name in the title


def test_what_is_no_ranking_is_refused_with_words():
    for ranks, names, difference, said in (
        ([1.0], ["a"], 1.0, "two learners"),
        ([1.0, 2.0], ["a"], 1.0, "2 ranks and 1 names"),
        ([1.0, float("nan")], ["a", "b"], 1.0, "is nan"),
        ([1.0, 2.0], ["a", "b"], float("inf"), "is inf"),
        ([0.0, 3.0], ["a", "b"], 1.0, "from 0.0 to 3.0 of 2 learners"),
    ):
        with pytest.raises(InputError, match=said):
            cd_diagram(ranks, names, difference, [])
