"""`rocsteady evaluate ... --serve`: the page of a job that runs in this process."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa

from ...core.process.console import say
from ...transforms.sinks.kinds import TableSink
from ...transforms.tables.followed import Came
from ..arguments import address_of
from .guard import token_of
from .keeper import Keeper
from .pages import Look
from .reading import Source
from .server import serving

_WAITING = 1_000
"""The most batches that wait for the page. A job waits when the page lags so far behind."""

_LOOK_SECONDS = 0.5


class PageSink(TableSink):
    """Gives the rows or the alerts of a job to its page."""

    def __init__(self, stop: threading.Event, metadata: Mapping[bytes, bytes]) -> None:
        self._stop = stop
        self._metadata = metadata
        self._batches: queue.Queue[pa.RecordBatch] = queue.Queue(_WAITING)

    def write(self, batch: pa.RecordBatch) -> None:
        """Take a batch; it is shown soon after."""
        while not self._stop.is_set():
            try:
                self._batches.put(batch, timeout=_LOOK_SECONDS)
            except queue.Full:
                continue
            return

    def came(self) -> Iterator[Came]:
        """Yield what came, until the page ends."""
        while not self._stop.is_set():
            try:
                batch = self._batches.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                yield Came(None, {})
            else:
                yield Came(pa.Table.from_batches([batch]), self._metadata)


@contextmanager
def page_of_job(
    where: str | None, token: str | None, look: Look, metadata: Mapping[bytes, bytes]
) -> Iterator[Mapping[str, Sequence[TableSink]]]:
    """Serve the page of a job while the block runs; yield its sinks by the kind of their batches.

    where     the text of --serve; None: no page and no sinks
    metadata  on how the rows are made, as in a Parquet file of rows
    """
    if where is None:
        yield {}
        return
    host, port = address_of("--serve", where)
    secret = token_of("--serve-token", token, host)
    stop = threading.Event()
    sinks = {what: PageSink(stop, metadata) for what in (("rows", "alerts") if look.alerted else ("rows",))}
    keeper = Keeper(look)
    with serving(keeper, "--serve", host, port, secret) as shown:
        keeper.start([Source("the job", what, sink.came()) for what, sink in sinks.items()])
        say(f"{shown} shows the rows while the job runs")
        try:
            yield {what: [sink] for what, sink in sinks.items()}
        finally:
            stop.set()
            keeper.stop()
