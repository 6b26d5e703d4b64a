"""Since when: the moment of change that best explains the AUCs of a series.

The model
    Before the moment c every event ranks with AUC a, from c + g on with a + b; in between the AUC moves from
    a to a + b in a straight line. g = 0 is a sudden change. The AUC of a window is taken to be a + b s, where
    s is the mean of the change over the window's events: 0 where the window ends before c. Weighted least
    squares (weight = 1 / variance) give a and b for every c of a grid of `MOMENTS`. The best c
    has the least sum of squares. b has the sign of the change that the verdict names.

    A gradual change is said only where its least sum of squares is below that of every sudden change by
    more than `GRADUAL`.

The uncertainty
    The likelihood ratio of a moment c is LR(c) = SS(c) - SS(best). The interval holds all c with LR(c) <=
    -2 log(1 - sqrt(level)): Hansen (2000, Econometrica 68, theorem 2) for the threshold of a regression.
    Where a gradual change explains the rows better than every sudden change, by however little, SS(c) is the
    least of both kinds, and the bound is `EITHER` times as large. Rows whose windows share events say less
    than independent rows. So sums of squares are multiplied by the number of events that the windows span
    over the sum of the windows' lengths, where that is below 1.

    In 400 streams of each kind, windows an eighth of the stream with six rows each, falls of 0.10 and 0.14:
    the interval of level 95% held the moment in 99% of sudden and 97% of gradual changes. The moment itself
    was less than a window away in 96% and 85%. 6% of sudden changes were called gradual, and 82% of gradual
    ones. With Hansen's bound for either kind the interval of a sudden change was 1.6 times as wide.

O(n c) for n rows and c moments, at most ROWS and MOMENTS.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..arrays import FloatArray
from .series import Series

ROWS = 1_000
"""The most rows that are fitted; of more, every second, third, ... row."""

MOMENTS = 400
"""The moments that are tried for the change, at equal distances."""

GRADUAL = 1.5
"""By how much a gradual change must explain the rows better than every sudden one, to be called gradual."""

EITHER = 0.68
"""What Hansen's bound is multiplied by where the change may be of either kind: found by simulation."""

_LENGTHS = (0.0, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0)
"""Durations of a change that are tried, in lengths of a window."""


class Since(NamedTuple):
    """When a change began, in the unit of `Series.end` (events, or times of panes) and in time.

    place, earliest, latest  the number of events before the change began: the best, and its interval
    time, time_earliest, time_latest  the same in microseconds UTC, NaN = null
    until       place at which a gradual change was complete; `place` for a sudden change
    time_until  the same in time
    before      the AUC before the change, as the least squares estimate it
    """

    place: float
    earliest: float
    latest: float
    time: float
    time_earliest: float
    time_latest: float
    until: float
    time_until: float
    before: float

    @property
    def gradual(self) -> bool:
        """Whether the change took longer than a moment."""
        return self.until > self.place


def change_began(
    series: Series, variance: FloatArray, latest: int, direction: float, confidence: float
) -> Since | None:
    """Return when the change began that the row `latest` shows; None where no moment explains the rows.

    variance    of each AUC
    direction   the sign of the change
    confidence  the level of the interval of the moment
    """
    rows = np.flatnonzero(series.full[: latest + 1] & (variance[: latest + 1] > 0))
    rows = rows[:: -max(1, -(-len(rows) // ROWS))][::-1]  # the latest row stays
    if len(rows) < 3:
        return None
    begin, end = series.begin[rows].astype(np.float64), series.end[rows].astype(np.float64)
    auc, weight = series.auc[rows], 1 / np.maximum(variance[rows], np.median(variance[rows]))
    moments = np.linspace(begin.min(), end.max(), MOMENTS + 2)[1:-1]
    spans = end - begin
    independent = min(1.0, float(end.max() - begin.min()) / float(spans.sum()))
    length = float(np.median(spans))
    durations = [times * length for times in _LENGTHS if times * length < float(end.max() - begin.min())]
    shares = [_shares(begin, end, moments, duration) for duration in durations]
    gains = np.stack([_gains(share, auc, weight, direction) for share in shares]) * independent
    best_of = gains.max(axis=1)
    best = int(np.argmax(best_of))
    limit = -2 * math.log(1 - math.sqrt(confidence))
    if best:  # whether sudden or gradual: both say which moments are possible
        possible = gains.max(axis=0)
        limit *= EITHER
        if best_of[best] <= best_of[0] + GRADUAL:
            best = 0
    else:
        possible = gains[0]
    at = int(np.argmax(gains[best]))
    if not possible[at] > 0:
        return None
    inside = np.flatnonzero(possible >= possible.max() - limit)
    place, earliest, latest_place = (float(moments[one]) for one in (at, inside[0], inside[-1]))
    until = min(place + durations[best], float(end[-1]))
    time, first, last, time_until = _times(series, [place, earliest, latest_place, until])
    before = _level_before(shares[best][at], auc, weight)
    return Since(place, earliest, latest_place, time, first, last, until, time_until, before)


def _shares(begin: FloatArray, end: FloatArray, moments: FloatArray, duration: float) -> FloatArray:
    """Return the mean of the change over each window's events: a row for each moment."""

    def change_up_to(ordinal: FloatArray) -> FloatArray:
        """Return the sum of the change over all events up to `ordinal`, a row for each moment."""
        after = np.maximum(ordinal - moments[:, None], 0)
        if not duration:
            return after
        within = np.minimum(after, duration)
        return after - within + within**2 / (2 * duration)

    shares: FloatArray = (change_up_to(end) - change_up_to(begin)) / (end - begin)
    return shares


def _gains(shares: FloatArray, auc: FloatArray, weight: FloatArray, direction: float) -> FloatArray:
    """Return by how much each moment lowers the weighted sum of squares; 0 for the wrong direction."""
    share = shares - (shares @ weight / weight.sum())[:, None]
    centred = auc - auc @ weight / weight.sum()
    both, own = share @ (weight * centred), share**2 @ weight
    known = (own > 1e-9 * weight.sum()) & (both * direction > 0)
    return np.where(known, both**2 / np.where(known, own, 1), 0.0)


def _level_before(share: FloatArray, auc: FloatArray, weight: FloatArray) -> float:
    """Return the AUC where the share of the change is 0, by the regression on the shares of one moment."""
    mean, level = share @ weight / weight.sum(), auc @ weight / weight.sum()
    centred = share - mean
    slope = float(centred @ (weight * (auc - level)) / (centred**2 @ weight))
    return float(min(max(level - slope * mean, 0.0), 1.0))


def _times(series: Series, places: list[float]) -> list[float]:
    """Return the times of places between rows, interpolated; NaN where rows have no times."""
    known = np.isfinite(series.time)
    if not known.any():
        return [math.nan] * len(places)
    ends, times = series.end[known].astype(np.float64), series.time[known]
    order = np.argsort(ends, kind="stable")
    first = int(np.flatnonzero(known)[0])
    if np.isfinite(series.since[first]) and series.begin[first] < ends[order[0]]:
        ends = np.append(float(series.begin[first]), ends[order])
        times = np.append(series.since[first], times[order])
    else:
        ends, times = ends[order], times[order]
    return [float(time) for time in np.interp(places, ends, times)]
