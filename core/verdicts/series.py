"""Series: the rows of one (model, slice) in order, with the spans of windows and the variance of each AUC.

The variance of an AUC is read from its interval: (half width / normal quantile)^2, with the half width of
`rows.differences`. An interval without a width (perfect separation, or one score for all events) says nothing
about the events to come. There the variance is A (1 - A) / m, the greatest variance that an AUC of mean A can
have with m events of the rarer class (Birnbaum & Klose 1957). A is kept 1 / (2 (m + 1)) away from 0 and 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from ..arrays import BoolArray, FloatArray, Int64Array
from ..rows.differences import FEWEST, comparable_half_width


class Series(NamedTuple):
    """The rows of one (model, slice), in order: arrays of n.

    begin, end  the span of a row's window, in event ordinals or in times of panes: two windows share no
                event iff the end of one window <= the begin of the other.
    full        whether the window has reached its full length.
    rarer       events of the rarer class, NaN = not known.
    weight      P N / (P + N) of the P positives and N negatives: the information of a window about its AUC,
                up to a factor. The number of events where P and N are not known.
    mass        P + N, NaN = not known; of events with weights, the sum of weights.
    since       time of the oldest event held, microseconds UTC, NaN = null or not known.
    until       time of the newest event held, microseconds UTC, NaN = null.
    time        the greatest time so far, microseconds UTC, NaN = null.
    auc, low, high  the AUC and its interval, NaN = null.
    """

    begin: Int64Array
    end: Int64Array
    full: BoolArray
    rarer: FloatArray
    weight: FloatArray
    mass: FloatArray
    seq: Int64Array
    events: Int64Array
    since: FloatArray
    until: FloatArray
    time: FloatArray
    auc: FloatArray
    low: FloatArray
    high: FloatArray

    def fades(self, row: int) -> bool:
        """Return whether a window holds most events with less than half of the weight of a new event.

        Windows that fade do. Other windows may look alike if events have weights below 0.5.
        """
        return bool(self.mass[row] < 0.5 * self.events[row])

    def variance(self, confidence: float) -> FloatArray:
        """Return the variance of each AUC, NaN if the window must not be compared. O(n).

        confidence  the level of the intervals, such as 0.95
        """
        half = comparable_half_width(self.auc, self.low, self.high, self.rarer)
        variance = (half / ndtri((1 + confidence) / 2)) ** 2
        flat = (self.low == self.high) & (self.rarer >= FEWEST)
        rarer = np.maximum(self.rarer, FEWEST)
        away = 0.5 / (rarer + 1)
        mean = np.clip(self.auc, away, 1 - away)
        known = np.where(flat, mean * (1 - mean) / rarer, variance)
        return np.where((self.weight > 0) & np.isfinite(self.weight), known, np.nan)


def series_of(columns: Mapping[str, FloatArray], rows: slice) -> Series:
    """Return the rows of one (model, slice), sorted by pane and row, from columns of rows by name. O(n)."""
    part = {name: columns[name][rows] for name in _COLUMNS}
    positives, negatives = part["positives"], part["negatives"]
    seq, events = part["seq"].astype(np.int64), part["window_events"].astype(np.int64)
    if not np.isnan(part["pane_start"]).all():
        begin, end = (np.nan_to_num(part[name]).astype(np.int64) for name in ("pane_start", "pane_end"))
        full = np.append(begin[1:] != begin[:-1], True)
    else:
        begin, end = seq - events, seq
        full = begin > 0
        if full.any() and np.ptp(events[full]) == 0:  # a window of a fixed size is full with its last event
            full |= events == events[full][0]
    time = part["time"]
    both = positives + negatives
    weight = np.where(both > 0, positives * (negatives / np.where(both > 0, both, 1)), events)
    return Series(
        begin, end, full, np.minimum(positives, negatives), weight, both, seq, events, part["window_start"],
        np.where(np.isnan(part["window_end"]), time, part["window_end"]), time,
        part["auc"], part["auc_low"], part["auc_high"],
    )  # fmt: skip


_COLUMNS = (
    "positives", "negatives", "seq", "window_events", "pane_start", "pane_end", "window_start", "window_end",
    "time", "auc", "auc_low", "auc_high",
)  # fmt: skip
