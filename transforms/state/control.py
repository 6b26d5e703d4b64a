"""The control file of a stream: what is asked of a job while it runs.

A file at a place that the job's readers and who asks both see. It holds one request, as JSON:

    {"export": {"id": "20261122T093000.123456-0a1b2c3d", "folder": "/exports/monday"}}

Every reader looks at it now and then (`ControlFile.request`), and sends a `StateMarker` of a request that it
has not seen behind its packets; which one it saw last is a part of its own state. A later request has a
greater id, and takes the place of the one before.

A request is never removed, done or given up: a reader that has not seen it yet, or goes on from before it
saw it, would send no marker, and the shards wait for that of every partition. One that asks for nothing, and
lets them go, takes its place: a cut that nobody writes down.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from ...core.encoding.json import read_json
from ...core.process.console import logger
from ..files.formats import has_scheme
from ..sinks.table import replaced

_logger = logger(__name__)

POLL_SECONDS = 1.0


class ExportRequest(NamedTuple):
    """The state of all shards is wanted in a folder, under an id that is greater than those of before."""

    id: str
    folder: str


class ControlFile:
    """A control file as a reader sees it; it is looked at every `every` seconds at the most.

    What cannot be read is no request: it is said in the log, once for each reason.
    """

    def __init__(
        self, path: str, every: float = POLL_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.path = path
        self._every = every
        self._clock = clock
        self._looked: float | None = None
        self._last: ExportRequest | None = None
        self._said = ""

    def request(self, since: str = "") -> ExportRequest | None:
        """Return the request that is made, if it came after the one of this id. O(1) between two looks."""
        now = self._clock()
        if self._looked is None or now - self._looked >= self._every:
            self._looked = now
            self._last = self._read()
        return self._last if self._last is not None and self._last.id > since else None

    def _read(self) -> ExportRequest | None:
        try:
            data = _bytes_of(self.path)
        except OSError as error:
            self._say(f"the control file {self.path} cannot be read: {error.strerror or error}")
            return None
        if not data:
            return None
        try:
            asked = read_json(data, "the control file")["export"]
            return ExportRequest(str(asked["id"]), str(asked["folder"]))
        except (ValueError, KeyError, TypeError):
            self._say(
                f"the control file {self.path} is no request that rocsteady state writes: {data[:80]!r}"
            )
            return None

    def _say(self, sentence: str) -> None:
        if sentence != self._said:
            self._said = sentence
            _logger.warning("%s", sentence)


def _bytes_of(path: str) -> bytes:
    """Return what a file holds; nothing where there is none."""
    if not has_scheme(path):
        try:
            return Path(path).read_bytes()
        except FileNotFoundError:
            return b""
    if not FileSystems.exists(path):
        return b""
    with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
        return bytes(file.read())


def ask(path: str, request: ExportRequest) -> None:
    """Write a request to a control file; it takes the place of the one before. Raises OSError."""
    with replaced(path) as file:
        file.write(json.dumps({"export": request._asdict()}).encode())


def let_go(path: str, request: ExportRequest, name: str) -> bool:
    """Put a request that asks for nothing, under a new id, in the place of this one.

    That of somebody else, who asked since, stays. Return whether this one was there. Raises OSError.
    """
    if ControlFile(path).request() != request:
        return False
    ask(path, ExportRequest(name, ""))
    return True
