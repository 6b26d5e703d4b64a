"""A folder that grows as a partition of a stream: its files of JSON lines, in order of their names.

Invariant
    What is read is the lines of all files in order of names, each once, wherever it goes on from: a place is
    a file and a byte of it, and knows nothing of the process that read it.

Files may appear whole, or grow while they are read; those that are packed grow by whole members. A file is
done when one of a later name is there; its last line then needs no end. So names must rise, as
part-000001.jsonl, part-000002.jsonl do: a file that comes with an earlier name than that which is read is
left out, and said in the log. Files that were read may be removed; one of which a part was not is missed, in
words. A file `_END` says that the folder is complete; other names that begin with "_" or ".", or end in
".tmp", are still being written.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import threading
import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from ....core.encoding.json import read_json, reading, text_of, whole
from ....core.errors import RocsteadyError
from ....core.process.console import logger
from ....core.process.rare_log import RareLog
from ...files.lines import MOST_LINE_BYTES, SHOWN_BYTES, LongLine
from .partition import Fetched

_logger = logger("rocsteady.folders")
_logger.addFilter(RareLog())

END_FILE = "_END"
"""The name of a file that says that a folder is complete."""

ENDINGS = (".jsonl", ".json", ".jsonl.gz", ".json.gz")
_POLL_SECONDS = 0.05
_MOST_BYTES = 8 << 20
"""Of lines that are read at once, at the most."""

_PIECE_BYTES = 1 << 16
"""Of a line that is too long, which are in memory at once."""

_SLOW_LISTING = 0.01
_REST = 4
"""A folder that takes longer than that to list is left alone for so many times as long."""


class _Place(NamedTuple):
    """Where a folder is read on: behind so many bytes, unpacked, of a file; "" = before the first.

    whole  all was read that was there, so that the file may be gone
    """

    name: str
    byte: int
    whole: bool

    @classmethod
    def of(cls, text: str) -> _Place:
        if not text:
            return cls("", 0, True)
        what = "the place in a folder"
        with reading(what):
            name, byte, is_whole = read_json(text, what)
            return cls(text_of(name), whole(byte, 0), bool(is_whole))


class _Lines(NamedTuple):
    """Lines, where they end, whether there are more now, and whether there will ever be.

    long  lines that are too long, by their places among `lines`, where they are None
    """

    lines: list[bytes | None]
    place: _Place
    has_more: bool
    ended: bool
    long: dict[int, LongLine]


@dataclass(frozen=True)
class FolderPartition:
    """The files of a folder on this machine, or on one that all workers see, as messages: a line each."""

    folder: str

    @property
    def name(self) -> str:
        """What dead letters call it: the folder."""
        return self.folder

    @property
    def origin(self) -> str:
        """Nothing: the name is the path."""
        return ""

    def fetch(self, offset: int, limit: int, wait: float, place: str = "") -> Fetched:
        """Return up to `limit` lines from a place on, the first of which is number `offset` of the folder.

        Waits up to `wait` seconds for the first. Raises RocsteadyError where the folder, or a file of it,
        cannot be read.
        """
        until = time.monotonic() + wait
        at = _Place.of(place)
        while True:
            found = _reader_of(self.folder).read(at, limit)
            at = found.place
            if found.lines or found.ended or time.monotonic() >= until:
                break
            if not found.has_more:  # else there were blank lines alone
                time.sleep(_POLL_SECONDS)
        number = offset + len(found.lines)
        said = json.dumps(at) if at.name else ""
        long = {offset + place: line for place, line in found.long.items()}
        return Fetched(
            range(offset, number), found.lines, number, not found.has_more, place=said, ended=found.ended,
            long=long,
        )  # fmt: skip

    def end(self) -> int:
        """Return -1: how many lines there are nobody knows before they are read."""
        return -1

    def unread_partitions(self) -> int:
        """Return 0: a folder is one partition."""
        return 0

    def close(self) -> None:
        """Forget what this process knows of it."""
        with _lock:
            reader = _readers.pop(self.folder, None)
        if reader is not None:
            reader.close()

    def not_read(self) -> list[str]:
        """Return the names of its files that are no JSON lines, if none is. Raises RocsteadyError."""
        names = _names_in(self.folder)
        others = [name for name in names if is_whole(name) and not name.lower().endswith(ENDINGS)]
        return [] if any(_is_wanted(name) for name in names) else others


def is_whole(name: str) -> bool:
    """Tell the name of a file that is there from one that is still being written, or says something."""
    return not name.startswith((".", "_")) and not name.endswith(".tmp")


def _is_wanted(name: str) -> bool:
    return is_whole(name) and name.lower().endswith(ENDINGS)


def _is_packed(name: str) -> bool:
    return name.lower().endswith(".gz")


def _rest_of_line(stream: BinaryIO) -> tuple[int, bool]:
    """Read a line to its end, in bounded memory; return how many bytes, and whether a newline ends them."""
    size = 0
    while piece := stream.readline(_PIECE_BYTES):
        size += len(piece)
        if piece.endswith(b"\n"):
            return size, True
    return size, False


def _blank_lines(stream: BinaryIO) -> int:
    """Read the blank lines that are in the buffer of a stream; return how many bytes they have."""
    ahead = cast(io.BufferedReader, stream).peek(1)
    blank = len(ahead) - len(ahead.lstrip())
    return len(stream.read(ahead.rfind(b"\n", 0, blank) + 1))


def _became_shorter(path: Path, byte: int) -> RocsteadyError:
    return RocsteadyError(
        f"{path} was read up to byte {byte:,} and is shorter now: it was written anew; restore it, or begin "
        "anew with what is new in a file of a later name"
    )


def _names_in(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names alone
    except OSError as error:
        raise RocsteadyError(f"the folder {folder} cannot be listed: {error.strerror or error}") from None


class _Stand(NamedTuple):
    """A place at the end of a file as it was, by its size and when it was written."""

    name: str
    byte: int
    size: int
    written: int


@dataclass
class _Reader:
    """What this process knows of a folder: none of it decides what is read. Thread-safe."""

    folder: str
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _open: tuple[str, int, BinaryIO] | None = None
    _stand: tuple[_Stand, bool] | None = None
    _begun: set[str] | None = None
    _names: list[str] = field(default_factory=list)
    _next_look: float = 0.0

    def read(self, place: _Place, limit: int) -> _Lines:
        with self._lock:
            return self._read(place, limit)

    def close(self) -> None:
        with self._lock:
            self._let_go()

    def _read(self, place: _Place, limit: int) -> _Lines:
        names, complete = self._look(place)
        waiting = [name for name in names if name >= place.name]
        begun = self._had_their_turn(names, place)
        if place.name not in waiting and not place.whole:
            raise RocsteadyError(
                f"{Path(self.folder, place.name)} is gone, and was not read behind byte {place.byte:,}; "
                "restore it, or begin anew"
            )
        lines: list[bytes | None] = []
        long: dict[int, LongLine] = {}
        for number, name in enumerate(waiting):
            begun.add(name)
            is_done = complete or number + 1 < len(waiting)
            byte = place.byte if name == place.name else 0
            found, byte, has_more, whole = self._lines(name, byte, limit - len(lines), is_done=is_done)
            for line in found:
                if isinstance(line, LongLine):
                    long[len(lines)] = line
                lines.append(None if isinstance(line, LongLine) else line)
            place = _Place(name, byte, whole)
            if has_more or len(lines) >= limit:
                return _Lines(lines, place, True, False, long)
        return _Lines(lines, place, False, complete, long)

    def _look(self, place: _Place) -> tuple[list[str], bool]:
        """Return the names of files of lines, in order, and whether the folder is complete.

        A listing that is made while files come may have a later one and not the one before it. So it is made
        twice: all that came before a name of the first one is in the second.
        """
        now = time.monotonic()
        if now >= self._next_look:
            names = _names_in(self.folder)
            if END_FILE in names or any(name > place.name for name in names):
                seen = {*names}
                last = max(filter(_is_wanted, names), default="")
                names = [
                    name
                    for name in _names_in(self.folder)
                    if name in seen or (_is_wanted(name) and name < last)
                ]
            took = time.monotonic() - now
            self._next_look = now + took * (1 + _REST) if took > _SLOW_LISTING else 0.0
            self._names = names
            for name in names:
                if is_whole(name) and not _is_wanted(name):
                    _logger.warning(
                        "%s is not read: a folder is read as JSON lines here", Path(self.folder, name)
                    )
        return [name for name in self._names if _is_wanted(name)], END_FILE in self._names

    def _had_their_turn(self, names: list[str], place: _Place) -> set[str]:
        """Return the names that were begun, as this process knows; say which came too late for it."""
        earlier = {name for name in names if name < place.name}
        begun = earlier if self._begun is None else self._begun
        begun &= {*names}  # what was removed need not be remembered
        for name in sorted(earlier - begun):
            _logger.warning(
                "%s came when %s was read already, and is left out: names must rise",
                Path(self.folder, name),
                place.name,
            )
        self._begun = begun | earlier
        return self._begun

    def _lines(
        self, name: str, byte: int, limit: int, *, is_done: bool
    ) -> tuple[list[bytes | LongLine], int, bool, bool]:
        """Return whole lines of a file from a byte on, and the byte behind them.

        And whether there are more now; and whether what is there was read to its last byte.
        """
        path = Path(self.folder, name)
        lines: list[bytes | LongLine] = []
        size, line, has_more = 0, b"", True
        try:
            found = path.stat()
            stand = _Stand(name, byte, found.st_size, found.st_mtime_ns)
            if found.st_size < byte and not _is_packed(name):
                self._let_go()
                raise _became_shorter(path, byte)
            if self._stand is not None and stand == self._stand[0] and not is_done:
                return [], byte, False, self._stand[1]
            stream = self._stream(path, name, byte)
            try:
                while len(lines) < limit and size < _MOST_BYTES:
                    line = stream.readline(MOST_LINE_BYTES + 1)
                    skipped, is_whole_line = 0, line.endswith(b"\n")
                    if len(line) > MOST_LINE_BYTES and not is_whole_line:
                        skipped, is_whole_line = _rest_of_line(stream)
                    if not line or not (is_whole_line or is_done):
                        has_more = False
                        break
                    if skipped or len(line) - is_whole_line > MOST_LINE_BYTES:
                        length = len(line) + skipped - is_whole_line
                        lines.append(LongLine(line[:SHOWN_BYTES], length, byte + size))
                    elif line.strip():
                        lines.append(line.rstrip(b"\r\n"))
                    else:
                        skipped = _blank_lines(stream)
                    size += len(line) + skipped
            except EOFError:  # of a packed file that is being written
                if is_done:
                    raise
                self._let_go()
                return lines, byte + size, False, False
        except (OSError, EOFError, zlib.error) as error:
            self._let_go()
            raise RocsteadyError(
                f"{path} cannot be read from byte {byte + size:,} on: "
                f"{getattr(error, 'strerror', None) or error}; restore it, or end the job"
            ) from None
        byte += size
        if has_more:
            self._open = name, byte, stream
        else:
            self._let_go()
            self._stand = stand._replace(byte=byte), not line
        return lines, byte, has_more, not has_more and not line

    def _stream(self, path: Path, name: str, byte: int) -> BinaryIO:
        """Open a file at a byte; go on with the one that is open if it stands there."""
        if self._open is not None and self._open[:2] == (name, byte):
            stream = self._open[2]
        else:
            self._let_go()
            stream = cast(BinaryIO, gzip.open(path) if _is_packed(name) else path.open("rb"))  # noqa: SIM115 - kept
            if stream.seek(byte) < byte:  # of a packed file, where its end is known only now
                stream.close()
                raise _became_shorter(path, byte)
        self._open = name, -1, stream  # while it moves it stands nowhere
        return stream

    def _let_go(self) -> None:
        if self._open is not None:
            self._open[2].close()
            self._open = None


_lock = threading.Lock()
_readers: dict[str, _Reader] = {}


def _reader_of(folder: str) -> _Reader:
    with _lock:
        return _readers.setdefault(folder, _Reader(folder))
