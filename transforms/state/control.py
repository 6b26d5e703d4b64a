"""The control file of a stream: requests to a running job.

The file is at a place that both the job's readers and the requester can access. It holds one request, as
JSON:

    {"export": {"id": "20261122T093000.123456-0a1b2c3d", "folder": "/exports/monday"}}

Every reader checks the file from time to time (`ControlFile.request`). For a new request, a reader sends a
`StateMarker` after its packets so far. The id of the last request is a part of the reader's state. A later
request has a greater id, and replaces the earlier request.

A request is never removed, even if it is done or given up. Shards wait for the marker of every partition.
Without the request, a reader that had not seen it, or that restarts from an earlier state, would send no
marker. So, to give up a request, an empty request replaces it: this is a cut whose states are not written.
The cut releases the shards.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import NamedTuple

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from ...core.encoding.json import read_json
from ...core.process.console import logger
from ..sinks.table import replaced

_logger = logger(__name__)

POLL_SECONDS = 1.0


class ExportRequest(NamedTuple):
    """A request to write the state of all shards to a folder; the id is greater than all earlier ids."""

    id: str
    folder: str


class ControlFile:
    """A control file for a reader; the file is read at most once in `every` seconds.

    An unreadable file counts as no request; each reason is logged once.
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
        """Return the current request if its id is greater than `since`; otherwise None.

        O(1) between reads.
        """
        now = self._clock()
        if self._looked is None or now - self._looked >= self._every:
            self._looked = now
            self._last = self._read()
        return self._last if self._last is not None and self._last.id > since else None

    def _read(self) -> ExportRequest | None:
        try:
            if not FileSystems.exists(self.path):
                return None
            with FileSystems.open(self.path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
                data = bytes(file.read())
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


def ask(path: str, request: ExportRequest) -> None:
    """Write a request to a control file, in place of the earlier request. Raises OSError."""
    with replaced(path) as file:
        file.write(json.dumps({"export": request._asdict()}).encode())


def let_go(path: str, request: ExportRequest, name: str) -> bool:
    """Replace a request by an empty request with a new id `name`; return whether `request` was replaced.

    A newer request of another process stays. Raises OSError.
    """
    if ControlFile(path).request() != request:
        return False
    ask(path, ExportRequest(name, ""))
    return True
