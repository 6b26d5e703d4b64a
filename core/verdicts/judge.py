"""The verdicts of a page: every model and slice against its reference, corrected for their number.

The states
    worse, better    The interval of the difference to the reference excludes 0.
    no change shown  The interval includes 0. This does not prove that nothing changed.
    cannot tell      There is nothing to compare; `Verdict.why` says what is missing.

The correction
    A page of M models and S slices has M + S tests. With level 0.95 a page without any change names a model
    or a slice with probability 5% at most, whatever the dependence between tests (Bonferroni): half of the
    5% is shared by the models, half by the slices; without slices, the models share all of it. The intervals
    of differences are as wide as this correction needs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from scipy.special import ndtr, ndtri

from ..alerts.rules import Span
from ..arrays import FloatArray
from ..rows.differences import FEWEST
from ..settings.periods import Period
from .reference import (
    Difference,
    apart_in_time,
    difference_to,
    earlier_rows,
    latest_full,
    missing_times,
    named_rows,
)
from .series import Series
from .since import Since, change_began

State = Literal["worse", "better", "no change shown", "cannot tell"]
STATES: tuple[State, ...] = ("worse", "better", "no change shown", "cannot tell")

Why = Literal[
    "", "no row", "no full window", "no AUC", "no interval", "too few labels", "no earlier window",
    "no earlier window with enough labels", "no times", "no window in the reference", "one time",
]  # fmt: skip


class Verdict(NamedTuple):
    """The verdict on one (model, slice).

    model, slice  places in the caller's lists
    state         one of `STATES`
    why           what is missing, if the state is "cannot tell"; else ""
    row           the row of the latest full window in the series; if there is no full window, the last row;
                  -1 without rows
    windows       the number of windows of the reference
    reference     the mean AUC of the reference, NaN = none
    change        AUC of the latest window less `reference`, NaN = none; `low`, `high`: its corrected interval
    p             the corrected p-value of "nothing changed", NaN = none
    since         when the change began; None without a change
    """

    model: int
    slice: int
    state: State
    why: Why
    row: int
    windows: int = 0
    reference: float = math.nan
    change: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    since: Since | None = None

    @property
    def changed(self) -> bool:
        """Whether a change is shown."""
        return self.state in ("worse", "better")


class Judged(NamedTuple):
    """One (model, slice) to judge: the places of both in the caller's lists, the slice's name, its rows."""

    model: int
    slice: int
    slice_text: str
    series: Series


def judge(
    judged: Sequence[Judged], confidence: float, reference: Span | Period | None = None
) -> list[Verdict]:
    """Return the verdict on each (model, slice), in the same order.

    judged      models and slices; a slice with an empty name is the whole model
    confidence  the level of the intervals of the rows, and of the page's verdicts together
    reference   what the latest windows are compared with (`choice.reference_of`); None: all earlier windows

    O(rows) and one fit (`since`) for each change that is shown.
    """
    variances = [one.series.variance(confidence) for one in judged]
    rows = [latest_full(one.series) for one in judged]
    found = [
        _difference(one.series, variance, row, reference)
        for one, variance, row in zip(judged, variances, rows, strict=True)
    ]
    of_slices = [bool(one.slice_text) for one in judged]
    tests = {
        slices: sum(
            isinstance(each, Difference) and own == slices for each, own in zip(found, of_slices, strict=True)
        )
        for slices in (False, True)
    }
    shares = 1 + (min(tests.values()) > 0)
    verdicts = []
    for one, variance, row, each in zip(judged, variances, rows, found, strict=True):
        if not isinstance(each, Difference):
            row = row if row >= 0 else len(one.series.seq) - 1
            verdicts.append(Verdict(one.model, one.slice, "cannot tell", each, row))
            continue
        correction = shares * tests[bool(one.slice_text)]
        verdict = _verdict(one, each, correction, confidence)
        if verdict.changed:
            since = change_began(one.series, variance, each.latest, verdict.change, confidence)
            verdict = verdict._replace(since=since)
        verdicts.append(verdict)
    return verdicts


def _verdict(one: Judged, found: Difference, correction: int, confidence: float) -> Verdict:
    error = math.sqrt(found.variance)
    half = float(-ndtri((1 - confidence) / (2 * correction))) * error
    low, high = found.difference - half, found.difference + half
    state: State = "worse" if high < 0 else "better" if low > 0 else "no change shown"
    p = min(1.0, 2 * float(ndtr(-abs(found.difference) / error)) * correction)
    return Verdict(
        one.model,
        one.slice,
        state,
        "",
        found.latest,
        len(found.chain),
        found.auc,
        found.difference,
        low,
        high,
        p,
    )


def _difference(
    series: Series, variance: FloatArray, latest: int, reference: Span | Period | None
) -> Difference | Why:
    """Return the difference of the window of the row `latest` to its reference, or why there is none."""
    if not len(series.seq):
        return "no row"
    if series.rarer[latest] < FEWEST:  # without a full window this is the last row
        return "too few labels"
    if latest < 0:
        return "no full window"
    if not math.isfinite(series.auc[latest]):
        return "no AUC"
    if not variance[latest] > 0 or not series.weight[latest] > 0:
        return "no interval"
    if missing_times(series, reference):
        return "no times"
    found = difference_to(series, variance, latest, reference)
    if found is not None:
        return found if math.isfinite(found.difference) and math.isfinite(found.variance) else "no interval"
    named = named_rows(series, latest, reference)
    if not earlier_rows(series, latest).any():
        return "no earlier window"
    if not named.any():
        return "no window in the reference"
    return (
        "no earlier window with enough labels"
        if (named & apart_in_time(series, latest)).any()
        else "one time"
    )
