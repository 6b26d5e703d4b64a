"""The moment of change that best explains the AUCs of a series.

The model
    Before the moment c every event ranks with AUC a, from c + g on with a + b; in between the AUC moves from
    a to a + b in a straight line. g = 0 is a sudden change. The AUC of a window is taken to be a + b s, where
    s is the mean of the change over the window's events: 0 where the window ends before c. Weighted least
    squares (weight = 1 / variance) give a and b for every c and g of a grid. The best c has the least sum of
    squares. b has the sign of the change that the verdict names.

    A gradual change is said only where its least sum of squares is below that of every sudden change by
    more than `GRADUAL`.

The grid
    The first grid spans all rows. Each next grid spans the moments that the last grid left possible, until
    moments are less than a twentieth of a window apart. If there are many rows, some are left out, and their
    neighbours get their weight. So a fit costs O(rows) once and a constant for each grid.

The uncertainty
    The likelihood ratio of a moment c is LR(c) = SS(c) - SS(best). The interval holds all c with LR(c) <= -2
    log(1 - sqrt(level)): Hansen (2000, Econometrica 68, theorem 2) for the threshold of a regression. Where a
    gradual change explains the rows better than every sudden change, by however little, SS(c) is the least of
    both kinds, and the bound is `EITHER` times as large. Rows whose windows share events have less
    information than independent rows. So sums of squares are multiplied by the number of events that the
    windows span over the sum of the windows' lengths, where that is below 1. The ends of the interval are the
    neighbouring moments of the grid.

    In 400 streams of each kind, windows an eighth of the stream with six rows each, falls of 0.10 and 0.14:
    the interval of level 95% held the moment in 99% of sudden and 98% of gradual changes. The moment itself
    was less than a window away in 96% and 85%. 6% of sudden changes were called gradual, and 82% of gradual
    ones. In series of 50 to 1,000 windows the interval held the moment in 93% to 100%, and up to 18% of
    sudden changes were called gradual.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..arrays import BoolArray, FloatArray, Int64Array
from .series import Series

MOMENTS = 150
"""How many moments a grid has, at equal distances."""

ROWS = 300
"""The most rows inside the range of a grid that are fitted; as many rows outside of it are fitted."""

GRIDS = 6
"""The most grids that are made, each within the last."""

FINE = 0.05
"""No finer grid is made if moments are at most this distance apart, in lengths of a window."""

DURATIONS = 12
"""The most durations of a gradual change that are tried, from a window's length to that of all rows."""

GRADUAL = 1.5
"""A change is called gradual if a gradual change explains the rows better than every sudden change by this
amount.
"""

EITHER = 0.68
"""The factor of Hansen's bound if the change may be of either kind; found by simulation."""

_KEPT = 1.5
"""The factor of the bound for the moments that the next grid spans."""


class Since(NamedTuple):
    """When a change began, in the unit of `Series.end` (events, or times of panes) and in time.

    place, earliest, latest  the number of events before the change began: the best estimate, and the ends of
                             its interval
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


class _Windows(NamedTuple):
    """Windows to fit: arrays of n."""

    begin: FloatArray
    end: FloatArray
    auc: FloatArray
    weight: FloatArray

    def within(self, low: float, high: float) -> _Windows:
        """Return at most ROWS windows that reach into a range, and as many others, with the weight of all."""
        inside = (self.end > low) & (self.begin < high)
        parts = [self._some(np.flatnonzero(part)) for part in (inside, ~inside)]
        rows = np.concatenate([part for part, _ in parts])
        stands_for = np.concatenate([np.full(len(part), times) for part, times in parts])
        return _Windows(self.begin[rows], self.end[rows], self.auc[rows], self.weight[rows] * stands_for)

    @staticmethod
    def _some(rows: Int64Array) -> tuple[Int64Array, float]:
        """Return some of the rows, the last row among them, and the number of rows for which each stands."""
        if len(rows) <= ROWS:
            return rows, 1.0
        kept: Int64Array = rows[np.linspace(0, len(rows) - 1, ROWS).astype(np.int64)]
        return kept, len(rows) / ROWS


def change_began(
    series: Series, variance: FloatArray, latest: int, direction: float, confidence: float
) -> Since | None:
    """Return when the change began that the row `latest` shows; None if no moment explains the rows.

    variance    the variance of each AUC
    direction   the sign of the change
    confidence  the level of the interval of the moment

    The windows of fading weights hold old events with less weight than new ones. Such windows are not fitted,
    and the result is None.
    """
    rows = np.flatnonzero(variance[: latest + 1] > 0)
    if len(rows) < 3 or series.fades(latest):
        return None
    windows = _Windows(
        series.begin[rows].astype(np.float64),
        series.end[rows].astype(np.float64),
        series.auc[rows],
        1 / np.maximum(variance[rows], np.median(variance[rows])),
    )
    spans = windows.end - windows.begin
    low, high = float(windows.begin.min()), float(windows.end.max())
    independent = min(1.0, (high - low) / float(spans.sum()))
    length = float(np.median(spans))
    durations = [0.0]
    if high - low > length:
        durations += np.geomspace(length, high - low, DURATIONS).tolist()
    limit = -2 * math.log(1 - math.sqrt(confidence))
    for _ in range(GRIDS):
        moments = np.linspace(low, high, MOMENTS + 2)[1:-1]
        step = float(moments[1] - moments[0])
        some = windows.within(low, high)
        shares = [_shares(some, moments, duration) for duration in durations]
        gains = np.stack([_gains(share, some, direction) for share in shares]) * independent
        kept = np.zeros(MOMENTS, np.bool_)
        for possible in (gains.max(axis=0), gains[0]):
            kept |= possible >= possible.max() - _KEPT * limit
        places = np.flatnonzero(kept)
        narrower = max(low, float(moments[places[0]]) - step), min(high, float(moments[places[-1]]) + step)
        if step <= FINE * length or narrower[1] - narrower[0] > 0.8 * (high - low):
            break
        low, high = narrower
        durations = _finer(durations, gains.max(axis=1) >= gains.max() - _KEPT * limit)
    best_of = gains.max(axis=1)
    best, possible = int(np.argmax(best_of)), gains[0]
    if best:  # both a sudden and a gradual change say which moments are possible
        possible, limit = gains.max(axis=0), limit * EITHER
        if best_of[best] <= best_of[0] + GRADUAL:
            best = 0
    at = int(np.argmax(gains[best]))
    if not possible[at] > 0:
        return None
    inside = np.flatnonzero(possible >= possible.max() - limit)
    place = float(moments[at])
    earliest = max(low, min(place, float(moments[inside[0]])) - step)
    last = min(high, max(place, float(moments[inside[-1]])) + step)
    until = min(place + durations[best], float(windows.end.max()))
    times = _times(series, [place, earliest, last, until])
    before = _level_before(shares[best][at], some)
    return Since(place, earliest, last, *times[:3], until, times[3], before)


def _finer(durations: list[float], possible: BoolArray) -> list[float]:
    """Return 0, and durations between the possible durations and their neighbours."""
    if len(durations) == 1:
        return durations
    places = np.flatnonzero(possible[1:]) + 1
    if not len(places):
        places = np.array([1])
    low, high = durations[max(1, int(places[0]) - 1)], durations[min(len(durations) - 1, int(places[-1]) + 1)]
    return [0.0, *np.geomspace(low, high, DURATIONS).tolist()]


def _shares(windows: _Windows, moments: FloatArray, duration: float) -> FloatArray:
    """Return the mean of the change over each window's events: one row for each moment."""

    def change_up_to(ordinal: FloatArray) -> FloatArray:
        """Return the sum of the change over all events up to `ordinal`, one row for each moment."""
        after = np.maximum(ordinal - moments[:, None], 0)
        if not duration:
            return after
        within = np.minimum(after, duration)
        return after - within + within**2 / (2 * duration)

    begin, end = windows.begin, windows.end
    shares: FloatArray = (change_up_to(end) - change_up_to(begin)) / (end - begin)
    return shares


def _gains(shares: FloatArray, windows: _Windows, direction: float) -> FloatArray:
    """Return by how much each moment lowers the weighted sum of squares.

    0 for a moment whose change has the wrong direction.
    """
    weight, auc = windows.weight, windows.auc
    share = shares - (shares @ weight / weight.sum())[:, None]
    centred = auc - auc @ weight / weight.sum()
    both, own = share @ (weight * centred), share**2 @ weight
    known = (own > 1e-12 * weight.sum()) & (both * direction > 0)
    return np.where(known, both**2 / np.where(known, own, 1), 0.0)


def _level_before(share: FloatArray, windows: _Windows) -> float:
    """Return the AUC for a share of change of 0, by the regression on the shares of one moment."""
    weight, auc = windows.weight, windows.auc
    mean, level = share @ weight / weight.sum(), auc @ weight / weight.sum()
    centred = share - mean
    slope = float(centred @ (weight * (auc - level)) / (centred**2 @ weight))
    return float(min(max(level - slope * mean, 0.0), 1.0))


def _times(series: Series, places: list[float]) -> tuple[float, float, float, float]:
    """Return the times of four places between rows, interpolated; NaN if rows have no times."""
    known = np.isfinite(series.time)
    if not known.any():
        return (math.nan,) * 4
    ends, times = series.end[known].astype(np.float64), series.time[known]
    order = np.argsort(ends, kind="stable")
    first = int(np.flatnonzero(known)[0])
    if np.isfinite(series.since[first]) and series.begin[first] < ends[order[0]]:
        ends = np.append(float(series.begin[first]), ends[order])
        times = np.append(series.since[first], times[order])
    else:
        ends, times = ends[order], times[order]
    one, two, three, four = (float(time) for time in np.interp(places, ends, times))
    return one, two, three, four
