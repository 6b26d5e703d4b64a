"""The documentation site, built as docs/conf.py says, and served on this machine alone."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support import ROOT


def built(folders: pytest.TempPathFactory) -> Path:
    """Return the folder of the site; the first process of a run that asks builds it, which takes 15 s.

    Fails with the warnings of the build.
    """
    own = folders.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    site, unfinished = shared / "site", shared / "unfinished-site"
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not site.exists():
            command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n"]
            done = subprocess.run(
                [*command, "-d", str(shared / "doctrees"), str(ROOT / "docs"), str(unfinished)],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            unfinished.rename(site)
    return site


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing of requests."""


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve the site at a free port of the loopback; the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
