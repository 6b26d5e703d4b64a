"""The bytes of an AucSketch: every sketch has exactly one form, and reading other bytes raises a named error.

Wire form, version 1, little-endian
    magic "RSAS", version u16, reserved u16, payload length u64, crc32 of it u32;
    payload: max_bytes u64, level u16, cells u32, then the cells (cells.py).
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

from ..arrays import UInt64Array
from ..encoding.json import reading
from ..errors import CorruptBytesError, ForeignBytesError, FutureVersionError, TruncatedBytesError
from ..score_tree.layout import INFINITE_KEY
from .cells import EXACT, LEAST_CELL_BYTES, Cells, partition_at, read_cells, wire_size, write_cells

MAGIC = b"RSAS"
VERSION = 1
_HEAD = struct.Struct("<4sHHQI")
_FIELDS = struct.Struct("<QHI")

MOST_EVENTS = 2**62
"""A bound on counts: no sketch can count so many events."""


def pack(max_bytes: int, level: int, cells: Cells) -> bytes:
    """Return the bytes of a sketch."""
    columns = wire_columns(cells)
    body = np.empty(wire_size(*columns), np.uint8)
    write_cells(*columns, body)
    payload = _FIELDS.pack(max_bytes, level, len(cells[0])) + body.tobytes()
    return _HEAD.pack(MAGIC, VERSION, 0, len(payload), zlib.crc32(payload)) + payload


def packed_bytes(cells: Cells) -> int:
    """Return how many bytes a sketch with these cells takes."""
    return _HEAD.size + _FIELDS.size + wire_size(*wire_columns(cells))


def most_cells(max_bytes: int) -> int:
    """Return the greatest number of cells that fit in `max_bytes`."""
    return (max_bytes - _HEAD.size - _FIELDS.size) // LEAST_CELL_BYTES


def wire_columns(cells: Cells) -> tuple[UInt64Array, UInt64Array, UInt64Array]:
    """Return the written columns: distances from cell to cell, negatives, positives.

    The first distance is from a number below all cells.
    """
    numbers, negatives, positives = cells
    places = numbers.view(np.uint64) ^ np.uint64(2**63)
    return np.diff(places, prepend=np.uint64(0)), negatives.view(np.uint64), positives.view(np.uint64)


def packed_size(data: bytes) -> int:
    """Return how many of the bytes, from the first on, are a sketch.

    Raises a `WireError` for other bytes.
    """
    if data[:4] != MAGIC:
        if data and MAGIC.startswith(data):
            raise TruncatedBytesError(f"a sketch ends after {len(data)} bytes, inside its head")
        raise ForeignBytesError(
            f"bytes that start with {bytes(data[:4])!r} are no rocsteady sketch"
            if data
            else "there are no bytes; a sketch has some"
        )
    if len(data) >= 6 and not 0 < (version := struct.unpack_from("<H", data, 4)[0]) <= VERSION:
        raise FutureVersionError(
            f"a sketch of version {version}: this rocsteady reads up to {VERSION}; upgrade it"
        )
    if len(data) < _HEAD.size:
        raise TruncatedBytesError(f"a sketch ends after {len(data)} bytes, inside its head")
    _, _, reserved, size, _ = _HEAD.unpack_from(data)
    if reserved:
        raise CorruptBytesError("a sketch has a head that no rocsteady writes; it was damaged")
    if len(data) < _HEAD.size + size:
        raise TruncatedBytesError(f"a sketch ends after {len(data)} of {_HEAD.size + size} bytes")
    return int(_HEAD.size + size)


def unpack(data: bytes) -> tuple[int, int, Cells]:
    """Read max_bytes, level and cells. Raises a `WireError`, which says what was found, for other bytes."""
    size = packed_size(data)
    if len(data) > size:
        raise CorruptBytesError(f"a sketch of {size} bytes has {len(data) - size} too many")
    payload = memoryview(data)[_HEAD.size :]
    if zlib.crc32(payload) != _HEAD.unpack_from(data)[4]:
        raise CorruptBytesError("a sketch fails its checksum; it was damaged after it was written")
    with reading("a sketch"):
        return _read(payload)


def _read(payload: memoryview) -> tuple[int, int, Cells]:
    max_bytes, level, count = _FIELDS.unpack_from(payload)
    body = np.frombuffer(payload, np.uint8, offset=_FIELDS.size).copy()
    if LEAST_CELL_BYTES * count > len(body) or _HEAD.size + len(payload) > max_bytes or level > EXACT:
        raise ValueError(f"{count} cells of level {level} in {len(body)} of {max_bytes} bytes")
    read = np.empty(3 * count, np.uint64)
    if not read_cells(body, read):
        raise ValueError("its cells are not as many as it says")
    distances, negatives, positives = read.reshape(count, 3).T
    if count and ((distances == 0).any() or (np.cumsum(distances) < distances).any()):
        raise ValueError("its cells are not in order")
    cells = (np.cumsum(distances) ^ np.uint64(2**63)).view(np.int64)
    if max(float(negatives.sum(dtype=float)), float(positives.sum(dtype=float))) >= MOST_EVENTS:
        raise ValueError("it counts more events than there can be")
    if count and not (negatives | positives).all():
        raise ValueError("a cell is empty")
    largest = INFINITE_KEY if level == EXACT else 2 * int(partition_at(level).ranks[-1])
    if (cells >= largest).any() or (cells < ~(largest - 1)).any() or (cells == -1).any():
        raise ValueError("a cell lies where no score does")
    return max_bytes, level, (cells, negatives.astype(np.int64), positives.astype(np.int64))
