"""The overview, the first section of the report: a sentence, and a line for every model, worst first.

`overview_of` gives the facts. The template page/overview.html shows the first lines. page/overview_line.html
makes the markup of every line, and the page's script sorts, filters and pages through all lines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...core.alerts.rules import Span
from ...core.settings.periods import Period
from ...core.verdicts.judge import STATES, State
from ..words import all_dates, counted, stamp, with_interval
from .classes.page_classes import in_words, worst_text
from .report_rows import ReportRows
from .sparkline import Axis, bar, common_axis, sparkline
from .verdicts import (
    ModelVerdict,
    Verdicts,
    about_verdicts,
    change_text,
    missing,
    sentence,
    since_text,
    state_text,
    unjudged_text,
)

LINES = 25
"""The number of lines that a page of the overview shows, and that the HTML itself holds."""

PRESELECTED = 5
"""The most models that are chosen at first in the charts."""


class SliceLine(NamedTuple):
    """A slice that changed beside what the line is of: its name and its change, in words."""

    name: str
    state: State
    change: str


class OfClasses(NamedTuple):
    """What a line says of all classes of its model, as texts; "" = null.

    m        Hand & Till's M with its interval
    weighted the weighted mean of the AUCs
    worst_class, worst_pair
             the name and the AUC
    absent   the classes without an event in the window, and how many there are
    """

    m: str
    weighted: str
    worst_class: str
    worst_pair: str
    absent: str


class Line(NamedTuple):
    """One model of the overview: texts and drawings.

    model   its place in the page's models
    words   the state in words; `why` says what is missing
    part    the slice that the AUC, the change and the drawings are of; "" = the whole model
    auc     the AUC of the latest full window with its interval; `time` is the time of that window
    bar     the same as a drawing, with the reference
    change  against the reference, with its corrected interval
    since   when the change began; `levels` says from where to where the AUC went
    slices  the other slices that changed
    whole   the change of the whole model, where the line is of a slice
    events  the number of events applied
    nulls   how many rows have no AUC, in words; "" if all have one
    lost    the number of dead letters, as far as they are known
    alerts  the number of open alerts
    keys    the numbers that lines are sorted by; NaN = null
    began   where changes began: (slice's place, event, time or NaN) of the model and of its slices
    classes what the line says of all classes; None: the model has one score
    """

    model: int
    name: str
    state: State
    words: str
    why: str
    part: str
    auc: str
    time: str
    bar: str
    change: str
    since: str
    levels: str
    spark: str
    slices: list[SliceLine]
    whole: str
    events: float
    nulls: str
    lost: int
    alerts: int
    keys: dict[str, float]
    began: list[tuple[int, float, float]]
    classes: OfClasses | None


class Overview(NamedTuple):
    """The facts of the section.

    sentence  what the page shows
    about     the question that the verdicts answer, and their promise
    unjudged  how many slices could not be judged, in a sentence; "" if all were judged
    states    the number of models in each state
    alerted   whether alerts were given
    classed   whether models have classes
    """

    sentence: str
    about: str
    unjudged: str
    lines: list[Line]
    states: dict[State, int]
    alerted: bool
    classed: bool


def overview_of(
    rows: ReportRows,
    judged: Verdicts,
    confidence: float,
    reference: Span | Period | None = None,
    alerts: Mapping[str, int] | None = None,
    lost: Mapping[str, int] | None = None,
) -> Overview:
    """Return the facts of the overview.

    alerts  the number of open alerts by model; None where no alerts were given
    lost    the number of dead letters by model, as far as they are known
    """
    base_of = rows.bases()
    first_of = {(model, part): first for model, part, first, _ in rows.series.tolist()}
    dates = all_dates(rows.columns["time"])
    latest = [
        [*(float(values[each.row]) for values in (series.auc, series.low, series.high)), each.reference]
        for one in judged.models
        if (each := one.shown) is not None and len((series := one.series[each.slice]).seq)
    ]
    axis = common_axis(np.array(latest, np.float64).ravel())
    lines = [
        _line(
            one,
            place,
            rows,
            axis,
            dates,
            (alerts or {}).get(base, 0),
            (lost or {}).get(base, 0),
            _of_classes(one, rows, first_of),
        )
        for place, one in enumerate(judged.models)
        for base in (base_of[one.model][0],)
    ]
    return Overview(
        sentence(judged.models, rows.models, rows.slices, ways=bool(rows.ways)),
        about_verdicts(rows, judged, confidence, reference),
        unjudged_text(rows, judged),
        lines,
        {state: sum(one.state == state for one in judged.models) for state in STATES},
        alerts is not None,
        rows.classes is not None,
    )


def _line(
    one: ModelVerdict,
    place: int,
    rows: ReportRows,
    axis: Axis,
    dates: bool,
    alerts: int,
    lost: int,
    classes: OfClasses | None,
) -> Line:
    shown, whole = one.shown, one.whole
    series = None if shown is None else one.series[shown.slice]
    auc, low, high, time, events = (math.nan,) * 5
    nulls, spark = 0, ""
    since = None if shown is None else shown.since
    if shown is not None and series is not None and len(series.seq):
        auc, low, high, time = (
            float(values[shown.row]) for values in (series.auc, series.low, series.high, series.time)
        )
        nulls = int(np.count_nonzero(np.isnan(series.auc)))
        spark = sparkline(series, math.nan if since is None else since.place)
    if whole is not None and len(one.series[whole.slice].seq):
        events = float(one.series[whole.slice].seq[-1])
    named = (*one.slices, *one.others)
    changes = [(whole, whole.since)] if whole is not None else []
    changes += [(each, each.since) for each in named]
    return Line(
        one.model,
        rows.models[one.model],
        one.state,
        state_text(one, rows.slices),
        ""
        if one.state != "cannot tell"
        else missing(one)[1]
        if classes is None
        else in_words(missing(one)[1]),
        rows.slices[shown.slice] if shown is not None and one.only_in_slices else "",
        with_interval(auc, low, high),
        "" if math.isnan(time) else stamp(time, dates=dates),
        bar(auc, low, high, math.nan if shown is None else shown.reference, axis),
        signs(change_text(shown)),
        since_text(since),
        "" if since is None else f"from {since.before:.3f} to {auc:.3f}",
        spark,
        [
            SliceLine(rows.slices[each.slice], each.state, signs(change_text(each)))
            for each in named
            if each is not shown
        ],
        signs(change_text(whole)) if one.only_in_slices else "",
        events,
        f"AUC is null in {nulls:,} of {counted(len(series.seq), 'row')}"
        if nulls and series is not None
        else "",
        lost,
        alerts,
        {
            "place": place,
            "auc": auc,
            "change": math.nan if shown is None else shown.change,
            "since": math.nan if since is None else since.place if math.isnan(since.time) else since.time,
            "events": events,
            "alerts": alerts,
        },
        [(each.slice, began.place, began.time) for each, began in changes if began is not None],
        classes,
    )


_NAMED_ABSENT = 10
"""The most absent classes that a line names."""


def _of_classes(
    one: ModelVerdict, rows: ReportRows, first_of: Mapping[tuple[int, int], int]
) -> OfClasses | None:
    """Return what the latest window of a whole model says of its classes."""
    whole = one.whole
    if rows.classes is None or whole is None or whole.row < 0:
        return None
    means = rows.classes.means(first_of[whole.model, whole.slice] + whole.row)
    m, low, high, weighted = (
        math.nan if means[name] is None else means[name]
        for name in ("auc_m", "auc_m_low", "auc_m_high", "auc_weighted")
    )
    absent = means["classes_absent"] or []
    named = ", ".join(absent[:_NAMED_ABSENT])
    if (left := len(absent) - _NAMED_ABSENT) > 0:
        named += f" and {left:,} more"
    return OfClasses(
        "" if math.isnan(m) else with_interval(m, low, high),
        "" if math.isnan(weighted) else f"{weighted:.3f}",
        worst_text(means["worst_class"], means["worst_class_auc"]),
        worst_text(means["worst_pair"], means["worst_pair_auc"]),
        named and f"{len(absent):,} absent: {named}",
    )


def overview_lines(overview: Overview, render: Callable[..., str]) -> list[dict[str, Any]]:
    """Return all lines for the page's script: the markup of each, and what a line is found and sorted by.

    render  fills the template of a line
    """
    return [
        {
            "model": line.model,
            "state": line.state,
            "slices": "\n".join([line.part, *(part.name for part in line.slices)]),
            "began": [
                [part, round(event), None if math.isnan(time) else round(time)]
                for part, event, time in line.began
            ],
            "keys": {name: None if math.isnan(key) else key for name, key in line.keys.items()},
            "html": render(line=line, overview=overview),
        }
        for line in overview.lines
    ]


def signs(text: str) -> str:
    """Return a text with the typographic minus sign."""
    return text.replace("-", "\u2212")


def preselected(judged: Verdicts) -> list[int]:
    """Return the models that the charts show at first: the worst, or the first lines if none is worse."""
    worse = [one.model for one in judged.models if one.state == "worse"]
    return (worse or [one.model for one in judged.models])[:PRESELECTED]
