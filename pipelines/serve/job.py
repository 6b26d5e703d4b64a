"""`rocsteady evaluate ... --serve`: the page of a job that runs in this process.

A job that continues from a checkpoint has made rows and alerts in an earlier process. Its page first takes
these from their outputs, then takes the rows and alerts of this process. A row or an alert that comes twice
is on the page once. The counts of events are those of all processes of the job.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from ...core.errors import RocsteadyError
from ...core.process.console import say
from ...transforms.sinks.appended import STDOUT
from ...transforms.sinks.kinds import TableSink
from ...transforms.tables.followed import Came, tables_there
from ..arguments import address_of
from ..report.report_rows import EventCounters
from .guard import token_of
from .keeper import Keeper
from .pages import Look
from .reading import Source
from .server import check_packages, serving

_WAITING = 1_000
"""The most batches that wait for the page. A job waits if the page is so far behind."""

_LOOK_SECONDS = 0.5

_GATHER_SECONDS = 0.25
"""Seconds in which batches become one table: a job makes many small batches, and each table costs 3 ms."""


class PageSink(TableSink):
    """Gives a table of a job to its page, behind the part that an earlier process wrote."""

    def __init__(
        self, stop: threading.Event, metadata: Mapping[bytes, bytes], earlier: Iterator[Came]
    ) -> None:
        self._stop = stop
        self._metadata = metadata
        self._earlier = earlier
        self._batches: queue.Queue[pa.RecordBatch] = queue.Queue(_WAITING)

    def write(self, batch: pa.RecordBatch) -> None:
        """Take a batch; the page shows it soon after."""
        while not self._stop.is_set():
            try:
                self._batches.put(batch, timeout=_LOOK_SECONDS)
            except queue.Full:
                continue
            return

    def came(self) -> Iterator[Came]:
        """Yield the tables that came, until the page ends."""
        yield from self._earlier
        while not self._stop.is_set():
            try:
                batches = [self._batches.get(timeout=_LOOK_SECONDS)]
            except queue.Empty:
                yield Came(None, {})
                continue
            self._stop.wait(_GATHER_SECONDS)
            with suppress(queue.Empty):
                while True:
                    batches.append(self._batches.get_nowait())
            yield Came(pa.Table.from_batches(batches), self._metadata)


class PageFeed(NamedTuple):
    """The things that a job gives to its page.

    sinks     sinks that take batches, by the kind of the batches
    counters  a function that takes the counts of events
    """

    sinks: Mapping[str, Sequence[TableSink]]
    counters: Callable[[EventCounters], None]


@dataclass(frozen=True)
class JobPage:
    """The page of a job.

    metadata  how the rows are made, as in the metadata of a Parquet file of rows
    places    the outputs of the job's rows, and of the other tables that it makes; None = no output
    kafka     librdkafka's options for a topic
    """

    host: str
    port: int
    token: str | None
    look: Look
    metadata: Mapping[bytes, bytes]
    places: Mapping[str, str | None]
    kafka: Sequence[str]

    @classmethod
    def of(
        cls,
        where: str,
        token: str | None,
        look: Look,
        metadata: Mapping[bytes, bytes],
        places: Mapping[str, str | None],
        kafka: Sequence[str],
    ) -> JobPage:
        """Return the page that the texts of --serve and --serve-token describe.

        Raises ConfigError for a text that is not valid, MissingPackageError without the packages of the page.
        """
        check_packages("--serve")
        host, port = address_of("--serve", where)
        secret = token_of("--serve-token", token, host)
        return cls(host, port, secret, look, metadata, places, kafka)

    @contextmanager
    def served(self, *, resumes: bool) -> Iterator[PageFeed]:
        """Serve the page while the block runs; yield the feed that the job uses.

        resumes  whether an earlier process has made rows of the job

        Raises InputError if nothing can listen at the address.
        """
        stop = threading.Event()
        sinks = {
            what: PageSink(stop, self.metadata, self._earlier(what, place, stop) if resumes else iter(()))
            for what, place in self.places.items()
        }
        keeper = Keeper(self.look)
        with serving(keeper, "--serve", self.host, self.port, self.token) as shown:
            say(f"{shown} shows the rows while the job runs")
            gone = [what for what, place in self.places.items() if place in (None, STDOUT)]
            if resumes and gone:
                say(f"the page begins without the earlier {' and '.join(gone)}: they are in no file or topic")
            keeper.start([Source("the job", what, sink.came()) for what, sink in sinks.items()])
            try:
                yield PageFeed({what: [sink] for what, sink in sinks.items()}, keeper.count)
            finally:
                stop.set()
                keeper.stop()

    def _earlier(self, what: str, place: str | None, stop: threading.Event) -> Iterator[Came]:
        """Yield the records of a table that an earlier process wrote."""
        if place is not None and place != STDOUT:
            try:
                yield from tables_there(place, what, self.kafka, stop)
            except (RocsteadyError, OSError) as error:
                yield Came(None, {}, trouble=f"{what} that an earlier process wrote: {error}")
