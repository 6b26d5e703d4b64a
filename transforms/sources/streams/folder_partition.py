"""A growing folder as a partition of a stream: the files are read one after another, in order of arrival.

Invariant
    Every record of every file comes once, from whatever place a reader continues: a place is a file, how far
    it was read, and the names of the files that were read before. A part of a file that cannot be read gives
    a dead letter.

A file counts from the moment when its name appears. Files that are found together are read in order of their
names; files that come later are read later, whatever their names. Files of JSON lines may grow until another
file comes, packed files by whole members; a last line without a newline is then a record. Files of other
formats must be complete when they appear: they are written in another place, or under a name that begins with
"_" or "." or ends in ".tmp", and then renamed. Files that were read may be removed. The folder is complete
when it has a file `_END`.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from ....core.errors import InputError, RocsteadyError
from ....core.events.rejected import Reason
from ....core.process.console import logger
from ...events.fields import EventFields, Role
from ...files.formats import everywhere, stem_of
from ..files.listing import column_names, is_named_by_file, list_sources, of_one_model
from .folder_files import FileRead, LinesFile, WholeFile
from .folder_listing import FolderListing, lines_may_grow
from .offsets import FilePlace, FolderPlace
from .partition import Fetched, Part, StreamPartition, unread_part

_logger = logger("rocsteady.folders")

_POLL_SECONDS = 0.05

_RENAME_WHOLE = "rename files here when they are whole"


@dataclass(frozen=True)
class FolderPartition(StreamPartition):
    """The files of a folder, on this machine or on a disk that all workers see, as events.

    fields  the roles of the columns. If the user has not said which model an event belongs to, the column
            "model" of its file does; if a file lacks this column, all its events belong to a model that is
            named after the file
    idle    seconds without anything new, after which the folder has ended; None = never
    is_continued  whether another job will continue this job. A stop, or `idle`, then leaves to that job the
            last file, which may grow, and its last line if the line has no newline yet
    role    the role of the records
    """

    folder: str
    fields: EventFields
    idle: float | None = None
    is_continued: bool = False
    role: Role = "event"

    @property
    def name(self) -> str:
        """The whole path of the folder."""
        return everywhere(self.folder)

    def continued(self) -> Self:
        """Return the folder for a job that another job will continue."""
        return replace(self, is_continued=True)

    def fetch(self, offset: int, limit: int, wait: float, place: str = "") -> Fetched:
        """Return up to `limit` records from a place on; the first has the number `offset` in the folder.

        Waits up to `wait` seconds for the first. Raises RocsteadyError if the folder cannot be listed,
        InputError if the first file is damaged at its beginning or lacks a column.
        """
        until = time.monotonic() + wait
        reader = _reader_of(self)
        found = reader.read(offset, place, limit)
        while found.at_end and not (found.parts or found.ended) and time.monotonic() < until:
            time.sleep(min(_POLL_SECONDS, wait))
            found = reader.read(offset, found.place, limit)
        return found

    def stop(self) -> None:
        """Let the next fetches read the file that was begun to its end, and no other file."""
        _reader_of(self).stop()

    def close(self) -> None:
        """Delete everything that this process holds of the folder."""
        with _lock:
            reader = _readers.pop(self, None)
        if reader is not None:
            reader.close()


@dataclass
class _Pass:
    """The state of one read: the place after it, how many more records may be read, and which files are done.

    before  the names of the existing files that earlier reads finished
    """

    name: str
    file: FilePlace
    left: int
    before: frozenset[str] = frozenset()
    parts: list[Part] = field(default_factory=list)
    read: set[str] = field(default_factory=set)


class _Reader:
    """The state that this process holds of a folder. Thread-safe.

    The place alone decides which records are returned. The process's earlier listings decide only which files
    are reported as changed, or as vanished before they were begun.
    """

    def __init__(self, partition: FolderPartition) -> None:
        self._of = partition
        self._folder = Path(partition.folder)
        self._listing = FolderListing(self._folder)
        self._lock = threading.Lock()
        self._open: tuple[str, LinesFile | WholeFile] | None = None
        self._stopped = False
        self._is_idle = False
        self._heard = time.monotonic()

    def read(self, offset: int, place: str, limit: int) -> Fetched:
        """Return up to `limit` records from a place on, and dead letters for parts that cannot be read."""
        with self._lock:
            found = self._read(offset, place, limit)
            if found.parts:
                self._heard = time.monotonic()
            elif self._of.idle is not None and time.monotonic() - self._heard >= self._of.idle:
                self._is_idle = True
                found = self._read(offset, found.place, limit)
            return found

    def stop(self) -> None:
        """Let later reads finish the file that was begun, and open no other file."""
        with self._lock:
            self._stopped = True

    def close(self) -> None:
        """Close the open file, if there is one."""
        with self._lock:
            self._let_go()

    def _read(self, offset: int, text: str, limit: int) -> Fetched:
        place = FolderPlace.of(text)
        now = _Pass(place.name, place.file, limit)
        for name in self._listing.look({place.name, *place.read}):
            self._tell_gone(name, FilePlace(), now)
        self._tell_changes(now)
        names = self._listing.names
        now.before = place.read.intersection(names)
        if place.name not in names:
            if not place.file.whole and place.name:
                self._tell_gone(place.name, place.file, now)
            now.file = FilePlace(whole=True)
        waiting = [name for name in names if name not in place.read]
        waiting.sort(key=lambda name: (name != place.name, name < place.name))
        left_out: list[str] = []
        if self._stopped:
            left_out = [name for name in waiting if name != place.name]
            waiting = [name for name in waiting if name == place.name]
        has_end = self._listing.complete or self._stopped or self._is_idle
        is_complete = has_end and (self._listing.complete or not self._of.is_continued)
        has_more = False
        for number, name in enumerate(waiting):
            is_last = number + 1 == len(waiting)
            has_more = self._read_file(name, now, is_done=is_complete or not is_last)
            if has_more or (now.left <= 0 and not is_last):
                has_more = True
                break
        before = now.before | now.read
        self._listing.note_read(now.read)
        ended = has_end and not has_more
        if ended:
            self._tell_changes(now, before)
            self._tell_left_out(left_out)
        said = FolderPlace(now.name, now.file, before).said()
        end = offset + sum(part.chunk.records for part in now.parts)
        return Fetched((), (), end, not has_more, parts=now.parts, place=said, ended=ended)

    def _read_file(self, name: str, now: _Pass, *, is_done: bool) -> bool:
        """Read on in a file; return whether it has more records now.

        `is_done` says that the file does not grow any more.
        """
        may_grow = lines_may_grow(name)
        is_done = is_done or not may_grow
        place = now.file if name == now.name else FilePlace()
        try:
            size, is_another = self._listing.stamp(name, again=may_grow)
            if is_another and place.records:
                why = f"was replaced by another file after it was read up to {place}; {_RENAME_WHOLE}"
                self._tell_unread(now, name, why, place.records, Reason.FILE_CHANGED)
                now.read.add(name)
                return False
            if not size and not place.records:
                if is_done:
                    _logger.warning("%s is empty (0 bytes): it has no events", self._folder / name)
                    now.read.add(name)
                else:  # lines that are added to this file precede the lines of later files
                    now.name, now.file = name, FilePlace(whole=True)
                return False
        except OSError as error:
            self._tell_gone(name, place, now, error.strerror or str(error))
            now.read.add(name)
            return False
        if not place.byte and not place.records and (other := self._namesake(name, now)) is not None:
            path, stem = self._folder / name, stem_of(name)
            self._tell_unread(now, name, of_one_model(str(path), str(self._folder / other), stem), 0)
            now.read.add(name)
            return False
        is_first, now.name, now.file = not now.name, name, place
        has_more = True
        while has_more and now.left > 0:
            has_more = self._read_on(now, is_done=is_done, is_first=is_first)
        if is_done and not has_more:
            now.read.add(name)
        return has_more

    def _read_on(self, now: _Pass, *, is_done: bool, is_first: bool) -> bool:
        try:
            got = self._file(now.name).read(now.file, now.left, is_done=is_done)
        except (InputError, OSError) as error:
            fault = error if isinstance(error, InputError) else RocsteadyError(str(error))
            got = FileRead([], now.file, fault=fault)
        if is_first:
            for wrong in (got.doubt, got.fault):
                if isinstance(wrong, InputError):
                    raise wrong
        if got.doubt is not None:
            _logger.warning("%s", got.doubt)
        now.parts += got.parts
        now.file = got.place
        now.left -= sum(part.chunk.records for part in got.parts)
        if got.fault is not None:
            self._tell_unread(now, now.name, str(got.fault), now.file.records, got.reason)
            now.read.add(now.name)
        return got.has_more

    def _file(self, name: str) -> LinesFile | WholeFile:
        """Return the reader of a file: the reader that has the file open, or a new reader."""
        if self._open is not None and self._open[0] == name:
            return self._open[1]
        self._let_go()
        (source,) = list_sources(self._folder / name)
        kind = LinesFile if source.format == "jsonl" else WholeFile
        self._open = name, kind(source, self._of.fields, self._of.role)
        return self._open[1]

    def _namesake(self, name: str, now: _Pass) -> str | None:
        """Return the name of a file that was read and named its model as this file does."""
        others = [each for each in now.before | now.read if each != name and stem_of(each) == stem_of(name)]
        if others and self._is_named_by_file(name):
            return next(filter(self._is_named_by_file, sorted(others)), None)
        return None

    def _is_named_by_file(self, name: str) -> bool:
        """Return whether the model of a file's events is named after the file."""
        fields = self._of.fields
        try:
            (source,) = list_sources(self._folder / name)
            names = column_names(source)
        except InputError:
            return False  # the reader of the file reports the fault
        return names is not None and is_named_by_file(
            fields, fields.resolved(names, source.stem), self._of.role
        )

    def _let_go(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def _tell_gone(
        self, name: str, place: FilePlace, now: _Pass, why: str = os.strerror(errno.ENOENT)
    ) -> None:
        if place.records:
            why = f"is gone, and was not read behind {place}"
        else:
            why = f"vanished before it was read: {why}"
        self._tell_unread(now, name, why, place.records)

    def _tell_changes(self, now: _Pass, read: Collection[str] | None = None) -> None:
        for name, how in self._listing.changes(read):
            why = f"{how} after it was found, and is not read again; {_RENAME_WHOLE}"
            self._tell_unread(now, name, why, None, Reason.FILE_CHANGED)

    def _tell_unread(
        self, now: _Pass, name: str, why: str, position: int | None, reason: Reason = Reason.FILE_UNREADABLE
    ) -> None:
        """Report in the log, and by a dead letter, the part of a file that cannot be read, and the reason."""
        path = str(self._folder / name)
        sentence = why if why.startswith(path) else f"{path} {why}"
        _logger.warning("%s", sentence)
        now.parts.append(unread_part(reason, path, position, sentence, self._of.fields))

    def _tell_left_out(self, names: Sequence[str]) -> None:
        if names:
            many = f"{len(names)} files were" if len(names) > 1 else "1 file was"
            _logger.warning("%s not read any more, from %s on", many, self._folder / names[0])


_lock = threading.Lock()
_readers: dict[FolderPartition, _Reader] = {}


def _reader_of(partition: FolderPartition) -> _Reader:
    with _lock:
        if partition not in _readers:
            _readers[partition] = _Reader(partition)
        return _readers[partition]
