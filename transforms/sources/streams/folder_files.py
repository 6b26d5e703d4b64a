"""Files of a folder that is followed: each is read on from a place, in this process or in another.

A file of JSON lines may grow while it is read, and is read on from a byte. A file of another format must be
complete, and is read on from a record. The objects that a reader keeps in memory (an open stream, records
that it read ahead) change no results: a new reader gives the same records.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from ....core.errors import InputError, RocsteadyError
from ....core.events.rejected import Reason
from ...events.dead_letters import Chunk
from ...events.fields import EventFields, Role, check_names, check_once
from ...files.formats import DAMAGE, SourceFile
from ...files.lines import MARK, MOST_LINE_BYTES, SHOWN_BYTES, LongLine
from ..files.folder_columns import folder_columns, names_with_folders, with_folders
from ..files.json_lines import keys_in
from ..files.listing import column_names
from ..files.read import read_batches
from .offsets import FilePlace
from .partition import Part, cut_chunk, line_parts

_MOST_BYTES = 8 << 20
"""The most bytes of lines that are read at once."""

_PIECE_BYTES = 1 << 16
"""How many bytes of a line that is too long are in memory at once."""

_HEAD_BYTES = 1 << 20
"""How many bytes of the first lines are read, to find the keys that are a file's columns."""


class FileRead(NamedTuple):
    """The result of one read of a file.

    place     the place after the records
    has_more  whether the file has more records now
    fault     the reason why the rest of the file cannot be read, as a sentence; None if the rest can be read
    reason    the reason, as a phrase for a dead letter
    doubt     an error about a missing column, reported at the start of the file; None if no column is missing
    """

    parts: list[Part]
    place: FilePlace
    has_more: bool = False
    fault: RocsteadyError | None = None
    reason: Reason = Reason.FILE_UNREADABLE
    doubt: InputError | None = None


def _shorter(source: SourceFile, place: FilePlace) -> FileRead:
    """Return the fault of a file that is shorter than the place up to which it was read."""
    why = (
        f"{source.name} was read up to {place} and is shorter now: it was written anew, and is not read "
        "again; put what is new into another file"
    )
    return FileRead([], place, fault=RocsteadyError(why), reason=Reason.FILE_CHANGED)


def _lacking(source: SourceFile, names: list[str], fields: EventFields, role: Role) -> InputError | None:
    """Return an error that names the column that a file with these columns lacks.

    None if no column is missing.
    """
    try:
        check_names(source.name, names, fields, role)
    except InputError as error:
        return error
    return None


class WholeFile:
    """A file of CSV or Parquet. To continue from a record, a new reader reads the records before it again."""

    def __init__(self, source: SourceFile, fields: EventFields, role: Role = "event") -> None:
        self._source = source
        self._role: Role = role
        self._asked = fields
        self._fields = fields
        self._chunks: Iterator[Chunk] | None = None
        self._chunk: Chunk | None = None
        self._at = 0

    def read(self, place: FilePlace, limit: int, *, is_done: bool) -> FileRead:  # noqa: ARG002
        """Return up to `limit` records from a place on."""
        doubt = None
        try:
            if self._chunks is None or self._at != place.records:
                doubt = self._begin()
                while self._at < place.records and (chunk := self._ahead()) is not None:
                    self._at = min(chunk.first_position + chunk.records, place.records)
                if self._at < place.records:
                    return _shorter(self._source, place)
            chunk = self._ahead()
        except (RocsteadyError, OSError) as error:
            fault = error if isinstance(error, RocsteadyError) else RocsteadyError(str(error))
            self.close()
            return FileRead([], place, fault=fault, doubt=doubt)
        if chunk is None:
            self.close()
            return FileRead([], place._replace(whole=True), doubt=doubt)
        end = min(chunk.first_position + chunk.records, self._at + limit)
        part = Part(self._source.name, self._fields, cut_chunk(chunk, self._at, end))
        self._at = end
        return FileRead([part], place._replace(records=end), has_more=True, doubt=doubt)

    def close(self) -> None:
        """Close the open file, if there is one."""
        self._chunks = self._chunk = None

    def _begin(self) -> InputError | None:
        """Open the file; return an error if the file lacks a column, otherwise None."""
        self.close()
        self._at = 0
        names = column_names(self._source) or []
        self._fields = self._asked.resolved(names, self._source.stem)
        check_once(self._source.name, names, self._fields, self._role)
        self._chunks = read_batches(self._source, self._fields, role=self._role)
        return _lacking(self._source, names, self._fields, self._role)

    def _ahead(self) -> Chunk | None:
        """Return the chunk with the next record; None if there is no next record."""
        chunk = self._chunk
        while chunk is None or chunk.first_position + chunk.records <= self._at:
            chunk = next(self._chunks or iter(()), None)
            if chunk is None:
                break
        self._chunk = chunk
        return chunk


class LinesFile:
    """A file of JSON lines. A packed file grows by whole members of gzip."""

    def __init__(self, source: SourceFile, fields: EventFields, role: Role = "event") -> None:
        self._source = source
        self._role: Role = role
        self._fields = fields
        self._open: BinaryIO | None = None
        self._seen: tuple[int, int, int, bool] | None = None

    def read(self, place: FilePlace, limit: int, *, is_done: bool) -> FileRead:
        """Return up to `limit` records from a place on.

        A last line without a newline counts only if `is_done`.
        """
        found = Path(self._source.path).stat()
        if found.st_size < place.byte and not self._source.gzipped:
            return _shorter(self._source, place)
        seen = place.byte, found.st_size, found.st_mtime_ns
        if not is_done and self._seen is not None and self._seen[:3] == seen:
            return FileRead([], place._replace(whole=self._seen[3]))
        lines = _Lines(place.byte)
        fault: RocsteadyError | None = None
        try:
            stream = self._stream(place.byte)
            if stream is None:
                return _shorter(self._source, place)
            lines.read(stream, limit, is_done=is_done)
        except DAMAGE as error:
            lines.has_more = False
            if is_done or not isinstance(error, EOFError):  # else the packed file is being written
                records = place.records + lines.count
                fault = (None if records else self._wrong_head()) or self._source.damaged(records, error)
        if not lines.has_more:
            self.close()
            self._seen = lines.byte, *seen[1:], lines.whole
        try:
            return self._told(place, lines, fault)
        except RocsteadyError as error:
            return FileRead([], place, fault=error)

    def close(self) -> None:
        """Close the open file, if there is one."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _told(self, place: FilePlace, lines: _Lines, fault: RocsteadyError | None) -> FileRead:
        has_model, doubt = place.has_model, None
        blocks = lines.blocks()
        names = keys_in(_head(blocks)) if has_model is None else None
        if names is not None:
            names = names_with_folders(names, self._source)
            has_model = "model" in names
            fields = self._fields.resolved(names, self._source.stem)
            doubt = _lacking(self._source, names, fields, self._role)
        elif not place.byte and lines.byte:
            doubt = self._wrong_head()
        fields = self._fields.resolved(["model"] * bool(has_model), self._source.stem)
        start = place.records
        source, role = self._source, self._role
        parts = [
            part._replace(chunk=with_folders(part.chunk, source, fields.columns_of(role)))
            for part in line_parts(blocks, source.name, start, fields, role, folder_columns(source.path))
        ]
        end = start + sum(part.chunk.records for part in parts)
        behind = FilePlace(lines.byte, lines.whole, end, has_model)
        return FileRead(parts, behind, lines.has_more, fault, doubt=doubt)

    def _stream(self, byte: int) -> BinaryIO | None:
        """Open the file at a byte, or return the open stream if it stands there.

        None if the file is shorter.
        """
        if self._open is None or self._open.tell() != byte:
            self.close()
            self._open = self._opened()
            if self._open.seek(byte) < byte:  # in a packed file, whose end is known only now
                self.close()
        return self._open

    def _opened(self) -> BinaryIO:
        path = self._source.path
        return cast(BinaryIO, gzip.open(path) if self._source.gzipped else open(path, "rb"))  # noqa: PTH123

    def _wrong_head(self) -> InputError | None:
        """Return an error that says why the first lines are not JSON lines; None if they are JSON lines."""
        try:
            column_names(self._source)
        except InputError as said:
            return said
        return None


class _Lines:
    """Collects the lines of a file, from a byte on."""

    def __init__(self, byte: int) -> None:
        self.byte = byte
        self.count = 0
        self.has_more = True
        self.whole = False
        self._blocks: list[tuple[LongLine | None, list[bytes]]] = [(None, [])]

    def read(self, stream: BinaryIO, limit: int, *, is_done: bool) -> None:
        """Read up to `limit` lines that are not blank.

        A last line without a newline counts only if `is_done`.
        """
        start = self.byte
        end = self.count + limit
        while self.count < end and self.byte - start < _MOST_BYTES:
            line = stream.readline(MOST_LINE_BYTES + 1)
            skipped, is_whole = 0, line.endswith(b"\n")
            if len(line) > MOST_LINE_BYTES and not is_whole:
                skipped, is_whole = _rest_of_line(stream)
            if not line or not (is_whole or is_done):
                self.has_more, self.whole = False, not line
                return
            text = line if self.byte else line.removeprefix(MARK)
            if skipped or len(line) - is_whole > MOST_LINE_BYTES:
                long = LongLine(line[:SHOWN_BYTES], len(line) + skipped - is_whole, self.byte)
                self._blocks.append((long, []))
                self.count += 1
            elif text.strip():
                self._blocks[-1][1].append(text)
                self.count += 1
            else:
                skipped = _blank_lines(stream)
            self.byte += len(line) + skipped

    def blocks(self) -> list[tuple[LongLine | None, bytes]]:
        """Return the collected lines in the form that `line_parts` takes, and clear the collection."""
        blocks, self._blocks = self._blocks, [(None, [])]
        return [(long, b"".join(lines)) for long, lines in blocks]


def _head(blocks: Iterable[tuple[LongLine | None, bytes]]) -> bytes:
    """Return the first lines, of about a MiB."""
    data = b"".join(block for _, block in blocks)
    return data[: data.find(b"\n", _HEAD_BYTES) + 1] or data


def _rest_of_line(stream: BinaryIO) -> tuple[int, bool]:
    """Read a line to its end, in bounded memory.

    Return the number of its bytes, and whether a newline ends it.
    """
    size = 0
    while piece := stream.readline(_PIECE_BYTES):
        size += len(piece)
        if piece.endswith(b"\n"):
            return size, True
    return size, False


def _blank_lines(stream: BinaryIO) -> int:
    """Read the blank lines that are in the buffer of a stream; return the number of their bytes."""
    ahead = cast(io.BufferedReader, stream).peek(1)
    blank = len(ahead) - len(ahead.lstrip())
    return len(stream.read(ahead.rfind(b"\n", 0, blank) + 1))
