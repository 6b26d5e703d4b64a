"""Rows, alerts, dead letters and curves, as one sorted file each at the end of a bounded job.

Invariant
    The file holds every row once, sorted by the order of its kind. So the same rows give the same bytes, for
    any split of the rows into batches by a runner. Without any rows, the file is an empty table with its
    columns. A single DoFn call after a GroupByKey writes the file, and the final name appears when it is
    complete (`table`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apache_beam as beam
import pyarrow as pa
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import GlobalWindows

from ...core.rows.arrow import ROW_SCHEMA
from ...core.settings.evaluator import EvaluatorSettings
from ..beam.metrics import count
from ..events.batches import from_ipc, to_ipc
from .kinds import TableKind
from .table import write_table

CONFIDENCE_KEY = b"rocsteady.confidence"
SETTINGS_KEY = b"rocsteady.settings"
"""Two keys in the metadata of a Parquet file of rows.

CONFIDENCE_KEY has the confidence level of the intervals. SETTINGS_KEY has the text whose hash is `config`.
"""


def sorted_table(batches: Iterable[pa.RecordBatch], schema: pa.Schema, order: Iterable[str]) -> pa.Table:
    """Put record batches into one table, sorted by columns; nulls come last. No batches give no rows."""
    table = pa.Table.from_batches(batches, schema)
    return table.sort_by([(name, "ascending") for name in order])


class _WriteSorted(beam.DoFn):
    def __init__(self, path: str, kind: TableKind, csv_safe: bool) -> None:
        self._path = path
        self._kind = kind
        self._csv_safe = csv_safe

    def process(self, element: tuple[str, Iterable[bytes]]) -> Iterator[str]:
        _, pieces = element
        kind = self._kind
        table = sorted_table((from_ipc(piece) for piece in pieces if piece), kind.schema, kind.order)
        write_table(table, self._path, csv_safe=self._csv_safe)
        if kind.counter is not None:
            count(kind.counter, kind.number(table))
        yield self._path


class WriteSortedTable(beam.PTransform[PCollection[pa.RecordBatch], PCollection[str]]):
    """Record batches of a kind -> one file; outputs the file's path when the file is complete.

    csv_safe  see `table`
    """

    def __init__(self, path: str, kind: TableKind, *, csv_safe: bool = False) -> None:
        super().__init__()
        self._dofn = _WriteSorted(path, kind, csv_safe)

    def expand(self, batches: PCollection[pa.RecordBatch]) -> PCollection[str]:
        """Apply to the batches of a bounded job."""
        pieces = (
            batches
            | "Global" >> beam.WindowInto(GlobalWindows())
            | "Encode" >> beam.Map(lambda batch: ("", to_ipc(batch))).with_output_types(tuple[str, bytes])
        )
        # The input always has an empty piece, so that a job without rows writes an empty table.
        empty = batches.pipeline | beam.Create([("", b"")]).with_output_types(tuple[str, bytes])
        paths: PCollection[str] = (
            (pieces, empty)
            | beam.Flatten()
            | beam.GroupByKey()
            | "Write" >> beam.ParDo(self._dofn).with_output_types(str)
        )
        return paths


def row_schema(settings: EvaluatorSettings) -> pa.Schema:
    """Return ROW_SCHEMA with the metadata of a Parquet file of rows: confidence level and settings."""
    metadata = {
        CONFIDENCE_KEY: repr(settings.confidence).encode(),
        SETTINGS_KEY: settings.canonical().encode(),
    }
    return ROW_SCHEMA.with_metadata(metadata)
