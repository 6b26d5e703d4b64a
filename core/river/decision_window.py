"""A window of the last k decisions: the counters of a `ModelEvaluator` without scores, times or rows.

Invariant: counters, class masses and ring (measures/decisions.py) are those of the events in the window; code
i is the i-th class that ever occurred.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from ..arrays import NO_FLOATS, FloatArray, Int8Array, Int32Array, Int64Array
from ..evaluator.eviction import sliding_steps
from ..kernels.rings import unrolled
from ..measures import decisions
from ..rows import slots
from ..rows.columns import NUMBER_COLUMNS, REASONS
from ..settings.measure_names import MEASURES

_NO_ROWS: FloatArray = np.empty((0, len(NUMBER_COLUMNS)))
_NO_REASONS: Int8Array = np.empty((0, len(MEASURES)), np.int8)


class DecisionWindow:
    """Labels and predicted classes of the last `size` events; no class is the positive one.

    >>> window = DecisionWindow(4)
    >>> up, down = window.code("up"), window.code("down")
    >>> window.extend([up, down, up, down], [up, up, up, down])
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

    def code(self, value: Hashable) -> int:
        """Return the code of a class; equal values are one class.

        Raises TypeError for a value without a hash.
        """
        return self._codes.setdefault(value, len(self._codes))

    def extend(self, labels: list[int], predictions: list[int]) -> None:
        """Apply events by codes, in order; the oldest events leave when the window is full."""
        while len(self._codes) > self._classes.shape[1]:
            self._classes = np.concatenate([self._classes, np.zeros_like(self._classes)], axis=1)
        self._counters[decisions.CLASSES] = len(self._codes)
        steps = sliding_steps(len(labels), int(self._counters[decisions.HELD]), self._size)
        decisions.apply_decisions(
            np.array(labels, np.int32), np.array(predictions, np.int32), steps.flags, steps.leaving,
            steps.shifts, -1, self._counters, self._classes, self._labels, self._predictions, self._hits,
            -1, NO_FLOATS, _NO_ROWS, _NO_REASONS,
        )  # fmt: skip

    def take_out(self, label: int, prediction: int) -> bool:
        """Remove the oldest event with this label and prediction; return False if there is none. O(k).

        The other events keep their hits.
        """
        counters, classes = self._counters, self._classes
        head, held = int(counters[decisions.HEAD]), int(counters[decisions.HELD])
        rings: tuple[Any, ...] = (self._labels, self._predictions, self._hits)
        labels, predictions, all_hits = (unrolled(ring, head, held) for ring in rings)
        found = np.flatnonzero((labels == label) & (predictions == prediction))
        if not len(found):
            return False
        hits = all_hits[found[0]]
        for ring, entries in zip(rings, (labels, predictions, all_hits), strict=True):
            ring[: held - 1] = np.delete(entries, found[0])
        counters[decisions.HEAD] = 0
        counters[decisions.HELD] = held - 1
        counters[decisions.MAJORITY_HITS] -= hits & decisions.MAJORITY_HIT
        counters[decisions.PERSISTENT_HITS] -= (hits & decisions.PERSISTENT_HIT) >> 1
        classes[decisions.LABELS, label] -= 1
        classes[decisions.PREDICTIONS, prediction] -= 1
        classes[decisions.CORRECT, label] -= label == prediction
        counters[decisions.MAJORITY] = decisions.majority_class(classes, classes.shape[1])
        return True

    def measure(self, name: str) -> tuple[float, str | None]:
        """Return one of `MEASURES` that needs no positive class, and the reason if its value is NaN.

        Takes O(classes).
        """
        if not self._counters[decisions.HELD]:
            return np.nan, "no events"
        numbers: FloatArray = np.full(len(NUMBER_COLUMNS), np.nan)
        reasons: Int8Array = np.zeros(len(MEASURES), np.int8)
        decisions.decision_measures(self._counters, self._classes, -1, numbers, reasons)
        index = MEASURES.index(name)
        return float(numbers[slots.MEASURES + index]), REASONS[reasons[index]] or None
