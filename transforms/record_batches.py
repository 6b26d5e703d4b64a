"""Record batches: made of Python records, and moved between workers as Arrow IPC bytes.

Importing this module registers `RecordBatchCoder` with Beam for `pyarrow.RecordBatch`: the one place
where that happens.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.coders.typecoders import registry

from .columns import text_of

_PURE = (bool, int, float, str, bytes, datetime.datetime, datetime.date, Decimal, dict, list)


def _python(value: object) -> object:
    """Turn numpy scalars into Python values, and what pandas calls missing into None."""
    if isinstance(value, np.generic):
        value = value.item() if not isinstance(value, np.datetime64) else _moment(value)
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, str):
        return str(value).encode("utf-8", "backslashreplace").decode("utf-8")
    return value


def _moment(value: np.datetime64) -> str | None:
    return None if np.isnat(value) else str(value.astype("datetime64[us]"))


def _as_text(value: object) -> str | None:
    value = _python(value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    if value is None or isinstance(value, str) or (isinstance(value, float) and math.isnan(value)):
        return value if isinstance(value, str) else None
    return text_of(value)


def _array(values: Sequence[object]) -> pa.Array:
    kinds = set(map(type, values)) - {type(None)}
    if not kinds <= {*_PURE}:
        values = [_python(value) for value in values]
        kinds = set(map(type, values)) - {type(None)}
    if not kinds:
        return pa.nulls(len(values))
    if len(kinds) == 1 or kinds == {int, float}:
        try:
            return pa.array(values)
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            pass  # too large, of mixed shapes, not UTF-8, or of a class that arrow does not know
    return pa.array([_as_text(value) for value in values], pa.string())


def records_to_batch(records: Iterable[Mapping[str, object]]) -> pa.RecordBatch:
    """Put Python records into columns. A missing key is a null; columns come in order of appearance.

    Numbers, text, booleans, times, None and numpy's scalars keep their types; a column that mixes
    types other than int and float becomes text. Nothing is raised for a value.

    >>> records_to_batch([{"score": 0.5, "label": 1}, {"score": "n/a"}]).to_pylist()
    [{'score': '0.5', 'label': 1}, {'score': 'n/a', 'label': None}]
    """
    rows = list(records)
    keys = dict.fromkeys(key for row in rows for key in row)
    if not keys:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    return pa.RecordBatch.from_arrays(
        [_array([row.get(key) for row in rows]) for key in keys],
        names=[str(_python(str(key))) for key in keys],
    )


def to_ipc(batch: pa.RecordBatch) -> bytes:
    """Return a record batch, with its schema, as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_ipc(data: bytes) -> pa.RecordBatch:
    """Read what `to_ipc` wrote."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()


class RecordBatchCoder(beam.coders.Coder):
    """Arrow IPC bytes: equal batches have equal bytes, so a batch may even be a key."""

    def encode(self, value: pa.RecordBatch) -> bytes:
        """Return the bytes of a batch."""
        return to_ipc(value)

    def decode(self, encoded: bytes) -> pa.RecordBatch:
        """Read the bytes of a batch."""
        return from_ipc(encoded)

    def is_deterministic(self) -> bool:
        """Tell Beam that equal batches have equal bytes."""
        return True

    def to_type_hint(self) -> type:
        """Tell Beam what it encodes."""
        kind: type = pa.RecordBatch
        return kind

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


registry.register_coder(pa.RecordBatch, RecordBatchCoder)
