"""The reader of a stream's partition: messages in; numbered packets, control records and dead letters out.

Invariant
    A reader's output depends only on the partition's messages from its start on, and on the messages' split
    into steps. A reader made from a state continues as the reader that gave the state. Each message is in
    one step. (Only `ahead` and `idle` depend on the wall clock; both are off by default. The log warns of
    events that are dated far after the wall clock.)

The reader does not use Beam: `read` drives the reader on Beam, `pipelines.evaluate.live` without Beam.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ....core.errors import OtherConfigurationError
from ....core.events.batch import PredictionBatch
from ....core.events.records import Batch
from ....core.events.times import IDLE, NO_TIME
from ....core.ids.sharding import Cut, Packets, with_packet
from ...events.dead_letters import NO_LETTERS, DeadLetters
from ...events.doubts import tell_ahead
from ...events.fields import EventFields, Role
from ...events.lateness import ANY_TIME, Timing, time_span
from ...events.validate import validate_as
from ...state.control import ControlFile
from ..files.json_lines import JsonLines
from .arrow_messages import ArrowMessages
from .offsets import ReaderState
from .partition import Fetched, MessageFormat, Part, StreamPartition, message_chunk

BATCH_MESSAGES = 20_000
"""The most messages of a step. Their records and packets are in memory together, about 10 MB."""

FEW_RECORDS = 1_000
"""After a step of fewer records, a reader waits for more: any step costs 4 ms, and its packets 4 ms again."""

_records_in_message: dict[str, float] = {}
"""How many records a message held in the latest step of a partition, by the partition's name.

A runner often makes a new reader of the partition. It would begin with one message, not knowing its size.
"""


@dataclass(frozen=True)
class StreamInput:
    """A partition of a stream as a partition of a job's input.

    number, partitions  the partition's number, from 0, and the number of all partitions of the input.
    role         the role of the records.
    fields       the roles of the columns, including the source of the model's name.
    timing       the limits for times, before the first record.
    located      whether the records keep their positions.
    start, end   the offset of the first message, and the offset after the last message; end None = no end.
    idle         seconds without messages, after which other partitions' clocks no longer wait; None = never.
    place        the place of `start`; see `Fetched`.
    high_water   the greatest event time before `start`, if the job continues from an export.
    format       the format of messages: JSON, or Arrow IPC streams. A pipe and a folder give no messages.
    control      a file that can request the states of the shards while the job runs.
    cut          the request for the states of the shards at `end`, if the partition is cut off there.
    """

    partition: StreamPartition
    number: int
    partitions: int
    role: Role
    fields: EventFields
    start: int
    end: int | None = None
    timing: Timing = ANY_TIME
    located: bool = False
    idle: float | None = None
    place: str = ""
    high_water: int = NO_TIME
    control: str | None = None
    cut: Cut | None = None
    format: MessageFormat = "json"


class Step(NamedTuple):
    """The output of one step of a reader.

    packets  (shard key, packed record); a record is a batch, `Heartbeat`, `StateMarker` or `EndOfPartition`
    letters  dead letters of invalid or late records
    records  the number of all records; a record with several columns of scores counts as an event of each
    bytes_read  bytes of messages
    times    the least and the greatest event time of the valid records; None = no record has a time
    at_end   whether the partition had no more records
    """

    packets: list[tuple[str, bytes]]
    letters: DeadLetters
    records: int = 0
    bytes_read: int = 0
    times: tuple[int, int] | None = None
    at_end: bool = False


class StreamReader:
    """Reads a partition from its start, or from a state, in steps.

    Raises OtherConfigurationError for a state of another number of shards.
    """

    def __init__(self, source: StreamInput, shards: int, state: bytes | None = None) -> None:
        self.source = source
        found = ReaderState(source.start, [0] * shards, source.high_water, place=source.place)
        if state is not None:
            found = ReaderState.from_bytes(state)
        if len(found.sent) != int(shards):  # only the number counts; see `Shards`
            raise OtherConfigurationError(
                f"the position of {source.partition.name} is that of a job of {len(found.sent)} shards, and "
                f"this one has {int(shards)}; start it with as many, --shards and --own-shard together"
            )
        self._state = found
        self._packets = Packets(source.partition.name, source.number, source.partitions, shards, found.sent)
        self._timing = replace(source.timing, high_water=found.high_water)
        fields, role = source.fields, source.role
        self._lines = JsonLines(source.partition.name, fields.text_columns_of(role), fields.columns_of(role))
        self._arrow = ArrowMessages(source.partition.name, fields, role)
        self._heard = time.monotonic()
        self._control = None if source.control is None else ControlFile(source.control)

    @property
    def ended(self) -> bool:
        """Whether the reader has read the whole partition and has sent the partition's end."""
        return self._state.ended

    @property
    def offset(self) -> int:
        """The offset of the next message."""
        return self._state.next

    @property
    def position(self) -> tuple[int, str]:
        """The offset of the next message, and its place; see `Fetched`."""
        return self._state.next, self._state.place

    @property
    def settled(self) -> int:
        """A time that no later record precedes: the time of the last heartbeat."""
        return self._state.settled

    def lag(self) -> int | None:
        """Return the approximate number of messages that are not read yet; None = not known."""
        end = self.source.partition.end() if self.source.end is None else self.source.end
        return None if end < 0 else max(end - self._state.next, 0)

    def state(self) -> bytes:
        """Return a checkpoint, from which another reader can continue."""
        return replace(self._state, sent=self._packets.sent).to_bytes()

    def step(self, limit: int = BATCH_MESSAGES, wait: float = 0.0) -> Step:
        """Read about `limit` records, or one message; wait up to `wait` seconds for the first.

        How many messages these are is known from the step before.

        Raises RocsteadyError where the partition cannot be read.
        """
        state, end = self._state, self.source.end
        if state.ended:
            return Step([], NO_LETTERS, at_end=True)
        if end is not None and state.next >= end:
            return Step(self._ends(), NO_LETTERS, at_end=True)
        first = self._settle() if state.settled == NO_TIME else []  # at the high water of an export
        in_message = _records_in_message.get(self.source.partition.name)
        if in_message is None:
            in_message = 1.0 if self.source.format == "json" else limit
        messages = max(int(limit / in_message), 1)
        fetched = self.source.partition.fetch(state.next, messages, wait, state.place)
        if end is not None and fetched.next > end:
            fetched = _up_to(fetched, end)
        step = self._read(fetched)
        step.packets[:0] = first
        state.next, state.place = fetched.next, fetched.place
        step.packets.extend(self._asked_for())
        if fetched.ended or (end is not None and state.next >= end):
            step.packets.extend(self._ends())
        return step._replace(at_end=fetched.at_end or state.ended)

    def finish(self) -> Iterator[Step]:
        """End the partition here: yield the steps of the messages that it has begun to give."""
        self.source.partition.stop()
        while not self._state.ended:
            yield self.step()

    def _read(self, fetched: Fetched) -> Step:
        if not fetched.offsets and not fetched.deleted and not fetched.parts:
            return Step(self._silence(fetched), NO_LETTERS)
        parts = fetched.parts or self._parts_of(fetched)
        batches, letters = zip(*map(self._validated, parts), strict=True)
        batch = self._whole(batches)
        self._heard = time.monotonic()
        packets = [*self._packets.split(batch), *self._settle()]
        records = sum(map(len, (*batches, *letters)))
        if fetched.offsets:
            in_message = max(records / len(fetched.offsets), 1.0)
            _records_in_message[self.source.partition.name] = in_message
        size = sum(part.chunk.bytes_read for part in parts)
        return Step(packets, DeadLetters.concat(letters), records, size, time_span(batch))

    def _parts_of(self, fetched: Fetched) -> Sequence[Part]:
        """Return the records of messages."""
        if self.source.format == "arrow":
            return self._arrow.parts(fetched)
        name, fields = self.source.partition.name, self.source.fields
        return [Part(name, fields, message_chunk(fetched, self._lines))]

    def _validated(self, part: Part) -> tuple[Batch, DeadLetters]:
        """Return the valid records and the dead letters of a part, both in order of their positions."""
        name, fields, chunk = part
        source = self.source
        self._timing = timing = replace(self._timing, now=time.time_ns() // 1_000)
        batch, late = validate_as(source.role, chunk, fields, name, source.number, timing, source.located)
        if timing.ahead is None:
            tell_ahead(name, chunk, batch, fields, timing)
        self._timing = timing.after(batch)
        dead = DeadLetters.concat([chunk.dead, late])
        return batch, DeadLetters(dead.batch.sort_by("position")) if len(dead) else dead

    def _whole(self, batches: Sequence[Batch]) -> Batch:
        """Return the batches of a step as one batch of the partition."""
        name = self.source.partition.name
        first = batches[0]
        if len(batches) == 1 and first.packet().source == name:
            return first
        whole: Batch = type(first).concat(batches)  # type: ignore[arg-type]
        named = {"source": name, "high_water": self._timing.high_water}
        rows = whole.events if isinstance(whole, PredictionBatch) else whole
        if rows.positions is None:
            return with_packet(whole, **named)
        return with_packet(whole, **named, sources=rows.event_sources())

    def _settle(self) -> list[tuple[str, bytes]]:
        """Return heartbeats with the time up to which the partition is settled, if this time has advanced."""
        state, lateness = self._state, self._timing.lateness
        state.high_water = self._timing.high_water
        if lateness is None or state.high_water == NO_TIME:
            return []
        settled = state.high_water - lateness
        if settled <= state.settled and not state.is_idle:
            return []
        state.settled, state.is_idle = max(settled, state.settled), False
        return [*self._packets.heartbeats(state.settled, state.high_water)]

    def _silence(self, fetched: Fetched) -> list[tuple[str, bytes]]:
        """Return the record that the partition is idle, once, after `idle` seconds of silence."""
        state, idle = self._state, self.source.idle
        if idle is None or state.is_idle or not fetched.at_end or time.monotonic() - self._heard < idle:
            return []
        state.is_idle = True
        return [*self._packets.heartbeats(IDLE, state.high_water)]

    def _asked_for(self) -> list[tuple[str, bytes]]:
        """Return a marker for every shard, if the control file requests the shards' states."""
        state = self._state
        request = None if self._control is None else self._control.request(state.asked)
        if request is None:
            return []
        state.asked = request.id
        return self._markers(Cut(request.id, request.folder, stops=False))

    def _markers(self, cut: Cut) -> list[tuple[str, bytes]]:
        state = self._state
        position: dict[str, int | str] = {"records": state.next}
        if self.source.partition.resumes:
            position = {"offset": state.next, "place": state.place, "high_water": state.high_water}
        if origin := self.source.partition.origin:
            position["origin"] = origin
        return [*self._packets.markers(cut, position, state.settled, state.high_water)]

    def _ends(self) -> list[tuple[str, bytes]]:
        self._state.ended = True
        if self.source.cut is not None:
            return self._markers(self.source.cut)
        return [*self._packets.ends(self._state.high_water)]


def _up_to(fetched: Fetched, end: int) -> Fetched:
    kept = sum(offset < end for offset in fetched.offsets)
    deleted = fetched.deleted and fetched.deleted - (fetched.next - end)
    return fetched._replace(
        offsets=fetched.offsets[:kept], values=fetched.values[:kept], next=end, deleted=deleted
    )
