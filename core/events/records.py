"""The input of a shard's state machine: packed batches, and control records about the stream.

A record is bytes: an `EventBatch` (for a label join a `PredictionBatch` or a `LabelBatch`), a `Heartbeat`,
an `EndOfPartition`, a `Clock`, an `EndOfInput`, a `StateMarker` or a `StateImport`. Control records go
through the same log of a shard as the events, so that a restarted machine receives them again.

Wire form, version 1, little-endian: magic "RSCT", version u8, kind u8, crc32 of the rest u32, the rest.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import astuple, dataclass
from typing import Any

from ..encoding.fields import Reader, packed_text
from ..encoding.json import read_json, reading, text_of, whole
from ..errors import CorruptBytesError, ForeignBytesError, FutureVersionError, TruncatedBytesError
from .batch import EventBatch, LabelBatch, PredictionBatch
from .times import NO_TIME

MAGIC = b"RSCT"
VERSION = 1
_HEAD = struct.Struct("<4sBBI")
_END_OF_PARTITION, _END_OF_INPUT, _HEARTBEAT, _CLOCK, _MARKER, _IMPORT = 1, 2, 3, 4, 5, 6


@dataclass(frozen=True)
class EndOfPartition:
    """The end of a source partition, of which this shard was sent `packets` packets.

    The input has `partitions` partitions. This partition has the number `partition`, from 0, in the order in
    which partitions are applied. So a machine knows which partition is next, and when it has received
    everything. The partition's clock stands at `high_water`, its greatest event time (NO_TIME: the partition
    has no times).
    """

    source: str
    partition: int
    partitions: int
    packets: int
    high_water: int = NO_TIME

    def pack(self) -> bytes:
        """Return the wire form."""
        return _packed(_END_OF_PARTITION, [*astuple(self)])


@dataclass(frozen=True)
class Heartbeat:
    """The progress of a source partition, which has sent this shard `packets` packets so far.

    Every event of the partition with a time before `settled` is in these packets; later events have the time
    `settled` or a later time. A machine that has received these packets from all `partitions` has the least
    `settled` as its clock. Heartbeats go to every shard, also to shards without events. `high_water` is the
    greatest time of the partition so far; NO_TIME: the partition has no times.
    """

    source: str
    partition: int
    partitions: int
    packets: int
    settled: int
    high_water: int = NO_TIME

    def pack(self) -> bytes:
        """Return the bytes of the record."""
        return _packed(_HEARTBEAT, [*astuple(self)])


@dataclass(frozen=True)
class Clock:
    """The runner's watermark: every event of the input with a time before `settled` has been sent.

    A job uses it instead of the heartbeats of the input's readers.
    """

    settled: int

    def pack(self) -> bytes:
        """Return the bytes of the record."""
        return _packed(_CLOCK, [self.settled])


@dataclass(frozen=True)
class EndOfInput:
    """The end of the input: the clock is at the end of time."""

    def pack(self) -> bytes:
        """Return the wire form."""
        return _HEAD.pack(MAGIC, VERSION, _END_OF_INPUT, zlib.crc32(b""))


@dataclass(frozen=True)
class StateMarker:
    """A cut through a partition of the input for an export: packets sent before the cut belong to the export.

    The marker has a number (`sequence`) among the partition's packets to this shard, and goes to every shard.
    `state.export` describes how a shard treats the marker.

    The marker repeats the times of the last heartbeat before it, since that heartbeat may arrive later. So
    the state of a shard at the cut does not depend on the order in which records arrive.

    id        name of the export; a later export has a greater id, compared as text.
    folder    folder for the states of the shards, passed on by a machine.
    position  position of the reader, in a form of its own (JSON), from which an import continues.
    stops     True: the input ends at this cut, without last rows.
    """

    source: str
    partition: int
    partitions: int
    sequence: int
    id: str
    folder: str = ""
    position: str = "null"
    stops: bool = False
    settled: int = NO_TIME
    high_water: int = NO_TIME

    def pack(self) -> bytes:
        """Return the bytes of the record."""
        numbers = [self.partition, self.partitions, self.sequence, int(self.stops)]
        numbers += [self.settled, self.high_water]
        return _packed(_MARKER, [self.source, *numbers, self.id, self.folder, self.position])


@dataclass(frozen=True)
class StateImport:
    """The state from which a waiting shard starts: a snapshot of the export `id`.

    An empty snapshot says that the state is available; the host of the shard then reads the state.
    """

    id: str
    snapshot: bytes

    def pack(self) -> bytes:
        """Return the bytes of the record."""
        body = packed_text(self.id) + self.snapshot
        return _HEAD.pack(MAGIC, VERSION, _IMPORT, zlib.crc32(body)) + body


_BRINGS = _HEAD.pack(MAGIC, VERSION, _IMPORT, 0)[: -struct.calcsize("<I")]


def brings_state(record: bytes) -> bool:
    """Return whether a record is a `StateImport`, from its head alone.

    >>> brings_state(StateImport("monday", b"").pack()), brings_state(Clock(7).pack())
    (True, False)
    """
    return record.startswith(_BRINGS)


Batch = EventBatch | PredictionBatch | LabelBatch
Word = Heartbeat | EndOfPartition | Clock | EndOfInput | StateMarker
Record = Batch | Word | StateImport

_BATCHES: dict[bytes, type[Batch]] = {kind.magic: kind for kind in (EventBatch, PredictionBatch, LabelBatch)}


def _packed(kind: int, content: list[Any]) -> bytes:
    body = json.dumps(content).encode()
    return _HEAD.pack(MAGIC, VERSION, kind, zlib.crc32(body)) + body


def unpack_record(data: bytes) -> Record:
    """Read any record. Raises a `WireError` for bytes that are no record."""
    if (batch := _BATCHES.get(bytes(data[:4]))) is not None or not data:
        return (batch or EventBatch).unpack(data)
    if len(data) < _HEAD.size:
        known = any(magic.startswith(data[:4]) for magic in (MAGIC, *_BATCHES))
        error = TruncatedBytesError if known else ForeignBytesError
        raise error(f"{len(data)} bytes are not a whole record of a shard")
    magic, version, kind, crc = _HEAD.unpack_from(data)
    if magic != MAGIC:
        raise ForeignBytesError(f"bytes that start with {magic!r} are not a record of a shard")
    if version > VERSION or version == 0:
        raise FutureVersionError(
            f"a shard record of version {version}: this rocsteady reads up to {VERSION}; upgrade it"
        )
    body = data[_HEAD.size :]
    if zlib.crc32(body) != crc:
        raise CorruptBytesError("a shard record fails its checksum; it was damaged or cut short")
    if kind == _END_OF_INPUT and not body:
        return EndOfInput()
    if kind == _END_OF_PARTITION:
        return EndOfPartition(*_content(body, "the end of a partition", 5))
    if kind == _HEARTBEAT:
        return Heartbeat(*_content(body, "a heartbeat", 6))
    if kind == _CLOCK:
        return Clock(*_content(body, "a clock", 1, named=False))
    if kind == _MARKER:
        with reading("the marker of an export"):
            return _marker_of(read_json(body, "the marker of an export"))
    if kind == _IMPORT:
        with reading("a state that is brought to a shard"):
            reader = Reader(memoryview(body))
            return StateImport(reader.text(), bytes(reader.rest()))
    raise CorruptBytesError(f"a shard record of kind {kind} and {len(body)} bytes is none that we write")


def _content(body: bytes, what: str, size: int, *, named: bool = True) -> list[Any]:
    """Read [source (if `named`), partition, partitions, packets, times], of the given size."""
    with reading(what):
        content = read_json(body, what)
        numbers = content[1:] if named else content
        for number in numbers:
            whole(number)
        if len(content) != size or (named and (type(content[0]) is not str or min(numbers[:3]) < 0)):
            raise ValueError(f"{content}")
    return list(content)


def _marker_of(content: Any) -> StateMarker:
    source, *numbers, name, folder, position = content
    partition, partitions, sequence, stops, settled, high_water = numbers
    for text in (source, name, folder, position):
        text_of(text)
    for number in numbers:
        whole(number)
    if min(numbers[:4]) < 0 or stops > 1 or partition >= partitions:
        raise ValueError(f"{numbers}")
    read_json(position, "the position of a reader")
    return StateMarker(
        source, partition, partitions, sequence, name, folder, position, bool(stops), settled, high_water
    )
