"""Files as packets of events: every file is one partition, read in order by one DoFn.

Invariant
    For every shard, the packets of a file are numbered from 0 without a gap, in the order of the file,
    and an `EndOfPartition` says how many there were. So a machine can put them in order whatever a
    runner does on the way. Every record of a file is in one packet or one dead letter.

What can be known before the job starts is checked by `list_sources` and `check_columns`.
"""

from __future__ import annotations

import difflib
import glob
import gzip
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet
from apache_beam.io.filesystems import FileSystems
from apache_beam.metrics.metric import Metrics
from apache_beam.pvalue import PBegin, PCollection, TaggedOutput

from ..core.errors import InputError
from ..core.events import NO_TIME
from ..core.records import EndOfPartition
from . import progress
from .dead_letters import DeadLetters
from .event_fields import OPTIONS, EventFields
from .file_formats import (
    CHUNK_ROWS,
    DAMAGE,
    FORMATS,
    NO_TEXT,
    Chunk,
    SourceFile,
    csv_chunks,
    csv_header,
    has_scheme,
    parquet_chunks,
    stem_of,
)
from .json_lines import json_chunks, json_columns
from .metrics import METRICS_NAMESPACE, letter_metrics
from .sharding import shard_key, shard_of, split_by_shard
from .validate import validate

DEAD_LETTERS = "dead_letters"
_ENDINGS = ".csv, .tsv, .jsonl, .json, each also with .gz, or .parquet"


def list_sources(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> tuple[SourceFile, ...]:
    """Find the files that paths and globs name, each once, sorted by name.

    A file of several names, such as a link's, is taken by the first of them. Raises InputError where a path
    is missing, no regular file, empty or unreadable, has another ending, or where a glob matches nothing.
    """
    asked = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not asked:
        raise InputError("no input is given; name one or more files")
    found = (source for path in asked for source in _matches(os.fspath(path)))
    unique: dict[object, SourceFile] = {}
    for source in sorted(found, key=lambda source: source.path):
        unique.setdefault(_identity(source.path), source)
    return tuple(unique.values())


def _identity(path: str) -> object:
    """Return what is the same for every name of one file: links, and paths from different folders."""
    if has_scheme(path):
        return path
    found = os.stat(path)  # noqa: PTH116 - as `Path.stat`
    return (found.st_dev, found.st_ino) if found.st_ino else os.path.realpath(path)


def _matches(path: str) -> Iterator[SourceFile]:
    if has_scheme(path):
        try:
            matches = FileSystems.match([path])[0].metadata_list
        except Exception as error:
            raise InputError(f"{path} cannot be listed: {error}") from None
        if not matches:
            raise InputError(f"{path} matches no file; check the name")
        yield from (_source_file(found.path, found.size_in_bytes) for found in matches)
        return
    names = [path]
    if not os.path.lexists(path) and glob.has_magic(path):
        found = glob.glob(path, recursive=True)  # noqa: PTH207 - Path.glob knows no absolute patterns
        names = [name for name in found if not Path(name).is_dir()]
        if not names:
            raise InputError(f"{path} matches no file; check the pattern, and quote it for the shell")
    for name in names:
        yield _local_file(os.path.normpath(name))


def _local_file(path: str) -> SourceFile:
    file = Path(path)
    if not file.exists():
        names = {stem_of(name): name for name in sorted(_neighbours(file.parent), reverse=True)}
        near = difflib.get_close_matches(stem_of(path), names, 1, cutoff=0.8)
        there = f"; there is {file.with_name(names[near[0]])}" if near else ""
        raise InputError(f"{path} does not exist{there}")
    if file.is_dir():
        raise InputError(f"{path} is a folder; name its files, such as {file / '*.csv'}")
    if not file.is_file():  # to open a pipe would wait for its other end
        raise InputError(f"{path} is a pipe or a device; write its records to a file, and name that")
    try:
        with file.open("rb"):
            size = file.stat().st_size
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    return _source_file(path, size)


def _neighbours(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir() if entry.is_file()]
    except OSError:
        return []


def _source_file(path: str, size: int) -> SourceFile:
    name = path.lower()
    gzipped = name.endswith(".gz")
    ending = Path(name.removesuffix(".gz")).suffix
    form = FORMATS.get(ending)
    if form is None or (form == "parquet" and gzipped):
        raise InputError(f"{path} has an ending that is not known; input is {_ENDINGS}")
    if size == 0:
        raise InputError(f"{path} is empty (0 bytes); a file without events has at least a header")
    return SourceFile(path, form, gzipped, size)


def columns_of(source: SourceFile) -> list[str] | None:
    """Return the columns by the file's head; None where it has no record to tell them by."""
    try:
        if source.format == "parquet":
            with source.open() as raw:
                names: list[str] | None = pa.parquet.ParquetFile(raw).schema_arrow.names
        else:
            names = json_columns(source) if source.format == "jsonl" else csv_header(source)
    except pa.ArrowInvalid as error:
        raise InputError(f"{source.name} is not a Parquet file, or is damaged: {error}") from None
    except gzip.BadGzipFile:
        raise InputError(
            f"{source.name} ends in .gz and is not compressed; rename it, or compress it with gzip"
        ) from None
    except DAMAGE as error:
        raise InputError(f"{source.name} cannot be read: {error}") from None
    if names is not None and any(NO_TEXT in name for name in names):
        raise InputError(f"{source.name} is not UTF-8; convert it, for example with iconv -t UTF-8")
    if names == []:
        raise InputError(f"{source.name} names no columns; its first line must be a header")
    return names


def check_columns(sources: Sequence[SourceFile], fields: EventFields) -> None:
    """Open the head of every file and see that the columns are there, each once.

    JSON lines are judged by their first MiB. Raises InputError, which names the file, what it has, the
    nearest name, and the option that mends it.
    """
    for source in sources:
        names = columns_of(source)
        if names is None:
            continue
        for role, column in fields.resolved(names, source.stem).roles:
            if names.count(column) > 1:
                raise InputError(
                    f"{source.name} has {names.count(column)} columns named {column!r}; "
                    "give each its own name"
                )
            if column not in names:
                shown = ", ".join(names[:30]) + (", ..." if len(names) > 30 else "")
                near = difflib.get_close_matches(column, names, 1)
                meant = f" (did you mean {near[0]!r}?)" if near else ""
                raise InputError(
                    f"{source.name} has no column {column!r}{meant}; it has {shown}. "
                    f"Say which with {OPTIONS[role]} COL"
                )


def read_batches(
    source: SourceFile, fields: EventFields | None = None, parquet_rows: int = CHUNK_ROWS
) -> Iterator[Chunk]:
    """Read a file in chunks of about 100,000 records, of Parquet `parquet_rows`, in order, in bounded memory.

    `fields` says which columns matter: of a Parquet file only those are read (so dead letters from it
    show only those; of other formats they show whole records). Raises RocsteadyError, which names the file
    and about where, for a damaged file.
    """
    chunks: Iterator[Chunk]
    if source.format == "parquet":
        chunks = parquet_chunks(source, None if fields is None else fields.columns, parquet_rows)
    elif source.format == "jsonl":
        columns = None if fields is None else fields.columns
        numbers = () if fields is None else fields.number_columns
        text_columns = [column for column in columns or () if column not in numbers]
        chunks = json_chunks(source, text_columns, columns)
    else:
        chunks = csv_chunks(source)
    position = 0
    try:
        for chunk in chunks:
            yield chunk
            position = chunk.first_position + chunk.records
    except DAMAGE as error:
        raise source.damaged(position, error) from None


class _ReadFile(beam.DoFn):
    """(partition, file) -> (shard key, record of the shard), and dead letters as record batches."""

    def __init__(self, fields: EventFields, shards: int, partitions: int, parquet_rows: int) -> None:
        self._fields = fields
        self._shards = shards
        self._partitions = partitions
        self._parquet_rows = parquet_rows
        self._events = Metrics.counter(METRICS_NAMESPACE, "events_read")
        self._dead = Metrics.counter(METRICS_NAMESPACE, "dead_letters")
        self._seconds = Metrics.distribution(METRICS_NAMESPACE, "event_seconds")
        self._kinds: dict[str, Any] = {}

    def process(self, element: tuple[int, SourceFile]) -> Iterator[Any]:
        partition, source = element
        fields = self._fields.resolved(columns_of(source) or (), source.stem)
        sent = [0] * self._shards
        high_water = NO_TIME
        seen = 0
        for chunk in read_batches(source, fields, self._parquet_rows):
            events, letters = validate(
                chunk.batch,
                fields,
                source=source.name,
                partition=partition,
                first_position=chunk.first_position,
                positions=chunk.positions,
                raw=chunk.raw,
            )
            dead = DeadLetters.concat([chunk.dead, letters])
            if len(dead):
                yield TaggedOutput(DEAD_LETTERS, dead.batch)
            self._events.inc(chunk.records)
            self._dead.inc(len(dead))
            for kind, position in dead.kinds():
                metric = self._kinds.get(kind)
                if metric is None:
                    metric = self._kinds[kind] = Metrics.distribution(letter_metrics("invalid"), kind)
                metric.update(position)
            progress.add(records=chunk.records, dead_letters=len(dead), bytes=chunk.bytes_read - seen)
            seen = chunk.bytes_read
            high_water = max(high_water, events.high_water)
            if events.times is not None and len(events):
                for micros in (events.times.min(), events.times.max()):
                    self._seconds.update(int(micros) // 1_000_000)
            events = replace(events, high_water=high_water)
            for shard, part in split_by_shard(events, self._shards):
                yield shard_key(shard), replace(part, sequence=sent[shard]).pack()
                sent[shard] += 1
        progress.add(bytes=source.size - seen, files=1)
        for shard, packets in enumerate(sent):
            end = EndOfPartition(source.name, partition, self._partitions, packets, high_water)
            yield shard_key(shard), end.pack()


class EventFiles(NamedTuple):
    """What `ReadEventFiles` gives.

    packets       of (shard key, packed `EventBatch` or `EndOfPartition`)
    dead_letters  of record batches with DEAD_LETTER_SCHEMA
    """

    packets: PCollection[tuple[str, bytes]]
    dead_letters: PCollection[pa.RecordBatch]


class ReadEventFiles(beam.PTransform[PBegin, EventFiles]):
    """Reads files into packets for `EvaluateShards`, one partition to a file, in the order given.

    Counts in Beam's metrics, namespace "rocsteady": `events_read` (all records), and among them
    `dead_letters`; `event_seconds` are the least and the greatest time, seconds since 1970. Files are read in
    parallel, each by one worker from its start to its end.

    parquet_rows  of Parquet that are read at a time. The more events of a model come together, the less an
                  event costs; but all that comes of them is in memory at once
    """

    def __init__(
        self,
        sources: Sequence[SourceFile],
        fields: EventFields,
        shards: int,
        parquet_rows: int = CHUNK_ROWS,
    ) -> None:
        super().__init__()
        shard_of((), shards)  # raises ConfigError
        self._parquet_rows = parquet_rows
        self._sources = tuple(sources)
        self._fields = fields
        self._shards = shards

    def expand(self, begin: PBegin) -> EventFiles:
        """Apply to the beginning of a pipeline."""
        read = _ReadFile(self._fields, self._shards, len(self._sources), self._parquet_rows)
        outputs = (
            begin
            | "Files" >> beam.Create(list(enumerate(self._sources)))
            | "Spread" >> beam.Reshuffle()
            | "Read"
            >> beam.ParDo(read)
            .with_output_types(tuple[str, bytes])
            .with_outputs(DEAD_LETTERS, main="packets")
        )
        letters = outputs[DEAD_LETTERS] | beam.Map(_same).with_output_types(pa.RecordBatch)
        return EventFiles(outputs["packets"], letters)


def _same(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch
