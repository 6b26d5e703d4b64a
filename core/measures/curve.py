"""The ROC curve of a window, its convex hull and the calibration that the hull is, as one record.

Points are cumulated from the HIGHEST score: a point is (FP, TP) of "predicted positive iff score >=
threshold", equal scores are one step (a diagonal where both classes are in it). The hull is that of
`scan`, from the other end: a vertex there has so many entries below, a point here the rest above.
Between two of its vertices lies one block of the isotonic calibration (PAV) of the scores (Tatti 2021,
section 5), so one record draws the curve, the hull and the reliability diagram.

Invariant (thinning)
    Every hull vertex is kept. Any other point is kept unless the last one kept before it lies within
    1 / RESOLUTION of it in FPR and in TPR. So every dropped point is that near a kept one on both axes,
    and a curve has at most 2 * RESOLUTION points besides its vertices, of which there are few: about
    1.3 * cube root of the window's size on smooth curves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import FloatArray, Int64Array
from ..kernels.compile import Integer, scanning
from ..rows.curves import RocCurve
from .scan import lower_hull

RESOLUTION = 200
"""Steps of each axis below which points are dropped: no picture shows a two-hundredth of its side."""

_DOWN = 2.0**-64
"""Brings a sum of so many scores as there can be back into the range of a float, exactly."""


def curve_of_entries(
    keys: FloatArray, negatives: Any, positives: Any, events: int | None = None, resolution: int = RESOLUTION
) -> RocCurve:
    """Return the curve of a window given by its entries: distinct scores, ascending, with counts or masses.

    events      how many there are; their counts' sum by default
    resolution  see the head of this module; with one above the number of events no point is dropped

    O(entries).
    """
    threshold, tp, fp, on_hull, block_score = roc_points(keys, negatives, positives, resolution)
    p, n = float(positives.sum()), float(negatives.sum())
    return RocCurve(threshold, tp, fp, on_hull, block_score, int(p + n) if events is None else events, p, n)


@scanning
def roc_points(keys: FloatArray, negatives: Int64Array, positives: Int64Array, resolution: Integer) -> Any:
    """Return threshold, tp, fp, on_hull and block_score of the points that are kept, as in `RocCurve`."""
    entries = len(keys)
    n, p = negatives.sum(), positives.sum()
    vertices = np.empty(entries + 1, np.int64)
    vertex = lower_hull(negatives, positives, vertices) - 1  # the next one to come, from the top down
    threshold = np.empty(entries + 1)
    tp, fp = np.empty(entries + 1), np.empty(entries + 1)
    on_hull = np.zeros(entries + 1, np.bool_)
    block_score = np.full(entries + 1, np.nan)
    threshold[0], tp[0], fp[0], on_hull[0] = np.inf, 0.0, 0.0, True
    vertex -= 1
    point = 0
    above_p = above_n = kept_p = kept_n = np.int64(0)
    for entry in range(entries - 1, -1, -1):
        above_p += positives[entry]
        above_n += negatives[entry]
        is_vertex = entry == vertices[vertex]
        near = (above_p - kept_p) * resolution <= p and (above_n - kept_n) * resolution <= n
        if near and not is_vertex:
            continue
        point += 1
        threshold[point], tp[point], fp[point] = keys[entry], above_p, above_n
        kept_p, kept_n = above_p, above_n
        if is_vertex:
            on_hull[point] = True
            block_score[point] = mean_score(keys, negatives, positives, entry, vertices[vertex + 1])
            vertex -= 1
    kept = point + 1
    return threshold[:kept], tp[:kept], fp[:kept], on_hull[:kept], block_score[:kept]


@scanning
def mean_score(
    keys: FloatArray, negatives: Int64Array, positives: Int64Array, start: Integer, end: Integer
) -> float:
    """Return the mean score of the events of some entries, whatever finite scores they are.

    It never lies outside their range: where the sum goes beyond what a float holds it is taken anew of
    scores divided by a power of two, and rounding is cut off at the smallest and the largest score.
    """
    total = small = 0.0
    events = np.int64(0)
    for entry in range(start, end):
        weight = negatives[entry] + positives[entry]
        total += keys[entry] * weight
        small += keys[entry] * _DOWN * weight
        events += weight
    mean = total / events if np.isfinite(total) else small / events / _DOWN
    return float(min(max(mean, keys[start]), keys[end - 1]))
