"""When events are late: the time that a partition has reached, and the lateness that is allowed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...core.events.batch import EventBatch
from ...core.events.times import NO_TIME
from ...core.events.unjoined import LabelBatch, PredictionBatch


@dataclass(frozen=True)
class Timing:
    """What the times of records are judged by, microseconds.

    high_water  the greatest event time in the records' source before them; NO_TIME = none
    lateness    a record earlier than the greatest time before it in its source by more than this is late;
                None: none is
    now, ahead  a record dated more than `ahead` after now is a fault; None: none is
    """

    high_water: int = NO_TIME
    lateness: int | None = None
    now: int = 0
    ahead: int | None = None

    def after(self, batch: EventBatch | PredictionBatch | LabelBatch) -> Timing:
        """Return what judges the records behind a batch."""
        return replace(self, high_water=max(self.high_water, batch.packet().high_water))


ANY_TIME = Timing()


def time_span(batch: EventBatch | PredictionBatch | LabelBatch) -> tuple[int, int] | None:
    """Return the least and the greatest time of a batch, microseconds; None where it has none. O(n)."""
    times = batch.times
    if times is None or not len(times):
        return None
    return int(times.min()), int(times.max())
