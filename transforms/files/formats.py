"""Input files, and CSV and Parquet as chunks of records, each with its position.

Invariant
    Every record of a file is in exactly one chunk, at its position: as a row of the batch, or as a dead
    letter. A dead letter has a wrong number of fields, or bytes that are not UTF-8.
    A chunk bounds the memory, for files of any length.

Positions are 0-based ordinals of records; headers and blank lines are not records. For JSON lines, see
`sources.files.json_lines`.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import os
import re
import time
import traceback
import weakref
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from ...core.errors import InputError, RocsteadyError
from ...core.events.rejected import Reason
from ..events.dead_letters import CHUNK_ROWS, NO_LETTERS, Chunk, DeadLetter, DeadLetters
from ..events.text import json_objects
from .lines import SHOWN_BYTES

_PARQUET_BUFFER_BYTES = 1 << 20
"""Bytes of a column that are read ahead. Without a buffer, Arrow keeps the bytes of every row group
(pyarrow 25, a file of 94 MB: 94 MB without a buffer, 12 MB with it)."""

FORMATS = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".jsonl": "jsonl", ".json": "jsonl"}
HEAD_BYTES = 1 << 20
LET_GO_SECONDS = 1.0
"""The most seconds to wait until Arrow's thread releases a stream; usually some microseconds."""

DAMAGE = (pa.ArrowException, OSError, EOFError, zlib.error, UnicodeDecodeError)
"""The errors that a reader raises for a file that is cut short, corrupt, or gone."""

NO_TEXT = "\ufdd0"
"""A code point that text never has; it replaces a byte that is not UTF-8."""


def has_scheme(path: str) -> bool:
    """Tell a URL such as gs://bucket/x.csv from a path on this machine."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path) is not None


def everywhere(path: str) -> str:
    """Return an absolute path: a runner's processes may have other working folders."""
    return path if has_scheme(path) else str(Path(path).absolute())


def stem_of(path: str) -> str:
    """Return a file's name without its folder and endings.

    >>> stem_of("scores/churn.csv.gz")
    'churn'
    """
    name = PurePosixPath(path.replace("\\", "/")).name
    for ending in (".gz", *FORMATS):
        if name.lower().endswith(ending):
            name = name[: -len(ending)]
    return name


@dataclass(frozen=True)
class SourceFile:
    """One input file: its path or URL, its format ("csv", "tsv", "jsonl", "parquet"), its size in bytes."""

    path: str
    format: str
    gzipped: bool
    size: int

    @property
    def name(self) -> str:
        r"""The path as text; bytes in it that are not UTF-8 are shown as "\xe9"."""
        return os.fsencode(self.path).decode("utf-8", "backslashreplace")

    @property
    def stem(self) -> str:
        """The file's name without its folder and endings: the model's name, unless the events have it."""
        bare = stem_of(self.path)
        return os.fsencode(bare).decode("utf-8", "backslashreplace")

    def open(self) -> BinaryIO:
        """Open the file's bytes without unpacking them."""
        if has_scheme(self.path):
            return FileSystems.open(self.path, compression_type=CompressionTypes.UNCOMPRESSED)
        return open(self.path, "rb")  # noqa: PTH123 - the caller closes it

    def damaged(self, position: int, cause: Exception) -> RocsteadyError:
        """Return the error that the file is damaged after `position` records."""
        why = str(cause) or type(cause).__name__
        if "straddling" in why:
            why = "a record is longer than a block, or a quote is opened and never closed"
        return RocsteadyError(
            f"{self.name} is damaged after record {position:,} or soon after it ({why}); restore the "
            "file, or cut it there"
        )


@contextmanager
def unpacked(source: SourceFile) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Open a text file; yield the stream of unpacked bytes, and the stream of the stored file."""
    with source.open() as raw:
        if source.gzipped:
            with gzip.GzipFile(fileobj=raw) as stream:
                yield cast(BinaryIO, stream), raw
        else:
            yield raw, raw


class Utf8Stream(io.RawIOBase):
    """A stream of bytes that are always UTF-8: `NO_TEXT` replaces any other byte."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._ready = b""
        self.replaced = False

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        r"""Return `size` bytes; fewer only at the end, or before a carriage return. Arrow makes each a block.

        A carriage return at the end of a block is left for the next block. Otherwise Arrow would skip a
        newline at the start of the next block, even inside quotes, where the newline is text.
        """
        parts: list[bytes] = []
        missing = size if size >= 0 else 1 << 62
        while missing and (self._ready or self._more(min(missing, HEAD_BYTES * 8))):
            parts.append(self._ready[:missing])
            self._ready = self._ready[len(parts[-1]) :]
            missing -= len(parts[-1])
        block = parts[0] if len(parts) == 1 else b"".join(parts)
        if len(block) > 1 and block.endswith(b"\r"):
            self._ready = b"\r" + self._ready
            block = block[:-1]
        return block

    def _more(self, size: int) -> bool:
        data = b"more"
        while data and not self._ready:
            data = self._raw.read(size)
            text = self._decoder.decode(data, final=not data)
            try:
                self._ready = text.encode()
            except UnicodeEncodeError:
                self.replaced = True
                self._ready = re.sub("[\udc80-\udcff]", NO_TEXT, text).encode()
        return bool(self._ready)


def arrow_buffer(data: bytes) -> pa.Buffer:
    """Copy bytes into memory that Arrow owns.

    Arrow's threads may release a buffer that Python owns after the reader has returned all data. The release
    takes Python's lock, and an interpreter that ends at that moment is aborted (SIGABRT).
    """
    memory = pa.BufferOutputStream()
    memory.write(data)
    return memory.getvalue()


def text_head(source: SourceFile) -> bytes:
    """Return the first MiB of a text file, unpacked."""
    with unpacked(source) as (stream, _):
        return stream.read(HEAD_BYTES)


def parquet_chunks(
    source: SourceFile, columns: Sequence[str] | None = None, chunk_rows: int = CHUNK_ROWS
) -> Iterator[Chunk]:
    """Read the named columns that a Parquet file has (None: all columns); other columns are not read."""
    position = 0
    with source.open() as raw:
        file = pa.parquet.ParquetFile(
            raw,
            buffer_size=_PARQUET_BUFFER_BYTES,
            pre_buffer=False,
            coerce_int96_timestamp_unit="us",  # in nanoseconds, times outside the years 1677 to 2262 wrap
        )
        present = file.schema_arrow.names
        wanted = None if columns is None else [name for name in columns if name in present]
        rows = max(file.metadata.num_rows, 1)
        for batch in file.iter_batches(chunk_rows, columns=wanted):
            share = (position + batch.num_rows) / rows
            yield Chunk(position, batch, None, NO_LETTERS, int(source.size * share))
            position += batch.num_rows


def _delimiter(source: SourceFile) -> str:
    return "\t" if source.format == "tsv" else ","


def csv_header(source: SourceFile) -> list[str]:
    """Return the names in the first record; an empty list for a file without records."""
    head = text_head(source).decode("utf-8-sig", "surrogateescape")
    lines = io.StringIO(re.sub("[\udc80-\udcff]", NO_TEXT, head), newline="")
    try:
        reader = csv.reader(lines, delimiter=_delimiter(source))
        return next((record for record in reader if record), [])
    except csv.Error as error:
        raise InputError(f"{source.name} has no readable header: {error}") from None


def _csv_block_bytes(source: SourceFile) -> int:
    head = text_head(source)
    return int(min(max(CHUNK_ROWS * len(head) / (head.count(b"\n") + 1), 4 << 20), 32 << 20))


def csv_chunks(
    source: SourceFile, block_bytes: int | None = None, only: Sequence[str] | None = None
) -> Iterator[Chunk]:
    """Read a CSV or TSV file with a header, every column as text; only an empty cell is a missing value.

    Columns that are not in `only` are not built; rows may then have text that is not UTF-8 in those columns.
    """
    options = (
        pa.csv.ReadOptions(use_threads=False, block_size=block_bytes or _csv_block_bytes(source)),
        pa.csv.ConvertOptions(
            check_utf8=False,  # `Utf8Stream` gives only UTF-8
            column_types=dict.fromkeys(csv_header(source), pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            include_columns=list(only or ()),
            include_missing_columns=True,
        ),
    )
    position = 0
    with unpacked(source) as (bytes_of_file, raw), _CsvBatches(bytes_of_file, source) as batches:
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


class _CsvBatches:
    """Arrow's reader of CSV on a stream of bytes; a context that ends when Arrow's thread releases it.

    `arrow_buffer` explains why the context must wait for that thread.

    refused   the position and the dead letter of each record that is no row, in the order found; the caller
              removes them
    replaced  whether any byte was not UTF-8
    """

    def __init__(self, raw: BinaryIO, source: SourceFile) -> None:
        refused: list[tuple[int, DeadLetter]] = []

        def refuse(row: pa.csv.InvalidRow) -> str:
            # With one thread, arrow numbers the records from 1, the header.
            refused.append((row.number - 2, _misfit(source, row)))
            return "skip"

        self.refused = refused
        self._stream: Utf8Stream | None = Utf8Stream(raw)
        self._parse = pa.csv.ParseOptions(
            delimiter=_delimiter(source), newlines_in_values=True, invalid_row_handler=refuse
        )
        self._reader: pa.csv.CSVStreamingReader | None = None
        self._lent = weakref.ref(self._stream), weakref.ref(refuse)

    @property
    def replaced(self) -> bool:
        """Whether any byte was not UTF-8."""
        return self._stream is not None and self._stream.replaced

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

    def __enter__(self) -> _CsvBatches:
        return self

    def __exit__(self, _kind: object, _error: object, trace: TracebackType | None) -> None:
        self._stream = self._reader = self._parse = None
        traceback.clear_frames(trace)  # an error of the stream holds the stream as a local of its frames
        end = time.monotonic() + LET_GO_SECONDS
        while any(lent() is not None for lent in self._lent) and time.monotonic() < end:
            time.sleep(0.0001)


def _misfit(source: SourceFile, row: pa.csv.InvalidRow) -> DeadLetter:
    """Return the dead letter of a record whose number of fields differs from the header's."""
    fields = row.actual_columns
    detail = f"{fields} field{'' if fields == 1 else 's'} where the header names {row.expected_columns}"
    raw = _fields_text(row.text, _delimiter(source))
    return DeadLetter.invalid(Reason.WRONG_NUMBER_OF_FIELDS, source.name, detail, row.number - 2, raw)


def _fields_text(text: str, delimiter: str) -> str:
    """Return the fields of a row as JSON; only the first fields of a long row, such as an unclosed quote."""
    shown = text[:SHOWN_BYTES]
    fields = next(csv.reader(io.StringIO(shown, newline=""), delimiter=delimiter), [])
    raw = json.dumps(fields, ensure_ascii=False).replace(NO_TEXT, "\ufffd")
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
