"""The ROC curve of a window, its convex hull and the calibration given by the hull, as one record.

Points are cumulated from the HIGHEST score: a point is (FP, TP) of "predicted positive iff score >=
threshold". Equal scores are one step, a diagonal if the step has both classes. The hull is the hull of
`scan`, with counts from the other end: `scan` counts the entries below a vertex, this module the entries
above it. Between two consecutive vertices lies one block of the isotonic calibration (PAV) of the scores
(Tatti 2021, section 5). So one record gives the curve, the hull and the reliability diagram.

Invariant (thinning)
    Every hull vertex is kept. Any other point is kept unless the last kept point before it lies within
    1 / RESOLUTION of the point in FPR and in TPR. So each dropped point has a kept point as near as this.
    A curve has at most 2 * RESOLUTION points besides its vertices. On smooth curves a window of k events has
    about 1.3 k^(1/3) vertices. The area under the kept points differs from the AUC by at most 1 / RESOLUTION;
    the area under all points is the AUC.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays import FloatArray, Int64Array
from ..kernels.compile import Integer, kernel, scanning
from ..rows.curves import RESOLUTION, RocCurve
from ..settings.evaluator import POINTS_THINNED, CurvePoints
from .scan import lower_hull

EVERY_POINT = 0
"""The resolution at which no point is dropped."""

_DOWN = 2.0**-64
"""The power of two by which scores are scaled, so that no sum of them is beyond the range of a float."""


def curve_of_entries(
    keys: FloatArray,
    negatives: Any,
    positives: Any,
    events: int | None = None,
    points: CurvePoints = POINTS_THINNED,
) -> RocCurve:
    """Return the curve of a window given by its entries: distinct scores, ascending, with counts or masses.

    events  number of events; by default the sum of the counts
    points  "thinned": points near other points are dropped, see the head of this module; "all": no point is
            dropped

    The hull compares products of two masses, and masses may be 1e-300 or 1e300. So masses are scaled to a sum
    of about 1 meanwhile, by a power of two: that changes no bit of a point.

    O(entries).
    """
    resolution = RESOLUTION if points == POINTS_THINNED else EVERY_POINT
    p, n = float(positives.sum()), float(negatives.sum())
    is_mass = positives.dtype.kind == "f"
    exponent = math.frexp(p + n)[1] if is_mass else 0
    if is_mass:
        negatives, positives = np.ldexp(negatives, -exponent), np.ldexp(positives, -exponent)
    threshold, tp, fp, on_hull, block_score = roc_points(keys, negatives, positives, resolution)
    if is_mass:
        tp, fp = np.ldexp(tp, exponent), np.ldexp(fp, exponent)
    return RocCurve(threshold, tp, fp, on_hull, block_score, int(p + n) if events is None else events, p, n)


@scanning
def roc_points(keys: FloatArray, negatives: Int64Array, positives: Int64Array, resolution: Integer) -> Any:
    """Return threshold, tp, fp, on_hull and block_score of the kept points, as in `RocCurve`."""
    entries = len(keys)
    n, p = negatives.sum(), positives.sum()
    vertices = np.empty(entries + 1, np.int64)
    vertex = lower_hull(negatives, positives, vertices) - 1  # the next vertex, from the highest score down
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
        near &= resolution != EVERY_POINT
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


@kernel
def mean_score(
    keys: FloatArray, negatives: Int64Array, positives: Int64Array, start: Integer, end: Integer
) -> float:
    """Return the mean score of the events of entries `start` to `end` - 1, for any finite scores.

    The mean never lies outside the range of the scores. If the sum of the scores is infinite, the scores are
    divided by a power of two and summed again. A mean that is rounded beyond the smallest or the largest
    score becomes that score.
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
