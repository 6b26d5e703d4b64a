"""Reference: the earlier windows with which the latest window of a series is compared.

The windows of the reference
    The chain is built backwards. Its first window is the latest window that shares no event with the window
    under test. Each next window is the latest that shares no event with the window chosen before. So all
    windows of the chain are independent, and together they hold nearly all earlier events. Windows that were
    not full yet count, too. `rows.differences` says when two windows share no event. Windows with fewer than
    FEWEST events of a class are left out.

The difference
    The difference is AUC(latest) - mean of the AUCs of the chain, weighted by P N / (P + N). Its variance is
    the variance of the latest AUC plus the variance of the mean.

    DeLong's variance of a single window is too small whenever chance put the AUC close to 1. Tests far in the
    tail, as those of many models are, then name too many rises: of windows with 48 positives at an AUC of
    0.96, 1.6% where 0.05% is promised. So the variance of the latest AUC is at least the variance that the
    chain leads to expect: the mean of (variance x weight) over the chain, over the weight of the latest.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..alerts.rules import Span
from ..arrays import BoolArray, FloatArray, Int64Array
from ..rows.differences import first_time
from ..settings.periods import Period
from .series import Series


class Difference(NamedTuple):
    """The difference of the latest full window to its reference.

    latest      the row of the latest full window in the series
    chain       rows of the reference, latest first
    auc         the mean AUC of the reference
    difference  AUC of the latest full window less `auc`
    variance    the variance of `difference`
    """

    latest: int
    chain: Int64Array
    auc: float
    difference: float
    variance: float


def latest_full(series: Series) -> int:
    """Return the row of the latest full window, or -1 if no window is full."""
    rows = np.flatnonzero(series.full)
    return int(rows[-1]) if len(rows) else -1


def difference_to(
    series: Series, variance: FloatArray, latest: int, reference: Span | Period | None
) -> Difference | None:
    """Compare the window of a row with its reference; None if no window of the reference can be compared.

    variance  the variance of each AUC (`Series.variance`); that of the row `latest` must be known

    O(n).
    """
    allowed = named_rows(series, latest, reference) & (variance > 0)
    chain = _chain(series, latest, np.flatnonzero(allowed))
    if not len(chain):
        return None
    weights = series.weight[chain]
    total = float(weights.sum())
    auc = float(weights @ series.auc[chain]) / total
    of_mean = float(weights**2 @ variance[chain]) / total**2
    expected = float(np.mean(variance[chain] * weights)) / float(series.weight[latest])
    of_latest = max(float(variance[latest]), expected)
    return Difference(latest, chain, auc, float(series.auc[latest]) - auc, of_latest + of_mean)


def earlier_rows(series: Series, latest: int) -> BoolArray:
    """Return which rows before the latest have windows that share no event with the latest window."""
    earlier: BoolArray = series.end <= series.begin[latest]
    earlier[latest:] = False
    return earlier


def named_rows(series: Series, latest: int, reference: Span | Period | None) -> BoolArray:
    """Return which of the earlier rows the reference names, whether or not these rows can be compared."""
    earlier = earlier_rows(series, latest)
    if reference is None:
        return earlier
    if isinstance(reference, Span) and reference.unit == "rows":
        earlier[np.flatnonzero(earlier)[: -reference.count]] = False
        return earlier
    begins = first_time(series.since, series.time)
    if isinstance(reference, Period):
        within: BoolArray = (begins >= reference.start) & (series.time < reference.end)
    else:
        within = begins >= begins[latest] - reference.count
    return within & earlier


def _chain(series: Series, latest: int, rows: Int64Array) -> Int64Array:
    """Return rows whose windows share no event with each other or with the window of `latest`.

    The latest row first. O(n).
    """
    end, time = series.end.tolist(), series.time.tolist()
    begin = series.begin.tolist()
    begins = first_time(series.since, series.time).tolist()
    chain: list[int] = []
    before, before_time = begin[latest], begins[latest]
    for row in rows[::-1].tolist():
        # A comparison with an unknown time (NaN) is false, so it excludes no window.
        if end[row] <= before and not time[row] >= before_time:
            chain.append(row)
            before, before_time = begin[row], begins[row]
    return np.array(chain, np.int64)


def apart_in_time(series: Series, latest: int) -> BoolArray:
    """Return which rows end before the time at which the latest window begins.

    Without times, return all rows.
    """
    begins = first_time(series.since, series.time)
    apart: BoolArray = ~(series.time >= begins[latest])
    return apart


def missing_times(series: Series, reference: Span | Period | None) -> bool:
    """Return whether a reference is a time, and the rows have no times."""
    timed = reference is not None and reference.unit == "time"
    return timed and not any(map(math.isfinite, series.time.tolist()))
