"""Tables that grow while a job runs: rows are in the file, or on stdout, as soon as they are made.

Files of lines (.jsonl, .csv) grow by appended lines. Parquet and compressed files are complete or absent:
they are written at the end, sorted, as in a bounded job. Until then their rows are in a temporary file of the
system.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import BinaryIO, Protocol, cast

import pyarrow as pa

from ...core.errors import RocsteadyError
from ...core.process.standard_streams import write_out
from .sorted import sorted_table
from .table import csv_head, csv_lines, is_csv, json_lines, without_formulas, without_nan, write_table

STDOUT = "-"


class TableSink(Protocol):
    """Takes record batches of one schema, in the order in which they were made."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Take the rows of a batch."""
        ...

    def tend(self) -> None:
        """Do due work, such as finishing a file. Called from time to time, also while no rows come."""
        ...

    def finish(self) -> None:
        """Write or deliver all remaining rows: no more rows will come."""
        ...

    def close(self) -> None:
        """Release open files and clients, whether finished or not."""
        ...


def is_appendable(path: str) -> bool:
    """Tell whether a file can be read while it is written, by its ending.

    >>> [is_appendable(name) for name in ("-", "rows.jsonl", "rows.CSV", "rows.csv.gz", "rows.parquet")]
    [True, True, True, False, False]
    """
    return path == STDOUT or path.lower().endswith((".csv", ".jsonl"))


class AppendedTable:
    """A file of lines, or stdout, that has every row when `write` returns.

    The constructor makes the file without rows; earlier content is lost. Raises RocsteadyError where the
    file cannot be written, BrokenPipeError where stdout has no reader any more.
    """

    def __init__(self, path: str, schema: pa.Schema, *, csv_safe: bool = False) -> None:
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
                self._put(csv_head(schema.names))

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows, whole lines at once. O(cells)."""
        table = without_nan(pa.Table.from_batches([batch]))
        if self._csv_safe:
            table = without_formulas(table)
        if table.num_rows:
            self._put(csv_lines(table) if self._csv else b"".join(json_lines(table)))

    def tend(self) -> None:
        """Do nothing: no work is due."""

    def finish(self) -> None:
        """Do nothing: `write` has written every row."""

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
"""Rows that are kept in memory: a batch in Arrow's form takes some 10 KB however few rows it has."""


class TableAtEnd:
    """A file that `finish` writes, complete and sorted by `order`; see `table`."""

    def __init__(self, path: str, schema: pa.Schema, order: Sequence[str], *, csv_safe: bool = False) -> None:
        self._path = path
        self._csv_safe = csv_safe
        self._schema = schema
        self._order = order
        self._gathered: list[pa.RecordBatch] = []
        self._count = 0
        self._spill = cast(BinaryIO, tempfile.TemporaryFile(prefix="rocsteady-"))  # noqa: SIM115
        self._stream = pa.ipc.new_stream(self._spill, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Keep the rows."""
        self._gathered.append(batch)
        self._count += batch.num_rows
        if self._count >= _GATHERED:
            self._spill_over()

    def tend(self) -> None:
        """Do nothing: no work is due before the end."""

    def _spill_over(self) -> None:
        table = pa.Table.from_batches(self._gathered, self._schema).combine_chunks()
        self._gathered, self._count = [], 0
        self._stream.write_table(table)

    def finish(self) -> None:
        """Write the file. All rows of the file are then in memory."""
        self._spill_over()
        self._stream.close()
        self._spill.flush()
        self._spill.seek(0)
        with pa.ipc.open_stream(self._spill) as stream:
            table = sorted_table(stream, self._schema, self._order)
        write_table(table, self._path, csv_safe=self._csv_safe)

    def close(self) -> None:
        """Drop the rows that were not written."""
        self._spill.close()


def open_table(path: str, schema: pa.Schema, order: Sequence[str], *, csv_safe: bool = False) -> TableSink:
    """Return the sink for a file by its ending, or for stdout."""
    if is_appendable(path):
        return AppendedTable(path, schema, csv_safe=csv_safe)
    return TableAtEnd(path, schema, order, csv_safe=csv_safe)
