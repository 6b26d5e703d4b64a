"""Opens the sink of a table by the form of its path: a topic, a folder of parts, or a file.

kafka://host:port/topic   each record is sent at once, as one message.
rows/                     files that are finished one after another.
rows.jsonl, ...           one file.

Files grow while a job runs: rows are in the file, or on stdout, as soon as they are made. Files of lines
(.jsonl, .csv) grow by appended lines (`appended`). Parquet and compressed files are either complete or
absent: they are written at the end, sorted, as in a bounded job. Until then, their rows are in the system's
temporary folder.

A folder whose number of files grows, for jobs without an end:

Invariant
    A file under its final name is complete and never changes: it is written under a hidden name, flushed to
    the disk and renamed. A bundle writes its rows into files of its own before the bundle ends. So a repeated
    bundle repeats whole rows and never leaves a part of a row. A reader recognises repeated rows by their
    identity (`table_rows`).

A name is part-<time>-<random>.<format>, so the names sort roughly in the order in which the files were
written. A process that is killed leaves a hidden file (".part-...tmp"), which may be deleted.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, cast

import apache_beam as beam
import pyarrow as pa
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from ...core.errors import ConfigError, InputError, RocsteadyError
from ..beam.metrics import count
from ..files.formats import everywhere, has_scheme
from ..kafka.client import check_topic
from ..kafka.topic import KafkaTopic, is_kafka
from .appended import STDOUT, AppendedTable
from .kafka import KafkaWriter, WriteKafka, checked_topic
from .kinds import TableKind, TableSink, sorted_table
from .table import (
    WriteSortedTable,
    check_output,
    check_url,
    try_folder,
    write_table,
)


def is_appendable(path: str) -> bool:
    """Return whether a file can be read while it is written, by the ending of its name.

    >>> [is_appendable(name) for name in ("-", "rows.jsonl", "rows.CSV", "rows.csv.gz", "rows.parquet")]
    [True, True, True, False, False]
    """
    return path == STDOUT or path.lower().endswith((".csv", ".jsonl"))


_GATHERED = 10_000
"""Rows that are kept in memory before they are written together: any batch takes at least about 10 KB."""


class TableAtEnd(TableSink):
    """A file that `finish` writes, complete and sorted, as `table` describes."""

    def __init__(self, path: str, kind: TableKind, *, csv_safe: bool = False) -> None:
        self._path = path
        self._csv_safe = csv_safe
        self._kind = kind
        self._gathered: list[pa.RecordBatch] = []
        self._count = 0
        self._spill = cast(BinaryIO, tempfile.TemporaryFile(prefix="rocsteady-"))  # noqa: SIM115
        self._stream = pa.ipc.new_stream(self._spill, kind.schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Store the rows until `finish`."""
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


def open_table(path: str, kind: TableKind, *, csv_safe: bool = False, resumes: bool = False) -> TableSink:
    """Return the sink for a file by its ending, or for stdout; `resumes`: see `AppendedTable`."""
    if is_appendable(path):
        return AppendedTable(path, kind, csv_safe=csv_safe, resumes=resumes)
    return TableAtEnd(path, kind, csv_safe=csv_safe)


PART_FORMATS = ("jsonl", "parquet")
PART_ROWS = 100_000
"""The approximate most rows of a file. So many rows take 40 MB of memory."""
PART_SECONDS = 10.0
"""The most seconds that a row waits until its file is finished; the end of a bundle finishes it sooner."""


def is_folder(path: str) -> bool:
    """Return whether a path names a folder of parts: a slash at its end says so.

    >>> is_folder("rows/"), is_folder("gs://bucket/rows/"), is_folder("rows.jsonl")
    (True, True, False)
    """
    return path.endswith(("/", os.sep))


def check_folder(path: str) -> None:
    """Check, before a job starts, that files can be written into a folder; make a missing folder.

    Raises InputError if the path is a file, or if the folder cannot be made or written to.
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

    Raises RocsteadyError if a file cannot be written: its final name then does not exist.
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
        """Finish a file if its first row has waited for PART_SECONDS."""
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
        """Begin without rows."""
        self._parts = PartFiles(self._folder, self._kind, self._ending)

    def process(self, batch: pa.RecordBatch) -> None:
        """Hold the rows of a batch."""
        self._parts.write(batch)
        if self._kind.counter is not None:
            count(self._kind.counter, self._kind.number(batch))

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Finish the file of the bundle."""
        if (path := self._parts.settle()) is not None:
            yield GlobalWindows.windowed_value(path)


@dataclass(frozen=True)
class SinkOptions:
    """Options for writing topics and folders, for all outputs of a job.

    kafka        options of librdkafka, "key=value" or "@FILE"; they may hold a password
    part_format  the format of the files in a folder.
    csv_safe     whether text in CSV files gets an apostrophe if a spreadsheet would run it as a formula.
    """

    kafka: tuple[str, ...] = ()
    part_format: str = PART_FORMATS[0]
    csv_safe: bool = False


PLAIN_SINKS = SinkOptions()


def is_streamed(path: str) -> bool:
    """Return whether a sink has records before a job ends, and keeps them if the job fails.

    >>> is_streamed("kafka://localhost:9092/rows"), is_streamed("rows/"), is_streamed("rows.csv")
    (True, True, False)
    """
    return is_kafka(path) or is_folder(path)


def check_sink(path: str, options: SinkOptions, what: str) -> None:
    """Check, before a job starts, that a path can be written.

    what  the option and the path, with which each error about a topic begins

    Raises ConfigError, InputError or MissingPackageError.
    """
    if is_kafka(path):
        try:
            topic = KafkaTopic.parse(path, options.kafka)
        except ConfigError as mistake:
            raise ConfigError(str(mistake).replace(path, what, 1)) from None
        check_topic(checked_topic(topic), what)
    elif is_folder(path):
        check_folder(path)
    else:
        check_output(path)


def open_sink(path: str, kind: TableKind, options: SinkOptions, *, resumes: bool = False) -> TableSink:
    """Return the sink of a job that runs in this process.

    It takes record batches in the order in which they are made.

    resumes  whether rows are appended to a file that has the earlier rows of the job
    """
    if is_kafka(path):
        return KafkaWriter(KafkaTopic.parse(path, options.kafka), kind)
    if is_folder(path):
        return PartFiles(path, kind, options.part_format)
    return open_table(path, kind, csv_safe=options.csv_safe, resumes=resumes)


def write_batches(
    path: str, kind: TableKind, options: SinkOptions
) -> beam.PTransform[PCollection[pa.RecordBatch], PCollection[str]]:
    """Return the transform that writes a Beam job's record batches. A file is written at the end, sorted."""
    if is_kafka(path):
        return WriteKafka(path, options.kafka)
    if is_folder(path):
        return WriteParts(path, kind, options.part_format)
    return WriteSortedTable(path, kind, csv_safe=options.csv_safe)
