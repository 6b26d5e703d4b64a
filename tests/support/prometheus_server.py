"""A Prometheus that scrapes what a test says, where the program is on this machine."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager

from rocsteady.runners.servers.processes import free_port

STARTING = 503


def has_prometheus():
    return shutil.which("prometheus") is not None


@contextmanager
def prometheus(config, folder):
    """Run a Prometheus with a configuration (YAML); yield its port."""
    port = free_port()
    (folder / "prometheus.yml").write_text(config)
    command = [
        "prometheus", f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'series'}",
        f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn",
    ]  # fmt: skip
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield port
    finally:
        process.terminate()
        process.wait(60)


def value_of(port, query):
    """Return the value of a query that gives one number; None where it gives nothing yet."""
    url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            found = json.load(answer)["data"]["result"]
    except OSError as error:
        if isinstance(error, urllib.error.HTTPError) and error.code != STARTING:
            raise AssertionError(error.read().decode()) from None
        time.sleep(0.2)
        return None
    return float(found[0]["value"][1]) if found else None
