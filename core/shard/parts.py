"""A snapshot that is too large for one value of a runner's state, as parts in numbered cells.

A runner carries the value of a cell in one message. Flink's TaskManager takes room for a message from its
direct memory. A message of 153 MB found no room, and its job waited for ever, without a word. A bag does not
help: Beam's Flink runner gives all values of a bag in one answer (2.70). So a large snapshot is spread over
cells, and each cell holds some parts of it.

A part has 1 MB at the most. For every cell Flink's RocksDB keeps a buffer for what is added, up to twice the
longest value, and the bytes that were read last. With one part of 5 MB in a cell, a snapshot of 160 MB kept
340 MB of a TaskManager's heap; with five of 1 MB it keeps 214 MB.

The cell `snapshot` then holds an index in place of the snapshot: how many cells and parts there are, their
length and checksum, and a random id. Every part repeats the id, with its number: parts of two snapshots
are found.

Wire form, little-endian. Index: magic "RSXI", version u8, cells u16, parts u16, length u64, crc32 u32, id 16
bytes. Part: 4 bytes 0xFF, id 16 bytes, number u16, then its bytes. A part is an entry of a bag that may hold
entries of the log, too; those begin with their number, which is never 0xFFFFFFFF.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..errors import CorruptBytesError, FutureVersionError

PARTS = 32
"""Numbered cells of a shard. A cell costs Flink a column family of RocksDB, used or not."""

PART_BYTES = 4 << 20
"""A snapshot up to this is one value; of a longer one each cell gets so much, or more where cells are few."""

PIECE_BYTES = 1 << 20
"""A part is not longer."""

MAGIC, VERSION = b"RSXI", 1
_INDEX = struct.Struct("<4sBHHQI16s")
_PART = struct.Struct("<4s16sH")
_MARK = b"\xff\xff\xff\xff"


def cells_for(size: int) -> int:
    """Return over how many cells a snapshot of `size` bytes is spread.

    >>> cells_for(10 << 20), cells_for(1 << 30)
    (3, 32)
    """
    return min(PARTS, -(-size // PART_BYTES))


def bytes_in_cell(size: int) -> int:
    """Return how much of a snapshot of `size` bytes a cell holds.

    >>> bytes_in_cell(1 << 30) >> 20
    32
    """
    return -(-size // cells_for(size))


@dataclass(frozen=True)
class Index:
    """What the cell `snapshot` says of a snapshot in parts."""

    cells: int
    parts: int
    length: int
    crc: int
    id: bytes

    def pack(self) -> bytes:
        """Return the bytes."""
        return _INDEX.pack(MAGIC, VERSION, self.cells, self.parts, self.length, self.crc, self.id)

    @classmethod
    def unpack(cls, value: bytes) -> Index:
        """Read the bytes. Raises FutureVersionError or CorruptBytesError for any others."""
        if len(value) > 4 and value[4] > VERSION:
            raise FutureVersionError(
                f"the index of a snapshot in parts is of version {value[4]}, and this rocsteady reads "
                f"version {VERSION}; upgrade it"
            )
        if len(value) != _INDEX.size:
            raise CorruptBytesError(
                f"the index of a snapshot in parts has {len(value)} bytes; it was damaged"
            )
        _, _, cells, parts, length, crc, name = _INDEX.unpack(value)
        return cls(cells, parts, length, crc, name)


def is_small(snapshot: bytes) -> bool:
    """Whether a snapshot is one value, and has no parts."""
    return len(snapshot) <= PART_BYTES


def is_index(value: bytes | None) -> bool:
    """Whether the cell `snapshot` holds an index; else it holds a whole snapshot, or nothing."""
    return value is not None and value[:4] == MAGIC


def split(snapshot: bytes) -> tuple[Index, Iterator[tuple[int, bytes]]]:
    """Return the index of a snapshot, and (cell, part) in order, each part made when it is asked for."""
    cells = cells_for(len(snapshot))
    parts = max(cells, -(-len(snapshot) // PIECE_BYTES))
    size = -(-len(snapshot) // parts)
    index = Index(cells, parts, len(snapshot), zlib.crc32(snapshot), os.urandom(16))
    return index, _parts_of(memoryview(snapshot), index, size)


def _parts_of(snapshot: memoryview, index: Index, size: int) -> Iterator[tuple[int, bytes]]:
    for number in range(index.parts):
        head = _PART.pack(_MARK, index.id, number)
        part = b"".join((head, snapshot[number * size : (number + 1) * size]))
        yield number * index.cells // index.parts, part


def is_part(entry: bytes) -> bool:
    """Whether an entry of a numbered cell is a part; else it is an entry of the log."""
    return entry[:4] == _MARK


def joined(index: Index, parts: Iterable[bytes], key: str) -> bytes:
    """Return the snapshot of its parts, in any order.

    Raises CorruptBytesError, which names the shard `key`, unless these are the parts of the index.
    """
    found: dict[int, bytes] = {}
    others = 0
    for part in parts:
        whole_head = part if len(part) >= _PART.size else bytes(_PART.size)  # a part that was cut short
        _, name, number = _PART.unpack_from(whole_head)
        if name != index.id or number in found:
            others += 1
        else:
            found[number] = part
    missing = [number for number in range(index.parts) if number not in found]
    snapshot = b"".join(memoryview(found[number])[_PART.size :] for number in sorted(found))
    if missing or others or len(snapshot) != index.length or zlib.crc32(snapshot) != index.crc:
        raise CorruptBytesError(
            f"the snapshot of shard {key!r} is torn: {len(missing)} of its {index.parts} parts are missing, "
            f"{others} are of another snapshot, {len(snapshot):,} of {index.length:,} bytes are there; its "
            "state was damaged or put together from two jobs; restore a checkpoint or start afresh"
        )
    return snapshot
