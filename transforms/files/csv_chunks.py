"""CSV and TSV files as chunks of records, each with its position, read by Arrow.

Invariant
    Every record of a file is in exactly one chunk, at its position: as a row of the batch, or as a dead
    letter. A dead letter is for a record with a wrong number of fields, or with bytes that are not UTF-8. No
    record becomes text of a quoted field that is never closed: `csv_text` ends the file before such a field,
    and the reader raises an error. A chunk bounds the memory, for files of any length.

Positions are 0-based ordinals of records; headers and blank lines are not records.
"""

from __future__ import annotations

import csv
import json
import re
import time
import traceback
import weakref
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ...core.errors import InputError, RocsteadyError
from ...core.events.rejected import Reason
from ..events.dead_letters import CHUNK_ROWS, Chunk, DeadLetter, DeadLetters
from ..events.text import json_objects
from .csv_quotes import CsvFault, cut_records, first_record, lines_in
from .csv_text import NO_TEXT, RecordStream
from .formats import HEAD_BYTES, SourceFile, unpacked
from .lines import MARK, SHOWN_BYTES

_LET_GO_SECONDS = 1.0
"""The most seconds to wait until Arrow's thread releases a stream; usually the wait is some microseconds."""


def text_head(source: SourceFile) -> bytes:
    """Return the first MiB of a text file, unpacked, without a byte order mark."""
    with unpacked(source) as (stream, _):
        return stream.read(HEAD_BYTES).removeprefix(MARK)


def csv_header(source: SourceFile) -> list[str]:
    """Return the names in the first record; an empty list for a file without records.

    Raises InputError if a quote in the header swallows the records.
    """
    head = text_head(source)
    end, opener, what = cut_records(head, source.delimiter.encode(), is_last=len(head) < HEAD_BYTES - 3)
    is_one_record = opener < 0 and not end
    text = (head if is_one_record else head[:end]).decode("utf-8", "surrogateescape")
    try:
        names = first_record(re.sub("[\udc80-\udcff]", NO_TEXT, text), source.delimiter)
    except csv.Error as error:
        raise InputError(f"{source.name} has no readable header: {error}") from None
    if not names and opener >= 0:
        raise InputError(CsvFault(lines_in(head[:opener]) + 1, what).of(source.name))
    return names


def _csv_block_bytes(source: SourceFile) -> int:
    head = text_head(source)
    return int(min(max(CHUNK_ROWS * len(head) / (head.count(b"\n") + 1), 4 << 20), 32 << 20))


def csv_chunks(
    source: SourceFile, block_bytes: int | None = None, only: Sequence[str] | None = None
) -> Iterator[Chunk]:
    """Read a CSV or TSV file with a header, every column as text; only an empty cell is a missing value.

    Columns that are not in `only` are not built; rows may then have text that is not UTF-8 in those columns.
    Raises RocsteadyError after the last whole record, if a quote swallows all records behind it.
    """
    options = (
        pa.csv.ReadOptions(use_threads=False, block_size=block_bytes or _csv_block_bytes(source)),
        pa.csv.ConvertOptions(
            check_utf8=False,  # `RecordStream` gives only UTF-8
            column_types=dict.fromkeys(csv_header(source), pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            include_columns=list(only or ()),
            include_missing_columns=True,
        ),
    )
    position = 0
    with unpacked(source) as (bytes_of_file, raw), CsvBatches(bytes_of_file, source) as batches:
        refused = batches.refused
        for batch in batches.read(*options):
            end, gaps = position + batch.num_rows, 0
            while gaps < len(refused) and refused[gaps][0] <= end:
                end, gaps = end + 1, gaps + 1
            skipped, refused[:gaps] = refused[:gaps], []
            positions = None
            if skipped:
                positions = np.setdiff1d(np.arange(position, end), [place for place, _ in skipped])
            dead = DeadLetters.of(letter for _, letter in skipped)
            chunk = Chunk(position, batch, positions, dead, raw.tell())
            yield _without_bad_text(source, chunk) if batches.replaced else chunk
            position = end
        fault = batches.fault
    if fault is not None:
        raise RocsteadyError(fault.of(source.name))


class CsvBatches:
    """Arrow's reader of CSV on a stream of bytes; a context that ends when Arrow's thread releases it.

    `arrow_buffer` explains why the context must wait for that thread.

    refuses   whether a record with a wrong number of fields is a dead letter; else Arrow raises an error
    refused   the position and the dead letter of each record that is no row, in the order found; the caller
              removes them
    replaced  whether any byte was not UTF-8
    fault     the reason why the records end before the text does; None, if they do not
    """

    def __init__(self, raw: BinaryIO, source: SourceFile, *, refuses: bool = True) -> None:
        refused: list[tuple[int, DeadLetter]] = []

        def refuse(row: pa.csv.InvalidRow) -> str:
            # With one thread, arrow numbers the records; the header has the number 1.
            refused.append((row.number - 2, _misfit(source, row)))
            return "skip"

        self.refused = refused
        self._stream: RecordStream | None = RecordStream(raw, source.delimiter)
        self._parse = pa.csv.ParseOptions(
            delimiter=source.delimiter,
            newlines_in_values=True,
            invalid_row_handler=refuse if refuses else None,
        )
        self._reader: pa.csv.CSVStreamingReader | None = None
        self._lent = weakref.ref(self._stream), weakref.ref(refuse)

    @property
    def replaced(self) -> bool:
        """Whether any byte was not UTF-8."""
        return self._stream is not None and self._stream.replaced

    @property
    def fault(self) -> CsvFault | None:
        """The reason why the records end before the text does; None if they do not."""
        return None if self._stream is None else self._stream.fault

    def read(self, how: pa.csv.ReadOptions, types: pa.csv.ConvertOptions) -> Iterator[pa.RecordBatch]:
        """Yield the batches; no batch for a file that is only a header without a newline.

        The last batch is empty if records were refused after the last row.
        """
        try:
            self._reader = pa.csv.open_csv(pa.PythonFile(self._stream, mode="r"), how, self._parse, types)
        except pa.ArrowInvalid as error:
            if "Empty CSV" in str(error):
                return
            raise
        yield from self._reader
        if self.refused:
            yield pa.RecordBatch.from_pylist([], schema=self._reader.schema)

    def __enter__(self) -> CsvBatches:
        return self

    def __exit__(self, _kind: object, _error: object, trace: TracebackType | None) -> None:
        self._stream = self._reader = self._parse = None
        traceback.clear_frames(trace)  # an error of the stream holds the stream as a local of its frames
        end = time.monotonic() + _LET_GO_SECONDS
        while any(lent() is not None for lent in self._lent) and time.monotonic() < end:
            time.sleep(0.0001)


def _misfit(source: SourceFile, row: pa.csv.InvalidRow) -> DeadLetter:
    """Return the dead letter of a record whose number of fields differs from the header's."""
    fields = row.actual_columns
    detail = f"{fields} field{'' if fields == 1 else 's'} where the header names {row.expected_columns}"
    raw = _fields_text(row.text, source.delimiter)
    return DeadLetter.invalid(Reason.WRONG_NUMBER_OF_FIELDS, source.name, detail, row.number - 2, raw)


def _fields_text(text: str, delimiter: str) -> str:
    """Return the fields of a row as JSON; only the first fields of a long row."""
    shown = text[:SHOWN_BYTES]
    raw = json.dumps(first_record(shown, delimiter), ensure_ascii=False).replace(NO_TEXT, "\ufffd")
    return raw if shown == text else f"{raw}... ({len(text):,} characters)"


def _without_bad_text(source: SourceFile, chunk: Chunk) -> Chunk:
    """Move the rows with a cell that is not UTF-8 to the dead letters."""
    batch = chunk.batch
    columns: dict[int, list[str]] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_string(column.type):
            found = pc.fill_null(pc.match_substring(column, NO_TEXT), False)
            for row in np.flatnonzero(np.asarray(found)).tolist():
                columns.setdefault(row, []).append(name)
    if not columns:
        return chunk
    rows = sorted(columns)
    positions = np.asarray(chunk.places())
    raw = json_objects(batch.take(pa.array(rows))).to_pylist()
    letters = (
        DeadLetter.invalid(
            Reason.NOT_UTF8,
            source.name,
            "; ".join(f"{name}: not UTF-8" for name in columns[row]),
            int(positions[row]),
            text.replace(NO_TEXT, "\ufffd"),
            columns[row][0],
        )
        for row, text in zip(rows, raw, strict=True)
    )
    dead = DeadLetters.of(letters)
    keep = np.setdiff1d(np.arange(batch.num_rows), rows)
    return chunk._replace(
        batch=batch.take(pa.array(keep)),
        positions=positions[keep],
        dead=DeadLetters.concat([chunk.dead, dead]),
    )
