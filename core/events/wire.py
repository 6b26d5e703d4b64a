"""The wire form of batches of columns: events, predictions, labels.

Version 1, little-endian
    magic (4 bytes, which says of what), version u8, reserved u8, columns u16, rows u32, crc32 of all that
    follows the head u32, then: sequence i64, high water i64, partition i32, source (u32 length, UTF-8),
    then every column: tag u8, name (u8 length, UTF-8; slices and features only), payload
    length u32, payload.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..encoding.fields import Reader
from ..encoding.json import reading
from ..errors import CorruptBytesError, ForeignBytesError, FutureVersionError, InputError, TruncatedBytesError
from .columns import Column, IdColumn, TextColumn
from .times import NO_TIME

UNORDERED = -1
"""The sequence number of a packet without a sequence: such packets are ordered by arrival."""

VERSION = 1
_HEAD = struct.Struct("<4sBBHII")
_SOURCE_HEAD = struct.Struct("<qqiI")

COLUMNS: dict[int, tuple[str, Any]] = {
    1: ("scores", "<f8"), 2: ("labels", "<i1"), 3: ("times", "<i8"), 4: ("weights", "<f8"),
    10: ("positions", "<i8"),
    5: ("models", TextColumn), 6: ("label_classes", TextColumn), 7: ("predicted", TextColumn),
    11: ("sources", TextColumn),
    8: ("ids", IdColumn),
    9: ("slices", TextColumn), 12: ("features", "<f8"),
    13: ("class_scores", "<f8"), 14: ("class_labels", "<i1"),
}  # fmt: skip
"""The fields of a batch by tag, in their order on the wire, each with the type of its columns."""

CLASS_SCORES = "class_scores"
MATRICES = (13, 14)
"""Tags of the fields that have several numbers in each row: the payload has row after row."""

_NOT_SENT = (1, 2)
"""Tags of the fields that have no meaning, and are not sent, if an event has a score of each class."""

NAMED = (9, 12)
"""Tags of the fields whose columns have names of their own. Only the texts of a slice may be missing."""

_Batch = TypeVar("_Batch")


@dataclass(frozen=True, slots=True)
class PacketHead:
    """The place of a packet in the input. `Packets.split` writes it; batches that did not travel have none.

    partition   the place of its partition in the order of all partitions of the input, from 0
    sequence    its place among the packets of the partition for its shard, or UNORDERED
    high_water  the greatest event time of the partition so far; NO_TIME = none
    """

    partition: int = 0
    sequence: int = UNORDERED
    high_water: int = NO_TIME


NO_HEAD = PacketHead()


def tagged_columns(batch: Any) -> Iterator[tuple[str, int, Column]]:
    """Yield (name, tag, column) of every column that a batch has.

    Slices and features have their own names.
    """
    has_classes = getattr(batch, CLASS_SCORES, None) is not None
    for tag, (field, _) in COLUMNS.items():
        if has_classes and tag in _NOT_SENT:
            continue
        if tag in NAMED:
            for name, column in getattr(batch, field, ()):
                yield name, tag, column
        elif (single := getattr(batch, field, None)) is not None:
            yield field, tag, single


def write_batch(
    magic: bytes, head: PacketHead, of: str, rows: int, columns: Iterator[tuple[str, int, Column]]
) -> bytes:
    """Return the wire form of columns of `rows` rows, which come from the source `of`."""
    source = of.encode("utf-8", "surrogatepass")
    parts = [_SOURCE_HEAD.pack(head.sequence, head.high_water, head.partition, len(source)), source]
    count = 0
    for name, tag, column in columns:
        payload = column.payload() if isinstance(column, TextColumn | IdColumn) else column.tobytes()
        label = name.encode("utf-8", "surrogatepass") if tag in NAMED else b""
        if len(label) > 255:
            raise InputError(
                f"the column {name[:40]!r}... has a name of {len(label)} bytes; rename it to 255 at the most"
            )
        parts += [struct.pack("<BB", tag, len(label)), label, struct.pack("<I", len(payload)), payload]
        count += 1
    body = b"".join(parts)
    return _HEAD.pack(magic, VERSION, 0, count, rows, zlib.crc32(body)) + body


def read_batch(data: bytes, magic: bytes, what: str, make: Callable[[dict[str, Any], int], _Batch]) -> _Batch:
    """Read the wire form; return `make(fields by name, number of rows)`.

    Raises one of the four `WireError`s for any other bytes, and if `make` raises ValueError. The error's
    message names the bytes by `what`, such as "an event batch".
    """
    if len(data) < _HEAD.size:
        if not magic.startswith(bytes(data[:4])[: len(data)]) or not data:
            raise ForeignBytesError(f"{len(data)} bytes are not {what}")
        raise TruncatedBytesError(f"{what} ends after {len(data)} bytes, inside its head")
    found, version, reserved, count, rows, crc = _HEAD.unpack_from(data)
    if found != magic:
        raise ForeignBytesError(f"bytes that start with {found!r} are not {what}")
    if version > VERSION or version == 0:
        raise FutureVersionError(
            f"{what} of version {version}: this rocsteady reads up to {VERSION}; upgrade it"
        )
    if reserved:
        raise CorruptBytesError(f"{what} has a head that no rocsteady writes; it was damaged")
    body = memoryview(data)[_HEAD.size :]
    if zlib.crc32(body) != crc:
        if _is_cut_short(body, count):
            raise TruncatedBytesError(f"{what} ends after {len(data)} bytes, before its {count} columns do")
        raise CorruptBytesError(f"{what} fails its checksum; it was damaged on the way")
    with reading(what):
        return make(_read_fields(body, count, rows), rows)


def _read_fields(body: memoryview, count: int, rows: int) -> dict[str, Any]:
    reader = Reader(body)
    sequence, high_water, partition, length = reader.numbers(_SOURCE_HEAD.format)
    source = str(reader.read(length), "utf-8", "surrogatepass")
    fields: dict[str, Any] = {"head": PacketHead(partition, sequence, high_water), "source": source}
    named: dict[str, list[tuple[str, Column]]] = {}
    for _ in range(count):
        tag, name_length = reader.numbers("<BB")
        name = str(reader.read(name_length), "utf-8", "surrogatepass")
        payload = reader.read(reader.number("<I"))
        if tag not in COLUMNS:
            raise ValueError(f"column tag {tag} is not known")
        field, kind = COLUMNS[tag]
        is_array = isinstance(kind, str)
        column = np.frombuffer(payload, kind).copy() if is_array else kind.of_payload(payload, rows)
        if tag in MATRICES:
            column = column.reshape(rows, -1 if rows else 0)
        if tag in NAMED:
            named.setdefault(field, []).append((name, column))
        else:
            fields[field] = column
    reader.end()
    return fields | {field: tuple(columns) for field, columns in named.items()}


def _is_cut_short(body: memoryview, count: int) -> bool:
    """Return whether a body is shorter than its own fields say."""
    reader = Reader(body)
    try:
        reader.read(reader.numbers(_SOURCE_HEAD.format)[-1])
        for _ in range(count):
            reader.read(reader.numbers("<BB")[1])
            reader.read(reader.number("<I"))
    except ValueError:
        return True
    return False
