"""What a state machine of a shard is fed: packed batches, and words about the stream itself.

A record is bytes: an `EventBatch`, an `EndOfPartition` or an `EndOfInput`. The words travel the same way
as the events do (through the log of a shard), so that a restarted machine hears them again.

Wire form, version 1, little-endian: magic "RSCT", version u8, kind u8, crc32 of the rest u32, the rest.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass

from .errors import CorruptBytesError, ForeignBytesError, FutureVersionError, TruncatedBytesError
from .events import MAGIC as BATCH_MAGIC
from .events import NO_TIME, EventBatch

MAGIC = b"RSCT"
VERSION = 1
_HEAD = struct.Struct("<4sBBI")
_END_OF_PARTITION, _END_OF_INPUT = 1, 2


@dataclass(frozen=True)
class EndOfPartition:
    """A source partition has ended, and this shard was sent `packets` packets of it.

    The input has `partitions` of them in all, and this is number `partition`, from 0, in the order in
    which they apply: with this, a machine knows whose turn it is, and when it has had everything. The clock
    of the partition stands at `high_water`, its greatest event time (NO_TIME: it has no times).
    """

    source: str
    partition: int
    partitions: int
    packets: int
    high_water: int = NO_TIME

    def pack(self) -> bytes:
        """Return the wire form."""
        content = [self.source, self.partition, self.partitions, self.packets]
        if self.high_water != NO_TIME:
            content.append(self.high_water)
        body = json.dumps(content).encode()
        return _HEAD.pack(MAGIC, VERSION, _END_OF_PARTITION, zlib.crc32(body)) + body


@dataclass(frozen=True)
class EndOfInput:
    """Nothing more will come: the clock is at the end of time."""

    def pack(self) -> bytes:
        """Return the wire form."""
        return _HEAD.pack(MAGIC, VERSION, _END_OF_INPUT, zlib.crc32(b""))


Record = EventBatch | EndOfPartition | EndOfInput


def unpack_record(data: bytes) -> Record:
    """Read any record. Raises a `WireError` where the bytes are none."""
    if data[:4] == BATCH_MAGIC or not data:
        return EventBatch.unpack(data)
    if len(data) < _HEAD.size:
        known = MAGIC.startswith(data[:4]) or BATCH_MAGIC.startswith(data[:4])
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
        return _end_of_partition(body)
    raise CorruptBytesError(f"a shard record of kind {kind} and {len(body)} bytes is none that we write")


def _end_of_partition(body: bytes) -> EndOfPartition:
    try:
        source, *numbers = json.loads(body)
    except (ValueError, TypeError, RecursionError) as damage:
        raise CorruptBytesError(f"the end of a partition contradicts itself: {damage}") from damage
    whole = all(type(number) is int for number in numbers) and len(numbers) in (3, 4)
    if type(source) is not str or not whole or min(numbers[:3]) < 0 or not -(2**63) <= numbers[-1] < 2**63:
        raise CorruptBytesError(f"the end of a partition contradicts itself: {source!r}, {numbers}")
    return EndOfPartition(source, *numbers)
