"""Rows, alerts, dead letters and curves, as one sorted file each at the end of a bounded job.

Invariant
    The file holds every row once, sorted by identity, so that the same rows give the same bytes however a
    runner cut them into batches. Without any rows, the file is an empty table with its columns. A single
    DoFn call after a GroupByKey writes the file, and the final name appears when it is complete (`table`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

import apache_beam as beam
import pyarrow as pa
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import GlobalWindows

from ...core.rows.arrow import ROW_SCHEMA
from ...core.settings.evaluator import EvaluatorSettings
from ..beam.metrics import count
from ..events.batches import from_ipc, to_ipc
from .table import check_output, json_lines, write_table

__all__ = [
    "WriteSortedTable",
    "check_output",
    "json_lines",
    "row_schema",
    "sorted_table",
    "write_table",
]

CONFIDENCE_KEY = b"rocsteady.confidence"
SETTINGS_KEY = b"rocsteady.settings"
"""In the metadata of a Parquet file of rows: the level of its intervals, and the text hashed in `config`."""

ROW_ORDER = ("model", "slice", "pane_start", "row")
DEAD_LETTER_ORDER = ("source", "position", "kind", "reason", "raw", "detail")


def sorted_table(batches: Iterable[pa.RecordBatch], schema: pa.Schema, order: Iterable[str]) -> pa.Table:
    """Put record batches into one table, sorted by columns; nulls come last. No batches: no rows."""
    table = pa.Table.from_batches(batches, schema)
    return table.sort_by([(name, "ascending") for name in order])


Counted = tuple[str, Callable[[pa.Table], int]]
"""A counter of the job, and what a table adds to it."""


class _WriteSorted(beam.DoFn):
    def __init__(
        self, path: str, schema: pa.Schema, order: tuple[str, ...], counted: Counted | None, csv_safe: bool
    ) -> None:
        self._path = path
        self._schema = schema
        self._order = order
        self._counted = counted
        self._csv_safe = csv_safe

    def process(self, element: tuple[str, Iterable[bytes]]) -> Iterator[str]:
        _, pieces = element
        batches = (from_ipc(piece) for piece in pieces if piece)
        table = sorted_table(batches, self._schema, self._order)
        write_table(table, self._path, csv_safe=self._csv_safe)
        if self._counted is not None:
            name, number_of = self._counted
            count(name, number_of(table))
        yield self._path


class WriteSortedTable(beam.PTransform[PCollection[pa.RecordBatch], PCollection[str]]):
    """Record batches -> one file; outputs the file's path when the file is complete.

    schema, order  of the batches, and the columns by which their rows are sorted
    counted        a counter of the job, if there is one, and what the table adds to it
    csv_safe       see `table`
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: pa.Schema,
        order: tuple[str, ...],
        counted: Counted | None = None,
        *,
        csv_safe: bool = False,
    ) -> None:
        super().__init__()
        self._path = os.fspath(path)
        self._schema = schema
        self._order = order
        self._counted = counted
        self._csv_safe = csv_safe

    def expand(self, batches: PCollection[pa.RecordBatch]) -> PCollection[str]:
        """Apply to the batches of a bounded job."""
        pieces = (
            batches
            | "Global" >> beam.WindowInto(GlobalWindows())
            | "Encode" >> beam.Map(_keyed).with_output_types(tuple[str, bytes])
        )
        # An empty piece is always there, so that a job without rows writes its empty table.
        empty = batches.pipeline | beam.Create([("", b"")]).with_output_types(tuple[str, bytes])
        paths: PCollection[str] = (
            (pieces, empty)
            | beam.Flatten()
            | beam.GroupByKey()
            | "Write"
            >> beam.ParDo(
                _WriteSorted(self._path, self._schema, self._order, self._counted, self._csv_safe)
            ).with_output_types(str)
        )
        return paths


def _keyed(batch: pa.RecordBatch) -> tuple[str, bytes]:
    return "", to_ipc(batch)


def row_schema(settings: EvaluatorSettings) -> pa.Schema:
    """Return ROW_SCHEMA with the metadata of a Parquet file of rows: confidence level and settings."""
    metadata = {
        CONFIDENCE_KEY: repr(settings.confidence).encode(),
        SETTINGS_KEY: settings.canonical().encode(),
    }
    return ROW_SCHEMA.with_metadata(metadata)
