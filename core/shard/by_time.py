"""Order of time: events apply once the clock has passed them, sorted by `time_sort`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..events.batch import EventBatch
from ..events.records import EndOfPartition, Record, StateMarker
from ..events.rejected import Rejected
from ..events.times import END_OF_TIME, NO_TIME
from .buffer import ReorderBuffer
from .order import RUNNER, Held, InputOrder, Ledger
from .partitions import SourcePartitions, StreamClock
from .time_sort import in_time_order


class TimeOrder(InputOrder):
    """By event time, as far as the clock has come.

    The clock is that of the readers: the least moment that any partition is settled up to; or it is given
    (`Clock`), for packets that have no number. An event behind the clock is late: readers judge lateness
    themselves, before that, so with their clock there is none. A clock that is given makes no rows on a grid
    by itself, as nothing says where it would end: there a model's time is that of its own events.
    """

    def __init__(self) -> None:
        self.tied = 0
        self._clock = StreamClock()
        self._buffer: ReorderBuffer[EventBatch] = ReorderBuffer()

    @property
    def clock(self) -> int:
        """Every event before it has been given; NO_TIME = not known, END_OF_TIME = all."""
        return self._clock.moment

    @property
    def is_finished(self) -> bool:
        """Whether the last event has been given."""
        return self._clock.moment == END_OF_TIME

    @property
    def greatest(self) -> int:
        """The greatest time that the partitions have told of; NO_TIME where the clock is given."""
        return self._clock.partitions.greatest

    @property
    def clock_is_given(self) -> bool:
        """Whether no packet had a number."""
        return not self._clock.partitions

    @property
    def ledger(self) -> Ledger:
        """What the partitions have sent."""
        return self._clock.partitions

    @property
    def waiting(self) -> int:
        """How many events are here and may not apply yet."""
        return len(self._buffer)

    @property
    def grid_clock(self) -> int:
        """The clock, but not beyond the greatest time."""
        greatest = self.greatest
        return NO_TIME if greatest == NO_TIME else min(self.clock, greatest + 1)

    def take(self, content: Record, record: bytes) -> Iterator[EventBatch | Rejected]:
        """Yield the events that the clock has passed."""
        if isinstance(content, EventBatch):
            yield from self._hold(content, len(record))
        elif isinstance(content, StateMarker):
            self._clock.is_new(content)
        moment = self._clock.after(content)
        if moment > self._clock.moment:
            parts = self._buffer.release(moment)
            if parts:
                events, tied = in_time_order(parts)
                self.tied += tied
                yield events
            self._clock.moment = moment

    def _hold(self, batch: EventBatch, size: int) -> Iterator[Rejected]:
        if batch.times is None:
            raise InputError("order 'time' needs events with times; name the column with --time")
        if not self._clock.is_new(batch):
            return
        late = batch.times < self._clock.moment
        if late.any():
            behind = batch.take(np.flatnonzero(late))
            yield self._clock.late(behind, "what was applied")
            batch = batch.take(np.flatnonzero(~late))
        self._buffer.add(batch, size)

    def wakes_at(self) -> int | None:
        """Return a moment behind most of what waits, so that each waking gives much at once."""
        moment = self._buffer.moment(0.75)
        return None if moment is None else moment + 1

    def progress(self) -> dict[str, Any]:
        """Return the clock and what the partitions have said."""
        partitions = self._clock.partitions
        return {"clock": self.clock, **({"sources": partitions.progress()} if partitions else {})}

    def held(self) -> list[Held]:
        """Return the events that wait, packed."""
        return [(RUNNER, number, packet) for number, packet in enumerate(self._buffer.packets())]

    def go_on_from(self, progress: dict[str, Any], held: Sequence[Held]) -> None:
        """Take over what `progress` and `held` gave; those of before there was a clock, too."""
        if "ends" in progress:
            self._go_on_from_the_total_sort(progress, held)
            return
        self._clock.moment = int(progress["clock"])
        if "sources" in progress:
            self._clock.partitions = SourcePartitions.of_progress(progress["sources"])
        for _, _, record in held:
            self._buffer.add(EventBatch.unpack(record), len(record))

    def _go_on_from_the_total_sort(self, progress: dict[str, Any], held: Sequence[Held]) -> None:
        """Read versions 1 and 2: every packet was held until all partitions had ended."""
        count = progress["partitions"]
        if count is not None and int(progress["turn"]) == int(count):
            self._clock.moment = END_OF_TIME
        for _, _, record in held:
            batch = EventBatch.unpack(record)
            self._clock.is_new(batch)
            self._buffer.add(batch, len(record))
        for number, packets, source in progress["ends"]:
            end = EndOfPartition(source, number, count, packets, int(progress.get("clock", NO_TIME)))
            self._clock.after(end)
        if self.is_finished:
            self._clock.partitions.note_all()

    def snapshot_bytes(self) -> int:
        """Return about what it adds to a snapshot."""
        return self._buffer.snapshot_bytes() + self._clock.partitions.snapshot_bytes()

    def live_bytes(self) -> int:
        """Return about what it takes in memory."""
        return self._buffer.live_bytes() + self._clock.partitions.snapshot_bytes()
