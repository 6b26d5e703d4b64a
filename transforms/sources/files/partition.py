"""A file as a partition of the input: its records in pieces.

A file of events, predictions or labels is read in order and validated, chunk by chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ....core.arrays import Int64Array
from ....core.events.records import Batch
from ....core.events.times import END_OF_TIME, NO_TIME
from ....core.ids.sharding import with_packet
from ...events.chunk import Chunk
from ...events.columns import instants
from ...events.dead_letters import DeadLetters
from ...events.fields import EventFields, Role
from ...events.lateness import ANY_TIME, Timing
from ...events.validate import validate_as
from ...files.csv import csv_chunks
from ...files.formats import CHUNK_ROWS, DAMAGE, SourceFile, parquet_chunks
from .generated import GENERATED, generated_chunks
from .json_lines import json_chunks
from .listing import column_names


class Piece(NamedTuple):
    """The validated records of a chunk of a file.

    batch       the valid records, as a packet without a number; its high_water is the partition's so far
    letters     dead letters of the other records
    records     the number of all records
    end         the ordinal of the first record after the chunk
    bytes_read  the reader's approximate offset in the file
    """

    batch: Batch
    letters: DeadLetters
    records: int
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
    """Read a file in chunks, as `read_batches` does.

    parquet, lines, csv  the columns that are built of a file of that format; None: all columns
    text_columns         see `json_lines.JsonLines`
    """
    if source.format == GENERATED:
        chunks = generated_chunks(source.path)
    elif source.format == "parquet":
        chunks = parquet_chunks(source, parquet, parquet_rows)
    elif source.format == "jsonl":
        chunks = json_chunks(source, text_columns, lines)
    else:
        chunks = csv_chunks(source, only=csv)
    position = 0
    try:
        for chunk in chunks:
            yield chunk
            position = chunk.first_position + chunk.records
    except DAMAGE as error:
        raise source.damaged(position, error) from None


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

    def pieces(self) -> Iterator[Piece]:
        """Read the file in pieces. Raises RocsteadyError for a damaged file."""
        source, timing = self.source, self.timing
        fields = self.fields.resolved(column_names(source) or (), source.stem)
        for chunk in read_batches(source, fields, self.parquet_rows, self.role):
            batch, letters = validate_as(
                self.role, chunk, fields, source.name, self.partition, timing, self.located
            )
            timing = timing.after(batch)
            yield Piece(
                with_packet(batch, high_water=timing.high_water),
                DeadLetters.concat([chunk.dead, letters]),
                chunk.records,
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
    return np.full(batch.num_rows, NO_TIME) if place < 0 else instants(batch.column(place), unit, form)


class LeastTimes(NamedTuple):
    """The least time of a file's records from record `starts[i]` on; `least[-1]` is for the file's end."""

    starts: Int64Array
    least: Int64Array

    def settled(self, position: int) -> int:
        """Return a time; no record from this ordinal on is earlier than this time."""
        return int(self.least[np.searchsorted(self.starts, position, "right") - 1])
