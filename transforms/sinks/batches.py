"""Puts records on Beam, such as `AlertRow`, into record batches, the form that sinks take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from ..events.dead_letters import in_columns
from .kinds import TableKind

_GATHERED_RECORDS = 10_000


class _Gathered(beam.DoFn):
    """Turns records of one kind into record batches; a bundle's records are gathered into one batch."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._held: list[tuple[Any, ...]] = []

    def start_bundle(self) -> None:
        """Begin without records."""
        self._held = []

    def process(self, record: tuple[Any, ...]) -> Iterator[pa.RecordBatch]:
        """Hold records; yield a batch when enough records are held."""
        self._held.append(record)
        if len(self._held) == _GATHERED_RECORDS:
            yield in_columns(self._held, self._schema)
            self._held = []

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Yield a batch of the records still held."""
        if self._held:
            yield GlobalWindows.windowed_value(in_columns(self._held, self._schema))


class InBatches(beam.PTransform[beam.PCollection[Any], beam.PCollection[pa.RecordBatch]]):
    """Turns records of a kind, such as `AlertRow` or `PairRow`, into record batches, which sinks take."""

    def __init__(self, kind: TableKind) -> None:
        super().__init__()
        self._schema = kind.schema

    def expand(self, records: beam.PCollection[Any]) -> beam.PCollection[pa.RecordBatch]:
        """Apply to the records of a job."""
        gather = beam.ParDo(_Gathered(self._schema)).with_output_types(pa.RecordBatch)
        batches: beam.PCollection[pa.RecordBatch] = records | gather
        return batches
