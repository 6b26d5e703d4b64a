"""Decides when events are late.

It compares their times with the time that the partition has reached, and with the allowed lateness.

`Check` in validate.py refuses late events, and dead_letters.py writes them. The label join and the
order by a runner's watermark refuse late events in core/shard/partitions.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...core.arrays import NO_INT64, BoolArray, Int64Array
from ...core.events.batch import EventBatch, LabelBatch, PredictionBatch
from ...core.events.times import NO_TIME


@dataclass(frozen=True)
class Timing:
    """The limits for the times of records, in microseconds.

    high_water  the greatest event time in the source before the records; NO_TIME = no time yet.
    lateness    the allowed lateness. A record is late if its time plus `lateness` is less than the greatest
                time before it in its source. None = no record is late.
    now, ahead  a time of more than `now` + `ahead` is a fault; None as `ahead` = no limit.
    """

    high_water: int = NO_TIME
    lateness: int | None = None
    now: int = 0
    ahead: int | None = None

    def late(self, times: Int64Array | None, sound: BoolArray) -> tuple[Int64Array, Int64Array]:
        """Return the rows of sound records that are late, and the lateness of each, in microseconds.

        times  of the records, in the order of their source; None if the records have no times, and no record
               is late
        sound  bool[n]: the records without a fault; only these can be late
        """
        if self.lateness is None or times is None:
            return NO_INT64, NO_INT64
        rows = np.flatnonzero(sound)
        mine = times[rows]
        before = np.maximum.accumulate(np.concatenate(([self.high_water], mine)))[:-1]
        behind = np.where(before == NO_TIME, 0, before - mine)
        late = np.flatnonzero(behind > self.lateness)
        return rows[late], behind[late]

    def after(self, batch: EventBatch | PredictionBatch | LabelBatch) -> Timing:
        """Return the limits for the records after a batch."""
        span = time_span(batch)
        return self if span is None else replace(self, high_water=max(self.high_water, span[1]))


ANY_TIME = Timing()


def time_span(batch: EventBatch | PredictionBatch | LabelBatch) -> tuple[int, int] | None:
    """Return the least and the greatest time of a batch, microseconds; None if it has no times. O(n)."""
    times = batch.times
    if times is None or not len(times):
        return None
    return int(times.min()), int(times.max())
