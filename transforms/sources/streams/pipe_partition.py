"""A pipe of JSON lines as a partition of a stream: stdin, a terminal or a file that is open.

Invariant
    Every line is in exactly one part, in order, also if the line came in several pieces. The line is a row
    of the part's chunk, or a dead letter. The last line needs no newline.

A pipe's bytes cannot be read twice. So this partition is read in the process that has the pipe. A process
that goes on from an offset has a new pipe, whose producer sends again from the start: the records before the
offset are skipped. The place of an offset is a checksum of these records, so that others are not skipped.
"""

from __future__ import annotations

import math
import os
import select
import time
import zlib

from ....core.errors import RocsteadyError
from ...events.fields import EventFields
from ...files.lines import LongLine, WholeLines, without_blank_lines
from ..files.json_lines import begun_lines, keys_of_first
from .partition import Fetched, StreamPartition, line_parts

_BLOCK_BYTES = 1 << 20
"""Bytes of lines read at once, at most: a due row waits until all lines of the block are evaluated."""

_GATHER_SECONDS = 0.1
"""Seconds between two blocks of a stream that comes in pieces: a step costs 3 ms, however few its records."""

_NAP_SECONDS = 0.005
"""Seconds until the next look for a piece: a pipe of 64 KiB then still gives 13 MB a second."""


class PipePartition(StreamPartition):
    """JSON lines from a pipe, a terminal or a file that is open.

    If `fields` does not say where the model's name comes from, the first line that is an object decides.
    If this object has the key "model", every event's model is under this key. Otherwise all events are of
    the model `name`.
    """

    resumes = False

    def __init__(self, handle: int, fields: EventFields, name: str = "stdin") -> None:
        self._name = name
        self._handle = handle
        self._fields = fields
        self._settled = fields.model is not None or fields.model_name is not None
        self._lines = WholeLines()
        self._stopped = False
        self._ended = False
        self._gathered = -math.inf
        self._passed = self._sum = 0  # records that were given or skipped, and their checksum
        _widen(handle)

    @property
    def name(self) -> str:
        """The name that dead letters give."""
        return self._name

    def fetch(self, offset: int, limit: int, wait: float, place: str = "") -> Fetched:  # noqa: ARG002
        """Read up to 1 MiB, and return all lines that are whole now; wait up to `wait` seconds for bytes.

        The records before `offset` are skipped, if this process has not read them. Raises RocsteadyError
        where the pipe cannot be read, or does not begin with these records.
        """
        data = b"" if self._ended else self._gather(0.0 if self._stopped else wait)
        self._ended |= self._stopped
        blocks = [self._lines.feed(data)]
        if self._ended:
            blocks.append(self._lines.rest())
        parts = []
        for long, block in blocks:
            self._settle(block)
            if self._passed < offset:
                long, block = self._skip(long, block, offset, place)
            for part in line_parts([(long, block)], self.name, offset, self._fields):
                offset = self._passed = offset + part.chunk.records
                parts.append(part)
            self._sum = _checksum(long, block, self._sum)
        if self._passed < offset:
            self._refuse_end(offset)
            return Fetched((), (), offset, at_end=not data, place=place)
        return Fetched((), (), offset, not data, parts=parts, place=f"{self._sum:08x}", ended=self._ended)

    def _skip(
        self, long: LongLine | None, block: bytes, offset: int, place: str
    ) -> tuple[LongLine | None, bytes]:
        """Return the records from `offset` on. Raises RocsteadyError if those before do not fit `place`."""
        if long is not None:
            self._passed, self._sum, long = self._passed + 1, _checksum(long, b"", self._sum), None
        lines = _records_in(block)
        skipped = min(offset - self._passed, len(lines))
        self._passed += skipped
        self._sum = _checksum(None, b"".join(lines[:skipped]), self._sum)
        if self._passed == offset and place and place != f"{self._sum:08x}":
            raise RocsteadyError(
                f"{self.name} does not begin with the {offset:,} records that the job had read; let its "
                "producer send the same again from the start"
            )
        return long, b"".join(lines[skipped:])

    def _refuse_end(self, offset: int) -> None:
        if self._ended and not self._stopped:
            raise RocsteadyError(
                f"{self.name} ends after {self._passed:,} records, and the job had read {offset:,}; let its "
                "producer send the same again from the start"
            )

    def stop(self) -> None:
        """Let the next fetch read the bytes that are in the pipe now, and end the partition."""
        self._stopped = True

    def _gather(self, wait: float) -> bytes:
        """Read the bytes that are there, and those that come until `_GATHER_SECONDS` after the last block.

        So the first bytes after a silence are given at once. A pipe gives 64 KiB at once.
        """
        parts: list[bytes] = []
        missing = _BLOCK_BYTES
        started = time.monotonic()
        until = self._gathered + _GATHER_SECONDS
        while missing:
            if not _is_ready(self._handle, 0.0 if parts else wait):
                if not parts or self._stopped or time.monotonic() >= until:
                    break
                time.sleep(_NAP_SECONDS)
                continue
            try:
                data = os.read(self._handle, missing)
            except BlockingIOError:  # the pipe was opened as non-blocking
                break
            except OSError as error:
                raise RocsteadyError(f"{self.name} cannot be read: {error.strerror or error}") from None
            if not data:
                self._ended = True
                break
            parts.append(data)
            missing -= len(data)
            if os.name != "posix" or time.monotonic() - started > wait + _GATHER_SECONDS:
                break
        if parts:
            self._gathered = time.monotonic()
        return b"".join(parts)

    def _settle(self, block: bytes) -> None:
        """Find the source of the model's name in the first object of a block, unless it is known."""
        if not self._settled and (keys := keys_of_first(without_blank_lines(block).split(b"\n"))) is not None:
            self._fields = self._fields.resolved(keys, self.name)
            self._settled = True


def _records_in(block: bytes) -> list[bytes]:
    """Return the lines of a block that are records, each with its newline."""
    return [line + b"\n" for line in block.split(b"\n") if line.strip()]


def _checksum(long: LongLine | None, block: bytes, before: int) -> int:
    """Return the checksum of the records of `WholeLines.feed` behind those with the checksum `before`."""
    if long is not None:
        before = zlib.crc32(long.head + b"%d" % long.size, before)
    if not block.endswith(b"\n") or begun_lines(block) is None:  # it may have blank lines
        block = b"".join(_records_in(block))
    return zlib.crc32(block, before)


def _is_ready(handle: int, wait: float) -> bool:
    """Wait until there are bytes or the end. On Windows this is always True, and the read itself waits."""
    return os.name != "posix" or bool(select.select([handle], [], [], wait)[0])


def _widen(handle: int) -> None:
    """Let a pipe hold a block, where the system can: fewer and larger pieces cost less."""
    try:
        import fcntl

        fcntl.fcntl(handle, fcntl.F_SETPIPE_SZ, _BLOCK_BYTES)
    except (ImportError, AttributeError, OSError):
        pass
