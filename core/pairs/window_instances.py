"""Instances of a pair of models, in columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import NO_FLOATS, NO_INT8, BoolArray, FloatArray, Int8Array, Int64Array
from ..events.times import NO_TIME
from ..measures.event_buffer import FADED


class PairInstances(NamedTuple):
    """Instances in order.

    labels           int8, 1 and 0
    scores, against  float64, the score of each model, or NaN
    times            int64, microseconds; None: the instances have no times
    ticks            int64, of a fading window: the number or the time of each instance; else None
    """

    labels: Int8Array
    scores: FloatArray
    against: FloatArray
    times: Int64Array | None = None
    ticks: Int64Array | None = None

    def part(self, which: slice | Int64Array | BoolArray) -> PairInstances:
        """Return some of the instances."""
        return PairInstances._make(None if column is None else column[which] for column in self)

    def _ages(self) -> Int64Array:
        """Return how many ticks each instance is older than the newest of its class."""
        ages = np.zeros(len(self.labels), np.int64)
        if self.ticks is not None:
            for of_class in (self.labels == 1, self.labels != 1):
                ticks = self.ticks[of_class]
                ages[of_class] = ticks.max(initial=NO_TIME) - ticks
        return ages

    def unfaded(self, half_life: int) -> BoolArray:
        """Return which instances are at most `FADED` half-lives older than the newest of their class."""
        oldest = FADED * half_life
        if self.ticks is None or self.ticks.max() - self.ticks.min() <= oldest:
            return np.ones(len(self.labels), np.bool_)
        return np.asarray(self._ages() <= oldest)

    def fading_weights(self, half_life: int) -> FloatArray:
        """Return each instance's weight, relative to the newest of its class."""
        return np.asarray(np.exp2(-self._ages() / half_life))


NOTHING = PairInstances(NO_INT8, NO_FLOATS, NO_FLOATS)
