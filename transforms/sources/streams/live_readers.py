"""Sources whose end is not known, read as they grow: lines on a pipe, files that appear in a folder.

Invariant
    Every record that a source gives is in exactly one `Arrived`, in the order of its partition, whatever the
    pieces in which it came: a row of the chunk, or a dead letter where it is none. What cannot be read of a
    source is a dead letter too, and said in the log.

A reader knows nothing of what becomes of its records, and nothing of Beam. Who drives it (`pipelines.live`)
asks for what has come, and says when to stop.
"""

from __future__ import annotations

import os
import select
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from ....core.errors import InputError, RocsteadyError
from ....core.events.reasons import Reason
from ....core.process.console import logger
from ...events.batches import records_to_batch
from ...events.chunk import Chunk
from ...events.dead_letters import DeadLetter, DeadLetters
from ...events.fields import EventFields
from ...files.formats import FORMATS, SourceFile
from ...files.lines import LongLine, WholeLines, without_blank_lines
from ..files.json_lines import keys_of_first, line_chunks
from ..files.listing import check_columns, column_names, list_sources
from ..files.partition import read_batches
from .folder_partition import END_FILE, is_whole

_logger = logger(__name__)

_BLOCK_BYTES = 1 << 20
"""Of lines that are read at once, at the most: what is due of them has to wait for all of them."""

_GATHER_SECONDS = 0.05
_POLL_SECONDS = 0.2
_WATCHED = 100
"""Files last read that are looked at again with every poll, whether they have changed; all are at the end."""


class Arrived(NamedTuple):
    """Consecutive records of a partition of a source.

    partition  its number, from 0; records of one are in order, and late or not by each other alone
    source     the name that dead letters give
    fields     what the columns are; it is settled where the model comes from
    chunk      the records, and their positions in `source`
    """

    partition: int
    source: str
    fields: EventFields
    chunk: Chunk


class LiveReader(Protocol):
    """A source of numbered records that come when they come."""

    def next(self, wait: float) -> Sequence[Arrived] | None:
        """Return what has come; wait for it, if for nothing else, some `wait` seconds. None: it has ended."""
        ...

    def stop(self) -> None:
        """End soon: what has reached this process, or has been begun, still comes; nothing else does."""
        ...

    @property
    def unread(self) -> int:
        """How many times something of the source could not be read: each is a dead letter."""
        ...


class PipeReader:
    """JSON lines from a pipe, a terminal or a file that is open, as they come; the last one may be partial.

    Where nobody said which model an event is of, the first line that is an object decides: by its key
    "model", or else all are of the model `name`.
    """

    unread = 0

    def __init__(self, handle: int, fields: EventFields, name: str = "stdin") -> None:
        self._handle = handle
        self._name = name
        self._fields = fields
        self._settled = fields.model is not None or fields.model_name is not None
        self._lines = WholeLines()
        self._position = 0
        self._stopped = False
        self._ended = False
        _widen(handle)

    def next(self, wait: float) -> Sequence[Arrived] | None:
        """Return the lines that are whole by now; see `LiveReader`."""
        if self._ended:
            return None
        data = self._gather(0.0 if self._stopped else wait)
        self._ended |= self._stopped
        found = [self._lines.take(data)]
        if self._ended:
            found.append(self._lines.rest())
        arrived = tuple(each for long, block in found for each in self._arrived(long, block))
        return None if self._ended and not arrived else arrived

    def stop(self) -> None:
        """Read what is in the pipe now, and no more."""
        self._stopped = True

    def _gather(self, wait: float) -> bytes:
        """Read what is there. A pipe gives some 64 KiB at once, and a block costs 2 ms however short."""
        parts: list[bytes] = []
        missing = _BLOCK_BYTES
        started = time.monotonic()
        while missing and _is_ready(self._handle, 0.0 if parts else wait):
            try:
                data = os.read(self._handle, missing)
            except BlockingIOError:  # whoever opened it made it so
                break
            except OSError as error:
                raise RocsteadyError(f"{self._name} cannot be read: {error.strerror or error}") from None
            if not data:
                self._ended = True
                break
            parts.append(data)
            missing -= len(data)
            if os.name != "posix" or time.monotonic() - started > wait + _GATHER_SECONDS:
                break
        return b"".join(parts)

    def _fields_by(self, block: bytes) -> EventFields:
        if not self._settled and (keys := keys_of_first(without_blank_lines(block).split(b"\n"))) is not None:
            self._fields = self._fields.resolved(keys, self._name)
            self._settled = True
        return self._fields

    def _arrived(self, long: LongLine | None, block: bytes) -> Iterator[Arrived]:
        fields = self._fields_by(block)
        columns, numbers = fields.columns_of("event"), fields.number_columns
        text_columns = [column for column in columns if column not in numbers]
        for chunk in line_chunks(long, block, self._name, self._position, text_columns, columns):
            self._position += chunk.records
            yield Arrived(0, self._name, fields, chunk._replace(bytes_read=len(block)))


def _is_ready(handle: int, wait: float) -> bool:
    """Wait until there is something to read, or the end. Windows cannot tell: there a read will wait."""
    return os.name != "posix" or bool(select.select([handle], [], [], wait)[0])


def _widen(handle: int) -> None:
    """Let a pipe hold a block, where the system can: fewer and larger pieces cost less."""
    try:
        import fcntl

        fcntl.fcntl(handle, fcntl.F_SETPIPE_SZ, _BLOCK_BYTES)
    except (ImportError, AttributeError, OSError):
        pass


class _Stamp(NamedTuple):
    """What tells whether a file is as it was: how many bytes, when written, which file."""

    size: int
    written: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> _Stamp:
        found = path.stat()
        return cls(found.st_size, found.st_mtime_ns, found.st_ino)


class FolderReader:
    """The files of a folder, each read once as it appears; all of them are one partition.

    A file counts from the moment when its name is there: it must be written elsewhere, or under a name that
    starts with "." or "_" or ends in ".tmp", and be renamed when it is whole. Files found together are read
    in order of their names. The folder is complete when it has a file `_END`, or has had no new one for
    `idle` seconds.

    A file that changes after it was found, vanishes before it is read, or is damaged is said in the log, and
    a dead letter, behind what could be read of it; an empty one, or one of another ending, is only said.
    Raises InputError where the first file lacks a column, RocsteadyError where the folder cannot be listed.
    """

    def __init__(
        self, folder: str | os.PathLike[str], fields: EventFields, idle: float | None = None
    ) -> None:
        self._folder = Path(folder)
        self._fields = fields
        self._idle = idle
        self._stamps: dict[str, _Stamp | None] = {}
        self._watched: deque[str] = deque(maxlen=_WATCHED)
        self._found: deque[str] = deque()
        self._begun: Iterator[Arrived] = iter(())
        self._endings: set[str] = set()
        self._last_new = time.monotonic()
        self._complete = False
        self._stopped = False
        self._checked = False
        self.unread = 0

    def next(self, wait: float) -> Sequence[Arrived] | None:
        """Return some records of a file; see `LiveReader`."""
        for arrived in self._begun:
            return (arrived,)
        while self._found and not self._stopped:
            self._begun = self._records(self._found.popleft())
            for arrived in self._begun:
                return (arrived,)
        if self._stopped:
            return self._last_words()
        started = time.monotonic()
        changed = [letter for name in self._watched for letter in self._changes(name)]
        if self._look():
            self._last_new = time.monotonic()
        elif self._complete or (self._idle is not None and started - self._last_new >= self._idle):
            self.stop()
        elif not changed:
            # A large folder is not listed all the time.
            time.sleep(min(max(_POLL_SECONDS, 4 * (time.monotonic() - started)), max(wait, 0.0)))
        return changed

    def stop(self) -> None:
        """Read the file that has been begun to its end, and no other."""
        self._stopped = True

    def _last_words(self) -> Sequence[Arrived] | None:
        """Look at every file once more, then end."""
        if self._found:
            many = f"{len(self._found)} files were" if len(self._found) > 1 else "1 file was"
            _logger.warning("%s not read any more, from %s on", many, self._folder / self._found[0])
            self._found.clear()
        changed = [letter for name in self._stamps for letter in self._changes(name)]
        self._stamps.clear()
        self._watched.clear()
        return changed or None

    def _look(self) -> bool:
        """Find the names that are new; whether there are any."""
        new: list[str] = []
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    if entry.name == END_FILE:
                        self._complete = True
                    elif entry.name not in self._stamps and self._is_wanted(entry):
                        new.append(entry.name)
        except OSError as error:
            raise RocsteadyError(
                f"the folder {self._folder} cannot be listed: {error.strerror or error}"
            ) from None
        for name in sorted(new):
            self._stamps[name] = None
            self._found.append(name)
        return bool(new)

    def _is_wanted(self, entry: os.DirEntry[str]) -> bool:
        name = entry.name
        if not is_whole(name) or not entry.is_file():
            return False
        ending = Path(name.lower().removesuffix(".gz")).suffix
        if ending not in FORMATS and ending not in self._endings:
            self._endings.add(ending)
            _logger.warning("%s, and what else has such an ending, is not read", self._folder / name)
        return ending in FORMATS

    def _records(self, name: str) -> Iterator[Arrived]:
        """Yield what a file holds, and what is wrong with it."""
        path = self._folder / name
        try:
            self._stamps[name] = stamp = _Stamp.of(path)
        except OSError as error:
            yield self._unread(
                Reason.FILE_UNREADABLE,
                str(path),
                0,
                f"vanished before it was read: {error.strerror or error}",
            )
            return
        self._watched.append(name)
        if stamp.size == 0:
            _logger.warning("%s is empty (0 bytes): it has no events", path)
            return
        position = 0
        try:
            (source,) = list_sources(path)
            fields = self._checked_fields(source)
            for chunk in read_batches(source, fields):
                yield Arrived(0, source.name, fields, chunk)
                position = chunk.first_position + chunk.records
        except (RocsteadyError, OSError) as error:
            if isinstance(error, InputError) and not self._checked:
                raise
            yield self._unread(Reason.FILE_UNREADABLE, str(path), position, str(error))

    def _checked_fields(self, source: SourceFile) -> EventFields:
        """Return the fields of a file; the first one must have them all, later ones are told of."""
        names = column_names(source) or ()
        try:
            check_columns([source], self._fields)
        except InputError as error:
            if not self._checked:
                raise
            _logger.warning("%s", error)
        self._checked = True
        return self._fields.resolved(names, source.stem)

    def _changes(self, name: str) -> Iterator[Arrived]:
        """Yield a dead letter where a file that was read is another now; one that is gone may be."""
        before = self._stamps[name]
        if before is None:
            return
        with suppress(OSError):
            now = _Stamp.of(self._folder / name)
            if now != before:
                self._stamps[name] = now
                grown = now.size - before.size
                how = f"grew by {grown:,} bytes" if grown > 0 else "changed"
                yield self._unread(
                    Reason.FILE_CHANGED,
                    str(self._folder / name),
                    None,
                    f"{how} after it was found, and is not read again; rename files here when they are whole",
                )

    def _unread(self, reason: Reason, path: str, position: int | None, why: str) -> Arrived:
        self.unread += 1
        sentence = why if why.startswith(path) else f"{path} {why}"
        _logger.warning("%s", sentence)
        dead = DeadLetters.of([DeadLetter.invalid(reason, path, sentence, position)])
        fields = self._fields.resolved((), path)
        return Arrived(0, path, fields, Chunk(position or 0, records_to_batch([]), None, dead))
