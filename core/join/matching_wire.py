"""What a LabelMatcher holds, as bytes.

Wire form, little-endian
    head        ttl, lead, clock i64; second, predictions n, labels m, ids k u32; bytes of ids u64
    predictions time i64[n], handle i64[n], number of the id i32[n]; in the order of time
    labels      time i64[m], handle i64[m], number i32[m], used u8[m]; in the order of (time, tie)
    ids         time of the latest prediction i64[k], length i32[k]; their bytes
Ties are not stored: no label that comes later has the time of a stored label.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Int64Array
from ..errors import CorruptBytesError
from ..events.columns import IdColumn
from .matching_state import EARLIEST, LABEL, LATEST, PREDICTION

_HEAD = struct.Struct("<qqqIIIIQ")
_ENTRY = {"time": "<i8", "handle": "<i8", "number": "<i4"}
_LABEL = {**_ENTRY, "used": "u1"}
_ID = {"latest": "<i8", "length": "<i4"}


class Held(NamedTuple):
    """The matcher's settings, its clock, and its entries: records PREDICTION and LABEL, and ids by number."""

    ttl: int
    lead: int
    second: int
    clock: int
    predictions: Any
    labels: Any
    latest: Int64Array
    ids: IdColumn


def pack(held: Held) -> bytes:
    """Return the wire form: 20 bytes a prediction, 21 a label, 12 an id and the bytes of the id."""
    predictions, labels, ids = held.predictions, held.labels, held.ids
    parts = [
        _HEAD.pack(
            held.ttl, held.lead, held.clock, held.second,
            len(predictions), len(labels), len(ids), len(ids.data),
        )
    ]  # fmt: skip
    for columns, kinds in (
        (predictions, _ENTRY),
        (labels, _LABEL),
        ({"latest": held.latest, "length": ids.lengths}, _ID),
    ):
        parts += [np.asarray(columns[name]).astype(kind).tobytes() for name, kind in kinds.items()]
    return b"".join([*parts, ids.data])


def unpack(data: bytes) -> Held:
    """Read the wire form. Raises CorruptBytesError for bytes that cannot be a matcher's."""
    if len(data) < _HEAD.size:
        raise CorruptBytesError(f"the state of a join ends after {len(data)} bytes, inside its head")
    ttl, lead, clock, second, n, m, k, size = _HEAD.unpack_from(data)
    groups = ((n, _ENTRY), (m, _LABEL), (k, _ID))
    columns = {
        (group, name): (kind, count)
        for group, (count, kinds) in enumerate(groups)
        for name, kind in kinds.items()
    }
    needed = _HEAD.size + size + sum(np.dtype(kind).itemsize * count for kind, count in columns.values())
    if len(data) != needed:
        raise CorruptBytesError(
            f"the state of a join has {len(data)} bytes where its head says {needed}; damaged"
        )
    records: tuple[Any, Any, Any] = np.zeros(n, PREDICTION), np.zeros(m, LABEL), {}
    at = _HEAD.size
    for (group, name), (kind, count) in columns.items():
        column = np.frombuffer(data, kind, count, at)
        at += column.nbytes
        if group == 2:
            records[2][name] = column.astype(column.dtype.newbyteorder("="))
        else:
            records[group][name] = column
    predictions, labels, of_ids = records
    for entries in (predictions, labels):
        times, numbers = entries["time"], entries["number"]
        if not len(entries):
            continue
        if (np.diff(times) < 0).any() or times[0] < EARLIEST or times[-1] >= clock or times[-1] > LATEST:
            raise CorruptBytesError(
                f"the state of a join holds times that its clock, {clock}, denies; damaged"
            )
        if numbers.min() < 0 or numbers.max() >= k:
            raise CorruptBytesError("the state of a join refers to ids that it does not have; damaged")
    if clock < EARLIEST:
        raise CorruptBytesError(f"the state of a join has the clock {clock}; damaged")
    if k and of_ids["length"].min() < 0:
        raise CorruptBytesError("the state of a join has an id of less than no bytes; damaged")
    ids = IdColumn(of_ids["length"], data[at:])
    return Held(ttl, lead, second, clock, predictions, labels, of_ids["latest"], ids)
