"""The verdict on each model, from the verdicts on the whole model and on its slices, and their words.

`judge_rows` gives one `ModelVerdict` a model, worst first. The report's overview and the terminal's table
show the verdicts in the words of this module.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...core.alerts.rules import Span
from ...core.rows.differences import FEWEST
from ...core.settings.periods import Period
from ...core.verdicts.judge import Judged, State, Verdict, Why, judge
from ...core.verdicts.series import Series, series_of
from ...core.verdicts.since import Since
from ..words import DAY, all_dates, counted, day, moment, share
from .classes.page_classes import rarest
from .report_rows import ReportRows

_MISSING: dict[Why, tuple[str, str]] = {
    "too few labels": ("too few labels", f"fewer than {FEWEST} positives or negatives in the latest window"),
    "no earlier window with enough labels": (
        "too few labels",
        f"no earlier window has {FEWEST} positives and {FEWEST} negatives",
    ),
    "no earlier window": ("no earlier window", "no earlier window without a common event"),
    "no full window": ("no earlier window", "every window so far reaches back to the first event"),
    "no window in the reference": ("no window in the reference", "the reference names no earlier window"),
    "one time": ("windows that touch in time", "no earlier window ends before the time the latest begins"),
    "no row": ("no rows of all events", "there are rows of slices alone"),
    "no AUC": ("no AUC", "AUC is null in the latest window"),
    "no interval": ("no AUC", "the AUC of the latest window has no interval"),
    "no times": ("no times", "the reference is a time, and the rows have no times"),
}
"""What is missing, by `Verdict.why`: in a few words, and in a sentence's part."""


class ModelVerdict(NamedTuple):
    """The verdict on one model.

    model   its place in `ReportRows.models`
    state   the state of the whole model; if the model is not worse, but a slice is: worse; if the model has
            no change, the state of the slices that changed
    whole   the verdict on the whole model; None without rows of the whole model
    slices  the verdicts on the slices that changed in the direction of `state`, greatest change first
    others  the verdicts on the slices that changed in the other direction
    series  the rows of the whole model and of each slice, by the slice's place
    """

    model: int
    state: State
    whole: Verdict | None
    slices: Sequence[Verdict]
    others: Sequence[Verdict]
    series: Mapping[int, Series]

    @property
    def only_in_slices(self) -> bool:
        """Whether slices changed as `state` says, and the whole model did not."""
        return bool(self.slices) and (self.whole is None or self.whole.state != self.state)

    @property
    def shown(self) -> Verdict | None:
        """The verdict whose change stands for the model: of the slice that changed most, or of the whole."""
        return self.slices[0] if self.only_in_slices else self.whole


class Verdicts(NamedTuple):
    """The verdicts of a page.

    models  on each model, worst first
    series  on every (model, slice), in the order of `ReportRows.series`
    """

    models: list[ModelVerdict]
    series: list[Verdict]


def judge_rows(rows: ReportRows, confidence: float, reference: Span | Period | None = None) -> Verdicts:
    """Judge every model and slice of a page. O(rows) and one fit for each change."""
    judged = [
        Judged(model, part, rows.slices[part], series_of(rows.columns, slice(first, stop)))
        for model, part, first, stop in rows.series.tolist()
    ]
    if rows.classes is not None:
        judged = _with_rarest(rows, judged)
    found = judge(judged, confidence, reference)
    by_model: dict[int, list[tuple[Judged, Verdict]]] = {}
    for one, verdict in zip(judged, found, strict=True):
        by_model.setdefault(one.model, []).append((one, verdict))
    models = [_of_model(model, parts) for model, parts in by_model.items()]
    return Verdicts(sorted(models, key=lambda one: _place(one, rows.models[one.model])), found)


def _with_rarest(rows: ReportRows, judged: Sequence[Judged]) -> list[Judged]:
    """Return models and slices with the events of their rarest class, as their `rarer`."""
    parts = {} if rows.classes is None else rows.classes.parts
    of_classes: dict[tuple[int, int], list[slice]] = {}
    for model, part, first, stop in rows.series.tolist():
        if part in parts:
            of_classes.setdefault((model, parts[part][0]), []).append(slice(first, stop))
    found = []
    for one, (model, part, first, stop) in zip(judged, rows.series.tolist(), strict=True):
        least = rarest(rows.columns, slice(first, stop), of_classes.get((model, part), []))
        found.append(one if least is None else one._replace(series=one.series._replace(rarer=least)))
    return found


def _of_model(model: int, parts: Sequence[tuple[Judged, Verdict]]) -> ModelVerdict:
    whole = next((verdict for one, verdict in parts if not one.slice_text), None)
    slices = [verdict for one, verdict in parts if one.slice_text and verdict.changed]
    state: State = "cannot tell" if whole is None else whole.state
    if state != "worse" and any(verdict.state == "worse" for verdict in slices):
        state = "worse"
    elif state not in ("worse", "better") and slices:
        state = "better"
    slices.sort(key=lambda one: -abs(one.change))
    same = [one for one in slices if one.state == state]
    others = [one for one in slices if one.state != state]
    return ModelVerdict(model, state, whole, same, others, {one.slice: one.series for one, _ in parts})


def _place(one: ModelVerdict, name: str) -> tuple[float, float, str]:
    """Return the key that puts the worst model first."""
    order = {"worse": 0, "cannot tell": 2, "no change shown": 3, "better": 5}
    rank = order[one.state] + (one.only_in_slices if one.state == "worse" else -float(one.only_in_slices))
    change = one.shown.change if one.shown is not None else math.nan
    return rank, math.inf if math.isnan(change) else change, name


def sentence(
    models: Sequence[ModelVerdict], names: Sequence[str], slices: Sequence[str], *, ways: bool = False
) -> str:
    """Return what a page shows, in one sentence. The caller makes the names safe to show.

    ways  whether models were evaluated under several settings, so that a model has several verdicts
    """
    if not models:
        return "There is no model to judge: there are no rows."
    if len(models) == 1:
        return f"{names[models[0].model] or 'The model'} {_does(models, slices)}."
    groups: dict[str, list[ModelVerdict]] = {}
    for one in models:
        kind = f"{one.state} in slices" if one.only_in_slices else one.state
        if one.state == "cannot tell":
            kind = missing(one)[0]
        groups.setdefault(kind, []).append(one)
    noun = "evaluations of models" if ways else "models"
    if all(one.state == "cannot tell" for one in models):
        lacks = [f"{len(group):,} {_does(group, slices)}" for group in groups.values()]
        return f"None of {len(models):,} {noun} can be judged: {'; '.join(lacks)}."
    worse = groups.pop("worse", [])
    count = f"{len(worse):,}" if worse else "None"
    first = f"{count} of {len(models):,} {noun} {'rank' if len(worse) > 1 else 'ranks'} worse than "
    parts = [first + ("they did" if len(worse) > 1 else "it did")]
    order = ["worse in slices", "better", "better in slices", "no change shown"]
    kinds = [one for one in (*order, *(one for one in groups if one not in order)) if one in groups]
    parts += [f"{len(groups[kind]):,} {_does(groups[kind], slices)}" for kind in kinds]
    return "; ".join(parts) + "."


def _does(models: Sequence[ModelVerdict], slices: Sequence[str]) -> str:
    """Return what models of one kind do: a verb and its object, in the singular or plural."""
    one, several = models[0], len(models) > 1
    if one.state in ("worse", "better"):
        does = f"{'rank' if several else 'ranks'} {one.state} "
        if not one.only_in_slices:
            return does + ("than they did" if several else "than it did")
        common = Counter(verdict.slice for each in models for verdict in each.slices)
        where = f"{len(common)} slices" if len(common) > 1 else slices[next(iter(common))]
        return f"{does}only in {'slices' if several and len(common) > 1 else where}"
    has = "have" if several else "has"
    if one.state == "no change shown":
        return "show no change" if several else "shows no change"
    return f"{has} {missing(one)[0]}"


def missing(one: ModelVerdict) -> tuple[str, str]:
    """Return what a model lacks that cannot be judged: in a few words, and in a sentence's part."""
    return _MISSING["no row" if one.whole is None else one.whole.why or "no row"]


def state_text(one: ModelVerdict, slices: Sequence[str]) -> str:
    """Return the state in words, such as "worse only in region=eu" or "cannot tell: no earlier window"."""
    if one.only_in_slices:
        first, others = slices[one.slices[0].slice], len(one.slices) - 1
        if others:
            return f"{one.state} in {first} and {counted(others, 'other slice')}"
        return f"{one.state} only in {first}"
    return f"cannot tell: {missing(one)[0]}" if one.state == "cannot tell" else one.state


def change_text(verdict: Verdict | None) -> str:
    """Return the change against the reference with its interval, signed; "" without a change to tell.

    >>> change_text(Verdict(0, 0, "worse", "", 9, change=-0.0712, low=-0.1, high=-0.042))
    '-0.071 [-0.100, -0.042]'
    """
    if verdict is None or math.isnan(verdict.change):
        return ""
    change, low, high = (
        f"{value:+.3f}".replace("-0.000", "+0.000") for value in (verdict.change, verdict.low, verdict.high)
    )
    return f"{change} [{low}, {high}]"


def since_text(since: Since | None, *, interval: bool = True) -> str:
    """Return when a change began, with its interval; "" where no moment explains the rows.

    >>> since_text(Since(14_000, 13_500, 14_250, *[math.nan] * 3, 14_000, math.nan, 0.8))
    'since event 14,000 (13,500 to 14,250)'
    """
    if since is None:
        return ""
    if math.isfinite(since.time):
        times = np.array([since.time, since.time_earliest, since.time_latest, since.time_until])
        write = day if times[2] - times[1] >= DAY or all_dates(times) else moment
        first, low, high, until = map(write, times.tolist())
        year = first[-5:]
        if write is day and low.endswith(year) and high.endswith(year):
            low, high = low.removesuffix(year), high.removesuffix(year)
    else:
        first, low, high, until = (
            f"{round(value):,}" for value in (since.place, since.earliest, since.latest, since.until)
        )
        first = f"event {first}"
    between = f" ({low} to {high})" if interval and low != high else ""
    if since.gradual:
        return f"gradually from {first}{between}" + (f" until {until}" if interval else "")
    return f"since {first}{between}"


def reference_text(reference: Span | Period | None) -> str:
    """Return what the latest windows are compared with, in words.

    >>> reference_text(None), reference_text(Span(3))
    ('all earlier windows that share no event with the latest', 'the windows of the 3 rows before')
    """
    if reference is None:
        return "all earlier windows that share no event with the latest"
    if isinstance(reference, Period):
        return f"the windows within {reference}"
    if reference.unit == "rows":
        return f"the windows of the {reference} before"
    return f"the windows of the {reference} before the latest begins"


def _of_slices(judged: Verdicts) -> list[Verdict]:
    whole = {(one.whole.model, one.whole.slice) for one in judged.models if one.whole is not None}
    return [one for one in judged.series if (one.model, one.slice) not in whole]


def about_verdicts(
    rows: ReportRows, judged: Verdicts, confidence: float, reference: Span | Period | None
) -> str:
    """Return the question that the verdicts answer, and the promise that they keep, in sentences."""
    slices = sum(one.state != "cannot tell" for one in _of_slices(judged))
    models = sum(one.whole is not None and one.whole.state != "cannot tell" for one in judged.models)
    among = counted(models, "model")
    among += f" and {rows.counted_slices(slices)} of models" if slices else ""
    return (
        f"The latest full window against {reference_text(reference)}. Intervals of changes are corrected for "
        f"{among}: where nothing changed, {share(1 - confidence)} of such pages at most name a change."
    )


def unjudged_text(rows: ReportRows, judged: Verdicts) -> str:
    """Return how many slices could not be judged and what they lack, in a sentence; "" if all were judged."""
    slices = _of_slices(judged)
    lacks = Counter(_MISSING[one.why or "no row"][0] for one in slices if one.state == "cannot tell")
    if not lacks:
        return ""
    told = ", ".join(f"{count:,} with {what}" for what, count in lacks.most_common())
    return f"{lacks.total():,} of {rows.counted_slices(len(slices))} of models cannot be judged: {told}."
