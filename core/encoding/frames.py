"""A frame around a payload: its kind, version, length and checksum.

Wire form, little-endian: magic 4 bytes, version u16, reserved u16, payload length u64, crc32 of the payload
u32; then the payload.
"""

from __future__ import annotations

import struct
import zlib

from ..errors import CorruptBytesError, ForeignBytesError, FutureVersionError, TruncatedBytesError

_HEAD = struct.Struct("<4sHHQI")
HEAD_BYTES = _HEAD.size


def framed(magic: bytes, version: int, payload: bytes) -> bytes:
    """Return a payload in its frame."""
    return _HEAD.pack(magic, version, 0, len(payload), zlib.crc32(payload)) + payload


def framed_size(data: bytes, magic: bytes, version: int, what: str) -> int:
    """Return the length in bytes of the frame at the start of `data`; `what` names the frame in errors.

    Raises a `WireError` if `data` does not begin with a frame, or ends within it. The checksum is not
    checked.
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
    if len(data) < _HEAD.size:
        raise TruncatedBytesError(f"{what} ends after {len(data)} bytes, inside its head")
    _, _, reserved, size, _ = _HEAD.unpack_from(data)
    if reserved:
        raise CorruptBytesError(f"{what} has a head that no rocsteady writes; it was damaged")
    if len(data) < _HEAD.size + size:
        raise TruncatedBytesError(f"{what} ends after {len(data)} of {_HEAD.size + size} bytes")
    return int(_HEAD.size + size)


def unframed(data: bytes, magic: bytes, version: int, what: str) -> memoryview:
    """Return the payload of a frame; `what` names the frame in errors. A `WireError` for any other bytes.

    >>> bytes(unframed(framed(b"DEMO", 1, b"payload"), b"DEMO", 1, "a demo"))
    b'payload'
    """
    size = framed_size(data, magic, version, what)
    payload = memoryview(data)[_HEAD.size :]
    if len(data) > size or zlib.crc32(payload) != _HEAD.unpack_from(data)[4]:
        raise CorruptBytesError(f"{what} fails its checksum; it was damaged after it was written")
    return payload
