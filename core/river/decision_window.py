"""A window of the last k decisions: the counters of a `ModelEvaluator` without scores, times or rows.

Invariant: counters, class masses and ring (measures/decisions.py) are those of the events in the window; code
i is the i-th class that ever occurred. If an event in the window has a weight other than 1, the window also
has exact sums of weights (evaluator/weighted/decisions.py).
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from ..arrays import NO_FLOATS, NO_INT64, FloatArray, Int8Array, Int32Array, Int64Array
from ..evaluator.event_columns import Columns
from ..evaluator.eviction import sliding_steps
from ..evaluator.weighted.decisions import Changes, WeightedRing, apply_weighted, weigh_all
from ..evaluator.weighted.measures import Masses, no_masses, weighted_measures
from ..kernels.rings import unrolled, with_room
from ..measures import decisions
from ..measures.steps import Steps
from ..rows import slots
from ..rows.columns import NUMBER_COLUMNS
from ..rows.measure_table import MEASURES
from ..rows.reasons import REASONS

_NO_ROWS: FloatArray = np.empty((0, len(NUMBER_COLUMNS)))
_NO_REASONS: Int8Array = np.empty((0, len(MEASURES)), np.int8)


class DecisionWindow:
    """Labels, predicted classes and weights of the last `size` events; no class is named as positive.

    >>> window = DecisionWindow(4)
    >>> up, down = window.code("up"), window.code("down")
    >>> window.extend([up, down, up, down], [up, up, up, down], [1.0] * 4)
    >>> window.measure("kappa")
    (0.5, None)
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._codes: dict[Hashable, int] = {}
        self._counters: Int64Array = np.zeros(decisions.COUNTERS, np.int64)
        self._counters[[decisions.LAST_LABEL, decisions.MAJORITY]] = -1
        self._classes: Int64Array = np.zeros((4, 2), np.int64)
        self._labels: Int32Array = np.zeros(size, np.int32)
        self._predictions: Int32Array = np.zeros(size, np.int32)
        self._hits: Int8Array = np.zeros(size, np.int8)
        self._weights: FloatArray | None = None
        """A slot for each event, like `_labels`; None: each event in the window counts 1."""
        self._masses: Masses | None = None
        """The sums of `_weights`."""
        self._others = 0
        """How many events in the window have a weight that is not 1."""

    def code(self, value: Hashable) -> int:
        """Return the code of a class; equal values have one code.

        Raises TypeError for a value without a hash.
        """
        return self._codes.setdefault(value, len(self._codes))

    def extend(self, labels: list[int], predictions: list[int], weights: list[float]) -> None:
        """Apply events by codes, in order; the oldest events leave when the window is full."""
        while len(self._codes) > self._classes.shape[1]:
            self._classes = np.concatenate([self._classes, np.zeros_like(self._classes)], axis=1)
        self._counters[decisions.CLASSES] = len(self._codes)
        of_labels, of_predictions = np.array(labels, np.int32), np.array(predictions, np.int32)
        steps = sliding_steps(len(labels), int(self._counters[decisions.HELD]), self._size)
        if self._masses is None and weights.count(1.0) == len(weights):
            decisions.apply_decisions(
                of_labels, of_predictions, steps.flags, steps.leaving, steps.shifts, -1, self._counters,
                self._classes, self._labels, self._predictions, self._hits, -1, NO_FLOATS, _NO_ROWS,
                _NO_REASONS,
            )  # fmt: skip
        else:
            self._extend_weighted(of_labels, of_predictions, np.array(weights, np.float64), steps)

    def _extend_weighted(
        self, labels: Int32Array, predictions: Int32Array, weights: FloatArray, steps: Steps
    ) -> None:
        if self._masses is None:
            self._load(*self._held())
        masses, ring, count = self._masses_of_all_classes(), self._ring(), len(labels)
        leaving = int(steps.leaving.sum())
        head, held = int(self._counters[decisions.HEAD]), int(self._counters[decisions.HELD])
        oldest = ring.weights[(head + np.arange(min(leaving, held))) % self._size]
        gone = np.concatenate([oldest, weights])[:leaving]
        ones, zeros = np.ones(count), np.zeros(count, np.int64)
        columns = Columns(weights, np.zeros(count, np.int8), labels, predictions, zeros, weights)
        room = count + leaving
        changes = Changes(np.empty(room, np.int64), np.empty(room, np.int8), *np.zeros((4, 0), np.int64))
        apply_weighted(
            columns, steps, ones, zeros, -1, self._counters, self._classes, masses, ring, NO_INT64, 0, -1,
            False, _NO_ROWS, _NO_REASONS, changes,
        )  # fmt: skip
        self._others += int(np.count_nonzero(weights != 1.0)) - int(np.count_nonzero(gone != 1.0))
        self._count_if_all_are_1()

    def _held(self) -> tuple[Int32Array, Int32Array, Int8Array, FloatArray]:
        """Return labels, predictions, hits and weights of the events held, oldest first. O(k)."""
        head, held = int(self._counters[decisions.HEAD]), int(self._counters[decisions.HELD])
        labels, predictions = unrolled(self._labels, head, held), unrolled(self._predictions, head, held)
        weights = np.ones(held) if self._weights is None else unrolled(self._weights, head, held)
        return labels, predictions, unrolled(self._hits, head, held), weights

    def _ring(self) -> WeightedRing:
        """Return the arrays of the window with weights; without scores, the weights are there twice."""
        weights = NO_FLOATS if self._weights is None else self._weights
        return WeightedRing(self._labels, self._predictions, self._hits, weights, weights, NO_INT64)

    def _masses_of_all_classes(self) -> Masses:
        """Return the sums of weights, with room for every class met."""
        self._masses = (self._masses or no_masses(0)).with_classes(self._classes.shape[1])
        return self._masses

    def _load(
        self, labels: Int32Array, predictions: Int32Array, hits: Int8Array, weights: FloatArray
    ) -> None:
        """Hold these events alone, oldest first, and sum their weights. O(size)."""
        counters, size = self._counters, self._size
        self._labels, self._predictions = with_room(labels, size), with_room(predictions, size)
        self._hits, self._weights = with_room(hits, size), with_room(weights, size)
        self._others = int(np.count_nonzero(weights != 1.0))
        counters[[decisions.HEAD, decisions.HELD]] = 0
        counters[[decisions.MAJORITY_HITS, decisions.PERSISTENT_HITS]] = 0
        self._classes[: decisions.LAST_SEEN] = 0
        self._masses = None
        weigh_all(self._ring(), len(labels), counters, self._classes, self._masses_of_all_classes())

    def _count_if_all_are_1(self) -> None:
        """Drop the weights if each event in the window counts 1: whole numbers are faster."""
        if not self._others:
            self._weights = self._masses = None

    def take_out(self, label: int, prediction: int, weight: float) -> bool:
        """Remove the oldest event with this label, prediction and weight.

        Return False if there is no such event.

        O(k). The other events keep their hits.
        """
        labels, predictions, hits, weights = self._held()
        found = np.flatnonzero((labels == label) & (predictions == prediction) & (weights == weight))
        if not len(found):
            return False
        rest = np.arange(len(labels)) != found[0]
        self._load(labels[rest], predictions[rest], hits[rest], weights[rest])
        self._count_if_all_are_1()
        return True

    def measure(self, name: str) -> tuple[float, str | None]:
        """Return one of `MEASURES` that needs no positive class, and the reason if its value is NaN.

        Takes O(classes).
        """
        if not self._counters[decisions.HELD]:
            return np.nan, "no events"
        numbers: FloatArray = np.full(len(NUMBER_COLUMNS), np.nan)
        reasons: Int8Array = np.zeros(len(MEASURES), np.int8)
        if self._masses is None:
            decisions.decision_measures(self._counters, self._classes, -1, numbers, reasons)
        else:
            weighted_measures(self._counters, self._classes, self._masses, -1, 1.0, 0, numbers, reasons)
        index = MEASURES.index(name)
        return float(numbers[slots.MEASURES + index]), REASONS[reasons[index]] or None
