"""Rows, alerts, dead letters or curves as a folder; its number of files grows. For jobs without an end.

Invariant
    A file under its final name is complete and never changes: it is written under a hidden name, flushed to
    the disk and renamed. A bundle writes its rows into files of its own before the bundle ends. So a repeated
    bundle repeats whole rows and never leaves a part of a row. A reader recognises repeated rows by their
    identity (`tables.rows`).

A name is part-<time>-<random>.<format>, so the names sort roughly in the order in which the files were
written. A process that is killed leaves a hidden file (".part-...tmp"), which may be deleted.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from ...core.errors import InputError, RocsteadyError
from ..beam.metrics import count
from ..files.formats import everywhere, has_scheme
from .kinds import TableKind, TableSink
from .table import check_url, try_folder, write_table

PART_FORMATS = ("jsonl", "parquet")
PART_ROWS = 100_000
"""The approximate most rows of a file. So many rows take 40 MB of memory."""
PART_SECONDS = 10.0
"""The most seconds that a row waits until its file is finished; the end of a bundle finishes it sooner."""


def is_folder(path: str) -> bool:
    """Tell whether a path names a folder of parts: by the slash at its end.

    >>> is_folder("rows/"), is_folder("gs://bucket/rows/"), is_folder("rows.jsonl")
    (True, True, False)
    """
    return path.endswith(("/", os.sep))


def check_folder(path: str) -> None:
    """Check, before a job starts, that files can be written into a folder; make a missing folder.

    Raises InputError where the path is a file, or where the folder cannot be made or written to.
    """
    if has_scheme(path):
        check_url(path)
        return
    folder = Path(path)
    try:
        folder.mkdir(exist_ok=True)
        try_folder(folder)
    except FileExistsError:
        raise InputError(f"output {path!r} is a file, and the slash says a folder; leave it out") from None
    except FileNotFoundError:
        raise InputError(
            f"output {path!r}: the folder {folder.parent} does not exist; create it, or write elsewhere"
        ) from None
    except OSError as error:
        raise InputError(
            f"output {path!r} cannot be written to ({error.strerror}); write elsewhere"
        ) from None


class PartFiles(TableSink):
    """Gathers record batches of a kind and writes them as files of a folder.

    Raises RocsteadyError where a file cannot be written: its final name then does not exist.
    """

    def __init__(self, folder: str, kind: TableKind, ending: str) -> None:
        self._folder = folder
        self._kind = kind
        self._ending = ending
        self._held: list[pa.RecordBatch] = []
        self._count = 0
        self._since = 0.0

    def write(self, batch: pa.RecordBatch) -> None:
        """Hold the rows; finish a file when PART_ROWS rows are held."""
        if not batch.num_rows:
            return
        if not self._held:
            self._since = time.monotonic()
        self._held.append(batch)
        self._count += batch.num_rows
        if self._count >= PART_ROWS:
            self.settle()

    def tend(self) -> None:
        """Finish a file when its first row has waited for PART_SECONDS."""
        if self._held and time.monotonic() - self._since >= PART_SECONDS:
            self.settle()

    def settle(self) -> str | None:
        """Write the held rows to a finished file; return the file's path, None if no rows were held."""
        if not self._held:
            return None
        table = pa.Table.from_batches(self._held, self._kind.schema)
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
        path = f"{self._folder}part-{now}-{secrets.token_hex(6)}.{self._ending}"
        try:
            write_table(table, path)
        except OSError as error:
            raise RocsteadyError(
                f"output {self._folder}: a file of {self._count:,} rows cannot be written "
                f"({error.strerror or error}); make room, or let it be written to"
            ) from None
        self._held, self._count = [], 0
        return path

    def finish(self) -> None:
        """Finish the last file."""
        self.settle()


class WriteParts(beam.PTransform[PCollection[pa.RecordBatch], PCollection[str]]):
    """Writes record batches of a kind into files of a folder; each bundle has its own files. Outputs paths.

    folder  a path or URL that ends in "/"
    ending  "jsonl" or "parquet"
    """

    def __init__(self, folder: str, kind: TableKind, ending: str = PART_FORMATS[0]) -> None:
        super().__init__()
        self._dofn = _WriteParts(f"{everywhere(folder).rstrip('/')}/", kind, ending)

    def expand(self, batches: PCollection[pa.RecordBatch]) -> PCollection[str]:
        """Apply to record batches of the kind."""
        paths: PCollection[str] = batches | "Write" >> beam.ParDo(self._dofn).with_output_types(str)
        return paths


class _WriteParts(beam.DoFn):
    def __init__(self, folder: str, kind: TableKind, ending: str) -> None:
        self._folder = folder
        self._kind = kind
        self._ending = ending

    def start_bundle(self) -> None:
        """Hold nothing."""
        self._parts = PartFiles(self._folder, self._kind, self._ending)

    def process(self, batch: pa.RecordBatch) -> None:
        """Hold a batch."""
        self._parts.write(batch)
        if self._kind.counter is not None:
            count(self._kind.counter, self._kind.number(batch))

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Finish the file of the bundle."""
        if (path := self._parts.settle()) is not None:
            yield GlobalWindows.windowed_value(path)
