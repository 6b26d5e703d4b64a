"""Finds how many bytes an Arrow IPC stream takes when it is read, without reading it.

A compressed buffer begins with the size that it has after decompression. pyarrow takes this memory at once,
and a message of 1 MB may state 30 GB. So these sizes are read first, from the stream's own metadata: each
message of a stream has a FlatBuffers table (Message.fbs and Schema.fbs of Arrow) before its body.
"""

from __future__ import annotations

import struct

import numpy as np

_DICTIONARY, _BATCH = 2, 3
"""Values of a message's field `header_type`."""

_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3
_OF_DICTIONARY, _BUFFERS, _COMPRESSION = 1, 2, 3
"""The places of fields in the tables Message, DictionaryBatch and RecordBatch."""


def bytes_when_read(stream: bytes) -> int:
    """Return how many bytes the buffers of a stream have when they are decompressed. O(buffers).

    Raises ValueError, IndexError or struct.error for bytes that are no stream.
    """
    at = total = 0
    while at + 8 <= len(stream):
        (length,) = struct.unpack_from("<i", stream, at + 4)
        if length <= 0:
            break
        message = _Table.root(stream, at + 8)
        body = at + 8 + length
        header = message.table(_HEADER)
        if message.number(_HEADER_TYPE, "<B") == _DICTIONARY and header is not None:
            header = header.table(_OF_DICTIONARY)
        if header is not None and message.number(_HEADER_TYPE, "<B") in (_DICTIONARY, _BATCH):
            total += _bytes_of(stream, body, header)
        at = body + message.number(_BODY_LENGTH, "<q")
        if at < body:
            raise ValueError("a message has less than no bytes")
    return total


def _bytes_of(stream: bytes, body: int, batch: _Table) -> int:
    """Return the bytes of a batch's buffers, which are in `stream` from `body` on."""
    buffers = batch.buffers(_BUFFERS)
    if batch.table(_COMPRESSION) is None:
        return int(buffers[:, 1].sum())
    total = 0
    for offset, length in buffers.tolist():
        if length:
            (size,) = struct.unpack_from("<q", stream, body + offset)
            total += length if size < 0 else size
    return total


class _Table:
    """A table of FlatBuffers in some bytes, read by the places of its fields."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at
        (back,) = struct.unpack_from("<i", data, at)
        self._fields = at - back
        (self._size,) = struct.unpack_from("<H", data, self._fields)

    @classmethod
    def root(cls, data: bytes, at: int) -> _Table:
        return cls(data, at + struct.unpack_from("<I", data, at)[0])

    def _place(self, field: int) -> int | None:
        """Return the place of the value of a field; None if the table lacks the field."""
        entry = 4 + 2 * field
        if entry + 2 > self._size:
            return None
        (offset,) = struct.unpack_from("<H", self._data, self._fields + entry)
        return self._at + offset if offset else None

    def number(self, field: int, form: str) -> int:
        """Return a number; 0, which is the default, if the table lacks the field."""
        place = self._place(field)
        return 0 if place is None else int(struct.unpack_from(form, self._data, place)[0])

    def table(self, field: int) -> _Table | None:
        """Return the table in a field; None if this table lacks the field."""
        place = self._place(field)
        return None if place is None else self.root(self._data, place)

    def buffers(self, field: int) -> np.ndarray:
        """Return a vector of buffers: int64[n, 2], the offset and the length of each."""
        place = self._place(field)
        if place is None:
            return np.empty((0, 2), np.int64)
        place += struct.unpack_from("<I", self._data, place)[0]
        (count,) = struct.unpack_from("<I", self._data, place)
        return np.frombuffer(self._data, "<i8", 2 * count, place + 4).reshape(-1, 2)
