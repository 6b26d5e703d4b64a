"""A pipe of JSON lines as a partition of a stream: stdin, a terminal, or a file that is open.

Invariant
    Every line is in exactly one part, in order, even if the line came in several pieces. The line is a row of
    the part's chunk, or a dead letter. The last line needs no newline.

A pipe's bytes cannot be read twice. So this partition is read in the process that has the pipe. A process
that continues from an offset has a new pipe, whose producer sends everything again from the start: the
records before the offset are skipped. The place of an offset is a checksum of these records, so that no other
records are skipped.
"""

from __future__ import annotations

import math
import os
import select
import time
import zlib
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from ....core.arrays import BoolArray, Int64Array
from ....core.errors import RocsteadyError
from ....core.events.rejected import Reason
from ...events.dead_letters import Chunk, DeadLetter, DeadLetters
from ...events.fields import EventFields, Role
from ...files.lines import LongLine, WholeLines
from ..files.json_lines import begun_lines, keys_of_first
from .partition import Fetched, Part, StreamPartition, chunk_at, line_parts

_BLOCK_BYTES = 1 << 20
"""The most bytes of lines that are read at once: a due row waits until all lines of the block are evaluated.
"""

_GATHER_SECONDS = 0.1
"""Seconds between two blocks of a stream that comes in pieces, because a step costs 3 ms, however few its
records.
"""

_NAP_SECONDS = 0.005
"""Seconds until the next look for a piece: a pipe of 64 KiB then still gives 13 MB a second."""


class Given(NamedTuple):
    """Consecutive records of a pipe, or of one kind of its records, as lines.

    long      a line that is too long; it is then the first record; None if there is no such line
    lines     the lines of the other records, each with its newline
    places    int64: the place of each record in the pipe, from 0; None if it is the record's place in this
              partition
    kindless  bool: whether a record does not say its kind; None if every record says it, or need not
    """

    long: LongLine | None
    lines: bytes
    places: Int64Array | None = None
    kindless: BoolArray | None = None

    def behind(self, count: int) -> tuple[Given, Given]:
        """Return the first `count` records, and the records behind these."""
        first = int(self.long is not None and count > 0)
        lines = records_in(self.lines)
        kept, left = lines[: count - first], lines[count - first :]
        places, kindless = self.places, self.kindless
        taken = Given(
            self.long if first else None,
            b"".join(kept),
            None if places is None else places[:count],
            None if kindless is None else kindless[:count],
        )
        return taken, Given(
            None if first else self.long,
            b"".join(left),
            None if places is None else places[count:],
            None if kindless is None else kindless[count:],
        )

    @property
    def records(self) -> int:
        """The number of records."""
        return (self.long is not None) + len(records_in(self.lines))


class RecordLines(Protocol):
    """The lines of a pipe, or of one kind of its records."""

    @property
    def has_ended(self) -> bool:
        """Whether the last line has been given."""

    @property
    def is_stopped(self) -> bool:
        """Whether the input ends with the bytes that are in the pipe now."""

    def read(self, wait: float) -> tuple[list[Given], bool]:
        """Return new records, and whether more may be there now; wait up to `wait` seconds for bytes."""

    def stop(self) -> None:
        """Let the next read take the bytes that are in the pipe now, and end the input."""


class PipeLines:
    """Reads whole lines from a pipe, a terminal or a file that is open; see `RecordLines`."""

    def __init__(self, handle: int, name: str = "stdin") -> None:
        self.name = name
        self.has_ended = False
        self.is_stopped = False
        self._handle = handle
        self._lines = WholeLines()
        self._gathered = -math.inf
        _widen(handle)

    def read(self, wait: float) -> tuple[list[Given], bool]:
        """Read up to 1 MiB. Raises RocsteadyError if the pipe cannot be read."""
        data = b"" if self.has_ended else self._gather(0.0 if self.is_stopped else wait)
        self.has_ended |= self.is_stopped
        found = [Given(*self._lines.feed(data))]
        if self.has_ended:
            found.append(Given(*self._lines.rest()))
        return found, bool(data)

    def stop(self) -> None:
        """See `RecordLines`."""
        self.is_stopped = True

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
                if not parts or self.is_stopped or time.monotonic() >= until:
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
                self.has_ended = True
                break
            parts.append(data)
            missing -= len(data)
            if os.name != "posix" or time.monotonic() - started > wait + _GATHER_SECONDS:
                break
        if parts:
            self._gathered = time.monotonic()
        return b"".join(parts)


class PipePartition(StreamPartition):
    """JSON lines from a pipe, a terminal or a file that is open, or the lines of one kind of its records.

    lines   the lines
    role    the role of the records
    name    the partition's name; dead letters name the pipe instead
    kind    the column that says the kind of a record; a record without a value in this column gives a dead
            letter

    If `fields` does not say where the model's name comes from, the first line that is an object decides. If
    this object has the key "model", every event's model is under this key. Otherwise all events belong to a
    model that is named after the pipe.
    """

    resumes = False

    def __init__(
        self,
        lines: RecordLines,
        fields: EventFields,
        role: Role = "event",
        name: str = "stdin",
        *,
        pipe: str = "stdin",
        kind: str = "",
    ) -> None:
        self._lines = lines
        self._fields = fields
        self._role: Role = role
        self._name, self._pipe = name, pipe
        self._kind = kind
        self._settled = fields.model is not None or fields.model_name is not None
        # the records that were given or skipped: their number and their checksum
        self._passed = self._sum = 0

    @property
    def name(self) -> str:
        """The partition's name."""
        return self._name

    def fetch(self, offset: int, limit: int, wait: float, place: str = "") -> Fetched:  # noqa: ARG002
        """Read up to 1 MiB, and return all lines that are now whole; wait up to `wait` seconds for bytes.

        The records before `offset` are skipped if this process has not read them. Raises RocsteadyError if
        the pipe cannot be read, or does not begin with these records.
        """
        found, came = self._lines.read(wait)
        parts = []
        for given in found:
            self._settle(given)
            if self._passed < offset:
                given = self._skip(given, offset, place)
            for part in self._parts(given, offset):
                offset = self._passed = offset + part.chunk.records
                parts.append(part)
            self._sum = _checksum(given, self._sum)
        if self._passed < offset:
            self._refuse_end(offset)
            return Fetched((), (), offset, at_end=not came, place=place)
        ended = self._lines.has_ended
        return Fetched((), (), offset, not came, parts=parts, place=f"{self._sum:08x}", ended=ended)

    def _parts(self, given: Given, offset: int) -> Iterator[Part]:
        """Yield records as parts; the first has the number `offset` in this partition."""
        blocks = [(given.long, given.lines)]
        places, kindless = given.places, given.kindless
        if places is None:
            yield from line_parts(blocks, self._pipe, offset, self._fields, self._role)
            return
        for part in line_parts(blocks, self._pipe, 0, self._fields, self._role):
            chunk = part.chunk
            if kindless is not None and kindless.any():
                chunk = self._with_kind(chunk, kindless)
            yield part._replace(chunk=chunk_at(chunk, places))

    def _with_kind(self, chunk: Chunk, kindless: BoolArray) -> Chunk:
        """Return the records that say their kind; the other records become dead letters."""
        places = chunk.places()
        if places is None or chunk.raw is None:
            return chunk
        lacks = kindless[places]
        wrong, kept = np.flatnonzero(lacks), np.flatnonzero(~lacks)
        reason, raw = Reason.RECORD_KIND_MISSING, chunk.raw
        detail = f"the record has no value in the column {self._kind!r}, which says of which kind it is"
        letters = [
            DeadLetter.invalid(reason, self._pipe, detail, place, text, self._kind)
            for place, text in zip(places[wrong].tolist(), raw(wrong).to_pylist(), strict=True)
        ]
        return chunk._replace(
            batch=chunk.batch.take(pa.array(kept)),
            positions=places[kept],
            dead=DeadLetters.concat([chunk.dead, DeadLetters.of(letters)]),
            raw=lambda rows: raw(kept[rows]),
        )

    def _skip(self, given: Given, offset: int, place: str) -> Given:
        """Return the records from `offset` on.

        Raises RocsteadyError if the records before `offset` do not fit `place`.
        """
        skipped, left = given.behind(offset - self._passed)
        self._passed += skipped.records
        self._sum = _checksum(skipped, self._sum)
        if self._passed == offset and place and place != f"{self._sum:08x}":
            raise RocsteadyError(
                f"{self.name} does not begin with the {offset:,} records that the job had read; let its "
                "producer send the same again from the start"
            )
        return left

    def _refuse_end(self, offset: int) -> None:
        if self._lines.has_ended and not self._lines.is_stopped:
            raise RocsteadyError(
                f"{self.name} ends after {self._passed:,} records, and the job had read {offset:,}; let its "
                "producer send the same again from the start"
            )

    def stop(self) -> None:
        """Let the next fetch read the bytes that are in the pipe now, and end the partition."""
        self._lines.stop()

    def _settle(self, given: Given) -> None:
        """Find the source of the model's name in the first object of this kind, unless it is known."""
        if self._settled:
            return
        lines = records_in(given.lines)
        if given.kindless is not None:
            kindless = given.kindless[len(given.kindless) - len(lines) :]
            lines = [line for line, lacks in zip(lines, kindless.tolist(), strict=True) if not lacks]
        if (keys := keys_of_first(lines)) is not None:
            self._fields = self._fields.resolved(keys, self._pipe)
            self._settled = True


def records_in(block: bytes) -> list[bytes]:
    """Return the lines of a block that are records, each with its newline."""
    return [line + b"\n" for line in block.split(b"\n") if line.strip()]


def _checksum(given: Given, before: int) -> int:
    """Return the checksum of records, continued from the checksum `before` of the earlier records."""
    if given.long is not None:
        before = zlib.crc32(given.long.head + b"%d" % given.long.size, before)
    block = given.lines
    if not block.endswith(b"\n") or begun_lines(block) is None:  # it may have blank lines
        block = b"".join(records_in(block))
    return zlib.crc32(block, before)


def _is_ready(handle: int, wait: float) -> bool:
    """Wait until there are bytes or the end of the input; return whether there are.

    On Windows this is always True, and the read itself waits.
    """
    return os.name != "posix" or bool(select.select([handle], [], [], wait)[0])


def _widen(handle: int) -> None:
    """Make the buffer of a pipe as large as a block, if the system can: fewer and larger pieces cost less."""
    try:
        import fcntl

        fcntl.fcntl(handle, fcntl.F_SETPIPE_SZ, _BLOCK_BYTES)
    except (ImportError, AttributeError, OSError):
        pass
