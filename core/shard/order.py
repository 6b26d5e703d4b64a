"""In which order the events of a shard apply (docs/architecture.md, "Order and lateness").

    arrival   as they come
    position  partition after partition, packet after packet by number; what comes early is held
    time      by (time, model, id, a hash of the record) (`by_time`): what is not settled yet is held until
              every partition is settled beyond it. Nothing else decides: not how events were cut into
              packets, nor in which order packets and words came

Each takes in records and gives the events that may apply now, in their order; `is_finished` once all did.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from ..errors import InputError
from ..events.batch import MAGIC, EventBatch
from ..events.records import EndOfInput, EndOfPartition, Heartbeat, Record, StateMarker
from ..events.rejected import Rejected
from ..events.times import END_OF_TIME, NO_TIME
from ..events.wire import UNORDERED
from .buffer import ReorderBuffer
from .by_time import in_time_order
from .partitions import SourcePartitions, StreamClock, check_packet, packets_lost

Held = tuple[int, int, bytes]
"""A packet that waits, in a snapshot: (partition, sequence, bytes)."""

RUNNER = -1
"""The "partition" of packets that waited for the clock, in a snapshot."""


class InputOrder(Protocol):
    """What the orders have in common."""

    @property
    def clock(self) -> int:
        """Every event before it has been given; NO_TIME = not known, END_OF_TIME = all."""
        ...

    @property
    def grid_clock(self) -> int:
        """Rows before it on a grid of times can be made, also of models that are silent; NO_TIME = none.

        It never passes `greatest`: how far words run ahead of events, chance decides.
        """
        ...

    @property
    def clock_is_given(self) -> bool:
        """Whether the clock is another's, who tells it at will (`Clock`), and not that of the partitions."""
        ...

    @property
    def greatest(self) -> int:
        """The greatest time that the partitions have told of; of all of them, where they have ended."""
        ...

    @property
    def is_finished(self) -> bool:
        """Whether the last event has been given."""
        ...

    @property
    def partitions(self) -> int | None:
        """How many there are; None = nobody has said so yet."""
        ...

    @property
    def waiting(self) -> int:
        """How many events are here and may not apply yet. O(what waits) in order of position."""
        ...

    def received(self, partition: int) -> int | None:
        """Return how many packets of a partition are here without a gap; None where they are not counted."""
        ...

    def has_ended(self, partition: int) -> bool:
        """Return whether a partition has ended and all of its packets are here."""
        ...

    @property
    def tied(self) -> int:
        """How many events were given whose order among each other nothing in the input says."""
        ...

    def take(self, content: Record, record: bytes) -> Iterator[EventBatch | Rejected]:
        """Take in a record; yield what may apply now, and what came too late for that."""
        ...

    def wakes_at(self) -> int | None:
        """Return the moment at which it wants to hear a `Clock`; None = it does not wait for one."""
        ...

    def progress(self) -> dict[str, Any]:
        """Return all but the packets that wait, for JSON."""
        ...

    def held(self) -> list[Held]:
        """Return the packets that wait."""
        ...

    def go_on_from(self, progress: dict[str, Any], held: Sequence[Held]) -> None:
        """Take over what `progress` and `held` gave; raises ValueError and the like for damage."""
        ...

    def snapshot_bytes(self) -> int:
        """Return about what it adds to a snapshot. O(1)."""
        ...

    def live_bytes(self) -> int:
        """Return about what it takes in memory. O(1)."""
        ...


class ArrivalOrder:
    """As they come; `EndOfInput` may come more than once, as a pane fires late.

    Packets that have numbers are counted, so that none is missing in an export, and none counts twice. The
    end of all their partitions is that of the input: on a stream no other word may ever say so.
    """

    def __init__(self) -> None:
        self.clock = self.grid_clock = self.greatest = NO_TIME
        self.is_finished = self.clock_is_given = False
        self.tied = self.waiting = 0
        self._sources: SourcePartitions | None = SourcePartitions()
        self._begun = False  # with the state of another job, whose packets were counted

    def take(self, content: Record, record: bytes) -> Iterator[EventBatch | Rejected]:  # noqa: ARG002
        """Yield a batch."""
        sources = self._sources
        if isinstance(content, EventBatch):
            place = (content.source, content.partition, content.sequence)
            if sources is None or content.sequence == UNORDERED or sources.take(content, place):
                yield content
        elif isinstance(content, Heartbeat | EndOfPartition) and sources is not None:
            sources.take(content, (content.source, content.partition, UNORDERED))
        elif isinstance(content, StateMarker):
            if sources is None:
                raise InputError(
                    "the state is one of an earlier rocsteady in order of arrival, which did not count its "
                    "packets, so that an export could miss some; let the job end, and begin a new one"
                )
            sources.take(content, (content.source, content.partition, content.sequence))
        self.is_finished = isinstance(content, EndOfInput) or self._has_ended()

    def _has_ended(self) -> bool:
        return self._sources is not None and self._sources.ended

    @property
    def partitions(self) -> int | None:
        """How many there are; None = nobody has said so yet."""
        return None if self._sources is None else self._sources.count

    def received(self, partition: int) -> int | None:
        """Return how many packets of a partition are here without a gap; None where they are not counted."""
        return None if self._sources is None else self._sources.received(partition)

    def has_ended(self, partition: int) -> bool:
        """Return whether a partition has ended and all of its packets are here."""
        return self._sources is not None and self._sources.has_ended(partition)

    def wakes_at(self) -> int | None:
        """Return None."""
        return None

    def progress(self) -> dict[str, Any]:
        """Return what the partitions have said, if packets have numbers."""
        if self._sources is None or not (self._sources or self._begun):
            return {}
        return {"sources": self._sources.progress()}

    def held(self) -> list[Held]:
        """Return nothing."""
        return []

    def go_on_from(self, progress: dict[str, Any], held: Sequence[Held]) -> None:
        """Take over what `progress` gave; raises ValueError where packets wait.

        Without any nothing is counted from here on: packets may have had numbers that were not noted.
        """
        if held:
            raise ValueError("packets wait where they apply as they come")
        self._sources = SourcePartitions.of_progress(progress["sources"]) if progress else None
        self._begun = bool(progress)
        self.is_finished = self._has_ended()

    def snapshot_bytes(self) -> int:
        """Return about what it adds to a snapshot."""
        return 0 if self._sources is None else self._sources.snapshot_bytes()

    def live_bytes(self) -> int:
        """Return about what it takes in memory."""
        return self.snapshot_bytes()


class PositionOrder:
    """Partition after partition, packet after packet; the end of the last partition is that of the input."""

    def __init__(self) -> None:
        self.clock = self.grid_clock = self.greatest = NO_TIME
        self.is_finished = self.clock_is_given = False
        self.tied = 0
        self._turn = self._expected = 0
        self._partitions: int | None = None
        self._ends: dict[int, tuple[int, str]] = {}
        self._held: dict[tuple[int, int], bytes] = {}
        self._held_bytes = self._end_bytes = 0
        self._ahead: dict[int, int] = {}  # of partitions whose turn has not come: packets without a gap
        self._bases: dict[int, int] = {}  # of packets that another job left, before the first of this one

    def take(self, content: Record, record: bytes) -> Iterator[EventBatch | Rejected]:
        """Yield what is next, as far as it is here."""
        if isinstance(content, EndOfInput):
            self._check_whole()
        elif isinstance(content, EndOfPartition):
            self._end(content)
        elif isinstance(content, EventBatch | StateMarker):
            packets, _ = self._ends.get(content.partition, (None, ""))
            place = (content.source, content.partition, self._numbered(content.partition, content.sequence))
            check_packet(*place, self._partitions, packets, "order 'position'")
            key = place[1:]
            if key == (self._turn, self._expected):
                if isinstance(content, EventBatch):
                    yield content
                self._expected += 1
            elif key >= (self._turn, self._expected) and key not in self._held:
                self._hold(key, record)
            if isinstance(content, StateMarker):
                self._note_count(content)
        yield from self._follow()

    def _numbered(self, partition: int, sequence: int) -> int:
        """Return the number of a packet behind those that another job left."""
        return sequence + self._bases.get(partition, 0) if sequence >= 0 else sequence

    def _note_count(self, marker: StateMarker) -> None:
        if self._partitions not in (None, marker.partitions):
            raise InputError(
                f"the marker of an export in partition {marker.source!r} says that there are "
                f"{marker.partitions} partitions, and there are {self._partitions}; all must say the same"
            )
        self._partitions = marker.partitions

    def _end(self, end: EndOfPartition) -> None:
        said = (self._numbered(end.partition, end.packets), end.source)
        if (
            self._ends.get(end.partition, said) != said
            or self._partitions not in (None, end.partitions)
            or end.partition >= end.partitions
        ):
            raise InputError(
                f"the end of partition {end.source!r} contradicts what was said before: number "
                f"{end.partition} of {end.partitions}, {end.packets} packets; end each once"
            )
        if end.partition not in self._ends:
            self._note_end(end.partition, said)
        self._partitions = end.partitions
        self.greatest = max(self.greatest, end.high_water)

    def _note_end(self, partition: int, said: tuple[int, str]) -> None:
        self._ends[partition] = said
        self._end_bytes += len(json.dumps([partition, *said])) + 2  # a comma and a space between two

    def _hold(self, key: tuple[int, int], record: bytes) -> None:
        self._held[key] = record
        self._held_bytes += len(record) + 16
        partition, packets = key[0], self._ahead.get(key[0], 0)
        while (partition, packets) in self._held:
            packets += 1
        self._ahead[partition] = packets

    def _follow(self) -> Iterator[EventBatch]:
        """Yield what was held and has its turn now."""
        while not self.is_finished:
            while (key := (self._turn, self._expected)) in self._held:
                record = self._held.pop(key)
                self._held_bytes -= len(record) + 16
                if record[: len(MAGIC)] == MAGIC:  # and no marker
                    yield EventBatch.unpack(record)
                self._expected += 1
            if self._ends.get(self._turn, (-1, ""))[0] != self._expected:
                return
            self._turn, self._expected = self._turn + 1, 0
            self._ahead.pop(self._turn, None)
            self.is_finished = self._turn == self._partitions

    @property
    def partitions(self) -> int | None:
        """How many there are; None = nobody has said so yet."""
        return self._partitions

    @property
    def waiting(self) -> int:
        """How many events are here and may not apply yet."""
        packets = (record for record in self._held.values() if record[: len(MAGIC)] == MAGIC)
        return sum(len(EventBatch.unpack(record)) for record in packets)

    def received(self, partition: int) -> int | None:
        """Return how many packets of a partition are here without a gap, of those that this job numbers."""
        if partition < self._turn:
            packets = self._ends[partition][0]
        elif partition == self._turn:
            packets = self._expected
        else:
            packets = self._ahead.get(partition, 0)
        return packets - self._bases.get(partition, 0)

    def has_ended(self, partition: int) -> bool:
        """Return whether a partition has ended and all of its packets are here."""
        end = self._ends.get(partition)
        return end is not None and self.received(partition) == end[0] - self._bases.get(partition, 0)

    def _check_whole(self) -> None:
        if self.is_finished or not (self._held or self._ends or self._turn or self._expected):
            return
        known = self._ends.get(self._turn)
        name = f"number {self._turn}"
        if known is not None:
            name = f"{known[1]!r} ({self._expected} of {known[0]} packets)"
        raise packets_lost(name)

    def wakes_at(self) -> int | None:
        """Return None."""
        return None

    def progress(self) -> dict[str, Any]:
        """Return whose turn it is and which partitions have ended."""
        return {
            "turn": self._turn,
            "expected": self._expected,
            "partitions": self._partitions,
            "ends": [[partition, *end] for partition, end in sorted(self._ends.items())],
            **({} if self.greatest == NO_TIME else {"clock": self.greatest}),
            **({"bases": sorted(self._bases.items())} if self._bases else {}),
        }

    def held(self) -> list[Held]:
        """Return the packets whose turn has not come."""
        return [(*key, record) for key, record in sorted(self._held.items())]

    def go_on_from(self, progress: dict[str, Any], held: Sequence[Held]) -> None:
        """Take over what `progress` and `held` gave."""
        self._turn, self._expected = int(progress["turn"]), int(progress["expected"])
        self._partitions = None if progress["partitions"] is None else int(progress["partitions"])
        for number, packets, source in progress["ends"]:
            self._note_end(int(number), (int(packets), str(source)))
        self.greatest = int(progress.get("clock", NO_TIME))
        self._bases = {int(number): int(packets) for number, packets in progress.get("bases", ())}
        if min(self._turn, self._expected) < 0 or (self._partitions or 0) < 0:
            raise ValueError("a number below 0")
        self.is_finished = self._turn == self._partitions
        for partition, sequence, record in held:
            self._hold((partition, sequence), record)

    def snapshot_bytes(self) -> int:
        """Return about what it adds to a snapshot."""
        return self._held_bytes + self._end_bytes

    def live_bytes(self) -> int:
        """Return about what it takes in memory."""
        return self._held_bytes + 200 * len(self._held) + self._end_bytes


class TimeOrder:
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
    def partitions(self) -> int | None:
        """How many there are; None = nobody has said so yet."""
        return self._clock.partitions.count

    @property
    def waiting(self) -> int:
        """How many events are here and may not apply yet."""
        return len(self._buffer)

    def received(self, partition: int) -> int | None:
        """Return how many packets of a partition are here without a gap."""
        return self._clock.partitions.received(partition)

    def has_ended(self, partition: int) -> bool:
        """Return whether a partition has ended and all of its packets are here."""
        return self._clock.partitions.has_ended(partition)

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


def order_of(order: str) -> InputOrder:
    """Return a new order by its name in `EvaluatorSettings`."""
    if order == "arrival":
        return ArrivalOrder()
    return PositionOrder() if order == "position" else TimeOrder()
