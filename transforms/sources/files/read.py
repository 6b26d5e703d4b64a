"""Files as packets of events: in order of position, file by file, or in order of time, as one partition.

Invariant
    For every shard, the packets of a partition are numbered from 0 without a gap, and an `EndOfPartition`
    record holds their number. So a machine can sort the packets, in whatever order a runner delivers them.
    Every record of a file is in one packet or one dead letter.

By position every file is a partition, read in order by one DoFn; files are read in parallel.
By time, one DoFn reads all files together, always from the file with the earliest next time. So a machine
holds only the records that are out of order. The DoFn first reads only the times of every file. Then it knows
the earliest time that may come after each record, and opens a file when the file's first time is due. A file
in order of time needs the memory of a chunk; a file in no order is held whole. Whether a record is late
depends only on its own file; the merged partition has no late records.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.pvalue import PBegin, PCollection, TaggedOutput

from ....core.arrays import Int64Array
from ....core.events.batch import EventBatch
from ....core.events.records import Batch
from ....core.events.times import END_OF_TIME, NO_TIME
from ....core.ids.sharding import Cut, Packets, shard_of
from ...beam import progress
from ...beam.machine import typed
from ...beam.metrics import count_records
from ...events.columns import instants
from ...events.dead_letters import CHUNK_ROWS, Chunk, DeadLetters
from ...events.doubts.classes import tell_classes_at_end
from ...events.doubts.outlying import TimesOfFiles
from ...events.fields import EventFields, Role
from ...events.lateness import ANY_TIME, Timing, time_span
from ...events.periods import column_at
from ...events.validate import validate_as
from ...files.csv_chunks import csv_chunks
from ...files.formats import DAMAGE, SourceFile, parquet_chunks
from .folder_columns import with_folders
from .generated import GENERATED, generated_chunks
from .json_lines import json_chunks
from .listing import column_names


class Piece(NamedTuple):
    """The validated records of a chunk of a file.

    batch       the valid records
    high_water  the greatest time of the file's valid records so far; NO_TIME = none
    letters     dead letters of the other records
    events      the number of all events; a record with several columns of scores is one event for each
    end         the ordinal of the first record after the chunk
    bytes_read  the reader's approximate offset in the file
    """

    batch: Batch
    high_water: int
    letters: DeadLetters
    events: int
    end: int
    bytes_read: int


def read_batches(
    source: SourceFile,
    fields: EventFields | None = None,
    parquet_rows: int = CHUNK_ROWS,
    role: Role = "event",
) -> Iterator[Chunk]:
    """Read a file in order, in bounded memory: in chunks of about 100,000 records.

    A chunk of a Parquet file has `parquet_rows` records. Of a Parquet file, only the columns of `fields` are
    read, so its dead letters show only these columns. Dead letters of other formats show whole records.
    Raises RocsteadyError for a damaged file; the error names the file and the approximate place.
    """
    if fields is None:
        return chunks_of(source, None, None, None, (), parquet_rows)
    columns = fields.columns_of(role)
    return chunks_of(source, columns, columns, None, fields.text_columns_of(role), parquet_rows)


def chunks_of(
    source: SourceFile,
    parquet: Sequence[str] | None,
    lines: Sequence[str] | None,
    csv: Sequence[str] | None,
    text_columns: Sequence[str],
    parquet_rows: int = CHUNK_ROWS,
) -> Iterator[Chunk]:
    """Read a file in chunks, as `read_batches` does, with the columns of the file's folders.

    parquet, lines, csv  the columns that are built of a file of that format; None = all columns. For columns
                         of folders, a file of CSV is read as `parquet` says
    text_columns         see `json_lines.JsonLines`
    """
    wanted = {"parquet": parquet, "jsonl": lines}.get(source.format, csv)
    of_folders = lines if source.format == "jsonl" else parquet
    position = 0
    try:
        for chunk in _own_chunks(source, wanted, text_columns, parquet_rows):
            yield with_folders(chunk, source, of_folders)
            position = chunk.first_position + chunk.records
    except DAMAGE as error:
        raise source.damaged(position, error) from None


def _own_chunks(
    source: SourceFile, wanted: Sequence[str] | None, text_columns: Sequence[str], parquet_rows: int
) -> Iterator[Chunk]:
    """Read a file in chunks, with the wanted columns that the file itself has."""
    if source.format == GENERATED:
        return generated_chunks(source.path)
    if source.format == "parquet":
        return parquet_chunks(source, wanted, parquet_rows)
    if source.format == "jsonl":
        return json_chunks(source, text_columns, wanted)
    return csv_chunks(source, only=wanted)


@dataclass(frozen=True)
class FilePartition:
    """A file as a partition of the input.

    partition     the partition's number, from 0
    role          the role of the records
    fields        the roles of the columns; for labels, with the labels' own columns of time and label
    timing        the limits for times, before the first record
    located       whether the records keep their positions
    parquet_rows  rows of a Parquet file that are read at a time
    """

    source: SourceFile
    partition: int
    role: Role
    fields: EventFields
    timing: Timing = ANY_TIME
    located: bool = False
    parquet_rows: int = CHUNK_ROWS

    def pieces(self, seen: TimesOfFiles) -> Iterator[Piece]:
        """Read the file in pieces, and collect the times for warnings on outlying times.

        Raises RocsteadyError for a damaged file.
        """
        source, timing = self.source, self.timing
        fields = self.fields.resolved(column_names(source) or (), source.stem)
        for chunk in read_batches(source, fields, self.parquet_rows, self.role):
            batch, letters = validate_as(
                self.role, chunk, fields, source.name, self.partition, timing, located=True
            )
            seen.note(self.role, fields.time, batch, letters)
            timing = timing.after(batch)
            if isinstance(batch, EventBatch) and self.role == "event" and not self.located:
                batch = replace(batch, positions=None)
            letters = DeadLetters.concat([chunk.dead, letters])
            yield Piece(
                batch,
                timing.high_water,
                letters,
                len(batch) + len(letters),
                chunk.first_position + chunk.records,
                chunk.bytes_read,
            )

    def least_times(self) -> LeastTimes:
        """Read only the times; return the least time from each chunk's first record on."""
        fields, column = self.fields, self.fields.time or ""
        ends, least = [0], []
        for chunk in chunks_of(self.source, [column], [column], [column], [column]):
            found = times_of(chunk.batch, column, fields.time_unit, fields.time_format)
            found = found[found != NO_TIME]
            least.append(int(found.min()) if len(found) else END_OF_TIME)
            ends.append(chunk.first_position + chunk.records)
        until_end = np.minimum.accumulate(np.array([*least, END_OF_TIME])[::-1])[::-1]
        return LeastTimes(np.array(ends), until_end)


def times_of(batch: pa.RecordBatch, column: str, unit: str, form: str | None) -> Int64Array:
    """Return the times of rows in microseconds; NO_TIME for each row of a batch without the column."""
    place = batch.schema.get_field_index(column)
    return np.full(batch.num_rows, NO_TIME) if place < 0 else instants(column_at(batch, place), unit, form)


class LeastTimes(NamedTuple):
    """The least time of a file's records from record `starts[i]` on: `least[i]`.

    `least[-1]` is for the file's end.
    """

    starts: Int64Array
    least: Int64Array

    def settled(self, position: int) -> int:
        """Return a time that no record from this ordinal on precedes."""
        return int(self.least[np.searchsorted(self.starts, position, "right") - 1])


DEAD_LETTERS = "dead_letters"
_MERGED = "all files, merged by time"
_BEHIND = "behind all files"


class _Reader(beam.DoFn):
    """The base of both readers of files: counts records, and yields dead letters."""

    def __init__(self, shards: int, cut: Cut | None) -> None:
        self._shards = shards
        self._cut = cut

    def teardown(self) -> None:
        """Warn of doubtful classes, because no file follows."""
        tell_classes_at_end()

    def _letters(self, piece: Piece, file: FilePartition, seen: int) -> Iterator[Any]:
        """Count the records of a piece; yield its dead letters."""
        size = piece.bytes_read - seen
        count_records(file.role, piece.events, piece.letters, time_span(piece.batch), size)
        if len(piece.letters):
            yield TaggedOutput(DEAD_LETTERS, piece.letters.batch)


class _ReadFile(_Reader):
    """Reads a file; its outputs are (shard key, record of the shard), and dead letters as record batches.

    If the input is cut off, an extra partition, the last one, carries the marker. The other partitions have
    ended, so that machines apply all events of them. The extra partition never ends, so that no last rows are
    made.
    """

    def __init__(self, shards: int, files: int, cut: Cut | None) -> None:
        super().__init__(shards, cut)
        self._partitions = files + (cut is not None)

    def process(self, file: FilePartition | None) -> Iterator[Any]:
        """Read one file from its start to its end; None stands for the end of all files."""
        if file is None:
            if self._cut is not None:
                last = Packets(_BEHIND, self._partitions - 1, self._partitions, self._shards)
                yield from last.markers(self._cut, None)
            return
        packets = Packets(file.source.name, file.partition, self._partitions, self._shards)
        high_water, seen = NO_TIME, 0
        times = TimesOfFiles()
        for piece in file.pieces(times):
            yield from self._letters(piece, file, seen)
            seen = piece.bytes_read
            high_water = piece.high_water
            yield from packets.split(piece.batch, high_water)
        times.tell()
        progress.add(bytes=file.source.size - seen, files=1)
        yield from packets.ends(high_water)


@dataclass
class _OpenFile:
    """A file that is open for the merge; `seen` bytes of it have been read."""

    file: FilePartition
    least: LeastTimes
    pieces: Iterator[Piece]
    seen: int = 0

    def settled(self, piece: Piece) -> int:
        """Return the time before which the file has no later record, after a piece without late records."""
        settled = self.least.settled(piece.end)
        lateness, high_water = self.file.timing.lateness, piece.high_water
        if lateness is not None and high_water != NO_TIME:
            settled = max(settled, high_water - lateness)
        return settled


class _MergeFiles(_Reader):
    """Reads all files as one partition, in order of time as far as bounded memory allows."""

    def process(self, files: Sequence[FilePartition]) -> Iterator[Any]:
        """Read all files together, always from the file with the earliest next time."""
        packets = Packets(_MERGED, 0, 1, self._shards)
        times = TimesOfFiles()
        # each with the time that no later record of the file precedes
        waiting: list[tuple[int, int, _OpenFile]] = []
        for number, file in enumerate(files):
            least = file.least_times()
            heapq.heappush(waiting, (least.settled(0), number, _OpenFile(file, least, file.pieces(times))))
        high_water = told = NO_TIME
        while waiting:
            _, number, current = heapq.heappop(waiting)
            piece = next(current.pieces, None)
            if piece is None:
                progress.add(bytes=current.file.source.size - current.seen, files=1)
            else:
                yield from self._letters(piece, current.file, current.seen)
                current.seen = piece.bytes_read
                high_water = max(high_water, piece.high_water)
                yield from packets.split(piece.batch, high_water)
                heapq.heappush(waiting, (current.settled(piece), number, current))
            if waiting and told < waiting[0][0] < END_OF_TIME:  # END_OF_TIME ends the partition
                told = waiting[0][0]
                yield from packets.heartbeats(told, high_water)
        times.tell()
        if self._cut is None:
            yield from packets.ends(high_water)
            return
        lateness = min((file.timing.lateness or 0 for file in files), default=0)
        settled = told if high_water == NO_TIME else max(told, high_water - lateness)
        yield from packets.markers(self._cut, [file.source.name for file in files], settled, high_water)


class EventFiles(NamedTuple):
    """The outputs of `ReadEventFiles`.

    packets       (shard key, packed record); a record is a batch, `Heartbeat`, `StateMarker` or
                  `EndOfPartition`
    dead_letters  record batches with DEAD_LETTER_SCHEMA
    """

    packets: PCollection[tuple[str, bytes]]
    dead_letters: PCollection[pa.RecordBatch]


class ReadEventFiles(beam.PTransform[PBegin, EventFiles]):
    """Reads files into packets for `EvaluateShards`, in the order given or merged by time.

    Counts in Beam's metrics, namespace "rocsteady": `events_read` (all records), and among these records
    `dead_letters` and `late`. `event_seconds` has the least and the greatest time, in seconds since 1970.
    Files that are not merged are read in parallel, each file by one worker from start to end.

    parquet_rows  the rows of a Parquet file that are read together. With more rows, an event costs less time,
                  but all results of these rows are in memory together.
    merged        whether the files are merged by time, as one partition.
    timing        the limits for times.
    located       whether events keep their positions, so that a machine can name an event that it refuses.
    cut           a request for the states of the shards; the input then does not end
    """

    def __init__(
        self,
        sources: Sequence[SourceFile],
        fields: EventFields,
        shards: int,
        parquet_rows: int = CHUNK_ROWS,
        *,
        merged: bool = False,
        timing: Timing = ANY_TIME,
        located: bool = False,
        cut: Cut | None = None,
    ) -> None:
        super().__init__()
        shard_of((), shards)  # raises ConfigError for shards of models
        files = [
            FilePartition(source, number, "event", fields, timing, located, parquet_rows)
            for number, source in enumerate(sources)
        ]
        self._read = ReadFiles(files, shards, merged=merged, cut=cut)

    def expand(self, begin: PBegin) -> EventFiles:
        """Apply to the beginning of a pipeline."""
        events: EventFiles = begin | "Read" >> self._read
        return events


class ReadFiles(beam.PTransform[PBegin, EventFiles]):
    """Reads files of events, predictions and labels, each file as a partition, or all merged by time."""

    def __init__(
        self, files: Sequence[FilePartition], shards: int, *, merged: bool, cut: Cut | None = None
    ) -> None:
        super().__init__()
        self._files = list(files)
        self._shards = shards
        self._merged = merged
        self._cut = cut

    def expand(self, begin: PBegin) -> EventFiles:
        """Apply to the beginning of a pipeline."""
        files, shards, cut = self._files, self._shards, self._cut
        reader = _MergeFiles(shards, cut) if self._merged else _ReadFile(shards, len(files), cut)
        parts: list[Any] = [tuple(files)] if self._merged else [*files, *([] if cut is None else [None])]
        outputs = (
            begin
            | "Files" >> beam.Create(parts)  # spreads the parts over the workers
            | "Read" >> with_dead_letters(beam.ParDo(reader))
        )
        return event_files(outputs)


def with_dead_letters(step: Any) -> Any:
    """Return a step that reads packets, with two outputs: packets and dead letters."""
    return step.with_output_types(tuple[str, bytes]).with_outputs(DEAD_LETTERS, main="packets")


def event_files(outputs: Any) -> EventFiles:
    """Return the outputs of a step that `with_dead_letters` made."""
    return EventFiles(outputs["packets"], typed(outputs[DEAD_LETTERS], "Map(_same)", pa.RecordBatch))
