"""A served page for tests: a keeper that is fed by hand, requests over a socket, and events as they come."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import queue
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

import numpy as np
from rocsteady.pipelines.serve import keeper as keepers
from rocsteady.pipelines.serve.keeper import Keeper
from rocsteady.pipelines.serve.pages import Look
from rocsteady.pipelines.serve.reading import Source
from rocsteady.pipelines.serve.server import serving
from rocsteady.transforms.tables.followed import Came

PATIENCE = 120.0
"""Seconds after which a wait is given up: for what hangs, not for what is slow."""

NO_MORE = Came(None, {})


class Fed:
    """Sources of rows and alerts that a test fills."""

    def __init__(self, what="rows"):
        self._came = queue.Queue()
        self.source = Source("a test", what, self._each())

    def _each(self):
        while True:
            try:
                yield self._came.get(timeout=0.05)
            except queue.Empty:
                yield NO_MORE

    def put(self, table, metadata=None):
        self._came.put(Came(table, metadata or {}))


class Served:
    """A server in this process, and what feeds it."""

    def __init__(self, keeper, fed, address):
        self.keeper, self.fed, self.address = keeper, fed, address
        self.rows, self.alerts = fed["rows"], fed.get("alerts")
        self.port = urlsplit(address).port

    def wait(self, holds):
        """Wait until something holds for what is published."""
        until = time.monotonic() + PATIENCE
        while not holds(self.keeper.published):
            assert time.monotonic() < until, self.keeper.published.position
            time.sleep(0.01)

    def has(self, rows):
        """Wait until so many rows are published."""
        self.wait(lambda now: now.position == rows)

    def judged(self, rows):
        """Wait until a page is made of so many rows."""
        self.wait(lambda now: now.page.position == rows)


@contextmanager
def served(*, token=None, host="127.0.0.1", port=0, followed=(), most=100_000, tick=0.02, judge=0.05):
    """Serve what a test feeds: rows, and the tables that are followed beside them."""
    before = keepers.TICK_SECONDS, keepers.JUDGE_SECONDS
    keepers.TICK_SECONDS, keepers.JUDGE_SECONDS = tick, judge
    keeper = Keeper(Look(followed=followed), most)
    fed = {what: Fed(what) for what in ("rows", *followed)}
    try:
        with serving(keeper, "--host", host, port, token) as address:
            keeper.start([one.source for one in fed.values()])
            try:
                yield Served(keeper, fed, address)
            finally:
                keeper.stop()
    finally:
        keepers.TICK_SECONDS, keepers.JUDGE_SECONDS = before


def asked(port, path="/", method="GET", **headers):
    """The answer to a request: status, headers, and what was sent."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(
            method, path, headers={name.replace("_", "-"): text for name, text in headers.items()}
        )
        answer = connection.getresponse()
        return answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def numbers(packed):
    """The numbers of a packed block."""
    plain = gzip.decompress(packed)
    return np.frombuffer(np.frombuffer(plain, np.uint8).reshape(8, -1).T.tobytes(), "<f8")


class Follower:
    """What a page keeps of the events: its columns, in the order of its series."""

    def __init__(self, names=("seq", "auc")):
        self.names = names
        self.at = ""
        self.words = -1
        self.counts = []
        self.columns = {}

    def take_page(self, published):
        """Take the page and its columns, as a browser fetches them."""
        page, epoch = published.page, published.epoch
        self.at, self.words = f"{page.epoch}-{page.position}", page.words
        self.columns = {
            name: numbers(epoch.column(name, page.position)) for name in self.names if epoch.has(name)
        }
        text = page.html.decode()
        meta = json.loads(text.partition('id="meta">')[2].partition("</script>")[0])
        assert meta["at"] == self.at
        self.counts = [stop - first for _, _, first, stop in meta["series"]]

    def take(self, event, published):
        """Take an event as the page's code does."""
        name, data = event["event"], event["data"]
        epoch, _, position = self.at.rpartition("-")
        if name == "page":
            told = json.loads(data)
            if told["epoch"] != epoch:
                self.take_page(published)
            return
        rows = json.loads(data)
        if rows["epoch"] != epoch or rows["to"] <= int(position):
            return
        assert rows["from"] <= int(position)
        skip = int(position) - rows["from"]
        values = numbers(base64.b64decode(rows["values"])).reshape(len(rows["names"]), -1)
        series = rows["series"]
        for name, column in self.columns.items():
            at, parts = 0, []
            for place, count in enumerate(self.counts):
                parts.append(column[at : at + count])
                at += count
                behind = [n for n in range(skip, len(series)) if series[n] == place]
                new = (
                    values[rows["names"].index(name)]
                    if name in rows["names"]
                    else np.full(len(series), np.nan)
                )
                parts.append(new[behind])
            self.columns[name] = np.concatenate(parts)
        for n in range(skip, len(series)):
            self.counts[series[n]] += 1
        self.at = f"{epoch}-{rows['to']}"


def parsed(text):
    """An event as the fields of its lines."""
    parts = (line.partition(":") for line in text.strip().splitlines())
    return {name: value.removeprefix(" ") for name, _, value in parts}
