"""Writes and reads payloads: fields one after another, and a frame around them.

The frame has a kind, a version, a length and a checksum. Its wire form, little-endian: magic 4 bytes, version
u16, reserved u16 (0), mark, payload length u64, crc32 of the payload u32, payload. The mark is 0 bytes or
more, such as a fingerprint: the caller knows how many.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import CorruptBytesError, ForeignBytesError, FutureVersionError, TruncatedBytesError


class Reader:
    """Reads the fields of a payload in order.

    Every method raises ValueError if a field goes beyond the payload's end.
    """

    def __init__(self, payload: memoryview) -> None:
        self.payload = payload
        self.at = 0

    def read(self, size: int) -> memoryview:
        """Return the next `size` bytes of the payload."""
        if size > len(self.payload) - self.at:
            raise ValueError(f"{size} bytes are announced where {len(self.payload) - self.at} are left")
        self.at += size
        return self.payload[self.at - size : self.at]

    def numbers(self, form: str) -> tuple[Any, ...]:
        """Return the next fields, as numbers, by the `struct` format `form`."""
        return struct.unpack(form, self.read(struct.calcsize(form)))

    def number(self, form: str) -> int:
        """Return the next field, a whole number, by the `struct` format `form`."""
        return int(self.numbers(form)[0])

    def text(self) -> str:
        """Return the next text, as `packed_text` wrote it."""
        return str(self.read(self.number("<I")), "utf-8", "surrogatepass")

    def sized(self) -> bytes:
        """Return a copy of the next bytes, as `packed_bytes` wrote them."""
        return bytes(self.read(self.number("<Q")))

    def array(self, dtype: str, count: int) -> npt.NDArray[Any]:
        """Return a copy of the next `count` values as an array."""
        data = self.read(count * np.dtype(dtype).itemsize)
        # kernels write to the array; an array of frombuffer is read-only
        return np.frombuffer(data, dtype).copy()

    def counted_array(self, dtype: str) -> npt.NDArray[Any]:
        """Return a copy of the next array, as `packed_array` wrote it."""
        return self.array(dtype, self.number("<Q"))

    def rest(self) -> memoryview:
        """Return all bytes of the payload that were not read yet."""
        return self.read(len(self.payload) - self.at)

    def end(self) -> None:
        """Raise ValueError unless the whole payload has been read."""
        if self.at != len(self.payload):
            raise ValueError(f"{len(self.payload) - self.at} bytes too many")


def packed_text(text: str) -> bytes:
    """Return the wire form of a text.

    The wire form has the length in bytes as u32, then the text in UTF-8, with lone surrogates too.
    """
    data = text.encode("utf-8", "surrogatepass")
    return struct.pack("<I", len(data)) + data


def packed_bytes(data: bytes) -> bytes:
    """Return the wire form of bytes: the number of bytes as u64, then the bytes."""
    return struct.pack("<Q", len(data)) + data


def packed_array(values: npt.NDArray[Any], dtype: str) -> bytes:
    """Return the wire form of an array of shape (n,): n as u64, then its values in little-endian `dtype`."""
    return struct.pack("<Q", len(values)) + np.ascontiguousarray(values, dtype).tobytes()


_KIND, _SIZE = struct.Struct("<4sHH"), struct.Struct("<QI")
HEAD_BYTES = _KIND.size + _SIZE.size


def framed(magic: bytes, version: int, payload: bytes, mark: bytes = b"") -> bytes:
    """Return a payload in its frame, with a mark of any length."""
    size = _SIZE.pack(len(payload), zlib.crc32(payload))
    return b"".join((_KIND.pack(magic, version, 0), mark, size, payload))


def framed_size(data: bytes, magic: bytes, version: int, what: str, mark_bytes: int = 0) -> int:
    """Return the length in bytes of the frame at the start of `data`; `what` names the frame in errors.

    Raises a `WireError` if `data` does not begin with a frame, or ends within it. The function does not check
    the checksum.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise ForeignBytesError(f"{type(data).__name__} is not {what}; give the bytes that rocsteady wrote")
    if data[:4] != magic:
        if data and magic.startswith(data):
            raise TruncatedBytesError(f"{what} ends after {len(data)} bytes, inside its head")
        said = f"bytes that start with {bytes(data[:4])!r} are not {what}" if data else "there are no bytes"
        raise ForeignBytesError(f"{said}; give those that rocsteady wrote")
    if len(data) >= 6 and not 0 < (found := struct.unpack_from("<H", data, 4)[0]) <= version:
        raise FutureVersionError(
            f"{what} of version {found}: this rocsteady reads up to {version}; upgrade it"
        )
    head_bytes = HEAD_BYTES + mark_bytes
    if len(data) < head_bytes:
        raise TruncatedBytesError(f"{what} ends after {len(data)} bytes, inside its head")
    size, _ = _SIZE.unpack_from(data, _KIND.size + mark_bytes)
    if any(data[6 : _KIND.size]):
        raise CorruptBytesError(f"{what} has a head that no rocsteady writes; it was damaged")
    if len(data) < head_bytes + size:
        raise TruncatedBytesError(f"{what} ends after {len(data)} of {head_bytes + size} bytes")
    return int(head_bytes + size)


def unframed(data: bytes, magic: bytes, version: int, what: str, mark_bytes: int = 0) -> memoryview:
    """Return the payload of a frame; `what` names the frame in errors. Raises a `WireError` for other bytes.

    mark_bytes  length of the frame's mark

    >>> bytes(unframed(framed(b"DEMO", 1, b"payload"), b"DEMO", 1, "a demo"))
    b'payload'
    """
    size = framed_size(data, magic, version, what, mark_bytes)
    payload = memoryview(data)[HEAD_BYTES + mark_bytes :]
    if len(data) > size or zlib.crc32(payload) != _SIZE.unpack_from(data, _KIND.size + mark_bytes)[1]:
        raise CorruptBytesError(f"{what} fails its checksum; it was damaged after it was written")
    return payload


def packed_key(key: Sequence[str]) -> bytes:
    """Return the wire form of a key: the number of its names as u8, then its names."""
    return bytes([len(key)]) + b"".join(map(packed_text, key))


def read_key(reader: Reader, fewest: int = 2) -> tuple[str, ...]:
    """Read a key that `packed_key` wrote. Raises ValueError for another number of names.

    fewest  the number of names of a key that has no class
    """
    number = reader.number("<B")
    if number not in (fewest, fewest + 1):
        raise ValueError(f"a key has {number} names")
    return tuple(reader.text() for _ in range(number))
