"""Files, and CSV and Parquet as a stream of record batches, with the position of every record.

Invariant
    Every record of a file is in exactly one chunk, at its position: either a row of the batch, or a dead
    letter when it is no row at all (a wrong number of fields, bytes that are not UTF-8).
    Memory is bounded by a chunk, whatever the length of the file.

Positions are 0-based ordinals of records; headers and blank lines are no records. JSON lines: `json_lines`.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import time
import weakref
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from ...core.arrays import Int64Array
from ...core.errors import InputError, RocsteadyError
from ...core.events.reasons import Reason
from ..events.chunk import Chunk
from ..events.dead_letters import NO_LETTERS, DeadLetter, DeadLetters
from ..events.text import json_objects
from .lines import SHOWN_BYTES

CHUNK_ROWS = 100_000
"""Records in a batch, about: enough that a batch costs nothing, few enough to hold some."""

_PARQUET_BUFFER_BYTES = 1 << 20
"""Of a column that are read ahead. Without a buffer Arrow keeps the bytes of every row group that it has read
(pyarrow 25: 94 MB of a file of 94 MB, with one 12 MB)."""

FORMATS = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".jsonl": "jsonl", ".json": "jsonl"}
HEAD_BYTES = 1 << 20
_LET_GO_SECONDS = 1.0
"""How long Arrow's thread is waited for, at the most; it takes some microseconds."""

DAMAGE = (pa.ArrowException, OSError, EOFError, zlib.error, UnicodeDecodeError)
"""What a reader raises in a file that is cut short, corrupt, or gone."""

NO_TEXT = "\ufdd0"
"""The code point, never used in text, that stands for a byte that is not UTF-8."""


def has_scheme(path: str) -> bool:
    """Tell a URL such as gs://bucket/x.csv from a path on this machine."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path) is not None


def everywhere(path: str) -> str:
    """Return a path that means the same in every working folder: processes of a runner have their own."""
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
        """The file's name without its folder and endings: the model, where nothing else names it."""
        bare = stem_of(self.path)
        return os.fsencode(bare).decode("utf-8", "backslashreplace")

    def open(self) -> BinaryIO:
        """Open the bytes as they lie there."""
        if has_scheme(self.path):
            return FileSystems.open(self.path, compression_type=CompressionTypes.UNCOMPRESSED)
        return open(self.path, "rb")  # noqa: PTH123 - the caller closes it

    def damaged(self, position: int, cause: Exception) -> RocsteadyError:
        """Say that the file breaks off, behind so many records."""
        why = str(cause) or type(cause).__name__
        if "straddling" in why:
            why = "a record is longer than a block, or a quote is opened and never closed"
        return RocsteadyError(
            f"{self.name} is damaged after record {position:,} or soon after it ({why}); restore the "
            "file, or cut it there"
        )


@contextmanager
def unpacked(source: SourceFile) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Open a text file: its bytes, unpacked, and the file as it lies there."""
    with source.open() as raw:
        if source.gzipped:
            with gzip.GzipFile(fileobj=raw) as stream:
                yield cast(BinaryIO, stream), raw
        else:
            yield raw, raw


class Utf8Stream(io.RawIOBase):
    """A stream of bytes that are surely UTF-8: any other byte is replaced by `NO_TEXT`."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._tail = b""  # a character that the last read cut in two
        self._ready = b""
        self.replaced = False

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        r"""Return `size` bytes, and fewer only at the end: arrow takes a read for a block of its own.

        A carriage return is left for the next block, because behind one arrow skips a newline that begins
        the next, also in quotes, where it is text.
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
        while not self._ready:
            data = self._raw.read(size)
            if not data and not self._tail:
                return False
            self._ready = self._checked(self._tail + data, final=not data)
        return True

    def _checked(self, block: bytes, *, final: bool) -> bytes:
        self._tail = b""
        if not final:
            block, self._tail = _whole_characters(block)
        try:
            block.decode()
        except UnicodeDecodeError:
            self.replaced = True
            text = block.decode("utf-8", "surrogateescape")
            return re.sub("[\udc80-\udcff]", NO_TEXT, text).encode()
        return block


def _whole_characters(block: bytes) -> tuple[bytes, bytes]:
    """Cut a block before a character that may go on in the next one."""
    for back in range(1, min(3, len(block)) + 1):
        byte = block[-back]
        if byte & 0xC0 != 0x80:  # the first byte of a character; these say how long it is
            length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            if length > back:
                return block[:-back], block[-back:]
            break
    return block, b""


def arrow_buffer(data: bytes) -> pa.Buffer:
    """Copy bytes into memory of Arrow's own.

    What its readers are lent by Python its threads may let go of when they have given all they read, and then
    ask for Python's lock: an interpreter that ends just then is aborted (SIGABRT).
    """
    memory = pa.BufferOutputStream()
    memory.write(data)
    return memory.getvalue()


def text_head(source: SourceFile) -> bytes:
    """Return the first MiB of a text file, unpacked."""
    with unpacked(source) as (stream, _):
        return stream.read(HEAD_BYTES)


def _gap_positions(start: int, rows: int, gaps: Sequence[int]) -> Int64Array:
    """Return the ordinals of `rows` records from `start` on that are not among `gaps`, which rise."""
    every = np.arange(start, start + rows + len(gaps))
    return every[~np.isin(every, np.asarray(gaps, np.int64))]


def _delimiter(source: SourceFile) -> str:
    return "\t" if source.format == "tsv" else ","


def csv_header(source: SourceFile) -> list[str]:
    """Return the names in the first record; none where the file has no record at all."""
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
    """Read a CSV or TSV file with a header, every column as text; only the empty cell is missing.

    Of columns beside `only` nothing is built; the records that are rows then include those with text that is
    not UTF-8 in other columns.
    """
    options = (
        pa.csv.ReadOptions(use_threads=False, block_size=block_bytes or _csv_block_bytes(source)),
        pa.csv.ConvertOptions(
            check_utf8=False,  # the stream is, by its make
            column_types=dict.fromkeys(csv_header(source), pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            include_columns=list(only or ()),
            include_missing_columns=True,
        ),
    )
    position = 0
    with unpacked(source) as (bytes_of_file, raw), _CsvBatches(bytes_of_file, _delimiter(source)) as batches:
        refused = batches.refused
        for batch in batches.read(*options):
            end, gaps = position + batch.num_rows, 0
            while gaps < len(refused) and refused[gaps].position <= end:
                end, gaps = end + 1, gaps + 1
            skipped, refused[:gaps] = refused[:gaps], []
            positions = None
            if skipped:
                positions = _gap_positions(position, batch.num_rows, [row.position for row in skipped])
            chunk = Chunk(position, batch, positions, _misfits(source, skipped), raw.tell())
            yield _without_bad_text(source, chunk) if batches.replaced else chunk
            position = end
        if refused:
            nothing = pa.RecordBatch.from_pylist([], schema=batches.schema)
            yield Chunk(position, nothing, None, _misfits(source, refused), raw.tell())


class _Misfit(NamedTuple):
    """A record of a CSV file with another number of fields than its header."""

    position: int
    text: str
    fields: int
    expected: int


class _CsvBatches:
    """What Arrow reads from a stream of bytes as CSV; a context that ends when Arrow's thread let go of it.

    Why it has to is told by `arrow_buffer`.

    refused   the records that are no rows, as they are met; the reader takes them away
    replaced  whether any byte was not UTF-8
    """

    def __init__(self, raw: BinaryIO, delimiter: str) -> None:
        refused: list[_Misfit] = []

        def refuse(row: pa.csv.InvalidRow) -> str:
            # With one thread, arrow numbers the records from 1, the header.
            refused.append(_Misfit(row.number - 2, row.text, row.actual_columns, row.expected_columns))
            return "skip"

        self.refused = refused
        self.schema = pa.schema([])
        self._stream: Utf8Stream | None = Utf8Stream(raw)
        self._parse = pa.csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, invalid_row_handler=refuse
        )
        self._reader: pa.csv.CSVStreamingReader | None = None
        self._lent = weakref.ref(self._stream), weakref.ref(refuse)

    @property
    def replaced(self) -> bool:
        """Whether any byte was not UTF-8."""
        return self._stream is not None and self._stream.replaced

    def read(self, how: pa.csv.ReadOptions, types: pa.csv.ConvertOptions) -> Iterator[pa.RecordBatch]:
        """Yield the batches; none where there is no more than a header without a newline."""
        try:
            self._reader = pa.csv.open_csv(pa.PythonFile(self._stream, mode="r"), how, self._parse, types)
        except pa.ArrowInvalid as error:
            if "Empty CSV" in str(error):
                return
            raise
        self.schema = self._reader.schema
        yield from self._reader

    def __enter__(self) -> _CsvBatches:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream = self._reader = self._parse = None
        end = time.monotonic() + _LET_GO_SECONDS
        while any(lent() is not None for lent in self._lent) and time.monotonic() < end:
            time.sleep(0.0001)


def _misfits(source: SourceFile, refused: Sequence[_Misfit]) -> DeadLetters:
    delimiter = _delimiter(source)
    letters = (
        DeadLetter.invalid(
            Reason.WRONG_NUMBER_OF_FIELDS,
            source.name,
            f"{fields} field{'' if fields == 1 else 's'} where the header names {expected}",
            position,
            _fields_text(text, delimiter),
        )
        for position, text, fields, expected in refused
    )
    return DeadLetters.of(letters)


def _fields_text(text: str, delimiter: str) -> str:
    """Return the fields of a row as JSON; of a long one, as behind a quote that nothing closes, the first."""
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
    positions = chunk.positions
    if positions is None:
        positions = np.arange(chunk.first_position, chunk.first_position + batch.num_rows)
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


def parquet_chunks(
    source: SourceFile, columns: Sequence[str] | None = None, chunk_rows: int = CHUNK_ROWS
) -> Iterator[Chunk]:
    """Read those of the columns that a Parquet file has (None: all of them); the others cost nothing."""
    position = 0
    with source.open() as raw:
        file = pa.parquet.ParquetFile(raw, buffer_size=_PARQUET_BUFFER_BYTES, pre_buffer=False)
        present = file.schema_arrow.names
        wanted = None if columns is None else [name for name in columns if name in present]
        rows = max(file.metadata.num_rows, 1)
        for batch in file.iter_batches(chunk_rows, columns=wanted):
            share = (position + batch.num_rows) / rows
            yield Chunk(position, batch, None, NO_LETTERS, int(source.size * share))
            position += batch.num_rows
