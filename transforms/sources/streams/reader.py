"""The reader of a stream's partition.

It reads messages, and gives numbered packets, control records and dead letters.

Invariant
    A reader's output depends only on the partition's messages from its start on, and on the messages' split
    into steps. A reader made from a state continues exactly as the reader that gave the state. Each message
    is in one step. (Only `ahead` and `idle` depend on the wall clock; both are off by default. The log warns
    of events that are dated far after the wall clock. When a partition is added, and when this is noticed, is
    chance.)

A partition that is added to the stream while the job runs has no reader of its own. The reader of an older
partition reads it, too: the packets of both are numbered together, and an export contains the offsets of
both. So the number of readers, which every control record states, does not change.

The reader does not use Beam: `read` drives the reader on Beam, `pipelines.evaluate.live` without Beam.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ....core.errors import InputError, OtherConfigurationError
from ....core.events.times import ADDED, IDLE, NO_TIME
from ....core.ids.sharding import Cut, Packet, Packets
from ...events.dead_letters import NO_LETTERS, DeadLetters
from ...state.control import ControlFile
from .cursor import Cursor, Read
from .offsets import Position, ReaderState, check_origin
from .stream_input import StreamInput

BATCH_MESSAGES = 20_000
"""The most messages of a step. Their records and packets are in memory together, about 10 MB."""

FEW_RECORDS = 1_000
"""After a step of fewer records, a reader waits for more, because a step costs 4 ms, and its packets cost 4
ms again.
"""


class Step(NamedTuple):
    """The output of one step of a reader.

    packets  (shard key, packed record); a record is a batch, `Heartbeat`, `StateMarker` or `EndOfPartition`
    letters  dead letters of invalid or late records
    records  the number of all records; a record with several columns of scores counts as one event for each
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

    Also reads partitions that are added to its stream meanwhile.

    Raises OtherConfigurationError for a state with another number of shards or of another partition;
    InputError for a state of a topic that has been made again since.
    """

    def __init__(self, source: StreamInput, shards: int, state: bytes | None = None) -> None:
        found = ReaderState(source.start, [0] * shards, source.high_water, place=source.place)
        if state is not None:
            found = ReaderState.from_bytes(state)
            source = _as_begun(source, found)
        if len(found.sent) != int(shards):  # only the number counts; see `Shards`
            raise OtherConfigurationError(
                f"the position of {source.partition.name} is that of a job of {len(found.sent)} shards, and "
                f"this one has {int(shards)}; start it with as many, --shards and --own-shard together"
            )
        self.source = source
        partition = source.partition
        found.name, found.known = partition.name, partition.known
        found.origin = partition.origin or found.origin
        found.number, found.partitions = source.number, source.partitions
        self._state = found
        self._packets = Packets(partition.name, source.number, source.partitions, shards, found.sent)
        first = Position(-1, found.next, found.high_water, found.is_silent, found.place)
        self.cursors = [Cursor(source, partition, first)]
        self.cursors += [Cursor(source, partition.sibling(at.number), at) for at in found.added]
        self._stops = False
        self._tells_new = source.is_new and state is None
        self._control = None if source.control is None else ControlFile(source.control)

    @property
    def ended(self) -> bool:
        """Whether the reader has read the whole partition and has sent the partition's end."""
        return self._state.ended

    @property
    def offset(self) -> int:
        """The offset of the next message."""
        return self.cursors[0].next

    @property
    def position(self) -> tuple[int, str]:
        """The offset of the next message, and its place; see `Fetched`."""
        return self.cursors[0].next, self.cursors[0].place

    @property
    def settled(self) -> int:
        """A time that no later record precedes: the time of the last heartbeat."""
        return self._state.settled

    @property
    def added(self) -> int:
        """How many partitions that were added to the stream while the job ran are read here."""
        return len(self.cursors) - 1

    def lag(self) -> int | None:
        """Return the approximate number of messages that are not read yet; None = not known."""
        return self.cursors[0].lag()

    def state(self) -> bytes:
        """Return a checkpoint, from which another reader can continue."""
        first, *added = (cursor.position for cursor in self.cursors)
        return replace(
            self._state,
            next=first.next,
            place=first.place,
            high_water=first.high_water,
            is_silent=first.is_idle,
            added=added,
            sent=self._packets.sent,
        ).to_bytes()

    def step(self, limit: int = BATCH_MESSAGES, wait: float = 0.0) -> Step:
        """Read about `limit` records, or one message; wait up to `wait` seconds for the first.

        Raises RocsteadyError if the partition cannot be read.
        """
        state, first = self._state, self.cursors[0]
        if state.ended:
            return Step([], NO_LETTERS, at_end=True)
        if self.source.end is not None and first.next >= self.source.end:
            return Step(self._ends(), NO_LETTERS, at_end=True)
        packets = self._word() if state.settled == NO_TIME else []  # at the high water of an export
        packets += self._take_in()
        cursors = [cursor for cursor in self.cursors if not cursor.ended]
        share, each_waits = max(limit // len(cursors), 1), wait / len(cursors)
        found = [(cursor, cursor.read(share, each_waits)) for cursor in cursors]
        for cursor, read in found:
            packets += [] if read.batch is None else self._packets.split(read.batch, cursor.high_water)
        packets += self._word()
        packets += self._asked_for()
        if all(cursor.ended for cursor in self.cursors):
            packets += self._ends()
        return _step_of(packets, [read for _, read in found], ended=state.ended)

    def finish(self) -> Iterator[Step]:
        """End the partition here: yield the steps of the messages that it has begun to read."""
        self._stops = True
        for cursor in self.cursors:
            cursor.partition.stop()
        while not self._state.ended:
            yield self.step()

    def close(self) -> None:
        """Close everything that this process holds of the partitions."""
        for cursor in self.cursors:
            cursor.partition.close()

    def _take_in(self) -> list[Packet]:
        """Begin to read the partitions that were added to the stream; return the heartbeats that name them.

        The clock does not wait for such a partition before its first event: a partition without events would
        stop all rows. So its first events may be late, with a reason of their own.

        Raises InputError if they cannot be read together with the other partitions.
        """
        source = self.source
        words: list[Packet] = []
        if self._tells_new:
            self._tells_new = False
            words += self._packets.heartbeats(ADDED, self._greatest())
        if source.end is not None or self._stops:
            return words
        here = {cursor.number for cursor in self.cursors}
        new = [number for number in source.partition.added() if number not in here]
        if new and not source.grows:
            raise InputError(
                f"{source.partition.sibling(new[0]).name} was added while the job ran, and nothing says in "
                "which order the events of several partitions apply; begin anew, and name the column of "
                "times with --time, or say --order arrival"
            )
        for number in new:
            partition = source.partition.sibling(number)
            self.cursors.append(Cursor(source, partition, Position(number, 0, is_idle=True)))
            words += self._packets.heartbeats(ADDED, self._greatest(), partition.name)
        return words

    def _greatest(self) -> int:
        return max(cursor.high_water for cursor in self.cursors)

    def _word(self) -> list[Packet]:
        """Return heartbeats if there is news: a later time up to which all is settled, or idleness.

        The time is the least time of the cursors. A cursor that is idle does not count; if all cursors are
        idle, the partition is idle.
        """
        state, lateness = self._state, self.source.timing.lateness
        waited = [cursor.high_water for cursor in self.cursors if not (cursor.is_idle or cursor.ended)]
        if not waited:
            waited = [cursor.high_water for cursor in self.cursors if not cursor.is_idle]
        if not waited:
            if state.is_idle:
                return []
            state.is_idle = True
            return [*self._packets.heartbeats(IDLE, self._greatest())]
        if lateness is None or min(waited) == NO_TIME:
            return []
        settled = min(waited) - lateness
        if settled <= state.settled and not state.is_idle:
            return []
        state.settled, state.is_idle = max(settled, state.settled), False
        return [*self._packets.heartbeats(state.settled, self._greatest())]

    def _asked_for(self) -> list[Packet]:
        """Return a marker for every shard, if the control file requests the shards' states."""
        state = self._state
        request = None if self._control is None else self._control.request(state.asked)
        if request is None:
            return []
        state.asked = request.id
        return self._markers(Cut(request.id, request.folder, stops=False))

    def _markers(self, cut: Cut) -> list[Packet]:
        position: dict[str, object] = {"records": self.cursors[0].next}
        if self.source.partition.resumes:
            position = _exported(self.cursors[0])
        if self.added:
            position["added"] = {cursor.partition.name: _exported(cursor) for cursor in self.cursors[1:]}
        return [*self._packets.markers(cut, position, self._state.settled, self._greatest())]

    def _ends(self) -> list[Packet]:
        self._state.ended = True
        if self.source.cut is not None:
            return self._markers(self.source.cut)
        return [*self._packets.ends(self._greatest())]


def _as_begun(source: StreamInput, state: ReaderState) -> StreamInput:
    """Return an input with the numbers of partitions of its job's start, for a reader with a state."""
    partition = source.partition
    if state.name != partition.name:
        raise OtherConfigurationError(
            f"the position of {state.name} is in the state of the job where {partition.name} would go on; "
            "name the same topics, in the same order, or begin without the state"
        )
    remedy = "begin a job without the state"
    what = "the state of the job"
    check_origin(what, partition.name, state.next, state.origin, partition.origin, remedy)
    if not state.known:
        return source
    partition = partition.as_of(state.known)
    return replace(source, partition=partition, number=state.number, partitions=state.partitions)


def _exported(cursor: Cursor) -> dict[str, object]:
    """Return the position of a cursor in the form of an export."""
    position = {"offset": cursor.next, "place": cursor.place, "high_water": cursor.high_water}
    origin = cursor.partition.origin
    return position | ({"origin": origin} if origin else {})


def _step_of(packets: list[Packet], found: Sequence[Read], *, ended: bool) -> Step:
    """Return the records of all cursors as one step."""
    letters = [read.letters for read in found if len(read.letters)]
    spans = [read.times for read in found if read.times is not None]
    return Step(
        packets,
        DeadLetters.concat(letters) if letters else NO_LETTERS,
        sum(read.records for read in found),
        sum(read.size for read in found),
        (min(least for least, _ in spans), max(most for _, most in spans)) if spans else None,
        at_end=ended or all(read.at_end for read in found),
    )
