"""The one wire form of batches of columns: events, predictions, labels.

Version 1, little-endian
    magic (4 bytes, which says of what), version u8, reserved u8, columns u16, rows u32, crc32 of all that
    follows the head u32, then: sequence i64, first position i64, high water i64, partition i32, source (u32
    length, UTF-8), then every column: tag u8, name (u8 length, UTF-8; slices and features only), payload
    length u32, payload.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

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
_SOURCE_HEAD = struct.Struct("<qqqiI")

NUMBER_COLUMNS = {
    1: ("scores", "<f8"),
    2: ("labels", "<i1"),
    3: ("times", "<i8"),
    4: ("weights", "<f8"),
    10: ("positions", "<i8"),
}
TEXT_COLUMNS = {5: "models", 6: "label_classes", 7: "predicted", 11: "sources"}
"""Tags of columns whose texts are never missing."""

_ID_TAG, _SLICE_TAG, _FEATURE_TAG = 8, 9, 12
_SINGLE = {**{tag: name for tag, (name, _) in NUMBER_COLUMNS.items()}, **TEXT_COLUMNS, _ID_TAG: "ids"}
_NAMED = {_SLICE_TAG: "slices", _FEATURE_TAG: "features"}
"""The fields of a batch by tag: one column each, and columns under their own names."""

_Batch = TypeVar("_Batch")


class Packet(NamedTuple):
    """The head of a batch as a packet of its source; for the fields see `EventBatch`."""

    source: str = ""
    partition: int = 0
    sequence: int = UNORDERED
    first_position: int = -1
    high_water: int = NO_TIME


def tagged_columns(batch: Any) -> Iterator[tuple[str, int, Column]]:
    """Yield (name, tag, column) of every column a batch has; slices and features under their own names."""
    for tag, name in _SINGLE.items():
        if (single := getattr(batch, name, None)) is not None:
            yield name, tag, single
    for tag, field in _NAMED.items():
        for name, column in getattr(batch, field, ()):
            yield name, tag, column


def write_batch(magic: bytes, packet: Packet, rows: int, columns: Iterator[tuple[str, int, Column]]) -> bytes:
    """Return the wire form of columns of `rows` rows."""
    source = packet.source.encode("utf-8", "surrogatepass")
    head = (packet.sequence, packet.first_position, packet.high_water, packet.partition, len(source))
    parts = [_SOURCE_HEAD.pack(*head), source]
    count = 0
    for name, tag, column in columns:
        payload = column.payload() if isinstance(column, TextColumn | IdColumn) else column.tobytes()
        label = name.encode("utf-8", "surrogatepass") if tag in _NAMED else b""
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
    sequence, first_position, high_water, partition, length = reader.numbers(_SOURCE_HEAD.format)
    fields: dict[str, Any] = {
        "source": str(reader.read(length), "utf-8", "surrogatepass"),
        "partition": partition,
        "sequence": sequence,
        "first_position": first_position,
        "high_water": high_water,
    }
    named: dict[int, list[tuple[str, Column]]] = {tag: [] for tag in _NAMED}
    for _ in range(count):
        tag, name_length = reader.numbers("<BB")
        name = str(reader.read(name_length), "utf-8", "surrogatepass")
        payload = reader.read(reader.number("<I"))
        if tag in NUMBER_COLUMNS:
            field, dtype = NUMBER_COLUMNS[tag]
            fields[field] = np.frombuffer(payload, dtype).copy()
        elif tag in TEXT_COLUMNS:
            fields[TEXT_COLUMNS[tag]] = TextColumn.of_payload(payload, rows)
        elif tag == _ID_TAG:
            fields["ids"] = IdColumn.of_payload(payload, rows)
        elif tag == _SLICE_TAG:
            named[tag].append((name, TextColumn.of_payload(payload, rows)))
        elif tag == _FEATURE_TAG:
            named[tag].append((name, np.frombuffer(payload, "<f8").copy()))
        else:
            raise ValueError(f"column tag {tag} is not known")
    reader.end()
    return fields | {_NAMED[tag]: tuple(columns) for tag, columns in named.items() if columns}


def _is_cut_short(body: memoryview, count: int) -> bool:
    """Return whether a body ends before its own fields say."""
    reader = Reader(body)
    try:
        reader.read(reader.numbers(_SOURCE_HEAD.format)[-1])
        for _ in range(count):
            reader.read(reader.numbers("<BB")[1])
            reader.read(reader.number("<I"))
    except ValueError:
        return True
    return False
