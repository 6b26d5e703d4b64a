"""Input files, and Parquet as chunks of records, each with its position.

For CSV, see `csv_chunks`; for JSON lines, `sources.files.json_lines`.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from ...core.errors import RocsteadyError
from ..events.dead_letters import CHUNK_ROWS, NO_LETTERS, Chunk

_PARQUET_BUFFER_BYTES = 1 << 20
"""Bytes of a column that are read ahead. Without a buffer, Arrow keeps the bytes of every row group
(pyarrow 25, a file of 94 MB: 94 MB without a buffer, 12 MB with it)."""

FORMATS = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".jsonl": "jsonl", ".json": "jsonl"}
HEAD_BYTES = 1 << 20
DAMAGE = (pa.ArrowException, OSError, EOFError, zlib.error, UnicodeDecodeError)
"""The errors that readers raise for a file that is cut short, corrupt, or gone."""


def has_scheme(path: str) -> bool:
    """Return whether a path is a URL such as gs://bucket/x.csv, not a path on this machine."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path) is not None


def everywhere(path: str) -> str:
    """Return a path as an absolute path, because a runner's processes may have other working folders."""
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
        """The file's name without its folder and endings.

        It is the model's name, unless the events have one.
        """
        bare = stem_of(self.path)
        return os.fsencode(bare).decode("utf-8", "backslashreplace")

    @property
    def delimiter(self) -> str:
        """The character between two fields of CSV or TSV."""
        return "\t" if self.format == "tsv" else ","

    def open(self) -> BinaryIO:
        """Open the file's bytes without unpacking them."""
        if has_scheme(self.path):
            return FileSystems.open(self.path, compression_type=CompressionTypes.UNCOMPRESSED)
        return open(self.path, "rb")  # noqa: PTH123 - the caller closes it

    def damaged(self, position: int, cause: Exception) -> RocsteadyError:
        """Return the error that the file is damaged after `position` records."""
        why = str(cause) or type(cause).__name__
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


def arrow_buffer(data: bytes) -> pa.Buffer:
    """Copy bytes into memory that Arrow owns.

    Arrow's threads may release a buffer that Python owns after the reader has returned all data. The release
    takes Python's lock, and an interpreter that ends at that moment is aborted (SIGABRT).
    """
    memory = pa.BufferOutputStream()
    memory.write(data)
    return memory.getvalue()


def parquet_chunks(
    source: SourceFile, columns: Sequence[str] | None = None, chunk_rows: int = CHUNK_ROWS
) -> Iterator[Chunk]:
    """Read the named columns that a Parquet file has (None = all columns); other columns are not read."""
    position = 0
    with source.open() as raw:
        file = pa.parquet.ParquetFile(
            raw,
            buffer_size=_PARQUET_BUFFER_BYTES,
            pre_buffer=False,
            # in nanoseconds, times outside the years 1677 to 2262 would wrap
            coerce_int96_timestamp_unit="us",
        )
        present = file.schema_arrow.names
        wanted = None if columns is None else [name for name in columns if name in present]
        rows = max(file.metadata.num_rows, 1)
        for batch in file.iter_batches(chunk_rows, columns=wanted):
            share = (position + batch.num_rows) / rows
            yield Chunk(position, batch, None, NO_LETTERS, int(source.size * share))
            position += batch.num_rows
