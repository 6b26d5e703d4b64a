"""Record batches, moved between workers as Arrow IPC bytes.

The import of this module registers `RecordBatchCoder` with Beam for `pyarrow.RecordBatch`. No other module
registers it.
"""

from __future__ import annotations

import apache_beam as beam
import pyarrow as pa
from apache_beam.coders.typecoders import registry


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
        """Return True: equal batches have equal bytes."""
        return True

    def to_type_hint(self) -> type:
        """Return the type that the coder encodes."""
        kind: type = pa.RecordBatch
        return kind


registry.register_coder(pa.RecordBatch, RecordBatchCoder)
