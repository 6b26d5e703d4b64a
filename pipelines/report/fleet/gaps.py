"""The section "Gaps between slices": how far each slice of a model lies from the model's other slices.

The rows that are compared
    A slice counts with its row at the latest grid point of its group (a model and a column), as in a roll-up
    row: a slice that is silent counts with its last row, for a day. Rows on no grid have no common moment:
    each slice counts with its last row. Of rows in Beam panes, those of the group's latest pane count.

The numbers are those of `core.fleet.gaps`. The heatmap shows the same ones.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ....core.fleet.formulas import FEW, variances
from ....core.fleet.gaps import Gap, Gaps, gaps_of_groups
from ....core.fleet.roll_up_settings import SLICES, STALE, RollUpSettings, columns_of
from ....core.rows.differences import FEWEST
from ...words import counted, p_value, with_interval
from ..report_rows import ReportRows
from ..sparkline import Axis, bar
from .lines import Section, signed, signed_interval

MOST_LINES = 2_000
"""The most slices that the table lists; the heatmap has all of them."""

_NAMED = 5
"""The most slices, and the most groups, that a sentence names."""


_BY_SLICES = RollUpSettings((SLICES,))

_Group = tuple[int, tuple[str, ...]]
"""A model, by its place, and the columns that its slices cross."""


class SliceRow(NamedTuple):
    """The row that a slice counts with: its places in the page's models, slices and rows."""

    model: int
    slice: int
    row: int


class PageGaps(NamedTuple):
    """The gaps of a page.

    slices  the slices with a row at the latest grid point of their group
    rarer   for each of them the number of events of the rarer class
    gaps    by their places in `slices`
    alpha   what a corrected p-value must be below
    """

    slices: list[SliceRow]
    rarer: list[float]
    gaps: Gaps
    alpha: float

    def is_sure(self, place: int) -> bool:
        """Whether a slice differs from the others by the corrected p-value, and has labels enough."""
        gap = self.gaps.of[place]
        return gap is not None and gap.p < self.alpha and self.rarer[place] >= FEWEST

    def names_of_groups(self, rows: ReportRows) -> set[str]:
        """Return the groups as roll-up rows name them."""
        bases = rows.bases()
        named = (
            _BY_SLICES.groups_of(bases[one.model][0], rows.slices[one.slice])
            for one in (self.slices[group.places[0]] for group in self.gaps.groups.values())
        )
        return {name for groups in named for name, _ in groups}

    def by_slice(self) -> dict[tuple[int, int], tuple[Gap, bool]]:
        """Return by model and slice the gap, and whether it is sure."""
        return {
            (one.model, one.slice): (gap, self.is_sure(place))
            for place, (one, gap) in enumerate(zip(self.slices, self.gaps.of, strict=True))
            if gap is not None
        }


def page_gaps(rows: ReportRows, confidence: float, *, of_folds: bool = False) -> PageGaps:
    """Return the gaps between the slices of every model of a page. O(rows).

    of_folds  whether slices are the folds of learners: folds share instances, and have no gaps
    """
    slices, groups = ([], []) if of_folds else _latest(rows)
    places = [one.row for one in slices]
    columns = {
        name: rows.columns[name][places] for name in ("auc", "auc_low", "auc_high", "positives", "negatives")
    }
    auc, positives, negatives = columns["auc"], columns["positives"], columns["negatives"]
    variance = variances(auc, columns["auc_low"], columns["auc_high"], confidence)
    variance = np.where((positives > 0) & (negatives > 0), variance, np.nan)
    rarer = np.minimum(positives, negatives).tolist()
    return PageGaps(slices, rarer, gaps_of_groups(auc, variance, groups, confidence), 1 - confidence)


def _latest(rows: ReportRows) -> tuple[list[SliceRow], list[_Group]]:
    """Return the slices with the rows that they count with, and their groups: (model, columns)."""
    due, panes = rows.columns["due"], rows.columns["pane_start"]
    on_grid, paned = "due" in rows.held, "pane_start" in rows.held
    found: dict[_Group, list[tuple[tuple[float, float], SliceRow]]] = {}
    for model, part, first, stop in rows.series.tolist():
        if not rows.slices[part] or (rows.classes is not None and part in rows.classes.parts):
            continue  # classes of one model share their events, and have no gaps
        row = stop - 1
        if on_grid and math.isnan(due[row]):  # the last row of a job may be on no grid
            with_due = np.flatnonzero(~np.isnan(due[first:stop]))
            row = first + int(with_due[-1]) if len(with_due) else row
        moment = (float(panes[row]) if paned else 0.0, float(due[row]) if on_grid else 0.0)
        group = model, columns_of(rows.slices[part])
        found.setdefault(group, []).append((moment, SliceRow(model, part, row)))
    slices: list[SliceRow] = []
    groups: list[_Group] = []
    for group, members in found.items():
        pane = max(at for (at, _), _ in members)
        latest = max((at for (of, at), _ in members if of == pane and not math.isnan(at)), default=math.nan)
        kept = [
            one for (of, at), one in members if of == pane and (at >= latest - STALE or math.isnan(latest))
        ]
        slices += kept
        groups += [group] * len(kept)
    return slices, groups


class GapLine(NamedTuple):
    """A line of the table: texts and a drawing. `state` is "worse", "better" or "", for the style."""

    model: int
    name: str
    part: str
    state: str
    auc: str
    gap: str
    interval: str
    bar: str
    told: str
    remark: str

    @property
    def words(self) -> str:
        """The text that the line is found by."""
        return f"{self.name}\n{self.part}"


class GroupLine(NamedTuple):
    """A group, and whether its slices differ, as texts."""

    name: str
    columns: str
    slices: str
    spread: tuple[str, str]
    differ: bool


def gaps_section(rows: ReportRows, found: PageGaps) -> Section | None:
    """Return the facts of the section; None where no slice has another one to be compared with."""
    places = [place for place, gap in enumerate(found.gaps.of) if gap is not None]
    if not places:
        return None

    def rank(place: int) -> tuple[bool, float, str]:
        gap = found.gaps.of[place]
        value = 0.0 if gap is None else gap.gap
        one = found.slices[place]
        return (
            not (found.is_sure(place) and value < 0),
            value,
            rows.models[one.model] + rows.slices[one.slice],
        )

    places.sort(key=rank)
    listed = places[:MOST_LINES]
    widest = max(abs(gap.gap) for place in listed if (gap := found.gaps.of[place]) is not None)
    axis = Axis(-max(1.5 * widest, 0.02), max(1.5 * widest, 0.02))
    lines = [_line(rows, found, place, axis) for place in listed]
    groups = sorted(
        found.gaps.groups.items(), key=lambda item: (item[1].p, item[1].spread.p, -item[1].spread.q)
    )
    sentences = [_about_slices(rows, found, places), _about_groups(rows, found)]
    facts = {
        "groups": [
            GroupLine(
                rows.models[model],
                " and ".join(columns),
                counted(len(one.places), "slice") + (f", {one.without:,} without" if one.without else ""),
                spread_text(one.spread.q, len(one.places) - 1, one.p, one.spread.i2, found.alpha),
                one.p < found.alpha,
            )
            for (model, columns), one in groups[:MOST_LINES]
        ],
        "left": len(places) - len(listed),
        "fewest": FEWEST,
        "few": FEW,
    }
    return Section("gaps", "slice", sentences, lines, facts)


def spread_text(q: float, degrees: int, p: float, i2: float, alpha: float) -> tuple[str, str]:
    """Return whether members differ by more than chance, and Cochran's Q, in words.

    >>> print(*spread_text(84.1, 19, 3.7e-10, 0.774, 0.05), sep=": ")
    differ by more than chance: Q 84.1 on 19 degrees of freedom, p <0.0001; 77% of the spread is not chance
    >>> print(*spread_text(1.2, 1, 0.27, 0.17, 0.05), sep=": ")
    no difference shown: Q 1.2 on 1 degree of freedom, p 0.270
    """
    told = f"Q {q:,.1f} on {counted(degrees, 'degree')} of freedom, p {p_value(p)}"
    if p < alpha:
        return "differ by more than chance", f"{told}; {100 * i2:.0f}% of the spread is not chance"
    return "no difference shown", told


def _line(rows: ReportRows, found: PageGaps, place: int, axis: Axis) -> GapLine:
    one, gap = found.slices[place], found.gaps.of[place]
    assert gap is not None
    low, high = (min(max(end, axis.low), axis.high) for end in (gap.low, gap.high))
    sure, rarer = found.is_sure(place), found.rarer[place]
    where = "below" if gap.gap < 0 else "above"
    remark = ""
    if rarer < FEWEST:
        told = "too few labels to tell"
        remark = f"fewer than {FEWEST} positives or negatives"
    else:
        told = (
            f"{where} the others, p {p_value(gap.p)}" if sure else f"no difference shown, p {p_value(gap.p)}"
        )
        if rarer < FEW:
            remark = f"fewer than {FEW} positives or negatives: p is rough"
    return GapLine(
        one.model,
        rows.models[one.model],
        rows.slices[one.slice],
        {"below": "worse", "above": "better"}[where] if sure else "",
        with_interval(*(float(rows.columns[name][one.row]) for name in ("auc", "auc_low", "auc_high"))),
        signed(gap.gap),
        signed_interval(gap.low, gap.high),
        bar(gap.gap, low, high, 0.0, axis),
        told,
        remark,
    )


def _about_slices(rows: ReportRows, found: PageGaps, places: list[int]) -> str:
    """Return which slices rank below the others, in a sentence; `places` has those surely below first."""
    below = [
        (place, gap)
        for place in places
        if (gap := found.gaps.of[place]) is not None and gap.gap < 0 and found.is_sure(place)
    ]
    if not below:
        return (
            f"None of {counted(len(places), 'slice')} is shown to rank below the other slices of its model, "
            "once corrected for their number."
        )
    named = "; ".join(
        f"{rows.models[found.slices[place].model]} in {rows.slices[found.slices[place].slice]} "
        f"({signed(gap.gap)}, p {p_value(gap.p)})"
        for place, gap in below[:_NAMED]
    )
    more = f"; and {len(below) - _NAMED:,} more" if len(below) > _NAMED else ""
    rank = "ranks" if len(below) == 1 else "rank"
    return (
        f"{len(below):,} of {counted(len(places), 'slice')} {rank} below the other slices of the model: "
        f"{named}{more}."
    )


def _about_groups(rows: ReportRows, found: PageGaps) -> str:
    """Return in which groups slices differ at all, by Cochran's Q, in a sentence."""
    groups = found.gaps.groups
    differ = sorted(
        ((one.p, -one.spread.i2, group) for group, one in groups.items() if one.p < found.alpha),
        key=lambda item: item[:2],
    )
    several = len(groups) > 1
    if not differ:
        if not several:
            ((model, columns),) = groups
            by = " and ".join(columns)
            return f"The slices of {rows.models[model]} by {by} are not shown to differ by more than chance."
        return (
            f"In none of {len(groups):,} groups, each a model and a column, are slices shown to differ by "
            "more than chance."
        )
    named = "; ".join(
        f"{rows.models[model]} by {' and '.join(columns)} (p {p_value(p)})"
        for p, _, (model, columns) in differ[:_NAMED]
    )
    more = f"; and {len(differ) - _NAMED:,} more" if len(differ) > _NAMED else ""
    if not several:
        return f"Slices differ by more than chance: {named}."
    return (
        f"Slices differ by more than chance in {len(differ):,} of {len(groups):,} groups, each a model and a "
        f"column: {named}{more}."
    )
