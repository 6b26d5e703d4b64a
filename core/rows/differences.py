"""When the AUC of two windows can be held against each other, and how sure their difference is.

Windows without a common event
    A window of a row is over the events (seq - window_events, seq] of its (model, slice), so an earlier row i
    and a later one j share none iff seq_i <= seq_j - window_events_j. Where rows have times, the windows must
    not touch in time either: the order of events inside one time is arbitrary, so which of them fall into
    which window is, too. A row's `time` is the greatest event time so far, so they are apart iff time_i <
    window_start_j (time_j where window_start is null).

The difference
    DeLong intervals of disjoint windows are of independent estimates (events are taken to be independent):
    standard errors, and so half widths at one level of confidence, combine as the root of the sum of squares.
    Ends of an interval are clipped to [0, 1]; the half width is that of the side that was not. Where both
    were, nothing is known of it.

    Windows with fewer than FEWEST events of a class are not compared: DeLong's interval is too narrow for
    them far out in the tail. Nor are those whose interval has no width (perfect separation): it says that
    nothing varied, not that nothing could.

Null is NaN, and NO_TIME in times that are whole numbers.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np

from ..arrays import FloatArray, Int64Array
from ..events.times import NO_TIME

Times = TypeVar("Times", FloatArray, Int64Array)

FEWEST = 30
"""Positives and negatives that a window must hold to be compared."""


def first_seq(seq: Int64Array, window_events: Int64Array) -> Int64Array:
    """Return the number of events before each window: it shares none with rows up to that `seq`."""
    return seq - window_events


def first_time(window_start: Times, time: Times) -> Times:
    """Return the time before which a row must lie to be apart from each window; null = rows have no times."""
    unknown = np.isnan(window_start) if window_start.dtype.kind == "f" else window_start == NO_TIME
    return np.where(unknown, time, window_start)


def comparable_half_width(
    auc: FloatArray, low: FloatArray, high: FloatArray, rarer: FloatArray
) -> FloatArray:
    """Return half the width of each AUC's interval; NaN where the window is not to be compared. O(n).

    rarer  events of the class that has fewer of them; NaN = not known, which excludes nothing

    >>> auc, low, high = np.array([0.85, 0.97]), np.array([0.8, 0.92]), np.array([0.9, 1.0])
    >>> comparable_half_width(auc, low, high, np.full(2, 50.0)).round(6)
    array([0.05, 0.05])
    """
    width = np.fmax(high - auc, auc - low)
    unknown = (low <= 0) & (high >= 1)
    return np.where((width > 0) & ~(rarer < FEWEST) & ~unknown, width, np.nan)


def half_width_of_difference(one: float, other: float) -> float:
    """Return the half width of the interval of a difference, at the level of the two it is made of."""
    return math.hypot(one, other)
