"""Columns of text, and batches of columns.

`TextColumn` holds text by dictionary, for repeated texts; `IdColumn` holds ids as raw UTF-8. `ColumnBatch` is
the base of batches of such columns and of arrays.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..arrays import Int32Array, Int64Array
from ..errors import CorruptBytesError


@dataclass(frozen=True, eq=False)
class TextColumn:
    """Text of n rows by dictionary: `values[codes[i]]` is the text of row i; code -1 is a missing text."""

    codes: Int32Array
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        codes = np.ascontiguousarray(self.codes, np.int32)
        object.__setattr__(self, "codes", codes)
        if len(codes) and (codes.min() < -1 or codes.max() >= len(self.values)):
            raise CorruptBytesError(
                f"a text column refers to entry {int(codes.max())} of a dictionary of "
                f"{len(self.values)}; its bytes are damaged"
            )

    @classmethod
    def of(cls, texts: list[str | None]) -> TextColumn:
        """Encode a list of texts; `values` are in order of first appearance."""
        index: dict[str, int] = {}
        codes = np.fromiter(
            (-1 if text is None else index.setdefault(text, len(index)) for text in texts),
            np.int32,
            len(texts),
        )
        return cls(codes, tuple(index))

    @classmethod
    def repeated(cls, text: str, rows: int) -> TextColumn:
        """Return a column that has the same text in every row."""
        return cls(np.zeros(rows, np.int32), (text,))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> str | None:
        code = self.codes[row]
        return None if code < 0 else self.values[code]

    def to_list(self) -> list[str | None]:
        """Return a list of the texts, one for each row."""
        return [None if code < 0 else self.values[code] for code in self.codes.tolist()]

    def first(self, texts: Container[str]) -> int:
        """Return the first row whose text is one of `texts`; the number of rows if there is no such row."""
        is_one = np.array([*(value in texts for value in self.values), False], np.bool_)
        found = is_one[self.codes]
        return int(found.argmax()) if is_one.any() and found.any() else len(found)

    def take(self, rows: Int64Array | slice) -> TextColumn:
        """Return the chosen rows, with a dictionary of the texts that these rows use."""
        codes = self.codes[rows]
        used = np.zeros(len(self.values) + 1, np.bool_)
        used[codes] = True  # code -1 marks the last place, which is spare
        kept = np.flatnonzero(used[:-1])
        if len(kept) == len(self.values):
            return TextColumn(codes, self.values)
        renumber = np.full(len(self.values) + 1, -1, np.int32)
        renumber[kept] = np.arange(len(kept), dtype=np.int32)
        return TextColumn(renumber[codes], tuple(self.values[entry] for entry in kept.tolist()))

    def part(self, start: int, end: int) -> TextColumn:
        """Return the rows [start, end), with a dictionary of the texts that these rows use."""
        codes = self.codes[start:end]
        if len(self.values) == 1 and len(codes) and codes.min() == 0:
            return TextColumn(codes, self.values)
        return self.take(slice(start, end))

    @classmethod
    def concat(cls, columns: Sequence[TextColumn]) -> TextColumn:
        """Concatenate columns, with one dictionary."""
        if len(columns) == 1:
            return columns[0]
        index: dict[str, int] = {}
        codes = []
        for column in columns:
            table = [index.setdefault(value, len(index)) for value in column.values]
            codes.append(np.array([*table, -1], np.int32)[column.codes])
        return cls(np.concatenate(codes), tuple(index))

    def payload(self) -> bytes:
        """Return the wire form of the texts."""
        text, count = "".join(self.values), len(self.values)
        data = text.encode("utf-8", "surrogatepass")
        parts: Sequence[str | bytes] = self.values
        if len(data) != len(text):  # some characters take several bytes
            parts = [value.encode("utf-8", "surrogatepass") for value in self.values]
        lengths = np.fromiter(map(len, parts), "<u4", count)
        width = 1 if count < 1 << 7 else 2 if count < 1 << 15 else 4
        codes = self.codes.astype(f"<i{width}")
        return b"".join((struct.pack("<IB", count, width), lengths.tobytes(), data, codes.tobytes()))

    @classmethod
    def of_payload(cls, payload: memoryview, rows: int) -> TextColumn:
        """Read the wire form of `rows` rows, `payload`.

        Raises ValueError, struct.error or CorruptBytesError.
        """
        count, width = struct.unpack_from("<IB", payload)
        if width not in (1, 2, 4):
            raise CorruptBytesError(f"a text column has codes of {width} bytes; 1, 2 or 4 can be")
        lengths = np.frombuffer(payload, "<u4", count, 5)
        bounds = [0, *np.cumsum(lengths, dtype=np.int64).tolist()]
        data, at = payload[5 + 4 * count :], bounds[-1]
        if len(data) != at + rows * width:
            raise CorruptBytesError(f"a text column does not hold {rows} rows; its bytes are damaged")
        text = str(data[:at], "utf-8", "surrogatepass")
        if len(text) == at:  # every character takes one byte: cutting the decoded text is four times as fast
            values = tuple([text[a:b] for a, b in pairwise(bounds)])
        else:
            values = tuple(str(data[a:b], "utf-8", "surrogatepass") for a, b in pairwise(bounds))
        return cls(np.frombuffer(data, f"<i{width}", rows, at).astype(np.int32), values)


@dataclass(frozen=True, eq=False)
class IdColumn:
    """Ids of n rows: `lengths[i]` bytes of UTF-8 each, one after another in `data`; -1 = missing."""

    lengths: Int32Array
    data: bytes

    def __post_init__(self) -> None:
        lengths = np.ascontiguousarray(self.lengths, np.int32)
        object.__setattr__(self, "lengths", lengths)
        if len(lengths) and int(lengths.min()) < -1:
            raise CorruptBytesError(f"an id has the length {int(lengths.min())}; its bytes are damaged")
        if int(np.maximum(lengths, 0).sum(dtype=np.int64)) != len(self.data):
            raise CorruptBytesError("the ids of a batch do not fill their bytes; they are damaged")

    @classmethod
    def of(cls, ids: list[str | None]) -> IdColumn:
        """Encode a list of ids."""
        encoded = [None if text is None else text.encode("utf-8", "surrogatepass") for text in ids]
        lengths = [-1 if text is None else len(text) for text in encoded]
        return cls(np.array(lengths, np.int32), b"".join(text for text in encoded if text))

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def offsets(self) -> Int64Array:
        """The offset of every id in `data`, then the end of `data`: int64[n + 1]."""
        offsets = np.zeros(len(self.lengths) + 1, np.int64)
        np.cumsum(np.maximum(self.lengths, 0), out=offsets[1:])
        return offsets

    def encoded(self) -> list[bytes | None]:
        """Return a list of the ids as bytes of UTF-8, one for each row."""
        return [
            None if length < 0 else self.data[a:b]
            for length, (a, b) in zip(self.lengths, pairwise(self.offsets.tolist()), strict=True)
        ]

    def to_list(self) -> list[str | None]:
        """Return a list of the ids as text, one for each row."""
        return [None if raw is None else raw.decode("utf-8", "surrogatepass") for raw in self.encoded()]

    def take(self, rows: Int64Array) -> IdColumn:
        """Return the chosen rows."""
        return IdColumn(self.lengths[rows], gathered(self.data, self.offsets, rows)[1])

    def part(self, start: int, end: int) -> IdColumn:
        """Return the rows [start, end)."""
        first, last = self.offsets[[start, end]].tolist()
        return IdColumn(self.lengths[start:end], self.data[first:last])

    @classmethod
    def concat(cls, columns: Sequence[IdColumn]) -> IdColumn:
        """Concatenate columns."""
        lengths = np.concatenate([column.lengths for column in columns])
        return cls(lengths, b"".join(column.data for column in columns))

    def payload(self) -> bytes:
        """Return the wire form of the ids."""
        return self.lengths.astype("<i4").tobytes() + self.data

    @classmethod
    def of_payload(cls, payload: memoryview, rows: int) -> IdColumn:
        """Read the wire form of `rows` rows, `payload`; raises ValueError or CorruptBytesError."""
        lengths = np.frombuffer(payload, "<i4", rows).astype(np.int32)
        return cls(lengths, bytes(payload[4 * rows :]))


def gathered(data: Any, offsets: Int64Array, rows: Int64Array) -> tuple[Int64Array, bytes]:
    """Return the offsets and the bytes of chosen texts; text i is data[offsets[i] : offsets[i + 1]].

    Arrow takes a quarter of the time of numpy indexing.
    """
    import pyarrow as pa

    if not len(rows):
        return np.zeros(1, np.int64), b""
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    taken = pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers).take(pa.array(rows))
    _, bounds, found = taken.buffers()
    starts = np.frombuffer(bounds, np.int64)[: len(rows) + 1]
    return starts, found[: int(starts[-1])].to_pybytes() if starts[-1] else b""


Column = TextColumn | IdColumn | npt.NDArray[Any]
_COLUMN_TYPES = (TextColumn, IdColumn, np.ndarray)


@dataclass(frozen=True, eq=False)
class ColumnBatch:
    """Base of frozen dataclasses whose columns all have one value per row.

    A field is a column, a tuple of (name, column), or None for a column that is missing. Any other field
    belongs to the batch as a whole.
    """

    def __len__(self) -> int:
        raise NotImplementedError

    def take(self, rows: Int64Array, **given: Any) -> Self:
        """Return the chosen rows, in the order given.

        `given` has fields that the caller has computed already.
        """
        return self._changed(
            lambda column: column[rows] if isinstance(column, np.ndarray) else column.take(rows), given
        )

    def part(self, start: int, end: int, **given: Any) -> Self:
        """Return the rows [start, end), with arrays as views; `given` as in `take`."""
        if start == 0 and end == len(self) and not given:
            return self
        return self._changed(
            lambda column: column[start:end] if isinstance(column, np.ndarray) else column.part(start, end),
            given,
        )

    def _changed(self, change: Callable[[Column], Column], given: dict[str, Any]) -> Self:
        changed = {}
        for field in self.__dataclass_fields__:  # `fields` takes 6 microseconds a call
            value = getattr(self, field)
            if isinstance(value, _COLUMN_TYPES) and field not in given:
                value = change(value)
            elif isinstance(value, tuple) and field not in given:
                value = tuple((name, change(column)) for name, column in value)
            changed[field] = value
        return type(self)(**(changed | given))

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Concatenate parts with the same columns, at least one part."""
        return parts[0] if len(parts) == 1 else cls._joined(parts)

    @classmethod
    def _joined(cls, parts: Sequence[Self], **given: Any) -> Self:
        """Concatenate the columns of the parts; `given` has fields that the caller has computed already."""
        for field in cls.__dataclass_fields__:
            first = getattr(parts[0], field)
            if field in given or not (first is None or isinstance(first, (*_COLUMN_TYPES, tuple))):
                continue
            columns = [column for part in parts if (column := getattr(part, field)) is not None]
            given[field] = _concatenated(columns) if columns else None
        return cls(**given)


def _concatenated(columns: list[Any]) -> Any:
    first = columns[0]
    if isinstance(first, tuple):
        by_name = [dict(each) for each in columns]
        return tuple((name, _concatenated([each[name] for each in by_name])) for name, _ in first)
    return np.concatenate(columns) if isinstance(first, np.ndarray) else type(first).concat(columns)
