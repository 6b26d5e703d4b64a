"""Order of time: events apply once the clock has passed them, sorted by `time_sort`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..encoding.json import text_of, whole
from ..errors import InputError
from ..events.batch import EventBatch
from ..events.records import EndOfPartition, Record
from ..events.rejected import Rejected
from ..events.times import END_OF_TIME, NO_TIME
from .buffer import ReorderBuffer
from .order import RUNNER, Held, InputOrder, Ledger
from .partitions import SourcePartitions, StreamClock, count_of
from .time_sort import in_time_order


class TimeOrder(InputOrder):
    """Yields events in order of event time, up to the clock.

    The clock is the readers' clock: the least moment up to which a partition is settled. If packets have no
    numbers, there is no readers' clock, and `Clock` records give the time. An event behind the clock is late.
    Readers refuse late events before they send them, so behind the readers' clock no late event arrives here.
    A given clock makes no rows on a grid by itself, because nothing says where it would end. A model's time
    is then that of its own events.
    """

    def __init__(self) -> None:
        self.tied = 0
        self._clock = StreamClock()
        self._buffer: ReorderBuffer[EventBatch] = ReorderBuffer()

    @property
    def clock(self) -> int:
        """Every event before this time has been yielded; NO_TIME = not known, END_OF_TIME = all events."""
        return self._clock.moment

    @property
    def is_finished(self) -> bool:
        """Whether the last event has been given."""
        return self._clock.moment == END_OF_TIME

    @property
    def greatest(self) -> int:
        """The greatest time that the partitions have told of; NO_TIME if `Clock` records give the time."""
        return self._clock.partitions.greatest

    @property
    def clock_is_given(self) -> bool:
        """Whether no packet had a number, so that `Clock` records give the time."""
        return not self._clock.partitions

    @property
    def ledger(self) -> Ledger:
        """What the partitions have sent."""
        return self._clock.partitions

    @property
    def waiting(self) -> int:
        """How many events wait for the clock."""
        return len(self._buffer)

    def receive(self, content: Record, record: bytes) -> Iterator[EventBatch | Rejected]:
        """Yield the events that the clock has passed."""
        if isinstance(content, EventBatch):
            yield from self._hold(content, len(record))
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
        """Return a moment behind three quarters of the waiting events: each wake-up releases many events."""
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
        """Take over what `progress` and `held` gave, also in the form of versions that had no clock."""
        if "ends" in progress:
            self._go_on_from_the_total_sort(progress, held)
            return
        self._clock.moment = whole(progress["clock"])
        if "sources" in progress:
            self._clock.partitions = SourcePartitions.of_progress(progress["sources"])
        for _, _, record in held:
            self._buffer.add(EventBatch.unpack(record), len(record))

    def _go_on_from_the_total_sort(self, progress: dict[str, Any], held: Sequence[Held]) -> None:
        """Read the state of versions 1 and 2, which held every packet until all partitions had ended."""
        count = count_of(progress["partitions"])
        whole(progress["expected"], 0)
        if whole(progress["turn"], 0) == count:
            self._clock.moment = END_OF_TIME
        for _, _, record in held:
            batch = EventBatch.unpack(record)
            self._clock.is_new(batch)
            self._buffer.add(batch, len(record))
        for number, packets, source in progress["ends"]:
            place = text_of(source), whole(number, 0), whole(count), whole(packets, 0)
            self._clock.after(EndOfPartition(*place, whole(progress.get("clock", NO_TIME))))
        if self.is_finished:
            self._clock.partitions.note_all()

    def snapshot_bytes(self) -> int:
        """Return about how many bytes the order adds to a snapshot."""
        return self._buffer.snapshot_bytes() + self._clock.partitions.snapshot_bytes()

    def live_bytes(self) -> int:
        """Return about how many bytes the order takes in memory."""
        return self._buffer.live_bytes() + self._clock.partitions.snapshot_bytes()
