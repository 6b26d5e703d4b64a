"""The bytes of an AucSketch: every sketch has exactly one form, and any other bytes raise a `WireError`.

Wire form, version 1: a frame (encoding/fields.py) with magic "RSAS"; payload, little-endian: max_bytes u64,
level u16, cells u32, then the cells (cells.py).
"""

from __future__ import annotations

import struct

import numpy as np

from ..arrays import UInt64Array
from ..encoding.fields import HEAD_BYTES, framed, framed_size, unframed
from ..encoding.json import reading
from ..errors import CorruptBytesError, ForeignBytesError
from ..score_tree.layout import INFINITE_KEY
from .cells import EXACT, LEAST_CELL_BYTES, Cells, partition_at, read_cells, wire_size, write_cells

MAGIC = b"RSAS"
VERSION = 1
_NAME = "a sketch"
_FIELDS = struct.Struct("<QHI")

MOST_EVENTS = 2**62
"""A bound on counts: no sketch can count so many events."""


def pack(max_bytes: int, level: int, cells: Cells) -> bytes:
    """Return the bytes of a sketch."""
    columns = wire_columns(cells)
    body = np.empty(wire_size(*columns), np.uint8)
    write_cells(*columns, body)
    return framed(MAGIC, VERSION, _FIELDS.pack(max_bytes, level, len(cells[0])) + body.tobytes())


def packed_bytes(cells: Cells) -> int:
    """Return how many bytes a sketch with these cells takes."""
    return HEAD_BYTES + _FIELDS.size + wire_size(*wire_columns(cells))


def most_cells(max_bytes: int) -> int:
    """Return the greatest number of cells that fit in `max_bytes`."""
    return (max_bytes - HEAD_BYTES - _FIELDS.size) // LEAST_CELL_BYTES


def wire_columns(cells: Cells) -> tuple[UInt64Array, UInt64Array, UInt64Array]:
    """Return the written columns: distances from cell to cell, negatives, positives.

    The first distance is from a number below all cells.
    """
    numbers, negatives, positives = cells
    places = numbers.view(np.uint64) ^ np.uint64(2**63)
    return np.diff(places, prepend=np.uint64(0)), negatives.view(np.uint64), positives.view(np.uint64)


def packed_size(data: bytes) -> int:
    """Return the number of bytes of the sketch that begins at the first byte.

    Raises a `WireError` for other bytes.
    """
    start = bytes(data[:4])
    if not MAGIC.startswith(start):
        raise ForeignBytesError(f"bytes that start with {start!r} are no rocsteady sketch")
    return framed_size(data, MAGIC, VERSION, _NAME)


def unpack(data: bytes) -> tuple[int, int, Cells]:
    """Read max_bytes, level and cells.

    Raises a `WireError`, which says what the bytes are, for other bytes.
    """
    size = packed_size(data)
    if len(data) > size:
        raise CorruptBytesError(f"a sketch of {size} bytes has {len(data) - size} too many")
    payload = unframed(data, MAGIC, VERSION, _NAME)
    with reading(_NAME):
        return _read(payload)


def _read(payload: memoryview) -> tuple[int, int, Cells]:
    max_bytes, level, count = _FIELDS.unpack_from(payload)
    body = np.frombuffer(payload, np.uint8, offset=_FIELDS.size).copy()
    if LEAST_CELL_BYTES * count > len(body) or HEAD_BYTES + len(payload) > max_bytes or level > EXACT:
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
