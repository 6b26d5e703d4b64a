"""Compares the AUC of two windows: whether the windows may be compared, and the interval of the difference.

Windows without a common event
    The window of a row holds the events (seq - window_events, seq] of its (model, slice). So an earlier row i
    and a later row j share no event iff seq_i <= seq_j - window_events_j. If rows have times, their windows
    must not touch in time either. The order of events with equal times is arbitrary, so chance decides into
    which window such an event falls. A row's `time` is the greatest event time so far. So the windows are
    apart iff time_i < window_start_j (time_j if window_start is null).

The difference
    DeLong intervals of disjoint windows come from independent estimates (events are taken to be independent).
    So standard errors, and half widths at one level of confidence, combine as the root of the sum of squares.
    The ends of an interval are clipped to [0, 1]; the half width is taken from the side that was not clipped.
    If both sides were clipped, the half width is not known.

    Windows with fewer than FEWEST events of a class are not compared: at high confidence DeLong's interval is
    too narrow for such windows. Windows whose interval has no width (perfect separation) are not compared
    either: their placements did not vary, but placements of other events may.

Null is NaN in floats, and NO_TIME in times that are whole numbers.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np

from ..arrays import NO_TIME, FloatArray, Int64Array

Times = TypeVar("Times", FloatArray, Int64Array)

FEWEST = 30
"""The least number of positives, and of negatives, that a compared window must have."""


def first_time(window_start: Times, time: Times) -> Times:
    """Return for each window the time before which the windows of other rows are apart from the window.

    The time is null if there are no times.
    """
    unknown = np.isnan(window_start) if window_start.dtype.kind == "f" else window_start == NO_TIME
    return np.where(unknown, time, window_start)


def comparable_half_width(
    auc: FloatArray, low: FloatArray, high: FloatArray, rarer: FloatArray
) -> FloatArray:
    """Return half the width of each AUC's interval; NaN if the window must not be compared. O(n).

    rarer  the number of events of the rarer class in each window; NaN if it is not known, which excludes no
           window

    >>> auc, low, high = np.array([0.85, 0.97]), np.array([0.8, 0.92]), np.array([0.9, 1.0])
    >>> comparable_half_width(auc, low, high, np.full(2, 50.0)).round(6)
    array([0.05, 0.05])
    """
    width = np.fmax(high - auc, auc - low)
    unknown = (low <= 0) & (high >= 1)
    return np.where((width > 0) & ~(rarer < FEWEST) & ~unknown, width, np.nan)


def half_width_of_difference(one: float, other: float) -> float:
    """Return the half width of a difference's interval, at the confidence of the two given half widths."""
    return math.hypot(one, other)
