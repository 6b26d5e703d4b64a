"""The ROC curve of a window as a record, with its convex hull and its calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..arrays import BoolArray, FloatArray, Int64Array

RESOLUTION = 200
"""The number of steps on each axis. A thinned curve drops points that are nearer to each other than a step:
no picture shows them.
"""


@dataclass(frozen=True, eq=False, repr=False)
class RocCurve:
    """The ROC curve of one window: points (FP, TP) from the highest score down, from (0, 0) to (N, P).

    threshold    float64[n]; a point counts the events with "score >= threshold". The threshold is +inf at the
                 first point.
    tp, fp       float64[n], masses of positives and negatives at or above the threshold.
    on_hull      bool[n]; strict vertices of the convex hull, the first and the last point among them.
    block_score  float64[n]; at a vertex the mean score of the events between the vertex before and this
                 vertex. NaN at the first point and at points that are no vertices.
    events       number of events of the window.
    positives, negatives  masses of the classes in the window.

    By default a curve is thinned: a point within 1/200 of the point before it, in both rates, is left out,
    unless the point is a vertex of the hull. A curve of all points has one point for each score of the
    window, and its trapezoids add up to the AUC. `ModelEvaluator.curve` and the setting `curves_points`
    choose which points a curve has.

    The arrays are read-only. The curve of an empty window has one point, (0, 0). In a window of one class the
    rates of the other class are undefined (NaN), and the hull has only the first and the last point.

    >>> import rocsteady as rs
    >>> ev = rs.ModelEvaluator()
    >>> rows = ev.update([0, 1, 0, 1], [0.1, 0.9, 0.4, 0.3])
    >>> curve = ev.curve()
    >>> curve
    <RocCurve: 5 points, 4 on the hull, of 4 events (2 positives)>
    >>> curve.threshold.tolist(), curve.tpr.tolist(), curve.fpr.tolist()
    ([inf, 0.9, 0.4, 0.3, 0.1], [0.0, 0.5, 0.5, 1.0, 1.0], [0.0, 0.0, 0.5, 0.5, 1.0])
    >>> curve.calibration.positive_share.tolist()
    [1.0, 0.5, 0.0]
    """

    threshold: FloatArray
    tp: FloatArray
    fp: FloatArray
    on_hull: BoolArray
    block_score: FloatArray
    events: int
    positives: float
    negatives: float

    def __post_init__(self) -> None:
        for name in ("threshold", "tp", "fp", "on_hull", "block_score"):
            array = getattr(self, name).view()
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        """Return the number of points of the curve."""
        return len(self.threshold)

    def __eq__(self, other: object) -> bool:
        """Return whether two curves are the same to the last bit."""
        return isinstance(other, RocCurve) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[object, ...]:
        arrays = (self.threshold, self.tp, self.fp, self.on_hull, self.block_score)
        return (*(array.tobytes() for array in arrays), self.events, self.positives, self.negatives)

    def __repr__(self) -> str:
        return (
            f"<RocCurve: {len(self):,} points, {np.count_nonzero(self.on_hull):,} on the hull, of "
            f"{self.events:,} events ({self.positives:,g} positives)>"
        )

    @property
    def tpr(self) -> FloatArray:
        """True positive rate of every point; NaN in a window without positives."""
        return _share(self.tp, self.positives)

    @property
    def fpr(self) -> FloatArray:
        """False positive rate of every point; NaN in a window without negatives."""
        return _share(self.fp, self.negatives)

    @property
    def hull(self) -> tuple[FloatArray, FloatArray]:
        """The vertices of the convex hull, (FPR, TPR), from (0, 0) to (1, 1)."""
        return self.fpr[self.on_hull], self.tpr[self.on_hull]

    @property
    def calibration(self) -> Calibration:
        """The isotonic calibration of the scores.

        There is a block for each edge of the hull, the block of the highest scores first.
        """
        tp, fp = np.diff(self.tp[self.on_hull]), np.diff(self.fp[self.on_hull])
        return Calibration(self.block_score[self.on_hull][1:], tp / (tp + fp), tp + fp)


class Calibration(NamedTuple):
    """Blocks of the isotonic calibration (PAV), for a reliability diagram.

    score           the mean score of a block.
    positive_share  the share of positives in a block; the share falls from block to block.
    events          the mass of the events of a block.
    """

    score: FloatArray
    positive_share: FloatArray
    events: FloatArray


class WindowCurve(NamedTuple):
    """The curve of a (model, slice) at one moment. `Rows.curves` has such curves.

    (model, slice, class_, pane, seq) is the curve's identity: a sink that gets a curve twice keeps one copy.
    Times are microseconds UTC.

    model, slice  the model and the slice of the curve
    pane          the start and the end of the Beam window, or None
    seq           how many events of the model and slice were applied so far
    time          the greatest event time that was applied; None without event times
    config        a hash of all settings that change values
    curve         the points of the curve
    class_        for a model with a score of each class, the class that the curve compares with all others;
                  None if the model has one score
    """

    model: str
    slice: str
    pane: tuple[int, int] | None
    seq: int
    time: int | None
    config: str
    curve: RocCurve
    class_: str | None = None


def points_kept(tp: FloatArray, fp: FloatArray, on_hull: BoolArray) -> Int64Array:
    """Return the places of the points of a whole curve that remain when the curve is thinned, ascending.

    tp, fp, on_hull  the masses and the marks of all points of one curve, as in `RocCurve`

    O(points). `measures.curve` says which points remain.
    """
    vertices = np.append(np.flatnonzero(on_hull), len(tp))
    of_tp, of_fp = tp * RESOLUTION, fp * RESOLUTION
    kept, place = [0], 0
    while True:
        next_vertex = int(vertices[np.searchsorted(vertices, place, "right")])
        far_in_tp = int(np.searchsorted(of_tp, of_tp[place] + tp[-1], "right"))
        far_in_fp = int(np.searchsorted(of_fp, of_fp[place] + fp[-1], "right"))
        place = min(next_vertex, far_in_tp, far_in_fp)
        if place >= len(tp):
            return np.array(kept)
        kept.append(place)


def _share(mass: FloatArray, whole: float) -> FloatArray:
    return mass / whole if whole else np.full(len(mass), np.nan)
