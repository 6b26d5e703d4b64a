"""The pages, data and events that a server gives, as a Starlette application.

/                      the page
/static/...            its code, its style, and the plotting library
/api/models            the latest row of each model and slice, as JSON
/api/blocks/AT/NAME    a column or a text of the page, packed
/api/stream            events for a page that changes, as server-sent events
/healthz               whether the server runs
/metrics               time series of the latest rows, for Prometheus

Events
    `page`   a new page is there; data: its epoch and number. A browser that has another page fetches it.
    `rows`   rows behind those that the browser has; id and data say which (`Epoch.between`).
    `beat`   nothing happened for 15 s.
    The id of an event is AT, the rows that a browser has then: RUN-EPOCH-POSITION. A browser whose connection
    ended sends the last id, and gets the rows behind it. If the id is of another run or epoch, the browser
    gets the new page.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import cache

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ..monitoring.prometheus import CONTENT_TYPE, exposition, registry_of
from .gauges import page_series
from .guard import Guard
from .keeper import Keeper, Published
from .pages import page_script, page_style, plotly_script

BEAT_SECONDS = 15.0

STREAMS = 200
"""The most streams at once; any further stream is refused with status 503."""

ROWS_AT_ONCE = 5_000
"""The most rows of an event: some 1 MB. The server holds one event for each browser that reads slowly."""

_RETRY_MS = 2_000
_STATIC = {
    "page.js": (page_script, "text/javascript", "no-cache"),
    "style.css": (page_style, "text/css", "no-cache"),
    "plotly.js": (plotly_script, "text/javascript", "private, max-age=604800, immutable"),
}


@cache
def _static(name: str) -> tuple[bytes, bytes]:
    content = _STATIC[name][0]()
    return content, gzip.compress(content, 6, mtime=0)


def _takes_gzip(accepted: str) -> bool:
    """Tell whether a browser takes packed answers.

    >>> _takes_gzip("br, gzip"), _takes_gzip("gzip;q=0, br"), _takes_gzip("")
    (True, False, False)
    """
    for one in accepted.lower().split(","):
        coding, _, weight = one.partition(";")
        if coding.strip() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


class Events:
    """The events for one browser, from its rows on."""

    def __init__(self, keeper: Keeper, after: str) -> None:
        self._keeper = keeper
        epoch, _, position = after.rpartition("-")
        self._epoch = epoch
        self._position = int(position) if position.isdecimal() and len(position) < 16 else -1
        self._words = -1

    def next(self) -> str | None:
        """Return the next event; None if the browser has all that is published."""
        now = self._keeper.published
        if now.page.words != self._words or now.epoch.name != self._epoch:
            known = now.epoch.name == self._epoch and 0 <= self._position <= now.position
            if not known:
                self._epoch, self._position = now.epoch.name, now.page.position
            self._words = now.page.words
            data = json.dumps({"epoch": now.epoch.name, "words": now.page.words})
            return self._event("page", data)
        if self._position < now.position:
            stop = min(now.position, self._position + ROWS_AT_ONCE)
            data = _rows(now, self._position, stop)
            self._position = stop
            return self._event("rows", data)
        return None

    def _event(self, name: str, data: str) -> str:
        return f"event: {name}\nid: {self._epoch}-{self._position}\ndata: {data}\n\n"


_packed: dict[tuple[str, int, int], str] = {}


def _rows(now: Published, start: int, stop: int) -> str:
    """Return rows as an event's data; most browsers get the same rows, which are packed once."""
    key = now.epoch.name, start, stop
    if key not in _packed:
        if len(_packed) > 8:
            _packed.clear()
        _packed[key] = now.epoch.between(start, stop, now.page.names)
    return _packed[key]


class _Stream(StreamingResponse):
    """The stream of events for a browser.

    It calls `ended` however the events end, also if they end before the first.
    """

    def __init__(
        self, events: AsyncIterator[str], ended: Callable[[], None], headers: dict[str, str]
    ) -> None:
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


class Server:
    """The functions of the routes, and the number of open streams."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._registry = registry_of(page_series(keeper))
        self._streams = 0
        self.ended = threading.Event()

    async def page(self, _: Request) -> Response:
        """Return the page."""
        return Response(self._keeper.published.page.html, media_type="text/html; charset=utf-8")

    async def static(self, request: Request) -> Response:
        """Return a file that belongs to the page."""
        name = request.path_params["name"]
        if name not in _STATIC:
            return PlainTextResponse("There is no such file.\n", 404)
        plain, packed = await asyncio.to_thread(_static, name)
        _, media, caching = _STATIC[name]
        headers = {"cache-control": caching, "vary": "accept-encoding"}
        if _takes_gzip(request.headers.get("accept-encoding", "")):
            return Response(packed, media_type=media, headers=headers | {"content-encoding": "gzip"})
        return Response(plain, media_type=media, headers=headers)

    async def block(self, request: Request) -> Response:
        """Return a column of the rows that a page has, or one of the page's texts.

        Status 409 if the page has rows of an earlier epoch.
        """
        name = request.path_params["name"]
        epoch, _, position = request.path_params["at"].rpartition("-")
        now = self._keeper.published
        if epoch != now.epoch.name or not position.isdecimal() or len(position) > 15:
            return PlainTextResponse("The rows were arranged anew; take the page again.\n", 409)
        if name in now.page.texts:
            content = now.page.texts[name]
        elif name in now.page.names and int(position) <= now.position:
            content = await asyncio.to_thread(now.epoch.column, name, int(position))
        else:
            return PlainTextResponse("There is no such block.\n", 404)
        return Response(content, media_type="application/octet-stream")

    async def models(self, _: Request) -> Response:
        """Return the latest rows."""
        latest = self._keeper.published.page.latest
        return JSONResponse([row.told() for row in latest])

    async def stream(self, request: Request) -> Response:
        """Return a stream of changes, which ends when the browser leaves."""
        if self._streams >= STREAMS:
            return PlainTextResponse(f"{STREAMS} pages are open already.\n", 503)
        after = request.headers.get("last-event-id") or request.query_params.get("after", "")
        headers = {"x-accel-buffering": "no"}  # nginx would hold events back
        if request.method == "HEAD":
            return Response(headers=headers, media_type="text/event-stream")
        self._streams += 1
        return _Stream(self._events(after), self._stream_ended, headers)

    def _stream_ended(self) -> None:
        self._streams -= 1

    async def _events(self, after: str) -> AsyncIterator[str]:
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()

        def tell() -> None:
            with suppress(RuntimeError):  # the server has ended
                loop.call_soon_threadsafe(changed.set)

        end = self._keeper.listen(tell)
        events = Events(self._keeper, after)
        try:
            yield f"retry: {_RETRY_MS}\n\n"
            while not self.ended.is_set():
                changed.clear()
                while (event := await asyncio.to_thread(events.next)) and not self.ended.is_set():
                    yield event
                if self.ended.is_set():
                    break
                try:
                    await asyncio.wait_for(changed.wait(), BEAT_SECONDS)
                except TimeoutError:
                    yield "event: beat\ndata:\n\n"
        finally:
            end()

    async def health(self, _: Request) -> Response:
        """Return an answer that says that the server runs."""
        return PlainTextResponse("ok\n")

    async def metrics(self, _: Request) -> Response:
        """Return the time series of the page in the format of Prometheus."""
        return Response(await asyncio.to_thread(exposition, self._registry), media_type=CONTENT_TYPE)


def application(server: Server, *, host: str, port: int, token: str | None) -> Guard:
    """Return the whole application, with its guard."""
    routes = [
        Route("/", server.page),
        Route("/static/{name}", server.static),
        Route("/api/models", server.models),
        Route("/api/blocks/{at}/{name}", server.block),
        Route("/api/stream", server.stream),
        Route("/healthz", server.health),
        Route("/metrics", server.metrics),
    ]
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False  # a redirect would lead to the name that a request gives as its host
    return Guard(app, host=host, port=port, token=token)
