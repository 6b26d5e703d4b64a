"""Lists a followed folder and finds, for this process, new files and files that changed or vanished."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ....core.errors import RocsteadyError
from ....core.process.console import logger
from ...files.formats import FORMATS

_logger = logger("rocsteady.folders")

END_FILE = "_END"
"""The name of a file that says that a folder is complete."""

_SLOW_LISTING = 0.01
_REST = 4
"""After a listing that took more than `_SLOW_LISTING` seconds, no listing follows for this many times as
long.
"""

_WATCHED = 100
"""The number of files that every listing checks for changes: the files that were read last."""


def is_finished(name: str) -> bool:
    """Return whether a name belongs to a finished file: neither an unfinished file nor a control file."""
    return not name.startswith((".", "_")) and not name.endswith(".tmp")


def _ending(name: str) -> str:
    return Path(name.lower().removesuffix(".gz")).suffix


class _Stamp(NamedTuple):
    """The properties that show whether a file has changed: its size in bytes, modification time and inode."""

    size: int
    written: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> _Stamp:
        found = path.stat()
        return cls(found.st_size, found.st_mtime_ns, found.st_ino)


class FolderListing:
    """The files of a followed folder that must be read.

    names     the names of these files, in order
    complete  whether the folder has a file `_END`
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.names: list[str] = []
        self.complete = False
        self._next_look = 0.0
        self._stamps: dict[str, _Stamp] = {}
        self._watched: deque[str] = deque(maxlen=_WATCHED)
        self._endings: set[str] = set()
        self._odd: set[str] = set()

    def look(self, known: Collection[str]) -> list[str]:
        """List the folder; return the names that were new at the last look, and have vanished unread since.

        A listing that is made while files come may have a later file and not the file before it. So the
        folder is listed twice: all files that came before a name of the first listing, such as `_END`, are in
        the second listing.

        known  names that do not count as new
        """
        now = time.monotonic()
        if now < self._next_look:
            return []
        names, complete = self._list()
        if complete or names.difference(known):
            last = max(names, default="")
            later, _ = self._list()
            names |= later if complete else {name for name in later if name < last}
        vanished = [name for name in self.names if name not in names and name not in known]
        self.names, self.complete = sorted(names), complete
        self._stamps = {name: stamp for name, stamp in self._stamps.items() if name in names}
        took = time.monotonic() - now
        self._next_look = now + took * (1 + _REST) if took > _SLOW_LISTING else 0.0
        return vanished

    def _list(self) -> tuple[set[str], bool]:
        """Return the names of the files that must be read, and whether the folder is complete."""
        names: set[str] = set()
        complete = False
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    complete |= entry.name == END_FILE
                    if is_finished(entry.name) and self._is_file(entry) and self._is_known(entry.name):
                        names.add(entry.name)
        except OSError as error:
            raise RocsteadyError(
                f"the folder {self._folder} cannot be listed: {error.strerror or error}"
            ) from None
        return names, complete

    def _is_file(self, entry: os.DirEntry[str]) -> bool:
        try:
            if entry.is_file():
                return True
            why = "--follow reads the files of one folder; follow this folder alone"
            if "=" not in entry.name or not entry.is_dir():
                return False
        except OSError as error:  # such as a link to itself
            why = f"{error.strerror or error}; put a file there"
        if entry.name not in self._odd:
            self._odd.add(entry.name)
            _logger.warning("%s is not read: %s", self._folder / entry.name, why)
        return False

    def _is_known(self, name: str) -> bool:
        ending = _ending(name)
        if ending not in FORMATS and ending not in self._endings:
            self._endings.add(ending)
            _logger.warning("%s, and what else has such an ending, is not read", self._folder / name)
        return ending in FORMATS

    def stamp(self, name: str, *, again: bool) -> tuple[int, bool]:
        """Store the properties of a file before it is read. Raises OSError.

        Returns its size in bytes, and whether another file has taken its name since the properties were first
        stored.

        again  whether to store them again if they are stored already: the file may grow
        """
        before = stamp = self._stamps.get(name)
        if stamp is None or again:
            stamp = self._stamps[name] = _Stamp.of(self._folder / name)
        return stamp.size, before is not None and before.inode != stamp.inode

    def note_read(self, names: Iterable[str]) -> None:
        """Store that files were read to their ends: from now on these files must not change."""
        self._watched.extend(names)

    def changes(self, read: Collection[str] | None = None) -> Iterator[tuple[str, str]]:
        """Yield (name, how it changed) of changed files, among those read last or among `read`."""
        for name in [*self._watched] if read is None else sorted(read):
            if (before := self._stamps.get(name)) is None:
                continue
            with suppress(OSError):
                now = self._stamps[name] = _Stamp.of(self._folder / name)
                if now != before:
                    grown = now.size - before.size
                    yield name, f"grew by {grown:,} bytes" if grown > 0 else "changed"


def lines_may_grow(name: str) -> bool:
    """Return whether a name is that of a file of JSON lines, packed or not."""
    return FORMATS.get(_ending(name)) == "jsonl"
