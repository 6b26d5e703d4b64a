"""Fields of a payload: texts, numbers and arrays, written and read one after another."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt


class Reader:
    """Reads the fields of a payload in order. Raises ValueError if a field goes beyond the payload's end."""

    def __init__(self, payload: memoryview) -> None:
        self.payload = payload
        self.at = 0

    def read(self, size: int) -> memoryview:
        """Return the next `size` bytes."""
        if size > len(self.payload) - self.at:
            raise ValueError(f"{size} bytes are announced where {len(self.payload) - self.at} are left")
        self.at += size
        return self.payload[self.at - size : self.at]

    def numbers(self, form: str) -> tuple[Any, ...]:
        """Return the next fields, of a `struct` format."""
        return struct.unpack(form, self.read(struct.calcsize(form)))

    def number(self, form: str) -> int:
        """Return the next field, a whole number of a `struct` format."""
        return int(self.numbers(form)[0])

    def text(self) -> str:
        """Return the next text, as written by `packed_text`."""
        return str(self.read(self.number("<I")), "utf-8", "surrogatepass")

    def sized(self) -> bytes:
        """Return a copy of the next bytes, as written by `packed_bytes`."""
        return bytes(self.read(self.number("<Q")))

    def array(self, dtype: str, count: int) -> npt.NDArray[Any]:
        """Return a copy of the next `count` values as an array."""
        data = self.read(count * np.dtype(dtype).itemsize)
        return np.frombuffer(data, dtype).copy()  # kernels write to the array; frombuffer is read-only

    def counted_array(self, dtype: str) -> npt.NDArray[Any]:
        """Return a copy of the next array, as written by `packed_array`."""
        return self.array(dtype, self.number("<Q"))

    def rest(self) -> memoryview:
        """Return all that has not been read."""
        return self.read(len(self.payload) - self.at)

    def end(self) -> None:
        """Raise ValueError unless the whole payload has been read."""
        if self.at != len(self.payload):
            raise ValueError(f"{len(self.payload) - self.at} bytes too many")


def packed_text(text: str) -> bytes:
    """Return the wire form of a text: its length in bytes as u32, then UTF-8, lone surrogates too."""
    data = text.encode("utf-8", "surrogatepass")
    return struct.pack("<I", len(data)) + data


def packed_bytes(data: bytes) -> bytes:
    """Return the wire form of bytes: their length as u64, then the bytes."""
    return struct.pack("<Q", len(data)) + data


def packed_array(values: npt.NDArray[Any], dtype: str) -> bytes:
    """Return the wire form of an array (n,): n as u64, then its values in little-endian `dtype`."""
    return struct.pack("<Q", len(values)) + np.ascontiguousarray(values, dtype).tobytes()
