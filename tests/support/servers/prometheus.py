"""A real Prometheus: promtool checks files, and a server scrapes jobs and answers queries."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager

from rocsteady.runners.servers.processes import free_port

from tests.support.requirements import lacking

PATIENCE = 60.0
"""Seconds until an answer that does not come is given up."""

SCRAPED_EVERY = "1s"
RATE_INTERVAL = "4s"
"""What Grafana puts in for $__rate_interval: four times the interval of the scrapes."""


def needed():
    """Skip (with ROCSTEADY_REQUIRE_SERVERS=1: fail) unless Prometheus and promtool are on this machine."""
    for command in ("prometheus", "promtool"):
        if shutil.which(command) is None:
            lacking(
                f"{command} is not here: apt-get install prometheus", required_by="ROCSTEADY_REQUIRE_SERVERS"
            )


def promtool(*words):
    """What promtool says; it must find no fault."""
    ran = subprocess.run(
        ["promtool", *map(str, words)], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def queries(board, *titles):
    """The queries of the panels of a dashboard with these titles; without titles of all panels."""
    assert {*titles} <= {panel["title"] for panel in board["panels"]}
    panels = (panel for panel in board["panels"] if not titles or panel["title"] in titles)
    return [target["expr"] for panel in panels for target in panel["targets"]]


def filled(query, jobs, model=""):
    """A query with the values of its variables, as Grafana puts them in.

    jobs   the address of a job as a regular expression
    model  the name of a model
    """
    values = {"$__rate_interval": RATE_INTERVAL, "$job": jobs, "$model": model}
    for variable, value in values.items():
        query = query.replace(variable, value.replace("\\", "\\\\").replace('"', '\\"'))
    return query


class Prometheus:
    """A server that answers at a port."""

    def __init__(self, port):
        self._address = f"http://127.0.0.1:{port}"

    def ready(self):
        try:
            with urllib.request.urlopen(f"{self._address}/-/ready", timeout=PATIENCE) as answer:
                return answer.status == 200
        except (urllib.error.URLError, ConnectionError):
            return False

    def asked(self, path, **fields):
        """The data of an answer of the API; an error of the query fails the test with the server's words."""
        url = f"{self._address}/api/v1/{path}?{urllib.parse.urlencode(fields)}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{url}: {error.read().decode()}") from None

    def found(self, query):
        """The series that a query gives now: their labels, and numbers."""
        found = self.asked("query", query=query)["result"]
        return [(series["metric"], float(series["value"][1])) for series in found]

    def label_values(self, selector, label):
        return self.asked(f"label/{label}/values", **{"match[]": selector})


@contextmanager
def prometheus(settings, folder):
    """A server with a file of settings, scraping every second; its data are in a folder."""
    port = free_port()
    text = re.sub(r"(_interval): \w+", rf"\1: {SCRAPED_EVERY}", settings.read_text())
    settings.write_text(text)
    log = folder / "prometheus.log"
    with log.open("w") as said:
        process = subprocess.Popen(
            ["prometheus", f"--config.file={settings}", f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}"],
            stdout=said, stderr=said,
        )  # fmt: skip
        try:
            server = Prometheus(port)
            wait_for(lambda: process.poll() is not None or server.ready(), "Prometheus is ready")
            assert process.poll() is None, log.read_text()
            yield server
        finally:
            process.terminate()
            process.wait(PATIENCE)


def wait_for(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)
