"""The three orders of events, and an order by its name in the settings.

`order` defines the protocol that they follow.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ..encoding.json import text_of, whole
from ..errors import InputError
from ..events.batch import MAGIC, EventBatch
from ..events.records import EndOfInput, EndOfPartition, Heartbeat, Record, StateMarker
from ..events.rejected import Rejected
from ..events.times import END_OF_TIME, NO_TIME
from ..events.wire import UNORDERED
from .buffer import ReorderBuffer, in_time_order
from .order import RUNNER, Held, InputOrder, Ledger
from .partitions import (
    SourcePartitions,
    StreamClock,
    check_packet,
    contradicted,
    count_of,
    marked_count,
    packets_lost,
)


class ArrivalOrder(InputOrder):
    """The order of arrival: yields every batch as it arrives.

    `EndOfInput` may come more than once: a pane may fire late.

    Packets that have numbers are counted, so that an export misses no packet and no packet counts twice. The
    input ends when all its partitions have ended: on a stream no `EndOfInput` may ever come.
    """

    is_finished = False

    def __init__(self) -> None:
        self._sources = SourcePartitions()

    def receive(self, content: Record, record: bytes) -> Iterator[EventBatch | Rejected]:  # noqa: ARG002
        """Yield the batch of a record at once, unless the record repeats a packet."""
        if isinstance(content, EventBatch):
            if content.head.sequence == UNORDERED or self._sources.receive(content):
                yield content
        elif isinstance(content, Heartbeat | EndOfPartition | StateMarker):
            self._sources.receive(content)
        self.is_finished = isinstance(content, EndOfInput) or self._sources.ended

    @property
    def ledger(self) -> Ledger:
        """What the partitions have sent."""
        return self._sources

    def progress(self) -> dict[str, Any]:
        """Return what the partitions have said; empty if packets have no numbers."""
        return {"sources": self._sources.progress()} if self._sources else {}

    def go_on_from(self, progress: dict[str, Any], held: Sequence[Held]) -> None:
        """Take over what `progress` gave. Raises ValueError if `held` has packets: none waits here."""
        if held:
            raise ValueError("packets wait, although the order of arrival applies each at once")
        if progress:
            self._sources = SourcePartitions.of_progress(progress["sources"])
        self.is_finished = self._sources.ended

    def snapshot_bytes(self) -> int:
        """Return about how many bytes the order adds to a snapshot."""
        return self._sources.snapshot_bytes()


class PositionOrder(InputOrder):
    """The order of position: yields packets partition by partition, by number.

    The input ends with its last partition.
    """

    is_finished = False
    greatest = NO_TIME

    def __init__(self) -> None:
        self._turn = self._expected = 0
        self._partitions: int | None = None
        self._ends: dict[int, tuple[int, str]] = {}
        self._held: dict[tuple[int, int], bytes] = {}
        self._held_bytes = self._end_bytes = 0
        # For each partition whose turn has not come: how many packets have arrived without a gap.
        self._ahead: dict[int, int] = {}
        # For each partition: how many packets another job left, before the first packet of this job.
        self._bases: dict[int, int] = {}

    def receive(self, content: Record, record: bytes) -> Iterator[EventBatch | Rejected]:
        """Take in a record; yield the batches whose turn has come."""
        if isinstance(content, EndOfInput):
            self._check_whole()
        elif isinstance(content, EndOfPartition):
            self._end(content)
        elif isinstance(content, EventBatch | StateMarker):
            head = content if isinstance(content, StateMarker) else content.head
            packets, _ = self._ends.get(head.partition, (None, ""))
            place = (content.source, head.partition, self._numbered(head.partition, head.sequence))
            check_packet(*place, self._partitions, packets, "order 'position'")
            key = place[1:]
            if key == (self._turn, self._expected):
                if isinstance(content, EventBatch):
                    yield content
                self._expected += 1
            elif key >= (self._turn, self._expected) and key not in self._held:
                self._hold(key, record)
            if isinstance(content, StateMarker):
                self._partitions = marked_count(content, self._partitions)
        yield from self._follow()

    def _numbered(self, partition: int, sequence: int) -> int:
        """Return a packet's number, counted on from the packets that another job left."""
        return sequence + self._bases.get(partition, 0) if sequence >= 0 else sequence

    def _end(self, end: EndOfPartition) -> None:
        said = (self._numbered(end.partition, end.packets), end.source)
        if (
            self._ends.get(end.partition, said) != said
            or self._partitions not in (None, end.partitions)
            or end.partition >= end.partitions
        ):
            raise contradicted(end)
        if end.partition not in self._ends:
            self._note_end(end.partition, said)
        self._partitions = end.partitions
        self.greatest = max(self.greatest, end.high_water)

    def _note_end(self, partition: int, said: tuple[int, str]) -> None:
        self._ends[partition] = said
        # 2: the comma and the space between entries
        self._end_bytes += len(json.dumps([partition, *said])) + 2

    def _hold(self, key: tuple[int, int], record: bytes) -> None:
        self._held[key] = record
        self._held_bytes += len(record) + 16
        partition, packets = key[0], self._ahead.get(key[0], 0)
        while (partition, packets) in self._held:
            packets += 1
        self._ahead[partition] = packets

    def _follow(self) -> Iterator[EventBatch]:
        """Yield the held batches whose turn has come."""
        while not self.is_finished:
            while (key := (self._turn, self._expected)) in self._held:
                record = self._held.pop(key)
                self._held_bytes -= len(record) + 16
                if record[: len(MAGIC)] == MAGIC:  # the record is an event batch, not a marker
                    yield EventBatch.unpack(record)
                self._expected += 1
            if self._ends.get(self._turn, (-1, ""))[0] != self._expected:
                return
            self._turn, self._expected = self._turn + 1, 0
            self._ahead.pop(self._turn, None)
            self.is_finished = self._turn == self._partitions

    @property
    def ledger(self) -> Ledger:
        """The ledger of the packets that the partitions have sent. The order itself counts these packets."""
        return self

    @property
    def count(self) -> int | None:
        """How many partitions there are; None if no record has said this number yet."""
        return self._partitions

    @property
    def waiting(self) -> int:
        """How many events are held because their turn has not come."""
        packets = (record for record in self._held.values() if record[: len(MAGIC)] == MAGIC)
        return sum(len(EventBatch.unpack(record)) for record in packets)

    def received(self, number: int) -> int:
        """Return how many packets of a partition are here without a gap. Another job's are not counted."""
        if number < self._turn:
            packets = self._ends[number][0]
        elif number == self._turn:
            packets = self._expected
        else:
            packets = self._ahead.get(number, 0)
        return packets - self._bases.get(number, 0)

    def has_ended(self, number: int) -> bool:
        """Return whether a partition has ended and all of its packets have arrived."""
        end = self._ends.get(number)
        return end is not None and self.received(number) == end[0] - self._bases.get(number, 0)

    def _check_whole(self) -> None:
        if self.is_finished or not (self._held or self._ends or self._turn or self._expected):
            return
        known = self._ends.get(self._turn)
        name = f"number {self._turn}"
        if known is not None:
            name = f"{known[1]!r} ({self._expected} of {known[0]} packets)"
        raise packets_lost(name)

    def progress(self) -> dict[str, Any]:
        """Return the partition whose turn it is, and the partitions that have ended."""
        return {
            "turn": self._turn,
            "expected": self._expected,
            "partitions": self._partitions,
            "ends": [[partition, *end] for partition, end in sorted(self._ends.items())],
            **({} if self.greatest == NO_TIME else {"clock": self.greatest}),
            **({"bases": sorted(self._bases.items())} if self._bases else {}),
        }

    def held(self) -> list[Held]:
        """Return the packets whose turn has not come, each with its place."""
        return [(*key, record) for key, record in sorted(self._held.items())]

    def go_on_from(self, progress: dict[str, Any], held: Sequence[Held]) -> None:
        """Load the state that `progress` and `held` returned."""
        self._turn, self._expected = whole(progress["turn"], 0), whole(progress["expected"], 0)
        self._partitions = count_of(progress["partitions"])
        for number, packets, source in progress["ends"]:
            self._note_end(whole(number, 0), (whole(packets, 0), text_of(source)))
        self.greatest = whole(progress.get("clock", NO_TIME))
        self._bases = {whole(number): whole(packets, 0) for number, packets in progress.get("bases", ())}
        self.is_finished = self._turn == self._partitions
        for partition, sequence, record in held:
            self._hold((partition, sequence), record)

    def snapshot_bytes(self) -> int:
        """Return about how many bytes the order adds to a snapshot."""
        return self._held_bytes + self._end_bytes

    def live_bytes(self) -> int:
        """Return about how many bytes the order takes in memory."""
        return self._held_bytes + 200 * len(self._held) + self._end_bytes


class TimeOrder(InputOrder):
    """The order of time: yields events in order of event time, up to the clock.

    The clock is the readers' clock: the least moment up to which a partition is settled. If packets have no
    numbers, there is no readers' clock, and `Clock` records give the time. An event behind the clock is late.
    Readers refuse late events before they send them, so with the readers' clock no late event arrives here. A
    given clock makes no rows on a grid by itself, because nothing says where it would end. The time of a
    model is then the time of its own events.
    """

    def __init__(self) -> None:
        self.tied = 0
        self._clock = StreamClock()
        self._buffer: ReorderBuffer[EventBatch] = ReorderBuffer()

    @property
    def clock(self) -> int:
        """The clock: every event before this time has been yielded.

        NO_TIME = not known, END_OF_TIME = all events.
        """
        return self._clock.moment

    @property
    def is_finished(self) -> bool:
        """Whether the last event has been given."""
        return self._clock.moment == END_OF_TIME

    @property
    def greatest(self) -> int:
        """The greatest time that the partitions have reported; NO_TIME if `Clock` records give the time."""
        return self._clock.partitions.greatest

    @property
    def clock_is_given(self) -> bool:
        """Whether no packet had a number, so that `Clock` records give the time."""
        return not self._clock.partitions

    @property
    def ledger(self) -> Ledger:
        """The ledger of the packets that the partitions have sent."""
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
        batch, late = self._clock.in_time(batch, "what was applied")
        if late is not None:
            yield late
        self._buffer.add(batch, size)

    def wakes_at(self) -> int | None:
        """Return a moment behind three quarters of the waiting events: each wake-up releases many events."""
        return self._buffer.moment(0.75) + 1 if len(self._buffer) else None

    def progress(self) -> dict[str, Any]:
        """Return the clock and the reports of the partitions, as JSON values."""
        partitions = self._clock.partitions
        return {"clock": self.clock, **({"sources": partitions.progress()} if partitions else {})}

    def held(self) -> list[Held]:
        """Return the events that wait, packed."""
        return [(RUNNER, number, packet) for number, packet in enumerate(self._buffer.packets())]

    def go_on_from(self, progress: dict[str, Any], held: Sequence[Held]) -> None:
        """Take over what `progress` and `held` gave."""
        self._clock.moment = whole(progress["clock"])
        if "sources" in progress:
            self._clock.partitions = SourcePartitions.of_progress(progress["sources"])
        for _, _, record in held:
            self._buffer.add(EventBatch.unpack(record), len(record))

    def snapshot_bytes(self) -> int:
        """Return about how many bytes the order adds to a snapshot."""
        return self._buffer.snapshot_bytes() + self._clock.partitions.snapshot_bytes()

    def live_bytes(self) -> int:
        """Return about how many bytes the order takes in memory."""
        return self._buffer.live_bytes() + self._clock.partitions.snapshot_bytes()


def order_of(order: str) -> InputOrder:
    """Return a new order of events; `order` is its name in `EvaluatorSettings`."""
    if order == "arrival":
        return ArrivalOrder()
    return PositionOrder() if order == "position" else TimeOrder()
