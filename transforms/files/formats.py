"""Input files, and Parquet as a stream of record batches with the position of every record.

Invariant
    Every record of a file is in exactly one chunk, at its position: as a row of the batch, or as a dead
    letter. A dead letter has a wrong number of fields, or bytes that are not UTF-8.
    A chunk bounds the memory, for files of any length.

Positions are 0-based ordinals of records; headers and blank lines are not records. For JSON lines, see
`sources.files.json_lines`.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from ...core.errors import RocsteadyError
from ..events.chunk import Chunk
from ..events.dead_letters import NO_LETTERS

CHUNK_ROWS = 100_000
"""The approximate records of a batch. The cost per batch is small, and memory can hold several batches."""

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
        file = pa.parquet.ParquetFile(raw, buffer_size=_PARQUET_BUFFER_BYTES, pre_buffer=False)
        present = file.schema_arrow.names
        wanted = None if columns is None else [name for name in columns if name in present]
        rows = max(file.metadata.num_rows, 1)
        for batch in file.iter_batches(chunk_rows, columns=wanted):
            share = (position + batch.num_rows) / rows
            yield Chunk(position, batch, None, NO_LETTERS, int(source.size * share))
            position += batch.num_rows
