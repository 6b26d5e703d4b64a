"""A file of lines (.csv, .jsonl), or stdout, that grows while a job runs.

Invariant
    A job that continues after its process was killed continues the file behind its last whole line. So no
    line is torn, and no row that was written before is lost.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from ...core.errors import InputError, RocsteadyError
from ...core.process.standard_streams import write_out
from .kinds import TableKind, TableSink
from .table import cleaned, csv_head, is_csv, text_lines

STDOUT = "-"

_BLOCK_BYTES = 1 << 20


class AppendedTable(TableSink):
    """A file of lines, or stdout, that has every row when `write` returns.

    The constructor makes the file without rows; earlier content is lost. With `resumes`, the whole lines of
    an existing file stay: only a torn last line, which a killed process left, is cut off.

    Raises RocsteadyError if the file cannot be written, InputError if a file of CSV has other columns,
    BrokenPipeError if stdout has no reader any more.
    """

    def __init__(self, path: str, kind: TableKind, *, csv_safe: bool = False, resumes: bool = False) -> None:
        self._path = path
        self._csv = is_csv(path)
        self._csv_safe = csv_safe and self._csv
        self._file: BinaryIO | None = None
        if path == STDOUT:
            return
        head = csv_head(kind.schema.names) if self._csv else b""
        try:
            self._file = open(path, "r+b" if resumes and Path(path).exists() else "w+b")  # noqa: PTH123, SIM115 - `close` closes it
            end = self._file.truncate(end_of_whole_lines(self._file, as_csv=self._csv))
            self._file.seek(0)
            begins = self._file.read(len(head))
            self._file.seek(end)
        except OSError as error:
            self.close()
            raise self._told(error) from None
        if not end:
            self._put(head)
        elif begins != head:
            self.close()
            raise InputError(
                f"output {path} has other columns than the rows that go on there; move it away, and a new "
                "file is made"
            )

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows, whole lines at once. O(cells)."""
        table = cleaned(pa.Table.from_batches([batch]), csv_safe=self._csv_safe)
        if table.num_rows:
            self._put(b"".join(text_lines(table, as_csv=self._csv)))

    def settle(self) -> None:
        """Flush the file to the disk."""
        if self._file is not None:
            try:
                os.fsync(self._file.fileno())
            except OSError as error:
                raise self._told(error) from None

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


def end_of_whole_lines(file: BinaryIO, *, as_csv: bool) -> int:
    r"""Return the length of a file without a torn last line; in CSV a newline in quotes ends no line.

    O(bytes).

    >>> import io
    >>> end_of_whole_lines(io.BytesIO(b'{"auc": 1}\n{"au'), as_csv=False)
    11
    >>> end_of_whole_lines(io.BytesIO(b'auc,model\n1,"a\nb'), as_csv=True)
    10
    """
    end = start = quotes = 0
    while block := file.read(_BLOCK_BYTES):
        at = len(block)
        while (at := block.rfind(b"\n", 0, at)) >= 0:
            if not as_csv or (quotes + block.count(b'"', 0, at)) % 2 == 0:
                end = start + at + 1
                break
        start, quotes = start + len(block), quotes + block.count(b'"')
    return end
