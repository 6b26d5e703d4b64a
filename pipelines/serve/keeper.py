"""Keeps the page of a stream up to date.

It takes rows and other tables as they come, and makes pages of them.

Threads
    The keeper's thread takes what the readers' threads read, adds it to the history and makes pages. Requests
    read only what the keeper has published: `Published` never changes; in its epoch, rows may be added behind
    its `position`.

Rate
    New rows of an epoch are published `TICK_SECONDS` after the last ones. A page is made again when something
    came, `JUDGE_SECONDS` after the last page, and `_REST` times the seconds after it that it took: so pages
    take a fifth of one processor at most. A new epoch waits only for the last of these.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..report.report_rows import EventCounters, report_rows
from .epoch import Epoch
from .gathered import Gathered, told
from .history import ROWS_HELD
from .pages import Look, Page, page_of, remarks_of
from .reading import Readers, Source

TICK_SECONDS = 1.0

JUDGE_SECONDS = 5.0
"""The least number of seconds between two pages, while rows are only added."""

_REST = 4.0
_PATIENCE_SECONDS = 2.0
"""After so many seconds of reading a first page is made, even if a source has more."""


class Published(NamedTuple):
    """The state that requests see: an epoch up to a position, and the newest page of the epoch."""

    epoch: Epoch
    position: int
    page: Page


class Keeper:
    """Reads sources and publishes pages until it is stopped."""

    def __init__(self, look: Look, most: int = ROWS_HELD) -> None:
        self._look = look
        self.gathered = Gathered(most, look.confidence, look.followed)
        self._readers = Readers()
        self._run = secrets.token_hex(4)
        self._words = 0
        self._behind: set[tuple[str, str]] = set()
        self._listening: dict[int, Callable[[], None]] = {}
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self.published: Published
        self.make_page()

    # ---- what others call

    def start(self, sources: Iterable[Source]) -> None:
        """Begin to read and to publish."""
        sources = [*sources]
        self._behind = {(source.what, source.name) for source in sources}
        self._readers.start(sources)
        self._thread.start()

    def stop(self) -> None:
        """End reading and publishing."""
        self._readers.stop()
        self._thread.join()

    def listen(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Call `tell` in the keeper's thread whenever something is published.

        Return a function that ends this.
        """
        with self._lock:
            number = max(self._listening, default=0) + 1
            self._listening[number] = tell

        def end() -> None:
            with self._lock:
                self._listening.pop(number, None)

        return end

    def wake(self) -> None:
        """Call every function that listens."""
        with self._lock:
            listening = [*self._listening.values()]
        for tell in listening:
            tell()

    def count(self, counters: EventCounters) -> None:
        """Take the counts of events from a job in this process."""
        if counters != self.gathered.counters:
            self.gathered.counters = counters
            self.gathered.changed = True

    # ---- publishing

    def _keep(self) -> None:
        began = time.monotonic()
        published, judged, cost = began, began, 0.0
        first = True
        while not self._readers.stopped.is_set():
            caught_up = self._take_waiting()
            now = time.monotonic()
            if first and not caught_up and now - began < _PATIENCE_SECONDS:
                continue
            if not self.gathered.changed or now - published < TICK_SECONDS / 2:
                continue
            published = now
            anew = self.published.epoch.name != self._epoch_name()
            least = 0.0 if anew else JUDGE_SECONDS
            try:
                if first or now - judged >= max(least, _REST * cost):
                    self.gathered.changed = first = False
                    self.make_page()
                    judged = time.monotonic()
                    cost = judged - now
                elif anew or not self.grow():
                    continue
            except Exception as error:  # the page of before stays
                self.gathered.note("page", f"The page could not be made: {told(error)}.")
                self.gathered.changed, judged = False, time.monotonic()
                continue
            self.wake()

    def _take_waiting(self) -> bool:
        """Take the tables that wait, for at most a tick.

        Return whether the sources of rows have no more at present, and every table has been read once.

        Without this, a browser would load a page that lacks the table of a section, and again when the table
        comes.
        """
        for source, came in self._readers.take(TICK_SECONDS):
            if not self.gathered.take(source, came):
                continue
            waited = bool(self._behind)
            self._behind.discard((source.what, source.name))
            if (waited or source.what == "rows") and self.gathered.changed and not self._behind:
                return True
        return False

    def _epoch_name(self) -> str:
        return f"{self._run}-{self.gathered.history.epoch}"

    def make_page(self) -> None:
        """Publish a page of everything that came."""
        history = self.gathered.history
        rows = report_rows(history.table, settings=self.gathered.settings)
        name = self._epoch_name()
        if self._words and self.published.epoch.name == name:
            epoch = self.published.epoch
            self.grow()
        else:
            epoch = Epoch(name, rows, history.series)
            epoch.add(history.table, history.series_of_rows)
        self._words += 1
        page = page_of(
            rows, self.gathered, self._look, epoch=name, words=self._words, remarks=remarks_of(self.gathered)
        )
        self.published = Published(epoch, epoch.position, page)

    def grow(self) -> bool:
        """Publish the rows that were added within the epoch; return whether there are any."""
        epoch, history = self.published.epoch, self.gathered.history
        if (start := epoch.position) == len(history):
            return False
        epoch.add(history.table.slice(start), history.series_of_rows[start:])
        self.published = self.published._replace(position=epoch.position)
        return True
