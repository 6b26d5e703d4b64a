"""A pipe of JSON lines as a partition of a stream.

Invariant
    Every line is in exactly one part, in order, also if the line came in several pieces. The line is a row
    of the part's chunk, or a dead letter. The last line needs no newline.

A pipe's bytes cannot be read twice. So this partition is read in the process that has the pipe.
"""

from __future__ import annotations

import os
import select
import time

from ....core.errors import RocsteadyError
from ...events.fields import EventFields
from ...files.lines import WholeLines, without_blank_lines
from ..files.json_lines import keys_of_first
from .partition import Fetched, StreamPartition, line_parts

_BLOCK_BYTES = 1 << 20
"""Bytes of lines read at once, at most: a due row waits until all lines of the block are evaluated."""

_GATHER_SECONDS = 0.05


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
        _widen(handle)

    @property
    def name(self) -> str:
        """The name that dead letters give."""
        return self._name

    def fetch(self, offset: int, limit: int, wait: float, place: str = "") -> Fetched:  # noqa: ARG002
        """Read up to 1 MiB, and return all lines that are whole now; wait up to `wait` seconds for bytes.

        Raises RocsteadyError where the pipe cannot be read.
        """
        data = b"" if self._ended else self._gather(0.0 if self._stopped else wait)
        self._ended |= self._stopped
        blocks = [self._lines.feed(data)]
        if self._ended:
            blocks.append(self._lines.rest())
        parts = []
        for long, block in blocks:
            self._settle(block)
            for part in line_parts([(long, block)], self.name, offset, self._fields):
                offset += part.chunk.records
                parts.append(part)
        return Fetched((), (), offset, at_end=not data, parts=parts, ended=self._ended)

    def stop(self) -> None:
        """Let the next fetch read the bytes that are in the pipe now, and end the partition."""
        self._stopped = True

    def _gather(self, wait: float) -> bytes:
        """Read the bytes that are there. A pipe gives 64 KiB at once; even a short block costs 2 ms."""
        parts: list[bytes] = []
        missing = _BLOCK_BYTES
        started = time.monotonic()
        while missing and _is_ready(self._handle, 0.0 if parts else wait):
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
        return b"".join(parts)

    def _settle(self, block: bytes) -> None:
        """Find the source of the model's name in the first object of a block, unless it is known."""
        if not self._settled and (keys := keys_of_first(without_blank_lines(block).split(b"\n"))) is not None:
            self._fields = self._fields.resolved(keys, self.name)
            self._settled = True


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
