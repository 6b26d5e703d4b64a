"""Events with a score of each class, in columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import BoolArray, FloatArray, Int64Array
from ..measures.event_buffer import FADED


class ClassEvents(NamedTuple):
    """n events of C classes in their order.

    labels   int64[n], the number of the class of each event; or bool[n, C], whether it is of each class
    scores   float64[n, C]
    weights  float64[n]; None: each event counts 1
    ticks    int64[n], of a fading window: the number or the time of each event; else None
    """

    labels: Int64Array | BoolArray
    scores: FloatArray
    weights: FloatArray | None = None
    ticks: Int64Array | None = None

    @property
    def size(self) -> int:
        """How many events there are."""
        return len(self.labels)

    def part(self, which: slice | Int64Array | BoolArray) -> ClassEvents:
        """Return some of the events."""
        return ClassEvents._make(None if column is None else column[which] for column in self)

    def unfaded(self, half_life: int) -> BoolArray:
        """Return which events have not faded beside the others of their class."""
        if self.ticks is None:
            return np.ones(self.size, np.bool_)
        logs = self.ticks / half_life
        if self.weights is not None:
            logs = logs + np.log2(self.weights)
        if self.labels.ndim > 1:  # an event of several classes fades beside the whole window
            return np.asarray(logs >= logs.max() - FADED)
        most = np.full(int(self.labels.max()) + 1, -np.inf)
        np.maximum.at(most, self.labels, logs)
        return np.asarray(logs >= most[self.labels] - FADED)
