"""A cursor: how far one partition of a stream has been read, and its records from there on.

A reader has a cursor for the partition that it began with. A partition that was added to the stream while the
job ran has a cursor of its own, in the same reader.

What a cursor reads depends on the partition's messages and its start. Two options depend on the wall clock,
too: `ahead` of the times, and `idle`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from ....core.events.batch import PacketBatch, PredictionBatch
from ....core.events.records import Batch
from ...events.dead_letters import NO_LETTERS, DeadLetters
from ...events.doubts.ahead import tell_ahead
from ...events.lateness import time_span
from ...events.validate import validate_as
from ..files.json_lines import JsonLines
from .arrow_messages import ArrowMessages
from .offsets import Position
from .partition import Fetched, Part, StreamPartition, message_chunk
from .stream_input import StreamInput

_Rows = TypeVar("_Rows", bound=PacketBatch)

_records_in_message: dict[str, float] = {}
"""How many records a message held in the latest step of a partition, by the partition's name.

A runner often makes a new reader of a partition, and without this number the new reader would begin with a
single message.
"""


class Read(NamedTuple):
    """The records that a cursor read in one step.

    batch    the valid records; None = there were no records
    letters  dead letters of invalid or late records
    records  the number of all records
    size     bytes of messages
    times    the least and the greatest event time of the valid records; None = no record has a time
    at_end   whether the partition had no more records
    """

    batch: Batch | None
    letters: DeadLetters
    records: int
    size: int
    times: tuple[int, int] | None
    at_end: bool


class Cursor:
    """The place up to which a partition has been read.

    number    the partition's number in its stream, if it was added while the job ran; -1 = it was not added
    next, place, high_water, is_idle   see `Position`
    """

    def __init__(self, source: StreamInput, partition: StreamPartition, at: Position) -> None:
        self.partition = partition
        self.number = at.number
        self.next, self.place, self.is_idle = at.next, at.place, at.is_idle
        self.ended = False
        self._source = source
        self._timing = replace(source.timing, high_water=at.high_water)
        fields, role, name = source.fields, source.role, partition.name
        self._lines = JsonLines(name, fields.text_columns_of(role), fields.columns_of(role))
        self._arrow = ArrowMessages(name, fields, role)
        self._heard = time.monotonic()

    @property
    def high_water(self) -> int:
        """The greatest event time so far; NO_TIME = no time yet."""
        return self._timing.high_water

    @property
    def position(self) -> Position:
        """The position, from which another cursor can continue."""
        return Position(self.number, self.next, self.high_water, self.is_idle, self.place)

    def lag(self) -> int | None:
        """Return the approximate number of messages that are not read yet; None = not known."""
        end = self.partition.end() if self._end is None else self._end
        return None if end < 0 else max(end - self.next, 0)

    @property
    def _end(self) -> int | None:
        return self._source.end if self.number < 0 else None

    def read(self, limit: int, wait: float) -> Read:
        """Read about `limit` records, or one message; wait up to `wait` seconds for the first.

        The step before tells how many messages these are. Raises RocsteadyError if the partition cannot be
        read.
        """
        in_message = _records_in_message.get(self.partition.name)
        if in_message is None:
            in_message = 1.0 if self._source.format == "json" else limit
        messages = max(int(limit / in_message), 1)
        fetched = self.partition.fetch(self.next, messages, wait, self.place)
        end = self._end
        if end is not None and fetched.next > end:
            fetched = _up_to(fetched, end)
        found = self._records_of(fetched)
        self.next, self.place = fetched.next, fetched.place
        self.ended = fetched.ended or (end is not None and self.next >= end)
        return found

    def _records_of(self, fetched: Fetched) -> Read:
        if not fetched.offsets and not fetched.deleted and not fetched.parts:
            idle = self._source.idle
            if idle is not None and fetched.at_end and time.monotonic() - self._heard >= idle:
                self.is_idle = True
            return Read(None, NO_LETTERS, 0, 0, None, fetched.at_end)
        parts = fetched.parts or self._parts_of(fetched)
        batches, letters = zip(*map(self._validated, parts), strict=True)
        batch = self._whole(batches)
        self._heard, self.is_idle = time.monotonic(), False
        records = sum(map(len, (*batches, *letters)))
        if fetched.offsets:
            in_message = max(records / len(fetched.offsets), 1.0)
            _records_in_message[self.partition.name] = in_message
        size = sum(part.chunk.bytes_read for part in parts)
        return Read(batch, DeadLetters.concat(letters), records, size, time_span(batch), fetched.at_end)

    def _parts_of(self, fetched: Fetched) -> Sequence[Part]:
        """Return the records of fetched messages as parts."""
        if self._source.format == "arrow":
            return self._arrow.parts(fetched)
        return [Part(self.partition.name, self._source.fields, message_chunk(fetched, self._lines))]

    def _validated(self, part: Part) -> tuple[Batch, DeadLetters]:
        """Return the valid records and the dead letters of a part, both in order of their positions."""
        name, fields, chunk = part
        source = self._source
        self._timing = timing = replace(self._timing, now=time.time_ns() // 1_000)
        batch, late = validate_as(source.role, chunk, fields, name, source.number, timing, source.located)
        if timing.ahead is None:
            tell_ahead(name, chunk, batch, fields, timing)
        self._timing = timing.after(batch)
        dead = DeadLetters.concat([chunk.dead, late])
        return batch, DeadLetters(dead.batch.sort_by("position")) if len(dead) else dead

    def _whole(self, batches: Sequence[Batch]) -> Batch:
        """Return the batches of a step as one batch of the partition."""
        name = self.partition.name
        first = batches[0]
        if len(batches) == 1 and first.source == name:
            return first
        whole: Batch = type(first).concat(batches)  # type: ignore[arg-type]
        if isinstance(whole, PredictionBatch):
            return PredictionBatch(_of_partition(whole.events, name))
        return _of_partition(whole, name)


def _of_partition(rows: _Rows, name: str) -> _Rows:
    """Return records as those of a partition; with positions they keep the names of their own sources."""
    sources = rows.sources if rows.positions is None else rows.event_sources()
    return replace(rows, source=name, sources=sources)


def _up_to(fetched: Fetched, end: int) -> Fetched:
    kept = sum(offset < end for offset in fetched.offsets)
    deleted = fetched.deleted and fetched.deleted - (fetched.next - end)
    return fetched._replace(
        offsets=fetched.offsets[:kept], values=fetched.values[:kept], next=end, deleted=deleted
    )
