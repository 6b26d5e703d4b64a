"""EventBatch: the columns of many events, and their one packed form on the wire.

The element between transforms is a batch, never an event: a Python Beam pipeline moves a few hundred
thousand elements a second and more than ten million events in batches.

Invariants
    All columns have the same number of rows. Text is dictionary-encoded (`TextColumn`), ids are raw
    UTF-8 (`IdColumn`), times are microseconds since 1970-01-01 UTC. A column that the source does not
    have is None and takes no bytes. `unpack(batch.pack())` equals the batch; any other bytes raise a
    `WireError` that says what was found.

Wire form, version 1, little-endian
    magic "RSEB", version u8, reserved u8, columns u16, rows u32, crc32 of all that follows the head u32,
    then: sequence i64, first position i64, high water i64, partition i32, source (u32 length, UTF-8),
    then every column: tag u8, name (u8 length, UTF-8; slices only), payload length u32, payload.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from .errors import (
    CorruptBytesError,
    ForeignBytesError,
    FutureVersionError,
    InputError,
    TruncatedBytesError,
)

NO_TIME = np.iinfo(np.int64).min
"""Microseconds that stand for "no time"."""

POSITIVE, NEGATIVE, NO_CLASS = 1, 0, -1
"""Labels: NO_CLASS where the label is a class and nobody said which class is the positive one."""

UNORDERED = -1
"""The sequence number of a packet that takes its place by arrival."""

MAGIC = b"RSEB"
VERSION = 1
_HEAD = struct.Struct("<4sBBHII")
_SOURCE_HEAD = struct.Struct("<qqqiI")

Int8Array = npt.NDArray[np.int8]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TextColumn:
    """Text of n rows by dictionary: `values[codes[i]]` is the text of row i, code -1 a missing one."""

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
        """Encode a list of texts; entries stand in order of first appearance."""
        index: dict[str, int] = {}
        codes = np.fromiter(
            (-1 if text is None else index.setdefault(text, len(index)) for text in texts),
            np.int32,
            len(texts),
        )
        return cls(codes, tuple(index))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> str | None:
        code = self.codes[row]
        return None if code < 0 else self.values[code]

    def to_list(self) -> list[str | None]:
        """Return the texts, one per row."""
        return [None if code < 0 else self.values[code] for code in self.codes.tolist()]

    def take(self, rows: Int64Array) -> TextColumn:
        """Return the chosen rows, with a dictionary of what they use and nothing else."""
        codes = self.codes[rows]
        used = np.zeros(len(self.values) + 1, np.bool_)
        used[codes] = True  # code -1 marks the last, spare place
        kept = np.flatnonzero(used[:-1])
        if len(kept) == len(self.values):
            return TextColumn(codes, self.values)
        renumber = np.full(len(self.values) + 1, -1, np.int32)
        renumber[kept] = np.arange(len(kept), dtype=np.int32)
        return TextColumn(renumber[codes], tuple(self.values[entry] for entry in kept.tolist()))

    def _pack(self) -> bytes:
        text, count = "".join(self.values), len(self.values)
        data = text.encode("utf-8", "surrogatepass")
        parts: Sequence[str | bytes] = self.values
        if len(data) != len(text):  # a character is not a byte
            parts = [value.encode("utf-8", "surrogatepass") for value in self.values]
        lengths = np.fromiter(map(len, parts), "<u4", count)
        width = 1 if count < 1 << 7 else 2 if count < 1 << 15 else 4
        codes = self.codes.astype(f"<i{width}")
        return b"".join((struct.pack("<IB", count, width), lengths.tobytes(), data, codes.tobytes()))

    @classmethod
    def _unpack(cls, payload: memoryview, rows: int) -> TextColumn:
        count, width = struct.unpack_from("<IB", payload)
        if width not in (1, 2, 4):
            raise CorruptBytesError(f"a text column has codes of {width} bytes; 1, 2 or 4 can be")
        lengths = np.frombuffer(payload, "<u4", count, 5)
        bounds = [0, *np.cumsum(lengths, dtype=np.int64).tolist()]
        data, at = payload[5 + 4 * count :], bounds[-1]
        if len(data) != at + rows * width:
            raise CorruptBytesError(f"a text column does not hold {rows} rows; its bytes are damaged")
        text = str(data[:at], "utf-8", "surrogatepass")
        if len(text) == at:  # a character is a byte: cut the text, which is four times as fast
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

    @property
    def offsets(self) -> Int64Array:
        """Where every id starts in `data`, and behind them its end: n + 1 numbers."""
        offsets = np.zeros(len(self.lengths) + 1, np.int64)
        np.cumsum(np.maximum(self.lengths, 0), out=offsets[1:])
        return offsets

    def encoded(self) -> list[bytes | None]:
        """Return the ids as bytes of UTF-8, one per row."""
        return [
            None if length < 0 else self.data[a:b]
            for length, (a, b) in zip(self.lengths, pairwise(self.offsets.tolist()), strict=True)
        ]

    def to_list(self) -> list[str | None]:
        """Return the ids as text, one per row."""
        return [None if raw is None else raw.decode("utf-8", "surrogatepass") for raw in self.encoded()]

    def take(self, rows: Int64Array) -> IdColumn:
        """Return the chosen rows."""
        lengths = self.lengths[rows]
        starts = self.offsets[:-1][rows]
        size = np.maximum(lengths, 0).astype(np.int64)
        ends = np.cumsum(size)
        where = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(starts - ends + size, size)
        return IdColumn(lengths, np.frombuffer(self.data, np.uint8)[where].tobytes())

    def _pack(self) -> bytes:
        return self.lengths.astype("<i4").tobytes() + self.data

    @classmethod
    def _unpack(cls, payload: memoryview, rows: int) -> IdColumn:
        lengths = np.frombuffer(payload, "<i4", rows).astype(np.int32)
        return cls(lengths, bytes(payload[4 * rows :]))


_NUMBER_COLUMNS = {
    1: ("scores", "<f8"),
    2: ("labels", "<i1"),
    3: ("times", "<i8"),
    4: ("weights", "<f8"),
}
_TEXT_COLUMNS = {5: "models", 6: "label_classes", 7: "predicted"}
_ID_TAG, _SLICE_TAG = 8, 9


@dataclass(frozen=True, eq=False)
class EventBatch:
    """Columns of n events that went through validation.

    models         text; never missing
    scores         float64, finite; higher means more likely positive
    labels         int8: POSITIVE, NEGATIVE, or NO_CLASS (a class, with no positive class named)
    times          int64 microseconds UTC, or None: the source has no times
    ids            or None
    weights        float64 > 0, or None: all are 1
    label_classes  the label as a class, and
    predicted      the predicted class: both, or None for both
    slices         (column name, text) of every slice column; a missing value is code -1
    source         the partition that the events come from (a file, a topic's partition), by name, and
    partition      by its place in the order of all partitions of the input, from 0
    first_position of the first of them in the source; -1 = unknown
    high_water     the greatest event time of the partition so far; NO_TIME = none
    sequence       the place of this packet among those of its source for its shard, or UNORDERED
    """

    models: TextColumn
    scores: FloatArray
    labels: Int8Array
    times: Int64Array | None = None
    ids: IdColumn | None = None
    weights: FloatArray | None = None
    label_classes: TextColumn | None = None
    predicted: TextColumn | None = None
    slices: tuple[tuple[str, TextColumn], ...] = ()
    source: str = ""
    partition: int = 0
    first_position: int = -1
    high_water: int = NO_TIME
    sequence: int = UNORDERED

    def __post_init__(self) -> None:
        for name, dtype in _NUMBER_COLUMNS.values():
            column = getattr(self, name)
            if column is not None:
                object.__setattr__(self, name, np.ascontiguousarray(column, np.dtype(dtype)))
        n = len(self.models)
        for name, _, column in self._columns():
            if len(column) != n:
                raise InputError(
                    f"the column {name!r} of an event batch has {len(column)} rows and the models "
                    f"{n}; every column needs one value per event"
                )
        if (self.label_classes is None) != (self.predicted is None):
            raise InputError("an event batch has predicted classes exactly when it has label classes")

    def __len__(self) -> int:
        return len(self.models)

    def _columns(
        self,
    ) -> Iterator[tuple[str, int, TextColumn | IdColumn | npt.NDArray[np.generic]]]:
        """Yield (name, tag, column) of every column that is there; slices by their own names."""
        for tag, (name, _) in _NUMBER_COLUMNS.items():
            if (numbers := getattr(self, name)) is not None:
                yield name, tag, numbers
        for tag, name in _TEXT_COLUMNS.items():
            if (text := getattr(self, name)) is not None:
                yield name, tag, text
        if self.ids is not None:
            yield "ids", _ID_TAG, self.ids
        for name, values in self.slices:
            yield name, _SLICE_TAG, values

    def take(self, rows: Int64Array, models: TextColumn | None = None) -> EventBatch:
        """Return the chosen rows, in the order given; source, positions and sequence stay as they are.

        `models` are those of the rows chosen, where the caller has them.
        """
        return EventBatch(
            models=self.models.take(rows) if models is None else models,
            scores=self.scores[rows],
            labels=self.labels[rows],
            times=None if self.times is None else self.times[rows],
            ids=None if self.ids is None else self.ids.take(rows),
            weights=None if self.weights is None else self.weights[rows],
            label_classes=None if self.label_classes is None else self.label_classes.take(rows),
            predicted=None if self.predicted is None else self.predicted.take(rows),
            slices=tuple((name, column.take(rows)) for name, column in self.slices),
            source=self.source,
            partition=self.partition,
            first_position=self.first_position,
            high_water=self.high_water,
            sequence=self.sequence,
        )

    def pack(self) -> bytes:
        """Return the wire form: about 10 bytes an event without ids, times, weights and slices."""
        source = self.source.encode("utf-8", "surrogatepass")
        parts = [
            _SOURCE_HEAD.pack(
                self.sequence, self.first_position, self.high_water, self.partition, len(source)
            ),
            source,
        ]
        count = 0
        for name, tag, column in self._columns():
            payload = column._pack() if isinstance(column, TextColumn | IdColumn) else column.tobytes()
            label = name.encode("utf-8", "surrogatepass") if tag == _SLICE_TAG else b""
            if len(label) > 255:
                raise InputError(
                    f"the slice column {name[:40]!r}... has a name of {len(label)} bytes; rename it to "
                    "255 at the most"
                )
            parts += [
                struct.pack("<BB", tag, len(label)),
                label,
                struct.pack("<I", len(payload)),
                payload,
            ]
            count += 1
        body = b"".join(parts)
        return _HEAD.pack(MAGIC, VERSION, 0, count, len(self), zlib.crc32(body)) + body

    @classmethod
    def unpack(cls, data: bytes) -> EventBatch:
        """Read the wire form. Raises one of the four `WireError`s where the bytes are anything else."""
        if len(data) < _HEAD.size:
            if not MAGIC.startswith(bytes(data[:4])[: len(data)]) or not data:
                raise ForeignBytesError(f"{len(data)} bytes are not an event batch")
            raise TruncatedBytesError(f"an event batch ends after {len(data)} bytes, inside its head")
        magic, version, reserved, count, rows, crc = _HEAD.unpack_from(data)
        if magic != MAGIC:
            raise ForeignBytesError(f"bytes that start with {magic!r} are not an event batch")
        if version > VERSION or version == 0:
            raise FutureVersionError(
                f"an event batch of version {version}: this rocsteady reads up to {VERSION}; upgrade it"
            )
        if reserved:
            raise CorruptBytesError("an event batch has a head that no rocsteady writes; it was damaged")
        body = memoryview(data)[_HEAD.size :]
        try:
            batch = cls._read_body(body, count, rows) if zlib.crc32(body) == crc else None
        except (struct.error, ValueError, OverflowError, KeyError) as damage:
            raise CorruptBytesError(f"an event batch contradicts itself: {damage}") from damage
        if batch is None:
            announced = _announced_length(body, count)
            if announced is not None and announced > len(body):
                raise TruncatedBytesError(
                    f"an event batch ends after {len(data)} bytes, before its {count} columns do"
                )
            raise CorruptBytesError("an event batch fails its checksum; it was damaged on the way")
        return batch

    @classmethod
    def _read_body(cls, body: memoryview, count: int, rows: int) -> EventBatch:
        sequence, first_position, high_water, partition, length = _SOURCE_HEAD.unpack_from(body)
        at = _SOURCE_HEAD.size + length
        source = str(body[_SOURCE_HEAD.size : at], "utf-8", "surrogatepass")
        fields: dict[str, object] = {}
        slices: list[tuple[str, TextColumn]] = []
        for _ in range(count):
            tag, name_length = struct.unpack_from("<BB", body, at)
            name = str(body[at + 2 : at + 2 + name_length], "utf-8", "surrogatepass")
            at += 2 + name_length
            (size,) = struct.unpack_from("<I", body, at)
            payload = body[at + 4 : at + 4 + size]
            at += 4 + size
            if tag in _NUMBER_COLUMNS:
                field, dtype = _NUMBER_COLUMNS[tag]
                fields[field] = np.frombuffer(payload, dtype).copy()
            elif tag in _TEXT_COLUMNS:
                fields[_TEXT_COLUMNS[tag]] = TextColumn._unpack(payload, rows)
            elif tag == _ID_TAG:
                fields["ids"] = IdColumn._unpack(payload, rows)
            elif tag == _SLICE_TAG:
                slices.append((name, TextColumn._unpack(payload, rows)))
            else:
                raise ValueError(f"column tag {tag} is not known")
        if at != len(body):
            raise ValueError(f"{len(body) - at} bytes too many")
        if missing := {"models", "scores", "labels"} - fields.keys():
            raise ValueError(f"no column {', '.join(sorted(missing))}")
        batch = cls(
            **fields,  # type: ignore[arg-type]
            slices=tuple(slices),
            source=source,
            partition=partition,
            first_position=first_position,
            high_water=high_water,
            sequence=sequence,
        )
        if len(batch) != rows:
            raise ValueError(f"{len(batch)} events where the head says {rows}")
        batch._check_values()
        return batch

    def _check_values(self) -> None:
        """Raise ValueError for values that validation lets nobody send: kernels rely on them."""
        least = NEGATIVE if self.label_classes is None else NO_CLASS
        if not ((self.labels >= least) & (self.labels <= POSITIVE)).all():
            raise ValueError("a label is neither positive nor negative")
        if not np.isfinite(self.scores).all():
            raise ValueError("a score is not finite")
        if self.weights is not None and not ((self.weights > 0) & np.isfinite(self.weights)).all():
            raise ValueError("a weight is not a number above 0")
        for tag, name in _TEXT_COLUMNS.items():
            column = getattr(self, name)
            if column is not None and (column.codes < 0).any():
                raise ValueError(f"a value of {name} (column {tag}) is missing")


def _announced_length(body: memoryview, count: int) -> int | None:
    """Return how long a body says that it is, as far as it can be read."""
    try:
        at = _SOURCE_HEAD.size + int(_SOURCE_HEAD.unpack_from(body)[4])
        for _ in range(count):
            at += 2 + int(struct.unpack_from("<BB", body, at)[1])
            at += 4 + int(struct.unpack_from("<I", body, at)[0])
    except struct.error:
        return len(body) + 1
    return at
