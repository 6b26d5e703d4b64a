"""Reads each source in a thread of its own: so a wait for one source, such as a topic, delays no other."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...transforms.tables.followed import Came

_WAITING = 64
"""The most tables that wait to be taken: beyond this, a reader waits."""

_LOOK_SECONDS = 0.2
_PATIENCE_SECONDS = 2.0


class Source(NamedTuple):
    """A source of records.

    what  "rows" or "alerts"
    came  its records, as `follow_tables` yields them
    """

    name: str
    what: str
    came: Iterator[Came]


class Readers:
    """Threads that read sources until `stop`."""

    def __init__(self) -> None:
        self._queue: queue.Queue[tuple[Source, Came | Exception]] = queue.Queue(_WAITING)
        self._threads: list[threading.Thread] = []
        self.stopped = threading.Event()

    def start(self, sources: Iterable[Source]) -> None:
        """Begin to read."""
        for source in sources:
            thread = threading.Thread(target=self._read, args=(source,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """End reading."""
        self.stopped.set()
        for thread in self._threads:
            thread.join(_PATIENCE_SECONDS)  # a consumer of a topic may be waiting for its brokers

    def take(self, seconds: float) -> Iterator[tuple[Source, Came | Exception]]:
        """Yield the tables that came, for so many seconds; an error is the last item of its source."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self.stopped.is_set():
            try:
                yield self._queue.get(timeout=min(left, _LOOK_SECONDS))
            except queue.Empty:
                continue

    def _read(self, source: Source) -> None:
        try:
            for came in source.came:
                self._put(source, came)
                if self.stopped.is_set():
                    return
        except Exception as error:  # whatever a source does, the page of its records stays
            self._put(source, error)

    def _put(self, source: Source, came: Came | Exception) -> None:
        while not self.stopped.is_set():
            try:
                self._queue.put((source, came), timeout=_LOOK_SECONDS)
            except queue.Full:
                continue
            return
