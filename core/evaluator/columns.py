"""The events of an update in columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import FloatArray, Int8Array, Int64Array
from .state import Codes


class Columns(NamedTuple):
    """Events, or what steps are about, in columns: scores, 1 for positives, codes of classes, times, weights.

    `weights` are empty where every event counts once.
    """

    scores: FloatArray
    labels: Int8Array
    label_codes: Codes
    predicted_codes: Codes
    times: Int64Array | None
    weights: FloatArray

    def part(self, start: int, end: int) -> Columns:
        """Return some of the events."""
        if start == 0 and end == len(self.scores):
            return self
        return self._of(slice(start, end))

    def take(self, events: Int64Array) -> Columns:
        """Return these events; of an empty batch, as many that mean nothing."""
        if len(self.scores):
            return self._of(events)
        size = len(events)
        codes = np.zeros(size, self.label_codes.dtype)
        return Columns(np.zeros(size), np.zeros(size, np.int8), codes, codes, None, np.zeros(size))

    def _of(self, events: Any) -> Columns:
        times = None if self.times is None else self.times[events]
        return Columns(
            self.scores[events], self.labels[events], self.label_codes[events], self.predicted_codes[events],
            times, self.weights[events] if len(self.weights) else self.weights,
        )  # fmt: skip
