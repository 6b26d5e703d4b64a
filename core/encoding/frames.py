"""A frame around a payload: its kind, version, length and checksum.

Wire form, little-endian: magic 4 bytes, version u16, reserved u16 (0), mark, payload length u64, crc32 of the
payload u32, payload. The mark is 0 bytes or more, such as a fingerprint: the caller knows how many.
"""

from __future__ import annotations

import struct
import zlib

from ..errors import CorruptBytesError, ForeignBytesError, FutureVersionError, TruncatedBytesError

_KIND, _SIZE = struct.Struct("<4sHH"), struct.Struct("<QI")
HEAD_BYTES = _KIND.size + _SIZE.size


def framed(magic: bytes, version: int, payload: bytes, mark: bytes = b"") -> bytes:
    """Return a payload in its frame, with a mark of any length."""
    size = _SIZE.pack(len(payload), zlib.crc32(payload))
    return b"".join((_KIND.pack(magic, version, 0), mark, size, payload))


def framed_size(data: bytes, magic: bytes, version: int, what: str, mark_bytes: int = 0) -> int:
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
