"""A folder that grows as a partition of a stream: its files of JSON lines, in order of their names.

Invariant
    What is read is the lines of all files in order of names, each once, wherever it goes on from: a place is
    a file and a byte of it, and knows nothing of the process that read it.

Files may appear whole, or grow while they are read. A file is done when one of a later name is there; its
last line then needs no end. So names must rise, as part-000001.jsonl, part-000002.jsonl do: a file that
comes with an earlier name than that which is read is left out, and said in the log. Files that were read may
be removed. A file `_END` says that the folder is complete; other names that begin with "_" or ".", or end in
".tmp", are still being written.
"""

from __future__ import annotations

import gzip
import json
import logging
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from ..core.errors import CorruptBytesError, RocsteadyError
from ..core.rare_log import RareLog
from .stream_partition import Fetched

_logger = logging.getLogger("rocsteady.folders")
_logger.addFilter(RareLog())

END_FILE = "_END"
"""The name of a file that says that a folder is complete."""

ENDINGS = (".jsonl", ".json", ".jsonl.gz", ".json.gz")
_POLL_SECONDS = 0.05
_MOST_BYTES = 8 << 20
"""Of lines that are read at once, at the most."""


class _Place(NamedTuple):
    """Where a folder is read on: behind so many bytes, unpacked, of a file; "" = before the first."""

    name: str
    byte: int

    @classmethod
    def of(cls, text: str) -> _Place:
        if not text:
            return cls("", 0)
        try:
            name, byte = json.loads(text)
            return cls(str(name), int(byte))
        except (ValueError, TypeError) as damage:
            raise CorruptBytesError(f"the place in a folder contradicts itself: {damage}") from None


@dataclass(frozen=True)
class FolderPartition:
    """The files of a folder on this machine, or on one that all workers see, as messages: a line each."""

    folder: str

    @property
    def name(self) -> str:
        """What dead letters call it: the folder."""
        return self.folder

    def fetch(self, offset: int, limit: int, wait: float, place: str = "") -> Fetched:
        """Return up to `limit` lines from a place on, the first of which is number `offset` of the folder.

        Waits up to `wait` seconds for the first. Raises RocsteadyError where the folder cannot be read.
        """
        until = time.monotonic() + wait
        while True:
            lines, after, at_end, ended = self._lines(_Place.of(place), limit)
            if lines or ended or time.monotonic() >= until:
                break
            time.sleep(_POLL_SECONDS)
        number = offset + len(lines)
        said = json.dumps(after) if after.name else ""
        return Fetched(range(offset, number), lines, number, at_end, place=said, ended=ended)

    def end(self) -> int:
        """Return -1: how many lines there are nobody knows before they are read."""
        return -1

    def unread_partitions(self) -> int:
        """Return 0: a folder is one partition."""
        return 0

    def close(self) -> None:
        """Close the file that is open."""
        with _lock:
            _close(self)

    def _lines(self, place: _Place, limit: int) -> tuple[list[bytes | None], _Place, bool, bool]:
        """Return lines, where they end, whether nothing more is there now, and whether nothing will be."""
        names, complete = self._names()
        waiting = [name for name in names if name >= place.name]
        lines: list[bytes | None] = []
        with _lock:
            begun = self._begun(names, place)
            for number, name in enumerate(waiting):
                begun.add(name)
                is_done = complete or number + 1 < len(waiting)
                byte = place.byte if name == place.name else 0
                found, byte, has_more = _read(self, name, byte, limit - len(lines), is_done=is_done)
                lines += found
                place = _Place(name, byte)
                if has_more or len(lines) >= limit:
                    return lines, place, False, False
        return lines, place, True, complete

    def _names(self) -> tuple[list[str], bool]:
        """Return the names of files of lines, in order, and whether the folder is complete."""
        try:
            with os.scandir(self.folder) as entries:
                names = sorted(entry.name for entry in entries)
        except OSError as error:
            raise RocsteadyError(
                f"the folder {self.folder} cannot be listed: {error.strerror or error}"
            ) from None
        whole = [name for name in names if not name.startswith((".", "_")) and not name.endswith(".tmp")]
        for name in whole:
            if not name.lower().endswith(ENDINGS):
                _logger.warning(
                    "%s is not read: a folder is read as JSON lines here", Path(self.folder, name)
                )
        return [name for name in whole if name.lower().endswith(ENDINGS)], END_FILE in names

    def _begun(self, names: list[str], place: _Place) -> set[str]:
        """Return the names that had their turn, as this process knows; say which came too late."""
        earlier = {name for name in names if name < place.name}
        begun = _begun.setdefault(self, earlier)
        for name in sorted(earlier - begun):
            _logger.warning(
                "%s came when %s was read already, and is left out: names must rise",
                Path(self.folder, name),
                place.name,
            )
        begun |= earlier
        return begun


class _Open(NamedTuple):
    """A file that is open, and how many of its bytes, unpacked, were given."""

    name: str
    stream: BinaryIO
    byte: int


_lock = threading.Lock()
_open: dict[FolderPartition, _Open] = {}
_begun: dict[FolderPartition, set[str]] = {}


def _close(folder: FolderPartition) -> None:
    if (found := _open.pop(folder, None)) is not None:
        found.stream.close()


def _read(
    folder: FolderPartition, name: str, byte: int, limit: int, *, is_done: bool
) -> tuple[list[bytes], int, bool]:
    """Return whole lines of a file from a byte on, the byte behind them, and whether there are more now."""
    found = _open.get(folder)
    try:
        if found is None or (found.name, found.byte) != (name, byte) or found.stream.closed:
            _close(folder)
            path = Path(folder.folder, name)
            packed = name.lower().endswith(".gz")
            stream = cast(BinaryIO, gzip.open(path) if packed else path.open("rb"))  # noqa: SIM115 - kept open
            stream.seek(byte)
        else:
            stream = found.stream
        lines: list[bytes] = []
        size = 0
        has_more = True
        while len(lines) < limit and size < _MOST_BYTES:
            line = stream.readline()
            if not line or (not line.endswith(b"\n") and not is_done):
                has_more = False
                break
            size += len(line)
            if line.strip():
                lines.append(line.rstrip(b"\r\n"))
    except (OSError, EOFError) as error:
        raise RocsteadyError(
            f"{Path(folder.folder, name)} cannot be read from byte {byte:,} on: "
            f"{getattr(error, 'strerror', None) or error}; restore it, or end the job"
        ) from None
    byte += size
    if has_more:
        _open[folder] = _Open(name, stream, byte)
    else:
        stream.close()
        _open.pop(folder, None)
    return lines, byte, has_more
