"""Follows tables that rocsteady writes: a folder of parts, a file, or a topic, as they grow.

A folder's files are complete under their names (`sinks.open`), and each is read once. A file of JSON lines or
CSV, alone or in a folder, may grow; its new part is read from the byte where the last whole line ended. Any
other file is read again when it has changed, and so is a growing file that was replaced. So rows may come
twice, and a reader must recognise them by their identity.

A file that cannot be read is reported once (`Came.trouble`), and is tried again when it has changed. In a
growing file, only the part that cannot be read is left out.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import pyarrow as pa

from ...core.errors import InputError
from ..files.csv_quotes import CsvFault, Cut, cut_records, header_fields, lines_in
from ..files.formats import FORMATS, SourceFile, has_scheme
from ..kafka.client import check_topic
from ..kafka.topic import KafkaTopic, is_kafka
from ..sinks.kinds import ALERTS, CURVES, PAIRS, ROLL_UPS, ROWS, TableKind
from ..sources.files.listing import list_sources
from .read import ANY_ROWS, file_metadata, read_table
from .table_rows import holds_parts, parts_of, read_kafka_records

LOOK_SECONDS = 0.5
"""Seconds between two looks at files."""

MOST_BYTES = 4 << 20
"""The most bytes of a growing file that are read at once: some 5,000 rows."""

_KNOWN_BYTES = 1 << 10
"""How many bytes before the end of the part that was read are compared, to see whether a file goes on or was
replaced.
"""

_MOST_BEHIND = 64 << 20
"""A growing file is given up after so many bytes without the end of a line."""

_KINDS: Mapping[str, TableKind] = {
    "rows": ROWS, "alerts": ALERTS, "roll-ups": ROLL_UPS, "pairs": PAIRS, "curves": CURVES,
}  # fmt: skip


class Came(NamedTuple):
    """The result of one look.

    table     the new records, with the columns of their kind; None if the source has no more records at
              present
    metadata  a Parquet file's metadata on how its rows were made
    notes     on columns that are missing or unknown
    trouble   why a file could not be read; "" if all was read
    """

    table: pa.Table | None
    metadata: Mapping[bytes, bytes]
    notes: Sequence[str] = ()
    trouble: str = ""


_NOTHING = Came(None, {})


def check_followed(source: str, options: Iterable[str] = ()) -> None:
    """Raise ConfigError or InputError for a source that can never be followed.

    A topic, or a name that is wrong.

    A folder or file that is missing may appear later.
    """
    if is_kafka(source):
        check_topic(KafkaTopic.parse(source, options), source)
    elif not holds_parts(source) and not has_scheme(source):
        known = source.lower().removesuffix(".gz").endswith(tuple(FORMATS))
        if not known and not Path(source).suffix:
            return  # a folder that does not exist yet
        if not known:
            raise InputError(
                f"{source} has an ending that is not known; give a folder, a topic, or a file of rows: "
                f"{' '.join(FORMATS)}"
            )


def follow_tables(
    source: str, what: str = "rows", options: Iterable[str] = (), stop: threading.Event | None = None
) -> Iterator[Came]:
    """Yield the records of a source as they come, until `stop` is set.

    source   a folder, a file or glob, or kafka://host:port/topic. A source that does not exist yet is waited
             for
    what     "rows", "alerts", "roll-ups", "pairs" or "curves"; in a topic, messages of other kinds are left
             out
    options  librdkafka's options for a topic

    If the source has no more records at present, a `Came` without a table is yielded about twice a second.
    Raises InputError for a text that names no source, RocsteadyError if a topic ends.
    """
    stop = threading.Event() if stop is None else stop
    if is_kafka(source):
        for table, _ in read_kafka_records(KafkaTopic.parse(source, options), True, _KINDS[what]):
            if stop.is_set():
                return
            yield Came(table, {}) if table.num_rows else _NOTHING
        return
    files = _Files(source, what)
    while not stop.is_set():
        yield from files.look(stop)
        yield _NOTHING
        stop.wait(LOOK_SECONDS)


def tables_there(source: str, what: str, options: Iterable[str], stop: threading.Event) -> Iterator[Came]:
    """Yield the records that a source has now, until `stop` is set; see `follow_tables`."""
    if is_kafka(source):
        for table, _ in read_kafka_records(KafkaTopic.parse(source, options), False, _KINDS[what]):
            if stop.is_set():
                return
            yield Came(table, {})
    else:
        yield from _Files(source, what).look(stop)


@dataclass(frozen=True)
class _Piece(SourceFile):
    """A part of a growing file, which is read in the same way as a file."""

    content: bytes

    def open(self) -> BinaryIO:
        """Open the part."""
        return io.BytesIO(self.content)


class _Growing:
    """A file of lines that grows, read from the end of the last whole line on."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._at = 0
        self._lines = 0
        self._head = b""
        self._known = b""

    def read(self, source: SourceFile) -> Iterator[_Piece]:
        """Yield the new part of the file, in pieces of whole records.

        A record that is not whole waits until the file has grown. Raises InputError if a quote of CSV
        swallows records, or if a record is too long.
        """
        with open(self._path, "rb") as stream:  # noqa: PTH123 - bytes that need not be UTF-8
            stream.seek(self._at - len(self._known))
            if stream.read(len(self._known)) != self._known:  # the file was written again
                self._at, self._lines, self._head, self._known = 0, 0, b"", b""
                stream.seek(0)
            behind = b""
            while more := stream.read(MOST_BYTES):
                behind += more
                end, opener, what = _whole_records(behind, source, self._head)
                fault = None if opener < 0 else CsvFault(self._lines + lines_in(behind[:opener]) + 1, what)
                if not end and fault is None and len(behind) > _MOST_BEHIND:
                    raise InputError(f"{source.name} has a line of more than {_MOST_BEHIND:,} bytes")
                if end:
                    lines, behind = behind[:end], behind[end:]
                    self._at += end
                    self._lines += lines_in(lines)
                    self._known = (self._known + lines)[-_KNOWN_BYTES:]
                    if source.format != "jsonl" and not self._head:
                        head, newline, lines = lines.partition(b"\n")
                        self._head = head + newline
                    if lines.strip():
                        content = self._head + lines
                        yield _Piece(source.path, source.format, False, len(content), content)
                if fault is not None:
                    raise InputError(fault.of(source.name))


def _whole_records(text: bytes, source: SourceFile, head: bytes) -> Cut:
    """Return where the last whole record ends, and the place of a quote that swallows records.

    head  the header of CSV; empty if the text begins with the header
    """
    if source.format == "jsonl":
        return Cut(text.rfind(b"\n") + 1)
    delimiter = source.delimiter.encode()
    return cut_records(text, delimiter, is_last=False, fields=header_fields(head, delimiter))


class _Files:
    """The files of a folder, or of one file or glob, with the part of each that was read."""

    def __init__(self, source: str, what: str) -> None:
        self._source = source
        self._what = ANY_ROWS if what == "rows" else what
        self._growing: dict[str, _Growing] = {}
        self._seen: dict[str, tuple[int, ...]] = {}

    def look(self, stop: threading.Event) -> Iterator[Came]:
        """Yield the records that are new since the last look."""
        for path in self._paths():
            if stop.is_set():
                return
            seen = self._state_of(path)
            if self._seen.get(path) == seen:
                continue
            try:
                yield from self._read(path)
            except (InputError, OSError) as error:
                yield Came(None, {}, trouble=str(error))
            self._seen[path] = seen

    def _paths(self) -> list[str]:
        if holds_parts(self._source):
            if not has_scheme(self._source) and not Path(self._source).exists():
                return []
            return parts_of(self._source)
        try:
            return [file.path for file in list_sources(self._source)]
        except InputError:
            if has_scheme(self._source) or Path(self._source).exists():
                if not has_scheme(self._source) and not Path(self._source).stat().st_size:
                    return []  # the file exists without a byte: its writer has just begun
                raise
            return []

    @staticmethod
    def _state_of(path: str) -> tuple[int, ...]:
        if has_scheme(path):
            return ()
        try:
            found = Path(path).stat()
        except OSError:
            return (-1,)
        # the last value also changes with permissions
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def _read(self, path: str) -> Iterator[Came]:
        notes: list[str] = []
        if not has_scheme(path) and not Path(path).stat().st_size:
            return
        (source,) = list_sources(path)
        if source.format == "parquet" or source.gzipped or has_scheme(path):
            table = read_table(source, self._what, notes)
            yield Came(table, file_metadata(source), notes)
            return
        growing = self._growing.setdefault(path, _Growing(path))
        for piece in growing.read(source):
            try:
                came = Came(read_table(piece, self._what, notes), {}, notes)
            except InputError as error:
                came = Came(None, {}, trouble=str(error))
            yield came
