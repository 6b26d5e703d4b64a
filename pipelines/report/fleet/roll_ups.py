"""The section "Fleet": a line for each group of roll-up rows at its latest grid point, and a chart over time.

A group of slices whose slices are in the rows of the page has no line: the section on gaps compares them,
corrected for all gaps of the page, and one gap has one p-value. The chart has all groups.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ....core.arrays import FloatArray
from ....core.rows.columns import reasons_by_measure
from ....core.rows.roll_ups import ALL_MODELS
from ...words import all_dates, counted, p_value, share, stamp, with_interval
from ..report_rows import floats
from .gaps import spread_text
from .lines import Section, banded, signed, signed_interval
from .tables import Series, drawn, last_rows, numbers, series_of_table

MEANS = {
    "auc_mean": "mean of the members",
    "auc_by_events": "mean weighted by events",
    "auc_random": "mean with random effects",
}
"""The means that the chart offers, in words."""

_LEAST_RANGE = 0.05

_NAMED = 5
"""The most groups that a sentence names."""


class Extreme(NamedTuple):
    """The member furthest below, or above, the mean of the others. `state` as the style knows it, or ""."""

    name: str
    state: str
    gap: str
    told: str
    others: str


class RollUpLine(NamedTuple):
    """A line of the table: the texts of one group.

    place    of the group in the chart
    due      the latest grid point
    auc      the mean of the members with its interval
    spread   whether the members differ, and by which numbers
    without  how many members do not count, and why
    remark   what to read with care
    """

    place: int
    name: str
    due: str
    auc: str
    spark: str
    spread: tuple[str, str]
    differ: bool
    worst: Extreme | None
    best: Extreme | None
    members: str
    without: str
    remark: str

    @property
    def words(self) -> str:
        """The text that the line is found by."""
        names = (self.name, *(one.name for one in (self.worst, self.best) if one is not None))
        return "\n".join(names)


def roll_ups_section(table: pa.Table, confidence: float, compared: Collection[str] = ()) -> Section | None:
    """Return the facts of the section; None without rows.

    table       roll-up rows (ROLL_UP_SCHEMA)
    confidence  the level of their intervals
    compared    the groups of slices that the section on gaps compares
    """
    if not table.num_rows:
        return None
    series = series_of_table(table, ["group"])
    last = last_rows(table, series)
    places = sorted(range(len(series)), key=lambda place: _rank(last[place]))
    series, last = [series[place] for place in places], [last[place] for place in places]
    names = (
        "due",
        "worst_auc",
        "best_auc",
        *(f"{name}{end}" for name in MEANS for end in ("", "_low", "_high")),
    )
    columns = {name: floats(table.column(name)) for name in names}
    dates = all_dates(columns["due"])
    lines = [
        _line(place, one, row, columns, 1 - confidence, dates=dates)
        for place, (one, row) in enumerate(zip(series, last, strict=True))
        if row["group"] not in compared
    ]
    facts = {"confidence": share(confidence), "means": MEANS, "names": [one.name for one in series]}
    sentences = [_about(lines, last), *_below(lines, last)] if lines else []
    if left := len(series) - len(lines):
        sentences.append(
            f"{counted(left, 'group')} of slices {'is' if left == 1 else 'are'} in the chart alone; their "
            "slices are compared in “Gaps between slices”."
        )
    groups = {(one.names[0], ""): place for place, one in enumerate(series)}
    return Section("roll_ups", "group", sentences, lines, facts, _chart(table, series, columns), groups)


def _rank(row: dict[str, Any]) -> tuple[bool, bool, float, str]:
    """Return the key that puts all models first, then patterns of models, then slices, the worst first."""
    of_slices = row["group"].startswith("model=")
    worst = row["worst_gap"] if of_slices and row["worst_gap"] is not None else 1.0
    return row["group"] != ALL_MODELS, of_slices, worst, row["group"]


def _line(
    place: int, one: Series, row: dict[str, Any], columns: dict[str, FloatArray], alpha: float, *, dates: bool
) -> RollUpLine:
    why = reasons_by_measure(row["reason"])
    spread, differ = ("not tested", why.get("heterogeneity_p", "")), False
    if row["heterogeneity_p"] is not None:
        degrees = row["members"] - 1
        differ = row["heterogeneity_p"] < alpha
        spread = spread_text(row["heterogeneity_q"], degrees, row["heterogeneity_p"], row["i2"], alpha)
    remarks = [f"the interval of the mean is too narrow: {said}"] if (said := why.get("auc_mean_low")) else []
    if row["worst_p"] is not None and (said := why.get("worst_p")):
        remarks.append(f"p-values are rough: {said}")
    silent = f", {row['members_silent']:,} of them silent" if row["members_silent"] else ""
    without = ""
    if row["members_without"]:
        without = f"{row['members_without']:,} without: {row['without_reason'] or 'no reason given'}"
    mean = [
        np.nan if row[f"auc_mean{end}"] is None else row[f"auc_mean{end}"] for end in ("", "_low", "_high")
    ]
    return RollUpLine(
        place,
        one.name,
        stamp(row["due"], dates=dates),
        with_interval(*mean),
        banded(
            columns["due"],
            [columns[f"auc_mean{end}"] for end in ("", "_low", "_high")],
            one.rows,
            _LEAST_RANGE,
        ),
        spread,
        differ,
        _extreme("worst", "below", row, alpha),
        _extreme("best", "above", row, alpha),
        f"{row['members']:,}{silent}",
        without,
        "; ".join(remarks),
    )


def _extreme(which: str, where: str, row: dict[str, Any], alpha: float) -> Extreme | None:
    if row[which] is None:
        return None
    p, sure = row[f"{which}_p"], (row[f"members_{where}"] or 1) - 1
    is_sure = p is not None and p < alpha
    return Extreme(
        row[which],
        {"below": "worse", "above": "better"}[where] if is_sure else "",
        f"{signed(row[f'{which}_gap'])} {signed_interval(row[f'{which}_gap_low'], row[f'{which}_gap_high'])}",
        f"{where} the others, p {p_value(p)}" if is_sure else f"no difference shown, p {p_value(p)}",
        f"and {sure:,} more {where}" if is_sure and sure else "",
    )


def _about(lines: list[RollUpLine], last: list[dict[str, Any]]) -> str:
    """Return in how many groups members differ, and which member is furthest below, in a sentence."""
    differ = [line for line in lines if line.differ]
    if len(lines) == 1:
        (line,) = lines
        members = counted(last[line.place]["members"], "member")
        told = f"{line.name}: {members}, AUC {line.auc} on average; {': '.join(filter(None, line.spread))}."
    elif differ:
        named = "; ".join(line.name for line in differ[:_NAMED])
        more = f"; and {len(differ) - _NAMED:,} more" if len(differ) > _NAMED else ""
        of = counted(len(lines), "group")
        told = f"In {len(differ):,} of {of} members differ by more than chance: {named}{more}."
    else:
        told = f"In none of {counted(len(lines), 'group')} are members shown to differ by more than chance."
    return told


def _below(lines: list[RollUpLine], last: list[dict[str, Any]]) -> list[str]:
    """Return which members rank surely below the others of their groups: a sentence, or none."""
    found = [
        (line, last[line.place]) for line in lines if line.worst is not None and line.worst.state == "worse"
    ]
    if not found:
        return []
    told = [
        f"{row['worst']} in {line.name} ({signed(row['worst_gap'])}"
        + (f", and {more:,} more below)" if (more := row["members_below"] - 1) else ")")
        for line, row in found[:_NAMED]
    ]
    left = f"; and in {counted(len(found) - _NAMED, 'more group')}" if len(found) > _NAMED else ""
    return [f"Furthest below the others of its group: {'; '.join(told)}{left}."]


def _chart(table: pa.Table, series: list[Series], columns: dict[str, FloatArray]) -> dict[str, Any]:
    """Return what the chart draws: for each group times in milliseconds, and the columns by name."""
    kept, step = drawn(series)
    worst, best = (table.column(name) for name in ("worst", "best"))
    listed = [
        {
            "name": one.name,
            "x": (columns["due"][rows] / 1000).tolist(),
            "worst": worst.take(pa.array(rows)).to_pylist(),
            "best": best.take(pa.array(rows)).to_pylist(),
            **{name: numbers(values, rows) for name, values in columns.items() if name != "due"},
        }
        for one, rows in zip(series, kept, strict=True)
    ]
    return {"step": step, "series": listed}
