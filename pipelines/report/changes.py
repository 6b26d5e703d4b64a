"""Finds in the rows when a model ranked worst, by how much, and whether the interval supports the change.

The moments that are compared
    Rows whose windows are full and share no event (`core.rows.differences`). A Beam pane is represented
    by the window of its last row; two panes share no event iff one pane ends before the other begins.
    The report names the pair of rows with the greatest difference of the AUC.

The statistics behind the sentences
    The pair was chosen as the most extreme of M pairs. So the interval of its difference has the level
    1 - (1 - confidence) / M. This is Bonferroni's correction over the M pairs: it bounds the probability of
    any false claim, whatever the dependence between pairs.

    Windows with fewer than FEWEST events of a class are left out: with so many pairs, the interval reaches
    far into the tail. In 300 simulated streams of 40 windows (AUC 0.80,
    nothing changed, level 95%), a change was claimed in 13% with 5 positives a window, 9% with 10, 3% with
    20, 4% with 30, 6% with 50 and with 100.

    An adaptive window begins where ADWIN saw a change, so its AUC is not that of a window chosen beforehand.
    False claims are still rare: in 200 simulated streams of 20,000 events (AUC 0.80, 30% positive, nothing
    changed, a row every 500), ADWIN on placements cut 0 streams at delta 0.002, 34 at 0.3 and 125 at 0.9. A
    change was claimed in 0, 1 and 3 streams. Dependent neighbouring events, such as those of one day, make
    the intervals of every kind of window too narrow.

The search is O(n log n) in the rows of a series. For row j, the candidates i are a prefix of the rows; the
search keeps running extremes of the prefixes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from ...core.arrays import FloatArray, Int64Array
from ...core.rows.differences import (
    FEWEST,
    comparable_half_width,
    first_time,
    half_width_of_difference,
)
from ...core.verdicts.series import Series
from ..words import all_dates, day, exactly, moment, share, span


class Pair(NamedTuple):
    """The two windows without a common event whose AUCs differ most; `worst` and `best` are row numbers.

    difference  AUC of the best minus AUC of the worst, >= 0
    low, high   the interval of the difference, widened for the choice among `pairs` pairs
    """

    worst: int
    best: int
    pairs: int
    difference: float
    low: float
    high: float

    @property
    def supported(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0


def greatest_difference(series: Series, confidence: float) -> Pair | None:
    """Return the pair of full windows without a common event whose AUCs differ most; None without a pair.

    Left out are rows without an interval, with an interval of no width (perfect separation), or with fewer
    than FEWEST events of a class: a difference to such a row has no valid interval.
    """
    width, rows, before = _comparable(series)
    before = np.minimum(before, _earlier(series, rows))
    auc = series.auc[rows]
    pairs = int(before.sum())
    if not pairs:
        return None
    later = np.flatnonzero(before > 0)
    lowest, highest = _least_so_far(auc), _least_so_far(-auc)
    drops = auc[highest[before[later] - 1]] - auc[later]
    rises = auc[later] - auc[lowest[before[later] - 1]]
    at = int(np.argmax(np.maximum(drops, rises)))
    j = later[at]
    if rises[at] >= drops[at]:
        worst, best = lowest[before[j] - 1], j
    else:
        worst, best = j, highest[before[j] - 1]
    difference = float(auc[best] - auc[worst])
    sides = width[rows[[worst, best]]]
    wider = ndtri((1 - confidence) / (2 * pairs)) / ndtri((1 - confidence) / 2)
    half = float(half_width_of_difference(*sides) * wider)
    return Pair(int(rows[worst]), int(rows[best]), pairs, difference, difference - half, difference + half)


def _comparable(series: Series) -> tuple[FloatArray, Int64Array, Int64Array]:
    """Return the half widths of all rows, the comparable rows, and per comparable row how many end before it.

    Comparable rows are sorted by their ends, so the rows that end before a row begins are a prefix.
    """
    width = comparable_half_width(series.auc, series.low, series.high, series.rarer)
    rows = np.flatnonzero(series.full & (width > 0))
    rows = rows[np.argsort(series.end[rows], kind="stable")]
    return width, rows, np.searchsorted(series.end[rows], series.begin[rows], side="right")


def _earlier(series: Series, rows: Int64Array) -> Int64Array:
    """Return for each row how many rows, counted from the first, end before the time its window begins."""
    since, time = series.since[rows], series.time[rows]
    begins = first_time(since, time)
    latest = np.maximum.accumulate(np.where(np.isnan(time), -np.inf, time))
    count: Int64Array = np.searchsorted(latest, np.where(np.isnan(begins), np.inf, begins), side="left")
    return count


def _least_so_far(values: FloatArray) -> Int64Array:
    """Return for every k the place of the first least value among the first k + 1 values. O(n)."""
    least = np.minimum.accumulate(values)
    fresh = np.append(True, values[1:] < least[:-1])
    return np.maximum.accumulate(np.where(fresh, np.arange(len(values)), 0))


class Change(NamedTuple):
    """The report's verdict on the change of one model.

    verdict      "changed", "not shown" or "cannot tell"
    text         the verdict in one sentence
    figures      the earlier and the later value of the pair, and their days; "" without a pair
    details      sentences on the two windows and on the interval; "" without a pair
    exact        the exact times of the two windows; "" without times
    worst, best  rows of the series, -1 without a pair
    """

    model: str
    verdict: str
    text: str
    figures: str = ""
    details: str = ""
    exact: str = ""
    worst: int = -1
    best: int = -1


def change_of(model: str, series: Series, confidence: float) -> Change:
    """Return the verdict: when the model ranked worst and best, and whether intervals support a change."""
    pair = greatest_difference(series, confidence)
    if pair is None:
        return Change(model, "cannot tell", _why_none(series))
    lowest, highest = (_window(series, row) for row in (pair.worst, pair.best))
    if pair.difference == 0:
        text = f"AUC was {series.auc[pair.worst]:.3f} in every full window."
        return Change(model, "not shown", text, worst=pair.worst, best=pair.best)
    size = f"{pair.difference:.3f}"
    among = (
        "The two are the only pair of full windows without a common event."
        if pair.pairs == 1
        else f"The interval is widened, because the two were picked out of {pair.pairs:,} such pairs."
    )
    interval = f"[{signed(pair.low)}, {signed(pair.high)}]"
    rose = series.end[pair.worst] <= series.begin[pair.best]
    earlier, later = (pair.worst, pair.best) if rose else (pair.best, pair.worst)
    details = f"AUC was lowest {lowest} and highest {highest}. {among}"
    if pair.supported:
        verdict = "changed"
        text = (
            f"The data support a change: AUC {'rose' if rose else 'fell'} by {size}, and the "
            f"{share(confidence)} interval of that difference, {interval}, excludes 0."
        )
    else:
        verdict = "not shown"
        text = (
            f"A difference of {size} can be chance: its {share(confidence)} interval, {interval}, includes 0."
        )
        details += " That does not prove that nothing changed."
    figures = _figures(series, earlier, later)
    return Change(model, verdict, text, figures, details, _exact(series, pair), pair.worst, pair.best)


def _figures(series: Series, earlier: int, later: int) -> str:
    times = series.time[[earlier, later]]
    if not np.isfinite(times).all():
        when = [f"event {series.seq[row]:,}" for row in (earlier, later)]
    elif day(times[0]) != day(times[1]):
        when = [day(time) for time in times]
    else:
        when = [moment(time) for time in times]
    first, second = (f"{series.auc[row]:.3f}" for row in (earlier, later))
    return f"{first} ({when[0]}) \u2192 {second} ({when[1]})"


def signed(value: float) -> str:
    """Return a value with three decimals, the sign "\u2212", and never "\u22120.000"."""
    return f"{value:.3f}".replace("-0.000", "0.000").replace("-", "\u2212")


def _window(series: Series, row: int) -> str:
    dates = all_dates(series.since, series.until, series.time)
    if not np.isfinite(series.until[row]):
        when = f"up to event {series.seq[row]:,}"
    elif np.isfinite(series.since[row]):
        when = span(series.since[row], series.until[row], dates=dates)
    else:
        when = f"up to {day(series.until[row]) if dates else moment(series.until[row])}"
    told = f"in the {series.events[row]:,} events {when}"
    return f"{told} ({series.auc[row]:.3f} [{series.low[row]:.3f}, {series.high[row]:.3f}])"


def _exact(series: Series, pair: Pair) -> str:
    """Return a sentence with the times of the two windows, to the second."""
    if not np.isfinite([values[[pair.worst, pair.best]] for values in (series.since, series.until)]).all():
        return ""
    spans = [
        f"{exactly(series.since[row])} to {exactly(series.until[row])}" for row in (pair.worst, pair.best)
    ]
    return f"lowest: {spans[0]} UTC; highest: {spans[1]} UTC"


def _why_none(series: Series) -> str:
    measured = np.isfinite(series.auc)
    if not measured.any():
        return "AUC is null in every row: there is nothing to compare."
    if np.ptp(series.auc[measured]) == 0 and not (series.high > series.low).any():
        return (
            f"AUC was {series.auc[measured][0]:.3f} in every row, with an interval of no width: nothing in "
            "the scores could rank differently."
        )
    if (series.begin <= 0).all() and not series.full.any():
        return (
            "Every window so far reaches back to the first event, so any two of them share events and "
            "cannot be compared as independent."
        )
    if (series.rarer[series.full] < FEWEST).any():
        return (
            f"There are no two full windows without a common event that hold at least {FEWEST} positives and "
            f"{FEWEST} negatives each; with fewer, an interval is too rough to compare by."
        )
    if _comparable(series)[2].any():
        return (
            "All full windows without common events touch in time, and the order of events inside one time "
            "is arbitrary, so there is nothing to compare."
        )
    return "There are not yet two full windows without common events, so there is nothing to compare."


NO_TEST = (
    "Whether two of these intervals overlap is no test of a difference between models; where models scored "
    "the same events, only a paired test on the scores is one, such as DeLong's, and the rows do not hold "
    "what it needs."
)
"""The remark on the latest values of several models."""
