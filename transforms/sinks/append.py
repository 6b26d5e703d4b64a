"""Tables that grow while a job runs: rows are in the file, or on stdout, as soon as they are made.

Files of lines (.jsonl, .csv) grow by appended lines. Parquet and compressed files are either complete or
absent: they are written at the end, sorted, as in a bounded job. Until then, their rows are in the system's
temporary folder.
"""

from __future__ import annotations

import tempfile
from typing import BinaryIO, cast

import pyarrow as pa

from ...core.errors import RocsteadyError
from ...core.process.standard_streams import write_out
from .kinds import TableKind, TableSink
from .table import cleaned, csv_head, is_csv, sorted_table, text_lines, write_table

STDOUT = "-"


def is_appendable(path: str) -> bool:
    """Tell by a file's ending whether the file can be read while it is written.

    >>> [is_appendable(name) for name in ("-", "rows.jsonl", "rows.CSV", "rows.csv.gz", "rows.parquet")]
    [True, True, True, False, False]
    """
    return path == STDOUT or path.lower().endswith((".csv", ".jsonl"))


class AppendedTable(TableSink):
    """A file of lines, or stdout, that has every row when `write` returns.

    The constructor makes the file without rows; earlier content is lost. Raises RocsteadyError where the
    file cannot be written, BrokenPipeError where stdout has no reader any more.
    """

    def __init__(self, path: str, kind: TableKind, *, csv_safe: bool = False) -> None:
        self._path = path
        self._csv = is_csv(path)
        self._csv_safe = csv_safe and self._csv
        self._file: BinaryIO | None = None
        if path != STDOUT:
            try:
                self._file = open(path, "wb")  # noqa: PTH123, SIM115 - `finish` closes it
            except OSError as error:
                raise self._told(error) from None
            if self._csv:
                self._put(csv_head(kind.schema.names))

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows, whole lines at once. O(cells)."""
        table = cleaned(pa.Table.from_batches([batch]), csv_safe=self._csv_safe)
        if table.num_rows:
            self._put(b"".join(text_lines(table, as_csv=self._csv)))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _put(self, lines: bytes) -> None:
        if self._file is None:
            write_out(lines)
            return
        try:
            self._file.write(lines)
            self._file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._told(error) from None

    def _told(self, error: OSError) -> RocsteadyError:
        return RocsteadyError(f"output {self._path} cannot be written: {error.strerror or error}")


_GATHERED = 10_000
"""Rows that are kept in memory before they are written together: any batch takes at least about 10 KB."""


class TableAtEnd(TableSink):
    """A file that `finish` writes, complete and sorted; see `table`."""

    def __init__(self, path: str, kind: TableKind, *, csv_safe: bool = False) -> None:
        self._path = path
        self._csv_safe = csv_safe
        self._kind = kind
        self._gathered: list[pa.RecordBatch] = []
        self._count = 0
        self._spill = cast(BinaryIO, tempfile.TemporaryFile(prefix="rocsteady-"))  # noqa: SIM115
        self._stream = pa.ipc.new_stream(self._spill, kind.schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Keep the rows."""
        self._gathered.append(batch)
        self._count += batch.num_rows
        if self._count >= _GATHERED:
            self._spill_over()

    def _spill_over(self) -> None:
        table = pa.Table.from_batches(self._gathered, self._kind.schema).combine_chunks()
        self._gathered, self._count = [], 0
        self._stream.write_table(table)

    def finish(self) -> None:
        """Write the file. All rows of the file are then in memory."""
        self._spill_over()
        self._stream.close()
        self._spill.flush()
        self._spill.seek(0)
        with pa.ipc.open_stream(self._spill) as stream:
            table = sorted_table(stream, self._kind.schema, self._kind.order)
        write_table(table, self._path, csv_safe=self._csv_safe)

    def close(self) -> None:
        """Drop the rows that were not written."""
        self._spill.close()


def open_table(path: str, kind: TableKind, *, csv_safe: bool = False) -> TableSink:
    """Return the sink for a file by its ending, or for stdout."""
    sink = AppendedTable if is_appendable(path) else TableAtEnd
    return sink(path, kind, csv_safe=csv_safe)
