"""A snapshot that is too large for one value of a runner's state, as parts in numbered cells.

A runner sends the value of a cell in one message. Flink's TaskManager takes room for a message from its
direct memory. For a message of 153 MB there was no room, and the job waited for ever, without an error. A bag
does not help: Beam's Flink runner (2.70) gives all values of a bag in one answer. So a large snapshot is
spread over cells, and each cell holds some of its parts.

A part has 1 MB at the most. For every cell Flink's RocksDB keeps a buffer for added values, up to twice the
longest value, and the bytes of the last read. With one part of 5 MB in a cell, a snapshot of 160 MB kept
340 MB of a TaskManager's heap; with five parts of 1 MB in a cell it keeps 214 MB.

The cell `snapshot` then holds an index in place of the snapshot: the numbers of cells and parts, the length
and checksum of the snapshot, and a random id. Every part repeats the id and adds the part's number. So a mix
of parts of two snapshots is found.

Wire form, little-endian. Index: magic "RSXI", version u8, cells u16, parts u16, length u64, crc32 u32, id 16
bytes. Part: 4 bytes 0xFF, id 16 bytes, number u16, then its bytes. The bag that holds a part may also hold
entries of the log. An entry of the log begins with its number, which is never 0xFFFFFFFF.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..errors import CorruptBytesError, FutureVersionError

PARTS = 32
"""How many numbered cells a shard has. Each costs Flink a column family of RocksDB, used or not."""

PART_BYTES = 4 << 20
"""A snapshot of up to this many bytes is one value.

Of a longer snapshot each cell holds this many bytes, or more once all `PARTS` cells are in use.
"""

PIECE_BYTES = 1 << 20
"""The most bytes of a part."""

MAGIC, VERSION = b"RSXI", 1
_INDEX = struct.Struct("<4sBHHQI16s")
_PART = struct.Struct("<4s16sH")
_MARK = b"\xff\xff\xff\xff"


def cells_for(size: int) -> int:
    """Return the number of cells that a snapshot of `size` bytes is spread over.

    >>> cells_for(10 << 20), cells_for(1 << 30)
    (3, 32)
    """
    return min(PARTS, -(-size // PART_BYTES))


def bytes_in_cell(size: int) -> int:
    """Return how many bytes of a snapshot of `size` bytes each cell holds.

    >>> bytes_in_cell(1 << 30) >> 20
    32
    """
    return -(-size // cells_for(size))


class Index(NamedTuple):
    """The index that the cell `snapshot` holds for a snapshot in parts."""

    cells: int
    parts: int
    length: int
    crc: int
    id: bytes

    def pack(self) -> bytes:
        """Return the bytes of the index."""
        return _INDEX.pack(MAGIC, VERSION, *self)

    @classmethod
    def unpack(cls, value: bytes) -> Index:
        """Read the bytes of an index. Raises FutureVersionError or CorruptBytesError for other bytes."""
        if len(value) > 4 and value[4] > VERSION:
            raise FutureVersionError(
                f"the index of a snapshot in parts is of version {value[4]}, and this rocsteady reads "
                f"version {VERSION}; upgrade it"
            )
        if len(value) != _INDEX.size:
            raise CorruptBytesError(
                f"the index of a snapshot in parts has {len(value)} bytes; it was damaged"
            )
        return cls(*_INDEX.unpack(value)[2:])


def is_small(snapshot: bytes) -> bool:
    """Whether a snapshot is stored as one value, without parts."""
    return len(snapshot) <= PART_BYTES


def is_index(value: bytes | None) -> bool:
    """Whether the cell `snapshot` holds an index. Otherwise the cell holds a whole snapshot, or is empty."""
    return value is not None and value[:4] == MAGIC


def split(snapshot: bytes) -> tuple[Index, Iterator[tuple[int, bytes]]]:
    """Return the index of a snapshot, and its (cell, part) in order, each part made on demand."""
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
    """Whether an entry of a numbered cell is a part. Any other entry belongs to the log."""
    return entry[:4] == _MARK


def joined(index: Index, parts: Iterable[bytes], key: str) -> bytes:
    """Return the snapshot from its parts, which may come in any order.

    Raises CorruptBytesError, which names the shard `key`, unless these are the parts of the index.
    """
    found: dict[int, bytes] = {}
    others = 0
    for part in parts:
        whole_head = part if len(part) >= _PART.size else bytes(_PART.size)  # the part was cut short
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
